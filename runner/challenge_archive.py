"""Unpacks a challenge that came as one file, into a folder of the user's cache that is named for its bytes.

It may have come by mail, so nothing in it is believed: only plain files and folders are taken, below one folder, under
names that mean the same everywhere, up to a size. What is in it runs only later, as any scorer does.
"""

import contextlib
import hashlib
import os
import re
import secrets
import shutil
import stat
import tarfile
import time
import zipfile
import zlib
from collections.abc import Iterator
from gzip import BadGzipFile, GzipFile
from pathlib import Path
from typing import IO, BinaryIO, NamedTuple, cast

from runner.errors import UsageError
from runner.quantities import show_bytes

SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz")
MOST_MEMBERS = 10_000
MOST_BYTES = 2 << 30
"""Of all members together, unpacked."""

_MOST_AT_ONCE = 4 << 20
"""The longest list or header that is read whole."""

_DEEPEST = 8
_PART = re.compile(r"[A-Za-z0-9_+@=,()\[\] -][A-Za-z0-9_.+@=,()\[\] -]{0,199}")
_LITTER = "__MACOSX/"
_STALE_SECONDS = 3600
_BLOCK = 1 << 16
_DAMAGE = (
    tarfile.TarError, zipfile.BadZipFile, BadGzipFile, zlib.error, EOFError, ValueError, OverflowError, RecursionError,
    NotImplementedError,
)  # fmt: skip


class _Member(NamedTuple):
    """A member of an archive: its name, and its bytes; a folder has none."""

    name: str
    content: IO[bytes] | None


def is_archive(path: Path) -> bool:
    """Whether a path is a file that is named like an archive."""
    return path.name.lower().endswith(SUFFIXES) and path.is_file()


def unpacked(path: Path, *, holds: str, cache: Path | None = None) -> Path:
    """The folder of what an archive holds; the same bytes are unpacked once.

    Args:
        path: A zip, or a tar that may be packed with gzip.
        holds: A file that must lie in its only top folder, or at its top.
        cache: Where it is unpacked; None: the user's cache.

    Raises:
        UsageError: It is damaged, too large, holds something else than plain files, or lacks the file.
    """
    with path.open("rb") as source:
        digest = hashlib.file_digest(source, "sha256").hexdigest()
    cache = cache or _cache()
    folder = cache / digest
    if not folder.is_dir():
        cache.mkdir(parents=True, exist_ok=True, mode=0o700)
        _sweep(cache)
        half = cache / f".{digest}.{secrets.token_hex(4)}"
        half.mkdir(mode=0o700)
        try:
            _unpack(path, half)
            _top(half, path, holds)
            half.rename(folder)
        except OSError:
            if not folder.is_dir():  # another process may have been quicker
                raise
        finally:
            shutil.rmtree(half, ignore_errors=True)
    return _top(folder, path, holds)


def _cache() -> Path:
    import platformdirs  # noqa: PLC0415  only where it is needed: start-up counts

    return Path(platformdirs.user_cache_dir("proctor")) / "challenges"


def _sweep(cache: Path) -> None:
    """Remove what a process that was killed left."""
    for entry in cache.iterdir():
        with contextlib.suppress(OSError):
            if entry.name.startswith(".") and time.time() - entry.stat().st_mtime > _STALE_SECONDS:
                shutil.rmtree(entry)


def _top(folder: Path, archive: Path, holds: str) -> Path:
    entries = list(folder.iterdir())
    inner = entries[0] if len(entries) == 1 and entries[0].is_dir() else folder
    if not (inner / holds).is_file():
        raise _refused(archive, f"it holds no {holds} at its top, or in its only top folder")
    return inner


def _refused(archive: Path, what: str) -> UsageError:
    return UsageError(
        f"the archive cannot be taken: {what}", where=str(archive),
        remedy="pack the challenge's folder anew, as .zip or .tar.gz, without links",
    )  # fmt: skip


def _unpack(path: Path, folder: Path) -> None:
    total = 0
    seen: set[str] = set()
    try:
        with path.open("rb") as source:
            for count, member in enumerate(_members(source)):
                if count >= MOST_MEMBERS:
                    raise _refused(path, f"it has more than {MOST_MEMBERS} members")
                parts = _parts(member.name, path)
                if not parts:
                    continue
                target = folder.joinpath(*parts)
                if member.content is None:
                    target.mkdir(parents=True, exist_ok=True)
                    continue
                if (key := "/".join(parts).lower()) in seen:
                    raise _refused(path, f"{member.name!r} stands in it twice")
                seen.add(key)
                target.parent.mkdir(parents=True, exist_ok=True)
                total = _write(member.content, target, total, path)
    except _UnsafeError as error:
        raise _refused(path, str(error)) from error
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        raise _refused(path, "a name in it is both a file and a folder") from error
    except _DAMAGE as error:
        raise _refused(path, f"it is damaged, or packed in another way ({type(error).__name__})") from error


def _write(content: IO[bytes], target: Path, total: int, archive: Path) -> int:
    with target.open("xb") as sink:
        while piece := content.read(_BLOCK):
            total += len(piece)
            if total > MOST_BYTES:
                raise _refused(archive, f"it unpacks to more than {show_bytes(MOST_BYTES)}")
            sink.write(piece)
    return total


def _parts(name: str, archive: Path) -> tuple[str, ...]:
    """A member's name as parts of a path; none for what is left out."""
    if name.startswith(_LITTER):
        return ()
    parts = tuple(part for part in name.removesuffix("/").split("/") if part != ".")
    if not all(_PART.fullmatch(part) for part in parts):
        raise _refused(archive, f"{name[:100]!r} is no name for a file of a challenge")
    if len(parts) > _DEEPEST:
        raise _refused(archive, f"{name[:100]!r} lies more than {_DEEPEST} folders deep")
    return parts


class _UnsafeError(Exception):
    """Something in an archive that is not taken; the text says what."""


def _members(source: BinaryIO) -> Iterator[_Member]:
    head = source.read(4)
    source.seek(0)
    if head.startswith(b"PK"):
        yield from _zip_members(source)
    elif head.startswith(b"\x1f\x8b"):
        with GzipFile(fileobj=source) as plain:
            yield from _tar_members(cast("IO[bytes]", plain))
    else:
        yield from _tar_members(source)


def _zip_members(source: BinaryIO) -> Iterator[_Member]:
    with zipfile.ZipFile(_bounded(source)) as archive:
        for info in archive.infolist():
            mode = info.external_attr >> 16
            if info.flag_bits & 1:
                raise _UnsafeError(f"{info.filename[:100]!r} is encrypted")
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise _UnsafeError(f"{info.filename[:100]!r} is a link or a device")
            if info.is_dir():
                yield _Member(info.filename, None)
            else:
                with archive.open(info) as content:
                    yield _Member(info.filename, content)


def _tar_members(source: IO[bytes]) -> Iterator[_Member]:
    with tarfile.open(fileobj=_bounded(source), mode="r:", errorlevel=2) as archive:
        while (info := archive.next()) is not None:
            if info.isdir():
                yield _Member(info.name + "/", None)
            elif info.isreg() and not info.issparse():
                yield _Member(info.name, archive.extractfile(info))
            else:
                raise _UnsafeError(f"{info.name[:100]!r} is a link, a device or a sparse file")


def _bounded(source: IO[bytes]) -> IO[bytes]:
    return cast("IO[bytes]", _Bounded(source))  # it can what their readers ask for


class _Bounded:
    """A file of which little is read at once and that ends somewhere: Python's readers read what a header claims."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self._small_reads = 0
        self.name = ""

    def read(self, size: int = -1) -> bytes:
        self._small_reads += size <= tarfile.BLOCKSIZE
        if size > _MOST_AT_ONCE:
            raise _UnsafeError(f"a header or list in it has more than {show_bytes(_MOST_AT_ONCE)}")
        if self._small_reads > 8 * MOST_MEMBERS:
            raise _UnsafeError("it has too many headers")
        piece = self._source.read(_MOST_AT_ONCE if size < 0 else size)
        self._check()
        return piece

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence == os.SEEK_SET and offset > 2 * MOST_BYTES:
            raise _UnsafeError(f"it unpacks to more than {show_bytes(MOST_BYTES)}")
        self._source.seek(offset, whence)
        return self.tell()

    def tell(self) -> int:
        return self._source.tell()

    def seekable(self) -> bool:
        return True

    def _check(self) -> None:
        if self._source.tell() > 2 * MOST_BYTES:
            raise _UnsafeError(f"it unpacks to more than {show_bytes(MOST_BYTES)}")
