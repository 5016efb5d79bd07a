"""Makes the image ``proctor-base:1`` if it is not there: ``python tools/base_image.py`` in the project's
venv.

What ``Dockerfile.base`` is built on is the first of these that can be had:

1. ``python:3.11-slim`` from its registry, given up after a minute without progress; 2. as root on Debian or
Ubuntu, the distribution's own packages: ``debootstrap`` from the mirror this machine's apt
   uses, trimmed and imported. So a host without a registry runs the demo and every test too.
"""

import argparse
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Run as a script, this file's folder is on the path and the project is not.
sys.path.insert(0, str(ROOT))

from runner.engine import Engine, EngineRefusal, EngineUnreachable, ImageMissing  # noqa: E402
from runner.errors import HostUnfit, RunnerError  # noqa: E402

BASE = "proctor-base:1"
REGISTRY_BASE = "python:3.11-slim"
DISTRIBUTION_BASE = "proctor-distribution:1"
PACKAGES = "python3,python3-numpy,python3-pil"
# Nothing a submission needs: package lists, caches, logs, and texts for people.
TRIMMED = (
    "var/lib/apt/lists",
    "var/cache",
    "var/log",
    "tmp",
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
)

SILENCE_SECONDS = 60.0
PULL_SECONDS = 1800.0
BUILD_SECONDS = 1800.0
_STARTED = time.monotonic()


def say(what: str) -> None:
    """Print a line, with the seconds since the start."""
    print(f"{time.monotonic() - _STARTED:6.1f} s  {what}", flush=True)


def present(engine: Engine, reference: str) -> bool:
    """Whether the engine holds an image."""
    try:
        engine.image(reference)
    except ImageMissing:
        return False
    return True


class Pull(threading.Thread):
    """A pull that can be given up: in a thread that dies with us, it notes when it last moved."""

    def __init__(self, engine: Engine, reference: str) -> None:
        super().__init__(daemon=True)
        self.moved = time.monotonic()
        self.error: RunnerError | None = None
        self._engine = engine
        self._reference = reference
        self._last = ""

    def run(self) -> None:
        """Pull."""
        try:
            self._engine.pull(self._reference, deadline=PULL_SECONDS, progress=self._progress)
        except RunnerError as error:
            self.error = error

    def _progress(self, line: str) -> None:
        if line != self._last:
            self._last = line
            self.moved = time.monotonic()


def pulled(engine: Engine) -> bool:
    """Whether the registry's image is here now; says why where it is not."""
    say(f"pulling {REGISTRY_BASE}")
    pull = Pull(engine, REGISTRY_BASE)
    pull.start()
    while pull.is_alive():
        pull.join(0.1)
        if time.monotonic() - pull.moved > SILENCE_SECONDS:
            say(f"no registry: {SILENCE_SECONDS:.0f} s without progress")
            return False
    if pull.error is not None:
        say(f"no registry: {pull.error}")
    return pull.error is None


def distribution() -> str:
    """This machine's release name, such as ``bookworm``; ``HostUnfit`` where we cannot build from it."""
    remedy = f"connect to a registry, or name an image with python3: docker tag <image> {BASE}"
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        what = f"{REGISTRY_BASE} cannot be pulled, and only root on Debian or Ubuntu can build a base image"
        raise HostUnfit(what, remedy=remedy)
    for line in Path("/etc/os-release").read_text().splitlines():
        name, _, value = line.partition("=")
        if name == "VERSION_CODENAME":
            return value.strip('"')
    raise HostUnfit("/etc/os-release names no release to build from", remedy=remedy)


def mirror(release: str) -> str | None:
    """Where this machine's apt gets that release from; None leaves it to debootstrap."""
    wanted = "$(RELEASE)\t$(COMPONENT)\t$(REPO_URI)"
    listed = subprocess.run(
        ["apt-get", "indextargets", "--format", wanted, "Created-By: Packages"],
        check=False,
        capture_output=True,
        text=True,
    )
    for line in listed.stdout.splitlines():
        found, component, address = line.split("\t")
        if (found, component) == (release, "main") and address.startswith(("http", "file", "ftp")):
            return address
    return None


def run(command: list[str]) -> None:
    """Run a program; its last lines are the error's text."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        command,
        check=False,
        env=environment,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if done.returncode != 0:
        end = "\n".join(done.stdout.splitlines()[-10:])
        raise HostUnfit(f"{command[0]} failed with exit code {done.returncode}:\n{end}")


def trim(tree: Path) -> None:
    """Empty the folders nothing needs; the folders stay."""
    for name in TRIMMED:
        folder = tree / name
        for entry in folder.iterdir() if folder.is_dir() else ():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()


def tar(tree: Path) -> Iterator[bytes]:
    """A root file system as a tar, streamed; numeric owners, for the names are the tree's own."""
    command = ["tar", "--create", "--numeric-owner", "--directory", str(tree), "."]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        while piece := child.stdout.read(1 << 20):
            yield piece
    if child.returncode != 0:
        raise HostUnfit(f"tar failed with exit code {child.returncode}")


def from_distribution(engine: Engine) -> str:
    """Make an image of the distribution's packages; its name."""
    if present(engine, DISTRIBUTION_BASE):
        say(f"{DISTRIBUTION_BASE} is there already")
        return DISTRIBUTION_BASE
    release = distribution()
    if shutil.which("debootstrap") is None:
        say("installing debootstrap")
        run(["apt-get", "-q", "update"])
        run(["apt-get", "-q", "install", "-y", "--no-install-recommends", "debootstrap"])
    with tempfile.TemporaryDirectory(prefix="proctor-base-") as scratch:
        tree = Path(scratch) / "root"
        source = mirror(release)
        say(f"debootstrap of {release} from {source or 'its default mirror'} (one to two minutes)")
        command = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", release, str(tree)]
        run([*command, source] if source else command)
        trim(tree)
        say("importing the root file system")
        engine.import_root(tar(tree), reference=DISTRIBUTION_BASE, changes=())
    return DISTRIBUTION_BASE


def build(engine: Engine, reference: str, base: str) -> None:
    """Build ``Dockerfile.base`` on an image that is here, in a context that holds nothing else."""
    say(f"building {reference} on {base}")
    with tempfile.TemporaryDirectory(prefix="proctor-base-") as scratch:
        folder = Path(scratch)
        shutil.copyfile(ROOT / "Dockerfile.base", folder / "Dockerfile")
        engine.build(
            folder,
            reference=reference,
            arguments={"BASE_IMAGE": base},
            deadline=BUILD_SECONDS,
            log=_tell_build,
        )


def _tell_build(line: str) -> None:
    if line.startswith("Step "):
        say(f"  {line}")


def make(engine: Engine, reference: str) -> None:
    """Make the base image unless it is there."""
    if present(engine, reference):
        say(f"{reference} is there already")
        return
    local = present(engine, REGISTRY_BASE)
    base = REGISTRY_BASE if local or pulled(engine) else from_distribution(engine)
    build(engine, reference, base)
    say(f"{reference} is made: {engine.image(reference).id}")


def main() -> int:
    """Run the command line; the exit code."""
    parser = argparse.ArgumentParser(description="Make the base image if it is not there.")
    parser.add_argument("--reference", default=BASE, help="name of the image (default: %(default)s)")
    chosen = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    try:
        from runner.engine.docker import connect  # noqa: PLC0415  # a missing SDK is told like any other lack

        engine = connect()
        make(engine, chosen.reference)
        engine.close()
    except (RunnerError, EngineRefusal, EngineUnreachable) as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
