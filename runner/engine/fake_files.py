"""The files of the fake engine's images: a few, held in memory, as a test states them or a tar brings them."""

import io
import posixpath
import struct
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, replace

from runner.engine.contract import FileFacts, FileKind
from runner.engine.paths import plain_path

_HOPS = 40


def file(content: bytes = b"", *, mode: int = 0o755) -> FileFacts:
    """A file, by default one that may be executed."""
    return FileFacts(kind=FileKind.FILE, mode=mode, size=len(content), content=content)


def folder(mode: int = 0o755) -> FileFacts:
    """A folder."""
    return FileFacts(kind=FileKind.FOLDER, mode=mode)


def link(target: str) -> FileFacts:
    """A symbolic link."""
    return FileFacts(kind=FileKind.LINK, mode=0o777, link=target)


def static_program(architecture: str = "amd64") -> FileFacts:
    """An executable of 64 bytes that asks for no loader: an ELF header without program headers."""
    machine = {"arm64": 183}.get(architecture, 62)
    return file(b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHI", 2, machine, 1) + bytes(40))


@dataclass(frozen=True)
class FakeTree:
    """Files by their absolute path; the folders they lie in are there without being stated."""

    files: Mapping[str, FileFacts]

    def at(self, path: str, *, max_bytes: int) -> FileFacts | None:
        """What lies at a path; links on the way are followed, one at its end is not."""
        found = self._at(plain_path(path), _HOPS)
        if found is None or found.kind is not FileKind.FILE:
            return found
        return replace(found, content=found.content[:max_bytes])

    def _at(self, path: str, hops: int) -> FileFacts | None:
        parent, name = posixpath.split(path)
        if name:
            above = self._at(parent, hops)
            if above is not None and above.kind is FileKind.LINK:
                target = posixpath.normpath(posixpath.join(posixpath.dirname(parent), above.link))
                return self._at(posixpath.join(target, name), hops - 1) if hops else None
            if above is None or above.kind is not FileKind.FOLDER:
                return None
        if path in self.files:
            return self.files[path]
        below = path.rstrip("/") + "/"
        return folder() if path == "/" or any(stated.startswith(below) for stated in self.files) else None


def tree_of(tar: bytes) -> FakeTree:
    """The tree a tar of a root file system makes; empty where it is none."""
    files: dict[str, FileFacts] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(tar), mode="r:") as opened:
            for member in opened:
                files[plain_path(member.name)] = _fact(opened, member)
    except tarfile.TarError:
        return FakeTree({})
    return FakeTree(files)


def _fact(opened: tarfile.TarFile, member: tarfile.TarInfo) -> FileFacts:
    if member.isdir():
        return folder(member.mode)
    if member.issym():
        return link(member.linkname)
    stream = opened.extractfile(member) if member.isreg() else None
    if stream is None:
        return FileFacts(kind=FileKind.OTHER, mode=member.mode)
    return file(stream.read(), mode=member.mode)
