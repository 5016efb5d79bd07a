"""Where jobs' views and outputs live while they run: neutral random names, one folder a runner, swept when it died.

Beside each folder lies the record of whose it is, a symbolic link whose target is the owner's text: it is made whole by
one system call, before the folder, and goes after it. A runner that is killed at any moment leaves nothing unrecorded.
"""

import contextlib
import os
import re
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from runner import mounts
from runner.ownership import Owner

_RECORD = re.compile(r"([0-9a-f]{16})\.owner")


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
    _delete(folder)


def discard_workspace(folder: Path) -> None:
    """Discard a runner's folder, and then the record of whose it is, which stays while anything of the folder does."""
    discard(folder)
    if not folder.exists():
        _record_of(folder).unlink(missing_ok=True)


def _record_of(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.owner")


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
    _record_of(folder).symlink_to(str(owner))
    try:
        folder.mkdir(mode=0o711)
        yield Workspace(folder=folder)
    finally:
        discard_workspace(folder)


@dataclass(frozen=True, kw_only=True)
class Leftover:
    """A folder of a runner, made or not yet, and what its record says of its owner."""

    folder: Path
    owner: str


def leftovers(root: Path, observer: Owner) -> tuple[Leftover, ...]:
    """The folders of other runners below the host's workspace."""
    if not root.is_dir():
        return ()
    found = []
    for record in sorted(root.iterdir()):
        name = _RECORD.fullmatch(record.name)
        if name is None:
            continue
        try:
            text = str(record.readlink())
        except OSError:  # somebody else swept it meanwhile, or it is no record
            continue
        if Owner.parse(text) != observer:
            found.append(Leftover(folder=root / name[1], owner=text))
    return tuple(found)


def default_root() -> Path:
    """Where the workspace is unless the settings say otherwise; a path that tells a container nothing."""
    if os.name == "posix" and os.geteuid() == 0:
        return Path("/var/lib/proctor/work")
    import platformdirs  # noqa: PLC0415  only where it is needed: start-up counts

    return Path(platformdirs.user_cache_dir("proctor")) / "work"
