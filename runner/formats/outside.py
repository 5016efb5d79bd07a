"""Reads what an installed package has a format for: an entry point of the group ``proctor.formats``.

The package's reader meets the bytes, so it runs where ours do: in a confined child without rights, with little time and
memory, and what it answers is believed no more than ours. It tells of problems by templates that it declared before;
the only thing it can fill in are whole numbers.

The process that children are forked from is started with this program's own ``sys.path``, and loads every format of
the group before anything is read: a child that has given up its rights may not be able to import from a private home
directory. So a package must be installed (or stand on ``sys.path``) before the first file is read, its module must
import all it needs when it is imported itself, and must start no thread then. Where its first call is slow, it may have
a function ``warm_up``, without arguments, which is called once.
"""

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from runner.challenge.formats import FormatSection, outside_format
from runner.challenge.formats.registry import GROUP
from runner.confine import Confine, JsonValue, Reply
from runner.confine.strict_json import JsonBounds, NotStrictError, parse_strictly
from runner.errors import UsageError
from runner.formats.contract import Answer, Arrays, Due, FrameScores, FrameTable, Prediction, Reading, Role
from runner.formats.due_file import due_file, read_due
from runner.formats.packed import packed, unpacked
from runner.formats.readers.confined import confined_call, garbled, told
from runner.formats.readers.opened import read_file, single
from runner.formats.readers.problems import ProblemList, sentence_pattern

_MOST_BYTES = 64 << 20
_MOST_OF_ALL = 128 << 20
_HEADER = "header"
_BOUNDS = JsonBounds(depth=32, values=1_000_000, digits=64)
_LONGEST_NAME = 200


class Say(Protocol):
    """Tells of a problem."""

    def __call__(self, fault: StrEnum, *, row: int | None = None, value: str | None = None, **numbers: int) -> None:
        """Tell of a problem.

        Args:
            fault: One of the format's ``faults``.
            row: Line of the file, from 1, where it is about one.
            value: What stood there; shown on public data alone.
            numbers: What stands in the template's fields: from 0, at most ten digits.
        """


class OutsideFormat(Protocol):
    """What an entry point of the group ``proctor.formats`` names: an object, a class or a module.

    Attributes:
        rule: What challenge.yaml says of this kind: a ``FormatSection``. Where it has a property ``most_bytes``, that
            is how large a file may be, and how large its prediction, up to 128 MiB; else 64 MiB.
        faults: Every sentence it has, as templates whose only fields are whole numbers.
    """

    rule: type[FormatSection]
    faults: type[StrEnum]

    def read(self, rule: Any, file: BinaryIO, due: Due, say: Say) -> FrameTable | FrameScores | Arrays | Answer | None:
        """Read a file; called in a confined child.

        Args:
            rule: What it must look like; a ``rule``.
            file: The file, at its beginning.
            due: The case.
            say: Tells of a problem; all should be told, not the first alone.

        Returns:
            What the file says, every number of it finite: labels as int64, scores as float64, at most 60 columns or
            arrays. None where there is a problem.
        """


def _most_bytes(rule: FormatSection) -> int:
    most = getattr(rule, "most_bytes", _MOST_BYTES)
    if not isinstance(most, int) or not 0 < most <= _MOST_OF_ALL:
        raise UsageError(
            f"the format {rule.kind!r} has most_bytes that is no whole number from 1 to {_MOST_OF_ALL}",
            remedy="mend the package that brings the format",
        )
    return most


def _faults(kind: str) -> type[StrEnum]:
    faults = getattr(outside_format(kind), "faults", None)
    if not (isinstance(faults, type) and issubclass(faults, StrEnum)):
        raise UsageError(
            f"the entry point {kind!r} of {GROUP} is not installed, or has no attribute 'faults' that is a StrEnum",
            remedy="install the package that brings the format again",
        )
    return faults


# The child's side.

_LOADED: dict[str, Any] = {}
"""Formats by kind, loaded by the fork server."""


def warm_up() -> None:
    """Load every format that is installed, while that is possible; for the fork server.

    One that cannot be loaded is left to whoever asks for it.
    """
    for found in entry_points(group=GROUP):
        with suppress(Exception):
            _LOADED[found.name] = found.load()
            getattr(_LOADED[found.name], "warm_up", lambda: None)()


def read_in_child(request: Mapping[str, JsonValue], descriptors: Sequence[int]) -> Reply:
    """The child's side of ``confined_read``."""
    kind = str(request["kind"])
    brought = _LOADED.get(kind) or outside_format(kind)
    content, due = descriptors
    problems = ProblemList()
    with os.fdopen(content, "rb", closefd=False) as file:
        file.seek(0)
        rule = brought.rule.model_validate(request["rule"])
        prediction = brought.read(rule, file, read_due(due), _say(brought.faults, problems))
    if prediction is None or problems.count:
        return Reply(header=told(problems))
    reply = packed(prediction)
    header = np.frombuffer(json.dumps(reply.header, allow_nan=False).encode(), np.uint8)
    return Reply(header=told(problems), arrays={_HEADER: header, **reply.arrays})


def _say(faults: type[StrEnum], problems: ProblemList) -> Say:
    def say(fault: StrEnum, *, row: int | None = None, value: str | None = None, **numbers: int) -> None:
        problems.add(faults(fault).value.format(**numbers), row=row, value=value)

    return say


# The parent's side.


def confined_read(
    confine: Confine,
    rule: FormatSection,
    path: Path,
    *,
    due: Due,
    role: Role,  # noqa: ARG001  a reference of another form has a rule of its own
) -> Reading:
    """Read a file by a package's reader, in a child that can do nothing else.

    Args:
        confine: Where children come from.
        rule: What the file must look like, of a kind that a package brings.
        path: The file.
        due: The case.
        role: Of no meaning here.

    Raises:
        UsageError: The package is gone, or has not what ``OutsideFormat`` asks for.
        HostFault: No child could be started.
    """
    most, faults = _most_bytes(rule), _faults(rule.kind)

    def read(descriptor: int) -> Reading:
        if os.fstat(descriptor).st_size > most:
            return single(f"the file is larger than {most} bytes")
        problems = ProblemList()
        with due_file(due) as beside:
            prediction = confined_call(
                confine,
                "runner.formats.outside.read_in_child",
                {"kind": rule.kind, "rule": rule.model_dump(mode="json", by_alias=True)},
                descriptor,
                sentences=lambda: sentence_pattern(faults),
                array_bytes=most,
                check=lambda reply: check_prediction(reply, due, most),
                problems=problems,
                beside=[beside],
            )
        return Reading(prediction=prediction, problems=tuple(problems.kept), problem_count=problems.count)

    return read_file(path, read)


def check_prediction(reply: Reply, due: Due, most: int) -> Prediction:
    """The prediction of an answer, if it is one.

    Raises:
        ConfinedFailure: It is none; ``GARBLED``.
    """
    if _HEADER not in reply.arrays:
        raise garbled("its answer holds neither a prediction nor a problem")
    if sum(array.nbytes for array in reply.arrays.values()) > most:
        raise garbled("its answer is larger than the file may be")
    arrays = {name: array for name, array in reply.arrays.items() if name != _HEADER}
    match _header_of(reply.arrays[_HEADER]):
        case {"kind": "answer", "fields": dict() as fields, **rest} if not rest and not arrays:
            return Answer(fields=fields)
        case {"kind": "frame_table" | "frame_scores" | "arrays" as kind, "names": list() as names, **rest} if not rest:
            _check_names(names, arrays)
            if kind != "arrays":
                _check_frames(str(kind), names, list(arrays.values()), due.count)
            elif any(array.dtype.kind == "f" and not np.isfinite(array).all() for array in arrays.values()):
                raise garbled("its answer holds numbers that are not finite")
            return unpacked({"kind": kind, "names": names}, arrays)
        case _:
            raise garbled("its answer lacks its parts")


def _header_of(text: NDArray[np.generic]) -> JsonValue:
    try:
        return parse_strictly(text.tobytes().decode("utf-8"), _BOUNDS)
    except (UnicodeDecodeError, NotStrictError) as error:
        raise garbled("its answer is not sound") from error


def _check_names(names: Sequence[JsonValue], arrays: Mapping[str, NDArray[np.generic]]) -> None:
    sound = [name for name in names if isinstance(name, str) and name.isprintable() and len(name) <= _LONGEST_NAME]
    if len(set(sound)) != len(names) or set(arrays) != {str(place) for place in range(len(names))}:
        raise garbled("its answer has malformed names")


def _check_frames(
    kind: str, names: Sequence[JsonValue], arrays: Sequence[NDArray[np.generic]], frames: int | None
) -> None:
    if kind == "frame_table":
        sound = bool(arrays) and all(array.dtype == np.int64 and array.ndim == 1 for array in arrays)
    else:
        sound = names == ["scores"] and all(array.dtype == np.float64 and array.ndim == 2 for array in arrays)
    if not sound:
        raise garbled("its answer is of another type")
    if not all(np.isfinite(array).all() for array in arrays):
        raise garbled("its answer holds numbers that are not finite")
    lengths = {array.shape[0] for array in arrays}
    if len(lengths) != 1 or 0 in lengths or frames not in (None, *lengths):
        raise garbled("its answer has a wrong number of frames")
