"""A case's due as an open file for a confined child: the names of thousands of frames are too long for a request."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import TypeAdapter

from runner.formats.contract import Due
from runner.formats.readers.file_bytes import in_memory, read_bytes

_DUE = TypeAdapter(Due)
_MOST_BYTES = 256 << 20


@contextmanager
def due_file(due: Due) -> Iterator[int]:
    """A descriptor for ``read_due``; for the parent."""
    with in_memory(json.dumps(_DUE.dump_python(due)).encode()) as descriptor:
        yield descriptor


def read_due(descriptor: int) -> Due:
    """What ``due_file`` wrote; for the child."""
    return _DUE.validate_python(json.loads(read_bytes(descriptor, _MOST_BYTES)))
