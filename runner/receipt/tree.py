"""Digests of all files of a folder; no link is followed, and no cache is believed.

Names and bytes count. Modes, times and empty folders do not: they are lost where a run folder is copied.
"""

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Digest:
    """What a file holds.

    Attributes:
        sha256: Of its bytes, hexadecimal; empty where it is no regular file.
        size: In bytes; 0 where it is no regular file.
    """

    sha256: str
    size: int

    @property
    def regular(self) -> bool:
        """It is a regular file."""
        return bool(self.sha256)


def digest_file(path: Path) -> Digest:
    """Read a file whole; what is no regular file (a link, a pipe) is not opened.

    Raises:
        OSError: It cannot be read.
    """
    if not stat.S_ISREG(path.lstat().st_mode):
        return Digest(sha256="", size=0)
    with path.open("rb") as source:
        sha256 = hashlib.file_digest(source, "sha256").hexdigest()
        return Digest(sha256=sha256, size=source.tell())


def digests_below(root: Path, *, besides: frozenset[str] = frozenset()) -> Mapping[str, Digest]:
    """Digests of everything below a folder that is no folder itself, sorted by path.

    Args:
        root: The folder.
        besides: Paths that are left out, each below ``root`` and with ``/`` between its parts.

    Returns:
        By path, in the same manner; a name that is no UTF-8 has surrogates for its bytes, as Python has it.

    Raises:
        OSError: Something cannot be read.
    """
    paths = sorted(path for path in _paths(root, "") if path not in besides)
    return {path: digest_file(root / path) for path in paths}


def _paths(folder: Path, before: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            path = f"{before}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                yield from _paths(Path(entry.path), f"{path}/")
            else:
                yield path
