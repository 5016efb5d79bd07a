"""Bytes of a file: no more are read than decide that it is too large."""

import os
import tempfile

import pytest

from runner.formats.readers.file_bytes import in_memory, read_bytes, wide_encoding


@pytest.mark.parametrize("size", [0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3 << 20])
def test_a_file_is_read_up_to_one_byte_past_its_cap(size: int) -> None:
    content = os.urandom(size)
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.flush()
        for cap in (0, 1, size - 1, size, size + 1, 1 << 20, 4 << 20):
            if cap >= 0:
                assert read_bytes(file.fileno(), cap) == content[: cap + 1]
        assert os.lseek(file.fileno(), 0, os.SEEK_CUR) == size


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        ("ab".encode("utf-16"), "UTF-16"),
        ("ab".encode("utf-16-le"), "UTF-16"),
        ("ab".encode("utf-16-be"), "UTF-16"),
        ("a".encode("utf-32"), "UTF-32"),
        ("a".encode("utf-32-le"), "UTF-32"),
        ("a".encode("utf-32-be"), "UTF-32"),
        (b"\xff\xfe", "UTF-16"),
        (b"\xef\xbb\xbfab", None),
        (b"ab", None),
        (b"", None),
        (b"\0\0\0\0", None),
    ],
)
def test_wide_encodings_are_known(content: bytes, encoding: str | None) -> None:
    assert wide_encoding(content) == encoding


def test_bytes_in_memory_are_a_file_until_the_end() -> None:
    with in_memory(b"abc") as descriptor:
        assert read_bytes(descriptor, 10) == b"abc"
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
