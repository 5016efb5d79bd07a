"""The bytes of an untrusted file, up to a cap, and what encoding they give themselves away by."""

import codecs
import os
from collections.abc import Iterator
from contextlib import contextmanager


def read_bytes(descriptor: int, cap: int) -> bytes:
    """The bytes of a file, and one more than ``cap`` where it is larger; its position is left alone."""
    content = bytearray()
    while len(content) <= cap:
        chunk = os.pread(descriptor, min(1 << 20, cap + 1 - len(content)), len(content))
        if not chunk:
            break
        content += chunk
    return bytes(content)


_MARKS = {  # the longer first: UTF-16's mark is the beginning of UTF-32's
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


def wide_encoding(content: bytes) -> str | None:
    """UTF-16 or UTF-32, by the mark in front or, without one, by the NULs beside the first two characters."""
    for mark, name in _MARKS.items():
        if content.startswith(mark):
            return name
    nuls = [byte == 0 for byte in content[:4]]
    if nuls in ([False, True, False, True], [True, False, True, False]):
        return "UTF-16"
    return "UTF-32" if nuls in ([False, True, True, True], [True, True, True, False]) else None


@contextmanager
def in_memory(content: bytes) -> Iterator[int]:
    """These bytes as an open file that has no name; for a reader's warm-up."""
    descriptor = os.memfd_create("content", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, content)
        yield descriptor
    finally:
        os.close(descriptor)
