"""Reads arrays that NumPy saved, ``.npy`` and ``.npz``, without believing a word of them.

The header of an ``.npy`` file is a Python literal. It is not evaluated, not even safely: it must match a pattern. It is
read first, and the data only where type, shape and length are those asked for; so a header that tells of 10^12 elements
costs a sentence. Nothing is ever unpickled: what ``numpy.load`` would do for an array of objects is to run a program.

An ``.npz`` file is a zip archive. Its directory is bounded before ``zipfile`` sees it, compared with the arrays that
are due, and each member is unpacked no further than the directory says.
"""

import encodings.cp437  # noqa: F401  zipfile's for old names; a confined child may not be able to import it
import io
import math
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from runner.confine import Confine, JsonValue, Reply
from runner.confine.wire import pack
from runner.formats.readers.csv_table import (
    ProblemList,
    confined_call,
    garbled,
    read_bytes,
    sentence_pattern,
    told,
)

_TYPES = {
    "b1": "bool",
    **{f"{kind}{size}": f"{name}{8 * size}" for kind, name in (("i", "int"), ("u", "uint")) for size in (1, 2, 4, 8)},
    **{f"f{size}": f"float{8 * size}" for size in (2, 4, 8)},
}
_MOST_DIMENSIONS = 4
_NAME = re.compile(r"[A-Za-z0-9_]{1,64}")


@dataclass(frozen=True, kw_only=True)
class NpyCaps:
    """How large a file may be.

    Attributes:
        size: Bytes of the file.
        unpacked: Bytes of data of all arrays together.
        header: Bytes of a header.
        ratio: How many times larger than its packed bytes a member of an archive may be. Deflate ends near 1032, which
            an array of zeros does reach, so a smaller ratio refuses honest files; ``unpacked`` is what bounds a bomb.
    """

    size: int = 32 << 20
    unpacked: int = 32 << 20
    header: int = 4096
    ratio: int = 1040


@dataclass(frozen=True, kw_only=True)
class ArrayRule:
    """What an array must be.

    Attributes:
        types: Names of the types it may have, of ``bool``, ``int8`` … ``uint64``, ``float16`` … ``float64``.
        shape: Its length in each dimension, at most four; None where any will do.
        minimum: The least value; None where any will do. Floats must be finite in any case.
        maximum: The greatest value.
    """

    types: tuple[str, ...]
    shape: tuple[int | None, ...]
    minimum: float | None = None
    maximum: float | None = None

    def __post_init__(self) -> None:
        if not self.types or not set(self.types) <= set(_TYPES.values()):
            raise ValueError(f"{self.types} are not all of {', '.join(_TYPES.values())}")
        if len(self.shape) > _MOST_DIMENSIONS:
            raise ValueError(f"{len(self.shape)} dimensions are more than {_MOST_DIMENSIONS}")


class Fault(StrEnum):
    """Every sentence of this reader."""

    EMPTY = "the file is empty"
    TOO_LARGE = "the file is larger than {cap} bytes"
    ARCHIVE = "this is an archive (.npz) where one array (.npy) is due: numpy.save writes it"
    SINGLE = "this is one array (.npy) where an archive (.npz) is due: numpy.savez writes it"
    PICKLE = "{where}this is a pickle, which is never opened: numpy.save(…, allow_pickle=False) writes what is due"
    NO_NPY = "{where}this is not what numpy.save writes: it does not begin as an .npy file does"
    VERSION = "{where}the file is of version {major}.{minor}; 1.0, 2.0 and 3.0 are read"
    HEADER_END = "{where}the file ends inside its header"
    HEADER_SIZE = "{where}the header has {found} bytes; more than {cap} are not read"
    HEADER = "{where}the header is not as numpy.save writes it"
    FIELDS = "{where}the array has named fields: save one array of numbers"
    OBJECTS = "{where}the array holds Python objects, which are never opened: give it a type of numbers"
    ORDER = "{where}the numbers are stored big-endian: save array.astype({due!r})"
    TYPE = "{where}the type is {found} where {due} is due"
    SHAPE = "{where}the shape is {found} where {due} is due"
    ELEMENTS = "{where}the header tells of more than {cap} bytes of data, which are not read"
    DATA = "{where}there are {found} bytes of data where the header tells of {due}"
    BOOL = "{where}the array is said to hold true and false, but {count} bytes are neither"
    NOT_FINITE = "{where}{count} values are not finite (NaN or infinity), the first at {place}"
    LEAST = "{where}{count} values are less than {due}, the first at {place}"
    GREATEST = "{where}{count} values are greater than {due}, the first at {place}"
    NO_NPZ = "this is not what numpy.savez writes: it does not end as a plain zip archive does"
    DIRECTORY = "the directory of the archive is damaged"
    DIRECTORY_SIZE = "the directory of the archive has {found} bytes; more than {cap} are not read"
    ENTRIES = "the archive holds {found} members where {due} are due"
    STRANGER = "the archive holds a member that is not asked for: {names} are due"
    DOUBLE = "the archive holds {name} twice"
    MISSING = "the archive does not hold {name}"
    ENCRYPTED = "{where}the member is encrypted"
    METHOD = "{where}the member is packed by a method that is not read: numpy.savez_compressed deflates"
    UNPACKED = "the archive unpacks to {found} bytes; more than {cap} are not read"
    RATIO = "{where}the member unpacks to more than {cap} times its size"
    OVERLAP = "{where}the member shares bytes with another"
    DAMAGED = "{where}the member is damaged, or is not as long as the directory says"


def _sentences(rules: Mapping[str, ArrayRule]) -> re.Pattern[str]:
    names = "|".join(map(re.escape, rules))
    due = {text for rule in rules.values() for text in _due(rule)}
    return sentence_pattern(
        Fault,
        where=f"(?:array (?:{names}): )?",
        name=names,
        names=re.escape(", ".join(rules)),
        found=rf"{_COUNT}|\((?:{_COUNT}(?:, {_COUNT})*,?)?\)|{'|'.join(_TYPES.values())}|{'|'.join(_OTHER_TYPES)}",
        due="|".join([_COUNT, *map(re.escape, due)]),
        place=rf"\((?:{_COUNT}(?:, {_COUNT})*,?)?\)",
    )


_COUNT = "[0-9]{1,20}"
_OTHER_TYPES = ("text", "bytes", "complex", "a date or a duration", "another type")
_OTHER_KINDS = dict(zip("USacmM", ("text", "bytes", "bytes", "complex", *["a date or a duration"] * 2), strict=True))


def _due(rule: ArrayRule) -> list[str]:
    """Everything a rule can bring into a sentence."""
    orders = [repr(f"<{code}") for code, name in _TYPES.items() if name in rule.types]
    bounds = [f"{bound:g}" for bound in (rule.minimum, rule.maximum) if bound is not None]
    return [*orders, *bounds, " or ".join(rule.types), _shape_words(rule.shape)]


def _shape_words(shape: Sequence[int | None]) -> str:
    lengths = ["any" if length is None else str(length) for length in shape]
    return f"({lengths[0]},)" if len(lengths) == 1 else f"({', '.join(lengths)})"


# One array, from bytes that come one after another.


class _Source(NamedTuple):
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


class _Reader:
    """Reads one array as its rule says; sentences begin with ``where``."""

    def __init__(self, rule: ArrayRule, caps: NpyCaps, problems: ProblemList, where: str = "") -> None:
        self._rule = rule
        self._caps = caps
        self._problems = problems
        self._where = where

    def read(self, source: _Source) -> NDArray[np.generic] | None:
        """The array, or None where anything is wrong with it."""
        try:
            return self._read(source)
        except _RefusedError:
            return None

    def _read(self, source: _Source) -> NDArray[np.generic]:
        text, begin = self._header_text(source)
        header = self._header(text)
        if header.bytes != source.size - begin:
            raise self._refused(Fault.DATA, found=source.size - begin, due=header.bytes)
        data = source.take(header.bytes)
        if len(data) != header.bytes:  # the file became shorter, or the archive's directory lied
            raise self._refused(Fault.DATA, found=len(data), due=header.bytes)
        return self._array(header, data)

    def _say(self, fault: Fault, *, value: str | None = None, **fields: object) -> None:
        self._problems.add(fault.format(where=self._where, **fields), value=value)

    def _refused(self, fault: Fault, *, value: str | None = None, **fields: object) -> _RefusedError:
        self._say(fault, value=value, **fields)
        return _RefusedError()

    def _header_text(self, source: _Source) -> tuple[str, int]:
        """The header, and where the data begins."""
        magic = source.take(8)
        if not magic.startswith(_MAGIC):
            raise self._refused(Fault.PICKLE if magic[:1] == b"\x80" else Fault.NO_NPY)
        if len(magic) < 8:
            raise self._refused(Fault.HEADER_END)
        major, minor = magic[6:]
        if (major, minor) not in _VERSIONS:
            raise self._refused(Fault.VERSION, major=major, minor=minor)
        width = _VERSIONS[major, minor]
        length_bytes = source.take(width)
        if len(length_bytes) < width:
            raise self._refused(Fault.HEADER_END)
        length = int.from_bytes(length_bytes, "little")
        if length > self._caps.header:
            raise self._refused(Fault.HEADER_SIZE, found=length, cap=self._caps.header)
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
            self._say(Fault.SHAPE, found=tuple(shape[:8]), due=_shape_words(self._rule.shape))
        return fits

    def _dtype(self, text: str) -> np.dtype[np.generic] | None:
        order, kind = (text[0], text[1:]) if text[0] in "<>|=" else ("=", text)
        due = " or ".join(self._rule.types)
        found = _TYPES.get(kind, _OTHER_KINDS.get(kind[0], "another type"))
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


_MAGIC = b"\x93NUMPY"
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


def read_npy(descriptor: int, *, rule: ArrayRule, caps: NpyCaps, problems: ProblemList) -> NDArray[np.generic] | None:
    """Read an ``.npy`` file.

    Args:
        descriptor: Open for reading; its position is neither used nor moved.
        rule: What it must be.
        caps: How large it may be.
        problems: What is wrong is added here.

    Returns:
        Little-endian, C order, shape as the rule says; None where there is a problem.
    """
    size = os.fstat(descriptor).st_size
    if not _is_readable(size, caps, problems):
        return None
    if os.pread(descriptor, 4, 0) == _ZIP_MEMBER:
        problems.add(Fault.ARCHIVE)
        return None
    return _Reader(rule, caps, problems).read(_Source(_from_start(descriptor), size))


def _is_readable(size: int, caps: NpyCaps, problems: ProblemList) -> bool:
    if size > caps.size:
        problems.add(Fault.TOO_LARGE.format(cap=caps.size))
    elif not size:
        problems.add(Fault.EMPTY)
    return 0 < size <= caps.size


def _from_start(descriptor: int) -> Callable[[int], bytes]:
    at = 0

    def take(count: int) -> bytes:
        nonlocal at
        parts: list[bytes] = []
        while count and (part := os.pread(descriptor, count, at)):
            parts.append(part)
            at, count = at + len(part), count - len(part)
        return b"".join(parts)

    return take


# Archives.

_ZIP_MEMBER = b"PK\x03\x04"
_END = struct.Struct("<4s4H2LH")
_END_MARK = b"PK\x05\x06"
_END_64_MARK = b"PK\x06\x07"
_END_64_SIZE = 20
_DIRECTORY_BYTES = 512
"""Bytes of the directory a member may take: its name, and little else."""

_MEMBER_HEADER = 30
_ENCRYPTED_FLAGS = 0x2041
_ZIP_ERRORS = (
    zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, struct.error, ValueError, OSError,
)  # fmt: skip
"""All that ``zipfile`` raises over damaged bytes."""


def read_npz(
    descriptor: int, *, rules: Mapping[str, ArrayRule], caps: NpyCaps, problems: ProblemList
) -> dict[str, NDArray[np.generic]] | None:
    """Read an ``.npz`` file that must hold these arrays and no others.

    Args:
        descriptor: Open for reading; its position is neither used nor moved.
        rules: What each array must be, by name.
        caps: How large they may be.
        problems: What is wrong is added here.

    Returns:
        By name, as ``read_npy`` answers them; None where there is a problem.
    """
    _check_names(rules)
    content = read_bytes(descriptor, caps.size)
    before = problems.count
    if not _is_readable(len(content), caps, problems) or not _is_plain_zip(content, rules, problems):
        return None
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
    except _ZIP_ERRORS:
        problems.add(Fault.DIRECTORY)
        return None
    with archive:
        members = _members(archive, rules, caps, problems)
        if problems.count > before:
            return None
        arrays = {name: _read_member(archive, members[name], rule, caps, problems) for name, rule in rules.items()}
    return {name: array for name, array in arrays.items() if array is not None} if problems.count == before else None


def _check_names(rules: Mapping[str, ArrayRule]) -> None:
    for name in rules:
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name of an array: up to 64 letters, digits and _ are")


def _is_plain_zip(content: bytes, rules: Mapping[str, ArrayRule], problems: ProblemList) -> bool:
    said = _other_kind(content) or _directory_fault(content, rules)
    if said is not None:
        problems.add(said)
    return said is None


def _other_kind(content: bytes) -> str | None:
    if content.startswith(_MAGIC):
        return Fault.SINGLE
    return Fault.PICKLE.format(where="") if content.startswith(b"\x80") else None


def _directory_fault(content: bytes, rules: Mapping[str, ArrayRule]) -> str | None:
    """What is wrong with the place and size of the directory; ``zipfile`` would look for it in more places."""
    begin = len(content) - _END.size
    if begin < 0 or content[max(begin - _END_64_SIZE, 0) : begin].startswith(_END_64_MARK):
        return Fault.NO_NPZ
    mark, disk, start_disk, here, entries, size, offset, comment = _END.unpack_from(content, begin)
    if mark != _END_MARK or disk or start_disk or here != entries or comment or offset + size != begin:
        return Fault.NO_NPZ
    if entries > len(rules):
        return Fault.ENTRIES.format(found=entries, due=len(rules))
    most = len(rules) * _DIRECTORY_BYTES
    return Fault.DIRECTORY_SIZE.format(found=size, cap=most) if size > most else None


def _members(
    archive: zipfile.ZipFile, rules: Mapping[str, ArrayRule], caps: NpyCaps, problems: ProblemList
) -> dict[str, zipfile.ZipInfo]:
    """The members by the names of the arrays, as far as the directory is as it must be."""
    members: dict[str, zipfile.ZipInfo] = {}
    end = 0
    for member in sorted(archive.infolist(), key=lambda one: one.header_offset):
        name = member.filename.removesuffix(".npy")
        if name not in rules or name == member.filename or member.orig_filename != member.filename:
            problems.add(Fault.STRANGER.format(names=", ".join(rules)), value=member.filename)
        elif name in members:
            problems.add(Fault.DOUBLE.format(name=name))
        else:
            members[name] = member
            for fault in _member_faults(member, end, caps):
                problems.add(fault.format(where=_where(name), cap=caps.ratio))
        end = member.header_offset + _MEMBER_HEADER + len(member.filename) + member.compress_size
    for name in rules:
        if name not in members:
            problems.add(Fault.MISSING.format(name=name))
    unpacked = sum(member.file_size for member in archive.infolist())
    if unpacked > caps.unpacked + len(rules) * (caps.header + 12):
        problems.add(Fault.UNPACKED.format(found=unpacked, cap=caps.unpacked))
    return members


def _member_faults(member: zipfile.ZipInfo, end: int, caps: NpyCaps) -> Iterable[Fault]:
    if member.flag_bits & _ENCRYPTED_FLAGS:
        yield Fault.ENCRYPTED
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        yield Fault.METHOD
    if member.file_size > member.compress_size * caps.ratio:
        yield Fault.RATIO
    if member.header_offset < end:
        yield Fault.OVERLAP


def _where(name: str) -> str:
    return f"array {name}: "


def _read_member(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, rule: ArrayRule, caps: NpyCaps, problems: ProblemList
) -> NDArray[np.generic] | None:
    name = member.filename.removesuffix(".npy")
    found = ProblemList()
    array = None
    try:
        with archive.open(member) as stream:
            source = _Source(stream.read, member.file_size)
            array = _Reader(rule, caps, found, _where(name)).read(source)  # with the last byte goes the checksum
    except _ZIP_ERRORS:
        found = ProblemList()
        found.add(Fault.DAMAGED.format(where=_where(name)))
    for one in found.kept:
        problems.add(one.what)
    return array


# The two sides of the confined call.

_CAPS = TypeAdapter(NpyCaps)
_RULE = TypeAdapter(ArrayRule)
_RULES = TypeAdapter(dict[str, ArrayRule])


def read_npy_in_child(request: Mapping[str, JsonValue], descriptors: Sequence[int]) -> Reply:
    """The child's side of ``confined_npy``."""
    problems = ProblemList()
    rule, caps = _RULE.validate_python(request["rule"]), _CAPS.validate_python(request["caps"])
    array = read_npy(descriptors[0], rule=rule, caps=caps, problems=problems)
    return Reply(header=told(problems), arrays={} if array is None else {_ONLY: array})


def read_npz_in_child(request: Mapping[str, JsonValue], descriptors: Sequence[int]) -> Reply:
    """The child's side of ``confined_npz``."""
    problems = ProblemList()
    rules, caps = _RULES.validate_python(request["rules"]), _CAPS.validate_python(request["caps"])
    arrays = read_npz(descriptors[0], rules=rules, caps=caps, problems=problems)
    return Reply(header=told(problems), arrays=arrays or {})


_ONLY = "array"


def confined_npy(
    confine: Confine, descriptor: int, *, rule: ArrayRule, caps: NpyCaps, problems: ProblemList
) -> NDArray[np.generic] | None:
    """``read_npy`` in a child that can do nothing else; what it answers is held against the rule again.

    Raises:
        HostFault: No child could be started.
    """
    return confined_call(
        confine,
        "runner.formats.readers.npy_array.read_npy_in_child",
        {"rule": _RULE.dump_python(rule, mode="json"), "caps": _CAPS.dump_python(caps, mode="json")},
        descriptor,
        sentences=_sentences({_ONLY: rule}),
        check=lambda reply: check_arrays(reply, rules={_ONLY: rule}, caps=caps)[_ONLY],
        problems=problems,
    )


def confined_npz(
    confine: Confine, descriptor: int, *, rules: Mapping[str, ArrayRule], caps: NpyCaps, problems: ProblemList
) -> dict[str, NDArray[np.generic]] | None:
    """``read_npz`` in a child that can do nothing else; what it answers is held against the rules again.

    Raises:
        HostFault: No child could be started.
    """
    _check_names(rules)
    return confined_call(
        confine,
        "runner.formats.readers.npy_array.read_npz_in_child",
        {"rules": _RULES.dump_python(dict(rules), mode="json"), "caps": _CAPS.dump_python(caps, mode="json")},
        descriptor,
        sentences=_sentences(rules),
        check=lambda reply: check_arrays(reply, rules=rules, caps=caps),
        problems=problems,
    )


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


def warm_up() -> None:
    """Read a good and a bad file of each kind once; for the fork server."""
    rule = ArrayRule(types=("float32",), shape=(2,), minimum=0, maximum=1)
    single, archive = io.BytesIO(), io.BytesIO()
    np.save(single, np.zeros(2, np.float32))
    np.savez_compressed(archive, a=np.zeros(2, np.float32))
    for content in (single.getvalue(), archive.getvalue(), b"x"):
        descriptor = os.memfd_create("warm", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, content)
            rules: dict[str, JsonValue] = {"a": _RULE.dump_python(rule, mode="json")}
            pack(read_npy_in_child({"rule": rules["a"], "caps": {}}, [descriptor]))
            pack(read_npz_in_child({"rules": rules, "caps": {}}, [descriptor]))
        finally:
            os.close(descriptor)
