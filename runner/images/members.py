"""Reads a tar a member at a time, as a stream, and takes nothing that could make it read without bound.

Python's ``tarfile`` reads a header for a long name, of whatever length it claims, into memory. So only single blocks
are given to it (``TarInfo.frombuf``), and what spans blocks is put together here. A name is a key to look up, and
never becomes a path.
"""

import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, auto

from runner.images.refusal import Unusable, quoted
from runner.images.unpacking import BLOCK

_UNIT = 512
_MOST_MEMBERS = 100_000
_LONGEST_NAME = 64 << 10
_LONGEST_PAX = 1 << 20
_PAX = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE)
_LONG = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)


class Kind(Enum):
    """What a member is, as far as it matters here."""

    FILE = auto()
    SYMLINK = auto()
    OTHER = auto()


@dataclass(frozen=True, kw_only=True)
class Member:
    """A member of a tar: its name as it stands there, what it is, its bytes, and what a link points to."""

    name: str
    kind: Kind
    size: int
    target: str = ""


class _Source:
    """Bytes that come in pieces, read in lengths of one's own."""

    def __init__(self, pieces: Iterable[bytes], fault: Unusable) -> None:
        self._pieces = iter(pieces)
        self._piece = b""
        self._at = 0
        self._fault = fault

    def some(self, most: int) -> bytes:
        """At least one byte and at most ``most``; none at the end."""
        while self._at == len(self._piece):
            try:
                self._piece, self._at = next(self._pieces), 0
            except StopIteration:
                return b""
        taken = self._piece[self._at : self._at + most]
        self._at += len(taken)
        return taken

    def exactly(self, count: int) -> bytes:
        parts = []
        while count:
            part = self.some(min(count, BLOCK))
            if not part:
                raise self._fault
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def drain(self) -> None:
        """Read to the end, where a checksum may stand."""
        while self.some(BLOCK):
            pass


class _Body:
    """The bytes of a member; whatever is not read of them is skipped."""

    def __init__(self, source: _Source, size: int, fault: Unusable) -> None:
        self._source = source
        self._left = size
        self._padding = -size % _UNIT
        self._fault = fault

    def __iter__(self) -> Iterator[bytes]:
        while self._left:
            piece = self._source.some(min(self._left, BLOCK))
            if not piece:
                raise self._fault
            self._left -= len(piece)
            yield piece

    def skip(self) -> None:
        for _ in self:
            pass
        self._source.exactly(self._padding)
        self._padding = 0


def read_members(pieces: Iterable[bytes], *, what: str, remedy: str) -> Iterator[tuple[Member, Iterable[bytes]]]:
    """Read a tar to its end, and what stands behind it too.

    Args:
        pieces: The tar. What reading it raises passes through.
        what: What it is, for the sentence.
        remedy: For the error.

    Yields:
        Each member with its bytes, which can be read once, before the next member is asked for.

    Raises:
        Unusable: It is damaged, cut off, or plays tricks with its headers.
    """
    source = _Source(pieces, Unusable(f"{what} is cut off in the middle of a header", remedy=remedy))
    over = _Override(what, remedy)
    for count, header in enumerate(_headers(source, what, remedy)):
        if count > _MOST_MEMBERS:
            raise Unusable(f"{what} has more than {_MOST_MEMBERS} members", remedy=remedy)
        cut = Unusable(f"{what} is cut off in the middle of {quoted(header.name)}", remedy=remedy)
        if header.type == tarfile.XGLTYPE or header.type in _PAX or header.type in _LONG:
            over.take(header, source)
            continue
        member = over.applied(header)
        body = _Body(source, member.size, cut)
        yield member, body
        body.skip()
    over.require_used()
    source.drain()


def _headers(source: _Source, what: str, remedy: str) -> Iterator[tarfile.TarInfo]:
    while True:
        block = source.exactly(_UNIT)
        if not any(block):
            return
        try:
            header = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except (tarfile.HeaderError, ValueError) as error:
            raise Unusable(f"{what} is damaged, or is no tar: {error}", remedy=remedy) from error
        if header.size < 0:
            raise Unusable(f"{what} is damaged: {quoted(header.name)} has a size of {header.size}", remedy=remedy)
        yield header


class _Override:
    """What headers before a member's own say of it: a long name, pax records."""

    def __init__(self, what: str, remedy: str) -> None:
        self._what = what
        self._remedy = remedy
        self._records: dict[str, str] = {}

    def _fault(self, sentence: str) -> Unusable:
        return Unusable(f"{self._what} {sentence}", remedy=self._remedy)

    def take(self, header: tarfile.TarInfo, source: _Source) -> None:
        """Read an extending header."""
        cap = _LONGEST_NAME if header.type in _LONG else _LONGEST_PAX
        if header.size > cap:
            raise self._fault(f"has a header of {header.size} bytes; {cap} are allowed")
        body = _Body(source, header.size, self._fault("is cut off in the middle of a header"))
        text = b"".join(body)
        body.skip()
        if header.type in _LONG:
            key = "path" if header.type == tarfile.GNUTYPE_LONGNAME else "linkpath"
            self._records.setdefault(key, text.partition(b"\0")[0].decode("utf-8", "surrogateescape"))
            return
        records = dict(self._pax(text))
        if header.type != tarfile.XGLTYPE:
            self._records.update(records)
        elif any(key in ("path", "linkpath", "size") or key.startswith("GNU.sparse") for key in records):
            raise self._fault("renames or resizes all of its members by a global header")

    def _pax(self, text: bytes) -> Iterator[tuple[str, str]]:
        """Records ``LENGTH KEY=VALUE\\n``, in which the length counts itself."""
        while text.strip(b"\0"):
            number, _, _ = text[:20].partition(b" ")
            length = int(number) if number.isdigit() else 0
            record, text = text[len(number) + 1 : length], text[length:]
            key, equals, value = record.partition(b"=")
            if not equals or not value.endswith(b"\n") or len(number) + 1 + len(record) != length:
                raise self._fault("has a damaged pax header")
            yield key.decode("utf-8", "surrogateescape"), value[:-1].decode("utf-8", "surrogateescape")

    def applied(self, header: tarfile.TarInfo) -> Member:
        """The member a header stands for, with what was said before; that then is used up."""
        records, self._records = self._records, {}
        name = records.get("path", header.name)
        if header.type == tarfile.GNUTYPE_SPARSE or any(key.startswith("GNU.sparse") for key in records):
            raise self._fault(f"has the sparse member {quoted(name)}, which an image never has")
        kind = Kind.FILE if header.isreg() else Kind.SYMLINK if header.issym() else Kind.OTHER
        # A link or a folder has no bytes, whatever its size says; what nobody knows has.
        has_bytes = header.isreg() or header.type not in tarfile.SUPPORTED_TYPES
        size = self._size(records["size"]) if "size" in records else header.size
        return Member(
            name=name, kind=kind, size=size if has_bytes else 0, target=records.get("linkpath", header.linkname)
        )

    def _size(self, text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < 20):
            raise self._fault(f"has a member of the size {quoted(text)}")
        return int(text)

    def require_used(self) -> None:
        """Find fault with what was said of a member that did not come."""
        if self._records:
            raise self._fault("is cut off: a header stands at its end")
