"""Counts what a folder holds while a stranger writes to it: by handle, no link followed, never further than it must.

A file moved or linked meanwhile is counted once, since its bytes are. What comes and goes during a count can be counted
though it was never there at once: whoever judges by a count makes a second.
"""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

DEEPEST = 32
"""Folders in one another that are looked into; each level holds two open files."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_SECTOR = 512


@dataclass(frozen=True, kw_only=True)
class Tally:
    """What a folder holds.

    Attributes:
        bytes: Of each file and folder in it, by length or by the disk it takes, whichever is more.
        entries: Names at any depth; counting stops one past those allowed.
        too_deep: There are folders deeper than are looked into.
    """

    bytes: int = 0
    entries: int = 0
    too_deep: bool = False


class _Count:
    def __init__(self, most: int) -> None:
        self.bytes, self.entries, self.too_deep = 0, 0, False
        self._most = most
        self._seen: set[int] = set()

    def add(self, folder: int, *, depth: int) -> None:
        """Count what is in an open folder."""
        with os.scandir(folder) as entries:
            for entry in entries:
                if self.entries > self._most or self.too_deep:
                    return
                self.entries += 1
                self._add_entry(folder, entry.name, depth=depth)

    def _add_entry(self, folder: int, name: str, *, depth: int) -> None:
        try:
            facts = _facts(name, folder)
        except FileNotFoundError:  # it is gone meanwhile
            return
        if facts.st_ino in self._seen:
            return
        self._seen.add(facts.st_ino)
        self.bytes += max(facts.st_size, facts.st_blocks * _SECTOR)
        if stat.S_ISDIR(facts.st_mode):
            if depth == DEEPEST:
                self.too_deep = True
                return
            try:
                inner = _open_folder(name, folder)
            except (FileNotFoundError, NotADirectoryError):  # it is gone, or something else stands there
                return
            try:
                self.add(inner, depth=depth + 1)
            finally:
                os.close(inner)


def _facts(name: str, folder: int) -> os.stat_result:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except PermissionError:  # it may be listed and not searched
        os.fchmod(folder, 0o700)
        return os.stat(name, dir_fd=folder, follow_symlinks=False)


def _open_folder(name: str | Path, within: int | None = None) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=within)
    except PermissionError:
        handle = os.open(name, _FOLDER | os.O_PATH, dir_fd=within)
    # Without root a folder can be shut to us by its owner, which then is ourselves.
    try:
        Path(f"/proc/self/fd/{handle}").chmod(0o700)
        return os.open(f"/proc/self/fd/{handle}", _FOLDER & ~os.O_NOFOLLOW)
    finally:
        os.close(handle)


def tally(folder: Path, *, most: int) -> Tally:
    """Count what is in a folder.

    Args:
        folder: The folder; it is not counted itself.
        most: Names after which one more ends the count.

    Raises:
        PermissionError: A folder in it cannot be looked into, or was shut again while it was opened.
        OSError: The file system failed.
    """
    count = _Count(most)
    root = _open_folder(folder)
    try:
        count.add(root, depth=1)
    finally:
        os.close(root)
    return Tally(bytes=count.bytes, entries=count.entries, too_deep=count.too_deep)
