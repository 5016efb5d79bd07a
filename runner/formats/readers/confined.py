"""A reader's work in a child that can do nothing else, and how little the parent believes of its answer."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from runner.confine import Confine, ConfinedFailure, FailureKind, JsonValue, Privileges, Reply
from runner.formats.contract import Problem
from runner.formats.readers.problems import MAX_KEPT, VALUE_CHARACTERS, ProblemList

READ_DEADLINE = 30.0
"""Seconds a reader may take; an hour at one frame a second takes some hundredths of one."""

READ_MEMORY = 1 << 30
"""Bytes a reader may use."""

_LARGEST_PLACE = 1 << 40
_MOST_PROBLEMS = 1 << 26
"""More than the largest file of the largest table can have; the count stands in the verdict."""

_Value = TypeVar("_Value")


def told(problems: ProblemList, counts: Sequence[int] = ()) -> dict[str, JsonValue]:
    """Problems as the header of a reply, and what else a reader counted; for the child."""
    entries: list[JsonValue] = [[one.what, one.row, one.column, one.value] for one in problems.kept]
    header: dict[str, JsonValue] = {"problems": entries, "count": problems.count}
    return header | {"counts": list[JsonValue](counts)} if counts else header


def counts_of(reply: Reply) -> tuple[int, ...]:
    """What else a reader counted; for the parent, and for what ``confined_call`` let through."""
    counts = reply.header.get("counts", [])
    assert isinstance(counts, list)
    return tuple(count for count in counts if isinstance(count, int))


def confined_call(
    confine: Confine,
    function: str,
    request: Mapping[str, JsonValue],
    descriptor: int,
    *,
    sentences: Callable[[], re.Pattern[str]],
    array_bytes: int,
    check: Callable[[Reply], _Value],
    problems: ProblemList,
    columns: Collection[str] = (),
    beside: Sequence[int] = (),
    counts: int = 0,
) -> _Value | None:
    """Let a reader work in a child that can do nothing else, and believe nothing it says unchecked; for the parent.

    Args:
        confine: Where children come from.
        function: The reader, which puts ``told`` into the header of its reply.
        request: Its request.
        descriptor: The file; it stays open.
        sentences: Makes the pattern of what the reader may say; called where it says something.
        array_bytes: The most bytes of arrays that a sound file can come to.
        check: Makes a value of a reply without problems, or raises what ``garbled`` answers.
        problems: What is wrong is added here, the reader's own end included.
        columns: Names that may stand as a problem's column.
        beside: Descriptors of what is ours and too long for a request; they stay open, too.
        counts: How many numbers the reader gives to ``told`` as its counts.

    Raises:
        HostFault: No child could be started.
    """
    try:
        reply = confine.call(
            function,
            request,
            descriptors=[descriptor, *beside],
            deadline=READ_DEADLINE,
            memory=READ_MEMORY,
            privileges=Privileges.DROP,
            array_bytes=array_bytes,
        )
        found = _check_told(reply, sentences, columns, counts)
        value = check(reply) if not found.count else None
    except ConfinedFailure as failure:
        problems.add(f"the file could not be read: the reader stopped: {failure.detail}")
        return None
    problems.take(found)
    return value


def _check_told(
    reply: Reply, sentences: Callable[[], re.Pattern[str]], columns: Collection[str], counts: int
) -> ProblemList:
    match reply.header:
        case {"problems": list() as entries, "count": int() as count, **rest} if (
            _are_counts(rest, counts)
            and not isinstance(count, bool)
            and count <= _MOST_PROBLEMS
            and len(entries) == min(count, MAX_KEPT)
        ):
            return ProblemList(kept=[_check_problem(entry, sentences(), columns) for entry in entries], count=count)
        case _:
            raise garbled("its answer lacks its parts")


def _are_counts(rest: Mapping[str, JsonValue], due: int) -> bool:
    """Whether a header holds so many counts, and nothing else beside its problems."""
    if not due:
        return not rest
    counts = rest.get("counts")
    return (
        len(rest) == 1
        and isinstance(counts, list)
        and len(counts) == due
        and all(type(count) is int and 0 <= count <= _MOST_PROBLEMS for count in counts)
    )


def _check_problem(entry: JsonValue, sentences: re.Pattern[str], columns: Collection[str]) -> Problem:
    match entry:
        case [str() as what, int() | None as row, str() | None as column, str() | None as value] if (
            sentences.fullmatch(what) and _is_place(row) and (column is None or column in columns) and _is_quoted(value)
        ):
            return Problem(what=what, row=row, column=column, value=value)
        case _:
            raise garbled("its list of problems is malformed")


def _is_place(row: int | None) -> bool:
    return row is None or (not isinstance(row, bool) and 1 <= row <= _LARGEST_PLACE)


def _is_quoted(value: str | None) -> bool:
    if value is None:
        return True
    body = value.removesuffix("…")
    return len(value) <= VALUE_CHARACTERS and body.isascii() and body.isprintable()


def garbled(detail: str) -> ConfinedFailure:
    """An answer that is not to be believed; to be raised."""
    return ConfinedFailure(FailureKind.GARBLED, detail)
