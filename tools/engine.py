"""Makes sure a container engine answers on this machine: ``python tools/engine.py up`` and ``down``.

``up`` takes the first of these that works, and says which:

1. an engine that answers already (``DOCKER_HOST``, Docker's sockets, Podman's sockets);
2. on a machine run by systemd, ``systemctl start docker``;
3. as root on Debian or Ubuntu, the distribution's ``docker.io``, its daemon started in the background by us.

Otherwise it prints what to install and exits 3. ``down`` ends only a daemon that ``up`` started: the record
of it holds the process id *and* the process's start time, so a reused id is never mistaken for ours.
Standard library only: this runs before anything is installed.
"""

import argparse
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

SOCKET = "unix:///var/run/docker.sock"
LOG = Path("/var/log/proctor-dockerd.log")
RECORD = Path("/run/proctor-engine.json")
DOCKER_PID = Path("/var/run/docker.pid")
CONTAINERD_PID = Path("/var/run/docker/containerd/containerd.pid")

# What the daemon and the sandbox call, by the Debian package that holds it.
PACKAGES = {
    "docker.io": "dockerd",
    "iptables": "iptables",
    "e2fsprogs": "mkfs.ext4",
    "mount": "mount",
    "ca-certificates": "update-ca-certificates",
}
ANSWER_SECONDS = 60.0
STOP_SECONDS = 30.0
EXIT_UNFIT = 3
ADMIN_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin", "/usr/local/sbin"])

WHAT_TO_INSTALL = """\
No container engine answers, and this script can start one only as root on Debian or Ubuntu.
  Debian, Ubuntu   sudo python3 tools/engine.py up      (or: sudo apt-get install docker.io)
  Fedora, RHEL     sudo dnf install podman && systemctl --user start podman.socket
  macOS, Windows   Docker Desktop: https://docs.docker.com/desktop/
An engine elsewhere: export DOCKER_HOST=unix:///path/to/docker.sock
"""


class UnfitError(Exception):
    """This machine cannot run an engine; the message says what to do."""


class Process(NamedTuple):
    """A process no later one of the same id is taken for; ``started`` in clock ticks since boot."""

    pid: int
    started: int


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def addresses() -> Iterator[str]:
    """The addresses an engine may answer on, in the order tried; only DOCKER_HOST where it is set."""
    if chosen := os.environ.get("DOCKER_HOST"):
        yield chosen
        return
    runtime = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    home = Path.home()
    for path in (
        "/var/run/docker.sock",
        f"{runtime}/docker.sock",
        f"{home}/.docker/run/docker.sock",
        f"{home}/.docker/desktop/docker.sock",
        f"{runtime}/podman/podman.sock",
        "/run/podman/podman.sock",
    ):
        yield f"unix://{path}"


def answers(address: str, timeout: float = 5.0) -> bool:
    """Whether an engine answers there; ssh and TLS addresses are asked through the docker program."""
    parts = urlsplit(address)
    connection: http.client.HTTPConnection
    if parts.scheme == "unix":
        connection = _UnixConnection(parts.path, timeout)
    elif parts.scheme in ("tcp", "http") and not os.environ.get("DOCKER_TLS_VERIFY"):
        connection = http.client.HTTPConnection(parts.hostname or "localhost", parts.port or 2375, timeout=timeout)
    else:
        return shutil.which("docker") is not None and _succeeds(["docker", "version"])
    try:
        connection.request("GET", "/_ping")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def running_engine() -> str | None:
    """The address of an engine that answers, or None."""
    return next((address for address in addresses() if answers(address)), None)


def _succeeds(command: list[str]) -> bool:
    return subprocess.run(command, check=False, capture_output=True, stdin=subprocess.DEVNULL).returncode == 0


def _find(program: str) -> str | None:
    return shutil.which(program, path=ADMIN_PATH)


def process(pid: int, program: str) -> Process | None:
    """The live process of that id, if it runs ``program``; a zombie is not live."""
    try:
        # comm stands in brackets and may hold spaces; what follows the last bracket does not.
        head, _, tail = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
    except OSError:
        return None
    fields = tail.split()
    if head.partition("(")[2] != program or fields[0] in ("Z", "X"):
        return None
    return Process(pid=pid, started=int(fields[19]))


def _pid_in(file: Path) -> int | None:
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None


def _recorded() -> Process | None:
    """The daemon ``up`` started, if it still lives."""
    try:
        record = json.loads(RECORD.read_text())
        found = process(int(record["pid"]), "dockerd")
        return found if found and found.started == record["started"] else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _on_systemd() -> bool:
    return Path("/run/systemd/system").is_dir() and _find("systemctl") is not None


def _on_debian() -> bool:
    return os.geteuid() == 0 and _find("apt-get") is not None and Path("/etc/debian_version").exists()


def install_missing() -> None:
    """Install what is missing of ``PACKAGES`` with apt."""
    missing = [package for package, program in PACKAGES.items() if _find(program) is None]
    if not missing:
        return
    if not _on_debian():
        raise UnfitError(WHAT_TO_INSTALL)
    print(f"installing {', '.join(missing)} with apt", flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    # A third-party source that is down makes `update` fail; the install says whether that mattered.
    for command in (["update"], ["install", "-y", "--no-install-recommends", *missing]):
        done = subprocess.run(
            ["apt-get", "-q", *command],
            env=environment,
            check=False,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
    if done.returncode != 0:
        raise UnfitError("apt-get install failed:\n" + "\n".join(done.stdout.splitlines()[-15:]))


def _clear_stale(pid_file: Path, program: str) -> None:
    """Forget a pid file whose process is gone: dockerd takes any live process of that number for itself."""
    pid = _pid_in(pid_file)
    if pid is not None and process(pid, program) is None:
        print(f"removing {pid_file}: process {pid} is no {program}", flush=True)
        pid_file.unlink(missing_ok=True)


def _wait_for_answer(address: str, child: subprocess.Popen[bytes] | None) -> bool:
    ends = time.monotonic() + ANSWER_SECONDS
    while time.monotonic() < ends:
        if answers(address):
            return True
        if child is not None and child.poll() is not None:
            return False
        time.sleep(0.1)
    return False


def _start_by_systemd() -> bool:
    print("starting docker with systemctl", flush=True)
    return _succeeds(["systemctl", "start", "docker"]) and _wait_for_answer("unix:///var/run/docker.sock", None)


def _start_daemon() -> None:
    """Start dockerd in a session of its own, so that it outlives us and whoever called us."""
    foreign = _pid_in(DOCKER_PID)
    if foreign is not None and process(foreign, "dockerd"):
        if _wait_for_answer(SOCKET, None):
            return
        raise UnfitError(f"dockerd (process {foreign}) does not answer, and is not ours to kill: look at its log")
    _clear_stale(DOCKER_PID, "dockerd")
    _clear_stale(CONTAINERD_PID, "containerd")
    # The socket file of a killed daemon is no obstacle: dockerd replaces it.
    program = _find("dockerd")
    if program is None:
        raise UnfitError(WHAT_TO_INSTALL)
    with LOG.open("ab") as log:
        child = subprocess.Popen(
            [program],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd="/",
            env={**os.environ, "PATH": ADMIN_PATH},
        )
    started = process(child.pid, "dockerd")
    if not _wait_for_answer(SOCKET, child):
        child.terminate()
        tail = LOG.read_text(errors="replace").splitlines()[-8:]
        raise UnfitError(f"dockerd did not come up; the end of {LOG}:\n" + "\n".join(tail))
    started = started or process(child.pid, "dockerd")
    if started is not None:
        RECORD.write_text(json.dumps(started._asdict()))
    print(f"dockerd runs as process {child.pid}, log in {LOG}", flush=True)


def up() -> None:
    """Make an engine answer, or raise ``UnfitError``."""
    begun = time.monotonic()
    if address := running_engine():
        print(f"an engine answers at {address}")
        return
    if os.environ.get("DOCKER_HOST"):
        raise UnfitError(
            f"DOCKER_HOST is {os.environ['DOCKER_HOST']!r} and nothing answers there: correct it or unset it"
        )
    if os.geteuid() != 0:
        raise UnfitError(WHAT_TO_INSTALL)
    install_missing()
    if running_engine() is None and not (_on_systemd() and _start_by_systemd()):
        _start_daemon()
    print(f"an engine answers at {running_engine()} after {time.monotonic() - begun:.1f} s")


def down() -> None:
    """End the daemon ``up`` started; leave any other alone."""
    ours = _recorded()
    if ours is None:
        RECORD.unlink(missing_ok=True)
        print("no daemon of ours runs")
        return
    os.kill(ours.pid, signal.SIGTERM)
    ends = time.monotonic() + STOP_SECONDS
    while process(ours.pid, "dockerd") == ours:
        if time.monotonic() > ends:
            raise UnfitError(f"dockerd (process {ours.pid}) has not stopped after {STOP_SECONDS:.0f} s; see {LOG}")
        time.sleep(0.1)
    RECORD.unlink(missing_ok=True)
    print(f"dockerd (process {ours.pid}) has stopped")


def main() -> int:
    """Run the command line; the exit code."""
    parser = argparse.ArgumentParser(description="Make a container engine answer on this machine.")
    parser.add_argument("act", choices=["up", "down"])
    act = {"up": up, "down": down}[parser.parse_args().act]
    try:
        act()
    except UnfitError as unfit:
        print(unfit, file=sys.stderr)
        return EXIT_UNFIT
    return 0


if __name__ == "__main__":
    sys.exit(main())
