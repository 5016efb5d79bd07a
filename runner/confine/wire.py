"""The form of an answer: a length, a JSON header, and one NPY blob an array.

``unpack`` is the one place where bytes of a child that may have been taken over are read by the parent. So
JSON is read strictly (UTF-8, no doubled key, nothing that is not finite, no endless nesting), and the header
of an NPY blob is not evaluated as Python, which is what NumPy does: it must match a pattern.
"""

import io
import json
import math
import re
import struct
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

from runner.confine.contract import JsonValue, Reply

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LENGTH = struct.Struct("<I")
_MAX_ARRAYS = 64
_NPY_MAGIC = b"\x93NUMPY\x01\x00"
_NPY_HEADER = re.compile(
    rb"\{'descr': '([<|][buif][1248])', 'fortran_order': False, "
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


def unpack(data: bytes) -> Reply:
    """Read an answer.

    Raises:
        GarbledError: It is none.
    """
    if len(data) < _LENGTH.size:
        raise GarbledError("the answer is too short")
    (length,) = _LENGTH.unpack_from(data)
    start = _LENGTH.size + length
    if start > len(data):
        raise GarbledError("the answer ends inside its header")
    match read_json(data[_LENGTH.size : start]):
        case {"header": dict() as header, "arrays": list() as sizes, **rest} if not rest:
            return Reply(header=header, arrays=_arrays(data, start, _checked_sizes(sizes)))
        case _:
            raise GarbledError("the header lacks its parts")


def _checked_sizes(sizes: Sequence[JsonValue]) -> list[tuple[str, int]]:
    checked: dict[str, int] = {}
    for entry in sizes:
        match entry:
            case [str() as name, int() as size] if not isinstance(size, bool) and size >= 0 and name not in checked:
                checked[name] = size
            case _:
                raise GarbledError("the list of arrays is malformed")
    if len(checked) > _MAX_ARRAYS:
        raise GarbledError("there are too many arrays")
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
    if math.prod(shape) * dtype.itemsize != len(blob) - end:
        raise GarbledError("an array's shape does not fit its size")
    array: NDArray[np.generic] = np.frombuffer(blob, dtype=dtype, offset=end).reshape(shape)
    return array


def read_json(text: bytes) -> JsonValue:
    """Read JSON strictly.

    Raises:
        GarbledError: It is not JSON, or not UTF-8, or has a doubled key or a number that is not finite.
    """
    try:
        value: JsonValue = json.loads(
            text.decode("utf-8"),
            parse_constant=_not_finite,
            parse_float=_finite,
            object_pairs_hook=_no_doubles,
        )
    except (ValueError, RecursionError, MemoryError) as error:
        raise GarbledError("the header is not strict JSON") from error
    return value


def _not_finite(_text: str) -> NoReturn:
    raise GarbledError("a number is not finite")


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _not_finite(text)


def _no_doubles(pairs: Sequence[tuple[str, JsonValue]]) -> Mapping[str, JsonValue]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise GarbledError("a key is doubled")
    return values
