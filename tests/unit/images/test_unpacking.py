"""Packed bytes come out whole, a block at a time, in bounded memory, or with a sentence."""

import bz2
import gzip
import hashlib
import lzma
import struct
import sys
import zlib
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.images.refusal import Unusable, quoted
from runner.images.unpacking import BLOCK, Packing, capped, packing_of, unpacked

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

PACKERS: dict[Packing, Callable[[bytes], bytes]] = {
    Packing.PLAIN: lambda data: data,
    Packing.GZIP: gzip.compress,
    Packing.ZSTD: zstd.compress,
    Packing.XZ: lzma.compress,
    Packing.BZ2: bz2.compress,
}
PACKINGS = [packing for packing in Packing if packing is not Packing.PLAIN]


def out(data: bytes, packing: Packing, *, step: int = 1 << 16) -> Iterator[bytes]:
    pieces = (data[start : start + step] for start in range(0, len(data), step))
    return unpacked(pieces, packing, what="this", remedy="do that")


def refusal(data: bytes, packing: Packing) -> Unusable:
    with pytest.raises(Unusable) as caught:
        b"".join(out(data, packing))
    assert caught.value.remedy == "do that"
    return caught.value


@pytest.mark.parametrize("packing", Packing)
def test_a_packing_is_known_by_its_first_bytes(packing: Packing) -> None:
    assert packing_of(PACKERS[packing](b"some text")[:6]) is packing


def test_a_frame_to_be_skipped_is_zstds_too() -> None:
    skipped = b"\x5a\x2a\x4d\x18" + struct.pack("<I", 3) + b"abc"
    assert packing_of(skipped[:6]) is Packing.ZSTD
    assert b"".join(out(skipped + zstd.compress(b"text"), Packing.ZSTD)) == b"text"
    assert packing_of(b"") is Packing.PLAIN


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("step", [1, 7, 1 << 20])
@pytest.mark.parametrize("size", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK])
def test_much_comes_of_little_a_block_at_a_time(packing: Packing, step: int, size: int) -> None:
    pieces = list(out(PACKERS[packing](bytes(size)), packing, step=step))
    assert b"".join(pieces) == bytes(size)
    assert all(0 < len(piece) <= BLOCK for piece in pieces)


@pytest.mark.parametrize("packing", PACKINGS)
@given(
    parts=st.lists(st.binary(max_size=200), min_size=1, max_size=4), step=st.integers(1, 50), zeros=st.integers(0, 9)
)
def test_several_one_after_another_count_as_one(packing: Packing, parts: list[bytes], step: int, zeros: int) -> None:
    data = b"".join(map(PACKERS[packing], parts)) + bytes(zeros)
    assert b"".join(out(data, packing, step=step)) == b"".join(parts)


@pytest.mark.parametrize("packing", PACKINGS)
def test_whatever_is_missing_at_the_end_is_told(packing: Packing) -> None:
    data = PACKERS[packing](hashlib.shake_128(b"x").digest(5000))
    for cut in (1, 3, 10, len(data) // 2, len(data) - 8):
        assert refusal(data[:-cut], packing).what == f"this is cut off: its {packing.value} data end in the middle"


@pytest.mark.parametrize("packing", PACKINGS)
def test_damage_is_told(packing: Packing) -> None:
    data = bytearray(PACKERS[packing](hashlib.shake_128(b"x").digest(5000)))
    data[len(data) // 2] ^= 0xFF
    if packing is Packing.ZSTD:
        # Without a checksum zstd may not notice; with garbage for a frame it does.
        data[4:8] = b"\xff" * 4
    assert refusal(bytes(data), packing).what.startswith(f"this is damaged {packing.value} data: ")
    assert refusal(PACKERS[packing](b"x") + b"no more of it", packing).what.startswith("this is ")


def test_an_xz_that_asks_for_four_gibibytes_is_refused() -> None:
    data = bytearray(lzma.compress(b"x" * 100))
    size = (data[12] + 1) * 4
    assert data[14] == 0x21, "the filter is LZMA2"
    data[16] = 40
    data[12 + size - 4 : 12 + size] = struct.pack("<I", zlib.crc32(data[12 : 12 + size - 4]))
    assert "Memory usage limit" in refusal(bytes(data), Packing.XZ).what


def test_a_zstd_that_asks_for_two_gibibytes_is_refused() -> None:
    def frame(window_log: int) -> bytes:
        block = struct.pack("<I", 4 << 3 | 1)[:3] + b"text"
        return b"\x28\xb5\x2f\xfd" + bytes([0, window_log - 10 << 3]) + block

    assert b"".join(out(frame(27), Packing.ZSTD)) == b"text"
    assert "too much memory" in refusal(frame(31), Packing.ZSTD).what


def test_an_error_of_the_source_passes_through() -> None:
    def broken() -> Iterator[bytes]:
        yield gzip.compress(b"text")[:10]
        raise OSError(5, "Input/output error")

    with pytest.raises(OSError, match="Input/output error"):
        b"".join(unpacked(broken(), Packing.GZIP, what="this", remedy="do that"))


def test_a_cap_counts_what_was_before() -> None:
    pieces = [b"123", b"456"]
    assert list(capped(pieces, 6, what="this", remedy="do that")) == pieces
    with pytest.raises(Unusable, match="this unpacks to more than the 6 B allowed here"):
        list(capped(pieces, 6, what="this", remedy="do that", before=1))


def test_a_strangers_text_is_quoted_plain_and_short() -> None:
    assert quoted("a\x1b[2J\u202e'") == '"a\\x1b[2J\\u202e\'"'
    assert len(quoted("x" * 1000)) == 80
    assert quoted("x" * 1000, most=10) == "'xxxxxxxx…"
    assert quoted(None) == "None"
