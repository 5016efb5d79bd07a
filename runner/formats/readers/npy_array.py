"""Reads an array that NumPy saved as an ``.npy`` file."""

import io
import os
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from runner.confine import Confine, JsonValue, Reply
from runner.confine.wire import pack
from runner.formats.readers.confined import confined_call, told
from runner.formats.readers.file_bytes import in_memory
from runner.formats.readers.npy_data import ArrayReader, Source, check_arrays, is_readable
from runner.formats.readers.npy_rule import ArrayRule, Fault, NpyCaps, sentences
from runner.formats.readers.problems import ProblemList

_ZIP_MEMBER = b"PK\x03\x04"


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
    if not is_readable(size, caps, problems):
        return None
    if os.pread(descriptor, 4, 0) == _ZIP_MEMBER:
        problems.add(Fault.ARCHIVE)
        return None
    return ArrayReader(rule, caps, problems).read(Source(_from_start(descriptor), size))


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


# The two sides of the confined call.

_CAPS = TypeAdapter(NpyCaps)
_RULE = TypeAdapter(ArrayRule)
_ONLY = "array"


def read_in_child(request: Mapping[str, JsonValue], descriptors: Sequence[int]) -> Reply:
    """The child's side of ``confined_npy``."""
    problems = ProblemList()
    rule, caps = _RULE.validate_python(request["rule"]), _CAPS.validate_python(request["caps"])
    array = read_npy(descriptors[0], rule=rule, caps=caps, problems=problems)
    return Reply(header=told(problems), arrays={} if array is None else {_ONLY: array})


def confined_npy(
    confine: Confine, descriptor: int, *, rule: ArrayRule, caps: NpyCaps, problems: ProblemList
) -> NDArray[np.generic] | None:
    """``read_npy`` in a child that can do nothing else; what it answers is held against the rule again.

    Raises:
        HostFault: No child could be started.
    """
    return confined_call(
        confine,
        "runner.formats.readers.npy_array.read_in_child",
        {"rule": _RULE.dump_python(rule, mode="json"), "caps": _CAPS.dump_python(caps, mode="json")},
        descriptor,
        sentences=lambda: sentences({_ONLY: rule}),
        array_bytes=caps.unpacked,
        check=lambda reply: check_arrays(reply, rules={_ONLY: rule}, caps=caps)[_ONLY],
        problems=problems,
    )


def warm_up() -> None:
    """Read a good and a bad file once; for the fork server."""
    file = io.BytesIO()
    np.save(file, np.zeros(2, np.float32))
    rule = ArrayRule(types=("float32",), shape=(2,), minimum=0, maximum=1)
    for content in (file.getvalue(), b"x"):
        with in_memory(content) as descriptor:
            pack(read_in_child({"rule": _RULE.dump_python(rule, mode="json"), "caps": {}}, [descriptor]))
