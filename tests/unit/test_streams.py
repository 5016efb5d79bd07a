"""A reader over chunks hands out exactly the bytes, however they are cut."""

import io
import tarfile
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from runner.streams import IterableReader


@given(st.lists(st.binary(max_size=9)), st.lists(st.integers(min_value=0, max_value=20)))
def test_any_chunking_and_any_reads_give_the_same_bytes(chunks: list[bytes], sizes: list[int]) -> None:
    whole, reader, position = b"".join(chunks), IterableReader(chunks), 0
    for size in sizes:
        assert reader.read(size) == whole[position : position + size]
        position += size
    assert reader.read() == whole[position:]
    assert reader.read(5) == b""


def test_an_empty_chunk_is_not_the_end() -> None:
    assert IterableReader([b"ab", b"", b"", b"cd", b""]).read(10) == b"abcd"


def test_it_takes_no_more_chunks_than_it_needs() -> None:
    taken = []

    def chunks() -> Iterator[bytes]:
        for number in range(10):
            taken.append(number)
            yield b"xy"

    assert IterableReader(chunks()).read(3) == b"xyx"
    assert taken == [0, 1]


def test_tarfile_can_read_a_stream_through_it() -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        info = tarfile.TarInfo("hold/a.csv")
        info.size = 3
        tar.addfile(info, io.BytesIO(b"abc"))
    data = buffer.getvalue()
    reader = IterableReader(data[n : n + 100] for n in range(0, len(data), 100))
    assert reader.readable()
    with tarfile.open(fileobj=reader, mode="r|") as tar:
        member = tar.next()
        assert member is not None
        file = tar.extractfile(member)
        assert file is not None
        assert (member.name, file.read()) == ("hold/a.csv", b"abc")
