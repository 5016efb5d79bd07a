"""Where jobs' views and outputs live while they run: neutral random names, one folder a runner, swept when it died."""

import contextlib
import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from runner import mounts
from runner.ownership import Owner

_OWNER_FILE = "owner"


def neutral_name() -> str:
    """A random name that says nothing."""
    return secrets.token_hex(8)


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """The folder of one runner process."""

    folder: Path

    @contextlib.contextmanager
    def desk(self) -> Iterator[Path]:
        """A fresh folder for one job, gone afterwards with everything mounted in it."""
        folder = self.folder / neutral_name()
        folder.mkdir(mode=0o755)
        try:
            yield folder
        finally:
            discard(folder)


def discard(folder: Path) -> None:
    """Unmount what is mounted below a folder and delete it, whatever a container left there."""
    for point in mounts.mounted_below(folder):
        mounts.unmount(point)
    if (folder / _OWNER_FILE).is_file():
        # Last: what a runner that is killed in the middle of this leaves must still be known to be its own.
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                _delete(path)
            elif path.name != _OWNER_FILE:
                with contextlib.suppress(OSError):
                    path.unlink()
    _delete(folder)


def _delete(folder: Path) -> None:
    # rmtree recurses and gives up on folders a thousand deep; rm does not.
    with contextlib.suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)
    # Without root, nothing can be deleted from a folder that is read-only, as every view is.
    for command in (("chmod", "-R", "u+rwX", "--"), ("rm", "-rf", "--")):
        if folder.exists():
            subprocess.run([*command, str(folder)], check=False, capture_output=True, stdin=subprocess.DEVNULL)


@contextlib.contextmanager
def open_workspace(root: Path, owner: Owner) -> Iterator[Workspace]:
    """This runner's folder below the host's workspace, removed at the end."""
    root.mkdir(parents=True, exist_ok=True, mode=0o711)
    folder = root.resolve() / neutral_name()  # an engine takes no relative path
    folder.mkdir(mode=0o711)
    (folder / _OWNER_FILE).write_text(str(owner), encoding="ascii")
    try:
        yield Workspace(folder=folder)
    finally:
        discard(folder)


@dataclass(frozen=True, kw_only=True)
class Leftover:
    """A folder of a runner, and what its owner file says."""

    folder: Path
    owner: str


def leftovers(root: Path, observer: Owner) -> tuple[Leftover, ...]:
    """The folders of other runners below the host's workspace."""
    if not root.is_dir():
        return ()
    found = []
    for folder in sorted(p for p in root.iterdir() if p.is_dir() and (p / _OWNER_FILE).is_file()):
        text = (folder / _OWNER_FILE).read_text(encoding="ascii", errors="replace")
        owner = Owner.parse(text)
        if owner == observer:
            continue
        found.append(Leftover(folder=folder, owner=text))
    return tuple(found)


def default_root() -> Path:
    """Where the workspace is unless the settings say otherwise; a path that tells a container nothing."""
    if os.name == "posix" and os.geteuid() == 0:
        return Path("/var/lib/proctor/work")
    import platformdirs  # noqa: PLC0415  only where it is needed: start-up counts

    return Path(platformdirs.user_cache_dir("proctor")) / "work"
