"""Reads gzip, zstd, xz and bz2 as it grows: a block at a time, up to a cap, in bounded memory."""

import bz2
import lzma
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import Protocol

from runner.images.refusal import Unusable
from runner.quantities import show_bytes

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

BLOCK = 1 << 20
_WINDOW_LOG = 27  # 128 MiB: what zstd itself stops at unless it is told otherwise
_XZ_MEMORY = 256 << 20  # xz -9 takes 65 MiB


class Packing(StrEnum):
    """How bytes are packed."""

    PLAIN = "plain"
    GZIP = "gzip"
    ZSTD = "zstd"
    XZ = "xz"
    BZ2 = "bz2"


def packing_of(head: bytes) -> Packing:
    """How a file is packed, by its first six bytes."""
    if head.startswith(b"\x1f\x8b"):
        return Packing.GZIP
    # The second is a frame to be skipped; pzstd begins with one.
    if head.startswith(b"\x28\xb5\x2f\xfd") or (head[1:4] == b"\x2a\x4d\x18" and 0x50 <= head[0] <= 0x5F):
        return Packing.ZSTD
    if head.startswith(b"\xfd7zXZ\0"):
        return Packing.XZ
    return Packing.BZ2 if head.startswith(b"BZh") else Packing.PLAIN


class _Machine(Protocol):
    """What bz2, lzma and zstd have in common."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class _Gzip:
    """Makes zlib look like the others."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        return not self._inner.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, max_length)


_MACHINES: dict[Packing, Callable[[], _Machine]] = {
    Packing.GZIP: _Gzip,
    Packing.ZSTD: lambda: zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _WINDOW_LOG}),
    Packing.XZ: lambda: lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=_XZ_MEMORY),
    Packing.BZ2: bz2.BZ2Decompressor,
}
_BROKEN = (zlib.error, lzma.LZMAError, zstd.ZstdError, OSError, ValueError)


def unpacked(pieces: Iterable[bytes], packing: Packing, *, what: str, remedy: str) -> Iterator[bytes]:
    """Unpack a stream; several packed one after another, and zeros behind them, count as one.

    Args:
        pieces: The packed bytes. What reading them raises passes through.
        packing: How they are packed.
        what: What they are, for the sentence.
        remedy: For the error.

    Raises:
        Unusable: They are damaged, or end in the middle.
    """
    if packing is Packing.PLAIN:
        yield from pieces
        return
    machine = _MACHINES[packing]()
    for piece in pieces:
        rest = piece
        while rest:
            if machine.eof:
                rest = rest.lstrip(b"\0")
                if not rest:
                    break
                machine = _MACHINES[packing]()
            yield from _emptied(machine, rest, Unusable(f"{what} is damaged {packing.value} data", remedy=remedy))
            rest = machine.unused_data if machine.eof else b""
    if not machine.eof:
        raise Unusable(f"{what} is cut off: its {packing.value} data end in the middle", remedy=remedy)


def _emptied(machine: _Machine, piece: bytes, fault: Unusable) -> Iterator[bytes]:
    """All that comes of a piece, a block at a time."""
    while True:
        try:
            out = machine.decompress(piece, BLOCK)
        except _BROKEN as error:
            raise Unusable(f"{fault.what}: {error}", remedy=fault.remedy) from error
        if out:
            yield out
        if machine.eof or machine.needs_input:
            return
        piece = b""


def capped(pieces: Iterable[bytes], cap: int, *, what: str, remedy: str, before: int = 0) -> Iterator[bytes]:
    """Pass on a stream that, with ``before`` bytes of others, comes to at most ``cap`` bytes.

    Raises:
        Unusable: It is longer.
    """
    count = before
    for piece in pieces:
        count += len(piece)
        if count > cap:
            raise Unusable(f"{what} unpacks to more than the {show_bytes(cap)} allowed here", remedy=remedy)
        yield piece
