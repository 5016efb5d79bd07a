"""One array as NumPy saves it: its header, then its data, without believing a word of either.

The header is a Python literal. It is not evaluated, not even safely: it must match a pattern. It is read first, and the
data only where type, shape and length are those asked for; so a header that tells of 10^12 elements costs a sentence.
Nothing is ever unpickled: what ``numpy.load`` would do for an array of objects is to run a program.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.confine import Reply
from runner.formats.readers.confined import garbled
from runner.formats.readers.npy_rule import OTHER_KINDS, TYPES, ArrayRule, Fault, NpyCaps, shape_words
from runner.formats.readers.problems import ProblemList


class Source(NamedTuple):
    """Where an array comes from: ``take(n)`` gives the next n bytes, fewer at the end."""

    take: Callable[[int], bytes]
    size: int


class _Header(NamedTuple):
    dtype: np.dtype[np.generic]
    fortran: bool
    shape: tuple[int, ...]

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


class _RefusedError(Exception):
    """An array is refused; why has been said."""


class ArrayReader:
    """Reads one array as its rule says; sentences begin with ``where``."""

    def __init__(self, rule: ArrayRule, caps: NpyCaps, problems: ProblemList, where: str = "") -> None:
        self._rule = rule
        self._caps = caps
        self._problems = problems
        self._where = where

    def read(self, source: Source) -> NDArray[np.generic] | None:
        """The array, or None where anything is wrong with it."""
        try:
            return self._read(source)
        except _RefusedError:
            return None

    def _read(self, source: Source) -> NDArray[np.generic]:
        text, begin = self._header_text(source)
        header = self._header(text)
        if header.bytes != source.size - begin:
            raise self._refused(Fault.DATA_END if header.bytes > source.size - begin else Fault.DATA_MORE)
        data = source.take(header.bytes)
        if len(data) != header.bytes:  # the file became shorter, or the archive's directory lied
            raise self._refused(Fault.DATA_END)
        return self._array(header, data)

    def _say(self, fault: Fault, *, value: str | None = None, **fields: object) -> None:
        self._problems.add(fault.format(where=self._where, **fields), value=value)

    def _refused(self, fault: Fault, *, value: str | None = None, **fields: object) -> _RefusedError:
        self._say(fault, value=value, **fields)
        return _RefusedError()

    def _header_text(self, source: Source) -> tuple[str, int]:
        """The header, and where the data begins."""
        magic = source.take(8)
        if not magic.startswith(MAGIC):
            raise self._refused(Fault.PICKLE if magic[:1] == b"\x80" else Fault.NO_NPY)
        if len(magic) < 8:
            raise self._refused(Fault.HEADER_END)
        major, minor = magic[6:]
        if (major, minor) not in _VERSIONS:
            raise self._refused(Fault.VERSION, value=f"{major}.{minor}")
        width = _VERSIONS[major, minor]
        length_bytes = source.take(width)
        if len(length_bytes) < width:
            raise self._refused(Fault.HEADER_END)
        length = int.from_bytes(length_bytes, "little")
        if length > self._caps.header:
            raise self._refused(Fault.HEADER_SIZE, cap=self._caps.header)
        text = source.take(length)
        if len(text) < length:
            raise self._refused(Fault.HEADER_END)
        return text.decode("latin-1"), 8 + width + length

    def _header(self, text: str) -> _Header:
        if _FIELDS.match(text):
            raise self._refused(Fault.FIELDS)
        entries = _entries(text)
        if entries is None:
            raise self._refused(Fault.HEADER, value=text)
        dtype = self._dtype(entries["descr"])
        shape = tuple(int(length) for length in entries["shape"].split(",") if length.strip())
        sound = self._fits(shape)
        if dtype is None or not sound:
            raise _RefusedError
        if math.prod(max(length, 1) for length in shape) * dtype.itemsize > self._caps.unpacked:
            raise self._refused(Fault.ELEMENTS, cap=self._caps.unpacked)
        return _Header(dtype, entries["fortran_order"] == "True", shape)

    def _fits(self, shape: Sequence[int]) -> bool:
        fits = _has_shape(self._rule, shape)
        if not fits:
            self._say(Fault.SHAPE, value=str(tuple(shape[:8])), due=shape_words(self._rule.shape))
        return fits

    def _dtype(self, text: str) -> np.dtype[np.generic] | None:
        order, kind = (text[0], text[1:]) if text[0] in "<>|=" else ("=", text)
        due = " or ".join(self._rule.types)
        found = TYPES.get(kind, OTHER_KINDS.get(kind[0], "another type"))
        if kind.startswith("O"):
            self._say(Fault.OBJECTS)
        elif found not in self._rule.types:
            self._say(Fault.TYPE, found=found, due=due)
        elif order == ">" and kind[1:] != "1":
            self._say(Fault.ORDER, due=f"<{kind}")
        else:
            return np.dtype(f"<{kind}")
        return None

    def _array(self, header: _Header, data: bytes) -> NDArray[np.generic]:
        raw = np.frombuffer(data, np.uint8)
        if header.dtype.kind == "b" and (wrong := int(np.count_nonzero(raw > 1))):
            raise self._refused(Fault.BOOL, count=wrong)
        stored: NDArray[np.generic] = np.frombuffer(data, header.dtype)
        array = np.asarray(stored.reshape(header.shape, order="F" if header.fortran else "C"), order="C")
        before = self._problems.count
        for fault, wrong_ones, due in _wrong(self._rule, array):
            if wrong_ones.any():
                first = np.unravel_index(int(np.argmax(wrong_ones)), wrong_ones.shape)
                place = tuple(int(part) for part in first)
                self._say(fault, count=int(np.count_nonzero(wrong_ones)), place=place, due=due)
        if self._problems.count > before:
            raise _RefusedError
        return array


def _has_shape(rule: ArrayRule, shape: Sequence[int]) -> bool:
    return len(shape) == len(rule.shape) and all(
        due in (None, length) for due, length in zip(rule.shape, shape, strict=True)
    )


def _wrong(rule: ArrayRule, array: NDArray[np.generic]) -> Iterable[tuple[Fault, NDArray[np.bool_], str]]:
    """By fault, which values are wrong; a value that is not finite is neither too small nor too great.

    The bounds are doubles: as plain floats they would become float16 with the array, and too large ones infinite.
    """
    sound = np.ones(array.shape, np.bool_)
    if array.dtype.kind == "f":
        sound = np.asarray(np.isfinite(array))
        yield Fault.NOT_FINITE, ~sound, ""
    if rule.minimum is not None:
        yield Fault.LEAST, np.asarray(sound & (array < np.float64(rule.minimum))), f"{rule.minimum:g}"
    if rule.maximum is not None:
        yield Fault.GREATEST, np.asarray(sound & (array > np.float64(rule.maximum))), f"{rule.maximum:g}"


MAGIC = b"\x93NUMPY"
_VERSIONS = {(1, 0): 2, (2, 0): 4, (3, 0): 4}
"""Bytes of the header's length."""

_FIELDS = re.compile(r"[^\[\]]{0,80}'descr' ?: ?\[")
_ENTRY = re.compile(
    r"""\ *(?:
        (?P<q>['"])(?P<descr_name>descr)(?P=q)\ ?:\ ?(?P<p>['"])(?P<descr>[<>|=]?[a-zA-Z][a-zA-Z0-9\[\]]{0,12})(?P=p)
        |(?P<r>['"])(?P<order_name>fortran_order)(?P=r)\ ?:\ ?(?P<fortran_order>True|False)
        |(?P<s>['"])(?P<shape_name>shape)(?P=s)\ ?:\ ?\((?P<shape>(?:[0-9]{1,19}(?:,\ ?[0-9]{1,19}){0,63},?)?)\)
    )\ *(?:,|$)""",
    re.VERBOSE,
)


def _entries(text: str) -> dict[str, str] | None:
    """The three entries of a header, each once; None where it is anything else."""
    body = text.rstrip(" \n")
    if not body.startswith("{") or not body.endswith("}"):
        return None
    body = body[1:-1].rstrip(" ")
    entries: dict[str, str] = {}
    at = 0
    while at < len(body):
        match = _ENTRY.match(body, at)
        if match is None:
            return None
        at = match.end()
        name, value = next((key, match[key]) for key in _KEYS if match[key] is not None)
        if name in entries or (name == "shape" and value[-1:].isdigit() and "," not in value):
            return None  # (3) is a number, not a shape
        entries[name] = value
    return entries if len(entries) == len(_KEYS) else None


_KEYS = ("descr", "fortran_order", "shape")


def is_readable(size: int, caps: NpyCaps, problems: ProblemList) -> bool:
    """Whether a file of this size is read at all; where it is not, that is said."""
    if size > caps.size:
        problems.add(Fault.TOO_LARGE.format(cap=caps.size))
    elif not size:
        problems.add(Fault.EMPTY)
    return 0 < size <= caps.size


def check_arrays(reply: Reply, *, rules: Mapping[str, ArrayRule], caps: NpyCaps) -> dict[str, NDArray[np.generic]]:
    """The arrays of an answer, if they are what the rules ask for.

    Raises:
        ConfinedFailure: They are not; ``GARBLED``.
    """
    if set(reply.arrays) != set(rules):
        raise garbled("its answer lacks an array, or has one too many")
    if sum(array.nbytes for array in reply.arrays.values()) > caps.unpacked:
        raise garbled("its answer is larger than the file may be")
    for name, rule in rules.items():
        _check_array(reply.arrays[name], rule)
    return {name: reply.arrays[name] for name in rules}


def _check_array(array: NDArray[np.generic], rule: ArrayRule) -> None:
    if array.dtype.name not in rule.types:
        raise garbled("its answer is of another type")
    if not _has_shape(rule, array.shape):
        raise garbled("its answer is of another shape")
    if array.dtype.kind == "b" and (array.view(np.uint8) > 1).any():
        raise garbled("its answer holds what is neither true nor false")
    if any(wrong.any() for _, wrong, _ in _wrong(rule, array)):
        raise garbled("its answer holds values out of range")
