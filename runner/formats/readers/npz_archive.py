"""Reads arrays that NumPy saved as an ``.npz`` file, which is a zip archive.

Its directory is bounded before ``zipfile`` sees it, compared with the arrays that are due, and each member is unpacked
no further than the directory says.
"""

import encodings.cp437  # noqa: F401  zipfile's for old names; a confined child may not be able to import it
import io
import re
import struct
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from runner.confine import Confine, JsonValue, Reply
from runner.confine.wire import pack
from runner.formats.readers.confined import confined_call, told
from runner.formats.readers.file_bytes import in_memory, read_bytes
from runner.formats.readers.npy_data import MAGIC, ArrayReader, Source, check_arrays, is_readable
from runner.formats.readers.npy_rule import ArrayRule, Fault, NpyCaps, sentences
from runner.formats.readers.problems import ProblemList

_NAME = re.compile(r"[A-Za-z0-9_]{1,64}")
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
    if not is_readable(len(content), caps, problems) or not _is_plain_zip(content, rules, problems):
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
    if content.startswith(MAGIC):
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
        return Fault.ENTRIES.format(due=len(rules))
    most = len(rules) * _DIRECTORY_BYTES
    return Fault.DIRECTORY_SIZE.format(cap=most) if size > most else None


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
        problems.add(Fault.UNPACKED.format(cap=caps.unpacked))
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
            source = Source(stream.read, member.file_size)
            array = ArrayReader(rule, caps, found, _where(name)).read(source)  # with the last byte goes the checksum
    except _ZIP_ERRORS:
        found = ProblemList()
        found.add(Fault.DAMAGED.format(where=_where(name)))
    problems.take(found)
    return array


# The two sides of the confined call.

_CAPS = TypeAdapter(NpyCaps)
_RULES = TypeAdapter(dict[str, ArrayRule])


def read_in_child(request: Mapping[str, JsonValue], descriptors: Sequence[int]) -> Reply:
    """The child's side of ``confined_npz``."""
    problems = ProblemList()
    rules, caps = _RULES.validate_python(request["rules"]), _CAPS.validate_python(request["caps"])
    arrays = read_npz(descriptors[0], rules=rules, caps=caps, problems=problems)
    return Reply(header=told(problems), arrays=arrays or {})


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
        "runner.formats.readers.npz_archive.read_in_child",
        {"rules": _RULES.dump_python(dict(rules), mode="json"), "caps": _CAPS.dump_python(caps, mode="json")},
        descriptor,
        sentences=lambda: sentences(rules),
        array_bytes=caps.unpacked,
        check=lambda reply: check_arrays(reply, rules=rules, caps=caps),
        problems=problems,
    )


def warm_up() -> None:
    """Read a good and a bad file once; for the fork server."""
    file = io.BytesIO()
    np.savez_compressed(file, a=np.zeros(2, np.float32))
    rules = {"a": ArrayRule(types=("float32",), shape=(2,), minimum=0, maximum=1)}
    for content in (file.getvalue(), b"x"):
        with in_memory(content) as descriptor:
            pack(read_in_child({"rules": _RULES.dump_python(rules, mode="json"), "caps": {}}, [descriptor]))
