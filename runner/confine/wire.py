"""The form of an answer: a length, a JSON header, and one NPY blob an array.

``unpack`` is the one place where bytes of a child that may have been taken over are read by the parent. So the header
is small, and read strictly within bounds (UTF-8, no doubled key, nothing that is not finite, no endless nesting); what
is large, a long text included, travels as an array. And the header of an NPY blob is not evaluated as Python, which is
what NumPy does: it must match a pattern.
"""

import io
import json
import math
import re
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING

from runner.confine.contract import JsonValue, Reply
from runner.confine.strict_json import JsonBounds, NotStrictError, parse_strictly

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_HEADER = 1 << 20
"""Bytes of a header: fifty problems, or the metrics of a scorer, take some hundredths of it."""

_HEADER_BOUNDS = JsonBounds(depth=16, values=20_000, digits=32)
_LENGTH = struct.Struct("<I")
_MAX_ARRAYS = 64
_NPY_OVERHEAD = 128
_NPY_MAGIC = b"\x93NUMPY\x01\x00"
_MOST_ELEMENTS = 1 << 40
_NPY_HEADER = re.compile(
    rb"\{'descr': '(\|[bui]1|<[ui][248]|<f[248])', 'fortran_order': False, "
    rb"'shape': \(((?:\d{1,12}(?:, \d{1,12}){0,3},?)?)\), \} *\n"
)


class GarbledError(ValueError):
    """Bytes that are no answer; the text is ours."""


def pack(reply: Reply) -> bytes:
    """Write an answer down.

    Raises:
        ValueError: A float of the header is not finite, or an array holds objects.
    """
    import numpy as np  # noqa: PLC0415  the parent's start-up is not to wait for it

    blobs = {}
    for name, array in reply.arrays.items():
        blob = io.BytesIO()
        np.lib.format.write_array(blob, np.asarray(array, order="C"), version=(1, 0), allow_pickle=False)
        blobs[name] = blob.getvalue()
    sizes = [[name, len(blob)] for name, blob in blobs.items()]
    header = json.dumps({"header": reply.header, "arrays": sizes}, allow_nan=False).encode()
    return b"".join([_LENGTH.pack(len(header)), header, *blobs.values()])


def most_bytes(array_bytes: int) -> int:
    """Bytes an answer may have whose arrays may have ``array_bytes``."""
    return _LENGTH.size + MAX_HEADER + _MAX_ARRAYS * _NPY_OVERHEAD + array_bytes


def unpack(data: bytes) -> Reply:
    """Read an answer; how long it may be is the business of who received it.

    Raises:
        GarbledError: It is none.
    """
    if len(data) < _LENGTH.size:
        raise GarbledError("the answer is too short")
    (length,) = _LENGTH.unpack_from(data)
    if length > MAX_HEADER:
        raise GarbledError(f"the header has more than {MAX_HEADER} bytes")
    start = _LENGTH.size + length
    if start > len(data):
        raise GarbledError("the answer ends inside its header")
    match _read_header(data[_LENGTH.size : start]):
        case {"header": dict() as header, "arrays": list() as sizes, **rest} if not rest:
            return Reply(header=header, arrays=_arrays(data, start, _checked_sizes(sizes)))
        case _:
            raise GarbledError("the header lacks its parts")


def _checked_sizes(sizes: Sequence[JsonValue]) -> list[tuple[str, int]]:
    if len(sizes) > _MAX_ARRAYS:
        raise GarbledError("there are too many arrays")
    checked: dict[str, int] = {}
    for entry in sizes:
        match entry:
            case [str() as name, int() as size] if not isinstance(size, bool) and size >= 0 and name not in checked:
                checked[name] = size
            case _:
                raise GarbledError("the list of arrays is malformed")
    return list(checked.items())


def _arrays(data: bytes, start: int, sizes: Sequence[tuple[str, int]]) -> "dict[str, NDArray[np.generic]]":
    if start + sum(size for _, size in sizes) != len(data):
        raise GarbledError("the arrays do not fill the answer")
    arrays = {}
    for name, size in sizes:
        arrays[name] = _array(data[start : start + size])
        start += size
    return arrays


def _array(blob: bytes) -> "NDArray[np.generic]":
    import numpy as np  # noqa: PLC0415  the parent's start-up is not to wait for it

    begin = len(_NPY_MAGIC) + 2
    if not blob.startswith(_NPY_MAGIC) or len(blob) < begin:
        raise GarbledError("an array lacks its magic number")
    end = begin + int.from_bytes(blob[begin - 2 : begin], "little")
    match = _NPY_HEADER.fullmatch(blob[begin:end])
    if match is None:
        raise GarbledError("an array has a header that is not ours")
    dtype, shape = (
        np.dtype(match[1].decode()),
        tuple(int(part) for part in match[2].split(b",") if part.strip()),
    )
    if math.prod(shape) * dtype.itemsize != len(blob) - end or math.prod(max(n, 1) for n in shape) > _MOST_ELEMENTS:
        raise GarbledError("an array's shape does not fit its size")
    if dtype.kind == "b" and (np.frombuffer(blob, np.uint8, offset=end) > 1).any():
        raise GarbledError("an array holds what is neither true nor false")
    array: NDArray[np.generic] = np.frombuffer(blob, dtype=dtype, offset=end).reshape(shape)
    return array


def _read_header(text: bytes) -> JsonValue:
    try:
        return parse_strictly(text.decode("utf-8"), _HEADER_BOUNDS)
    except (UnicodeDecodeError, NotStrictError) as error:
        raise GarbledError("the header is not strict JSON within its bounds") from error
