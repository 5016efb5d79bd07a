"""A container engine of the drills' own, to be stopped, killed and paused at will.

It runs in a network namespace of its own: a second daemon with ``--bridge=none`` on the host's would delete the first
one's bridge (moby #26989). Its data root is a small file system in a file, so that it can be filled. Its containerd is
its child, and dies with it. Each pytest worker has one.
"""

import contextlib
import fcntl
import os
import re
import secrets
import shutil
import signal
import subprocess
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import docker

from runner import mounts
from runner.engine.docker import DockerEngine, connect
from runner.engine.helper import HELPER_LABEL, HELPER_REFERENCE
from runner.errors import HostUnfit
from runner.ownership import Owner, current_owner, provably_dead
from runner.streams import IterableReader

_PLACE, _PREFIX = "/var/tmp", "proctor-drill-"
_MEMORY = Path("/dev/shm")
_DATA_BYTES = 640 << 20
_DEADLINE = 300.0
"""Seconds for whatever takes none on a quiet machine: only what never comes may fail a drill."""

_NOT_NEEDED = re.compile(
    r"(\./)?(usr/share|usr/include|usr/lib/(python3|locale|gcc|apt)|usr/lib/[^/]+/(perl|perl-base|gconv|blas|lapack)"
    r"|usr/local/lib/python3[^/]*/(site-packages|ensurepip|idlelib|test)|var)/."
)
"""Two thirds of our helper image, and no part of a Python: what is loaded by each worker takes seconds."""

_ADMIN_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])


def until(condition: Callable[[], bool], what: str, *, seconds: float = _DEADLINE) -> None:
    """Wait until something holds."""
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, f"{what} did not come within {seconds:g} s"
        time.sleep(0.05)


def processes_naming(text: str) -> dict[int, str]:
    """Live processes whose command line holds a text, with their program's name."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            with contextlib.suppress(OSError):
                if text.encode() in (folder / "cmdline").read_bytes():
                    found[int(folder.name)] = (folder / "comm").read_text().strip()
    return found


def _children_of(parent: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]
    return []


def _memory_for(folder: Path) -> Path:
    """Where its data are kept: in memory where there is room, which loads an image in half the time."""
    room = os.statvfs(_MEMORY)
    return _MEMORY if room.f_bavail * room.f_frsize > 2 * _DATA_BYTES else folder.parent


class Daemon:
    """The private engine; every act returns when it has taken effect.

    Args:
        folder: Where it lives; None: a new one.
        options: For dockerd.
        tools: A folder of programs it finds before all others.
    """

    def __init__(self, folder: Path | None = None, *, options: tuple[str, ...] = (), tools: Path | None = None) -> None:
        self._options = options
        self._path = _ADMIN_PATH if tools is None else f"{tools}{os.pathsep}{_ADMIN_PATH}"
        if folder is None:
            # Short: a socket's path may have 107 bytes.
            folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=_PLACE))
            (folder / "owner").write_text(str(current_owner()))
        self.folder = folder
        self.data = folder / "data"
        self.run = folder / "run"
        self.socket = folder / "docker.sock"
        self.log = folder / "dockerd.log"
        self.image = _memory_for(folder) / f"{folder.name}.img"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """For DOCKER_HOST."""
        return f"unix://{self.socket}"

    @property
    def pid(self) -> int:
        """Of dockerd."""
        assert self._process is not None, "it is not running"
        return self._process.pid

    def engine(self) -> DockerEngine:
        """A fresh connection."""
        return connect(self.url)

    def api(self) -> docker.APIClient:
        """A connection in Docker's own words."""
        return docker.APIClient(base_url=self.url, timeout=30)

    def answers(self) -> bool:
        """True where it answers."""
        try:
            self.engine().close()
        except HostUnfit:
            return False
        return True

    def start(self) -> None:
        """Start it, on the data it had."""
        assert self._process is None
        assert "containerd" not in self.processes().values()
        # Where nobody reaps orphans, dockerd takes the killed one's zombie for a live containerd.
        (self.run / "containerd" / "containerd.pid").unlink(missing_ok=True)
        command = [
            "unshare", "-n", "dockerd", "--data-root", str(self.data), "--exec-root", str(self.run),
            "--pidfile", str(self.folder / "docker.pid"), "--host", self.url, "--bridge", "none",
            "--iptables=false", "--ip-masq=false", "--ip-forward=false", "--storage-driver", "overlay2",
            "--shutdown-timeout", "3", *self._options,
        ]  # fmt: skip
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/",
                env={**os.environ, "PATH": self._path},
            )  # fmt: skip
        process = self._process
        until(lambda: self.answers() or process.poll() is not None, "the private dockerd")
        assert process.poll() is None, self.log.read_text(errors="replace")[-3000:]

    def stop(self) -> None:
        """End it as a service manager does."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once; its containers live on until it is started again."""
        self._end(signal.SIGKILL)

    def kill_containerd(self) -> None:
        """End its containerd at once; dockerd starts another one."""
        (pid,) = (pid for pid, name in self.processes().items() if name == "containerd")
        os.kill(pid, signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)
        self._process.wait(timeout=_DEADLINE)
        self._process = None
        until(lambda: "containerd" not in self.processes().values(), "the end of its containerd")

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Let it and its containerd stand still; what runs in containers goes on."""
        pids = [self.pid, *(pid for pid, name in self.processes().items() if name == "containerd")]
        assert len(pids) == 2
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in reversed(pids):
                os.kill(pid, signal.SIGCONT)

    def processes(self) -> dict[int, str]:
        """Every process of it: dockerd, containerd, shims."""
        found = processes_naming(str(self.folder))
        return {pid: name for pid, name in found.items() if name.startswith(("dockerd", "containerd"))}

    @contextlib.contextmanager
    def filled(self, *, leave: int = 0) -> Iterator[None]:
        """Leave no more than so many bytes free in its data root, whatever is removed there meanwhile."""
        over = threading.Event()

        def refill() -> None:
            with contextlib.ExitStack() as stack:
                while not over.wait(0.005):
                    room = os.statvfs(self.data)
                    if room.f_bavail * room.f_frsize > leave:
                        stack.enter_context(ballast(self.data, leave=leave))

        with ThreadPoolExecutor(max_workers=1) as pool, ballast(self.data, leave=leave):
            filling = pool.submit(refill)
            try:
                yield
            finally:
                over.set()
                filling.result()

    def open(self) -> None:
        """Make its data root and start it."""
        self.data.mkdir()
        with self.image.open("wb") as file:
            file.truncate(_DATA_BYTES)
        subprocess.run(["mkfs.ext4", "-q", "-F", "-m", "0", str(self.image)], check=True, env={"PATH": _ADMIN_PATH})
        subprocess.run(["mount", "-o", "loop", str(self.image), str(self.data)], check=True)
        self.start()

    def close(self) -> None:
        """End everything of it and leave nothing."""
        if self._process is not None:
            with contextlib.suppress(Exception):
                for container in self.api().containers(all=True):
                    self.api().remove_container(container["Id"], force=True, v=True)
            self._process.send_signal(signal.SIGCONT)
            with contextlib.suppress(subprocess.TimeoutExpired, AssertionError):
                self.stop()
        for pid, name in self.processes().items():
            # Whatever is left has this folder in its command line, so it is ours; a shim's children are containers.
            for one in (*(_children_of(pid) if name.startswith("containerd-shim") else ()), pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(one, signal.SIGKILL)
        until(lambda: not self.processes(), "the end of the private engine's processes")
        for point in mounts.mounted_below(self.folder):
            mounts.unmount(point)
        # The owner's name last: what a test run that is ended here leaves must still be known to be its own.
        for path in self.folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != "owner":
                path.unlink()
        for place in (_MEMORY, self.folder.parent):
            (place / self.image.name).unlink(missing_ok=True)
        shutil.rmtree(self.folder)
        assert mounts.mounted_below(self.folder) == ()


@contextlib.contextmanager
def ballast(folder: Path, *, leave: int = 0) -> Iterator[None]:
    """Fill a file system, but for some bytes."""
    heavy = folder / f"ballast-{secrets.token_hex(4)}"
    with heavy.open("wb", buffering=0) as sink:
        for block in (1 << 20, 1 << 12):
            while (room := os.statvfs(folder)).f_bavail * room.f_frsize > leave:
                try:
                    sink.write(bytes(min(block, room.f_bavail * room.f_frsize - leave)))
                except OSError:
                    break
        os.fsync(sink.fileno())
    try:
        yield
    finally:
        heavy.unlink()


def sweep() -> None:
    """Remove what test runs that are provably dead have left."""
    with Path(_PLACE, f"{_PREFIX}sweep").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _sweep()


def _sweep() -> None:
    for folder in Path(_PLACE).glob(f"{_PREFIX}*"):
        if not (folder / "owner").is_file():
            continue
        owner = Owner.parse((folder / "owner").read_text())
        if owner is not None and provably_dead(owner, current_owner()):
            Daemon(folder).close()


@contextlib.contextmanager
def private_daemon(*options: str, tools: Path | None = None) -> Iterator[Daemon]:
    """A running private engine with no image."""
    sweep()
    daemon = Daemon(options=options, tools=tools)
    try:
        daemon.open()
        yield daemon
    finally:
        daemon.close()


def copy_helper(target: DockerEngine) -> None:
    """Give an engine the helper image of this host's own engine, without what no program of a drill needs."""
    here = docker.APIClient(timeout=600)
    container = here.create_container(HELPER_REFERENCE, ["python3"])["Id"]
    try:
        with tempfile.TemporaryFile() as file:
            with (
                tarfile.open(fileobj=IterableReader(here.export(container)), mode="r|") as source,
                tarfile.open(fileobj=file, mode="w|") as sink,
            ):
                for member in source:
                    names = (member.name, member.linkname) if member.islnk() else (member.name,)
                    if not any(map(_NOT_NEEDED.match, names)):
                        sink.addfile(member, source.extractfile(member) if member.isreg() else None)
            file.seek(0)
            target.import_root(
                iter(lambda: file.read(1 << 20), b""),
                reference=HELPER_REFERENCE,
                changes=(f"LABEL {HELPER_LABEL}=1", f"ENV PATH={_ADMIN_PATH}"),
            )
    finally:
        here.remove_container(container)
        here.close()
