"""Checks the column of a frame table that numbers the frames: each once, in order, none left out."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum, auto

from runner.challenge.formats import IndexRule
from runner.formats.frame_rule import Fault, is_frame, last_number
from runner.formats.readers.problems import ProblemList


class Gaps(Enum):
    """Whether a table may leave frames out."""

    REFUSED = auto()
    ALLOWED = auto()


def check_index(
    rule: IndexRule, entries: Sequence[tuple[int, int | None]], frames: int | None, *, gaps: Gaps = Gaps.REFUSED
) -> ProblemList:
    """Say what is wrong with the numbers of the frames.

    Args:
        rule: What they must be.
        entries: Row and number, in the order of the file; None where the number could not be read.
        frames: How many there must be; None where nobody knows.
        gaps: Whether a frame may be left out.
    """
    problems = ProblemList()
    numbered = _fill_in(rule, entries)
    if not numbered:
        problems.add(Fault.NO_ROWS.value if frames is None else Fault.NO_ROWS_OF.format(frames=frames))
        return problems
    # Where frames may be left out, every 24th row is what a table of every 24th frame looks like.
    sound = gaps is Gaps.ALLOWED and all(is_frame(rule, number, frames) for _, number in numbered)
    if sound or not _one_mistake(rule, numbered, frames, problems):
        seen = _check_rows(rule, numbered, frames, problems)
        if gaps is Gaps.REFUSED:
            problems.take(_report_gaps(rule, seen, frames))
    return problems


def _report_gaps(rule: IndexRule, seen: Mapping[int, int], frames: int | None) -> ProblemList:
    problems = ProblemList()
    for start, end in _gaps(seen, frames):
        _report_gap(rule, start, end, seen, problems)
    return problems


def _fill_in(rule: IndexRule, entries: Sequence[tuple[int, int | None]]) -> list[tuple[int, int]]:
    """A row without a number, reported already, is taken for the one that was due: it is not missing as well."""
    filled: list[tuple[int, int]] = []
    due = rule.first
    for line, number in entries:
        value = due if number is None else number
        filled.append((line, value))
        due = value + rule.step
    return filled


def _one_mistake(
    rule: IndexRule, entries: Sequence[tuple[int, int]], frames: int | None, problems: ProblemList
) -> bool:
    """A table that is regular but numbered differently has one problem, not one a row."""
    line, start = entries[0]
    steps = {after - before for (_, before), (_, after) in itertools.pairwise(entries)}
    if len(entries) > 2 and len(steps) == 1 and steps != {rule.step} and min(steps) > 0:
        step = steps.pop()
        fault = Fault.RISES_MORE if step > rule.step else Fault.RISES_LESS
        what = fault.format(index=rule.column, step=rule.step)
        problems.add(what, row=line, column=rule.column, value=str(step))
        return True
    if steps <= {rule.step} and start != rule.first and frames in (None, len(entries)):
        fault = Fault.STARTS if is_frame(rule, start, frames) else Fault.STARTS_ELSEWHERE
        what = fault.format(row=line, index=rule.column, number=start, first=rule.first)
        problems.add(what, row=line, column=rule.column, value=str(start))
        return True
    return False


def _check_rows(
    rule: IndexRule, entries: Sequence[tuple[int, int]], frames: int | None, problems: ProblemList
) -> dict[int, int]:
    """Check each row's number against those before it.

    Returns:
        The row of every frame that has one.
    """
    seen: dict[int, int] = {}
    highest = -1
    beyond: list[tuple[int, int]] = []
    for line, number in entries:
        frame, rest = divmod(number - rule.first, rule.step)
        fault: Fault | None = None
        if rest or frame < 0:
            fault = Fault.NO_FRAME
        elif frames is not None and frame >= frames:
            beyond.append((line, number))
        elif frame in seen:
            fault = Fault.FRAME_AGAIN
        else:
            seen[frame] = line
            fault = Fault.ORDER if frame < highest else None
            highest = max(highest, frame)
        if fault is not None:
            what = fault.format(
                row=line, index=rule.column, number=number, first=rule.first, second=rule.first + rule.step,
                earlier=seen.get(frame), highest=rule.first + highest * rule.step,
            )  # fmt: skip
            problems.add(what, row=line, column=rule.column, value=str(number))
    if beyond:
        assert frames is not None
        _report_beyond(rule, beyond, frames, problems)
    return seen


def _report_beyond(rule: IndexRule, beyond: Sequence[tuple[int, int]], frames: int, problems: ProblemList) -> None:
    line, number = beyond[0]
    fault = Fault.BEYOND if len(beyond) == 1 else Fault.MANY_BEYOND
    what = fault.format(row=line, index=rule.column, last=last_number(rule, frames), count=len(beyond))
    later = ProblemList()
    later.add(what, row=line, column=rule.column, value=str(number))
    problems.take(later)


def _gaps(seen: Mapping[int, int], frames: int | None) -> Iterator[tuple[int, int]]:
    due = 0
    for frame in sorted(seen):
        if frame > due:
            yield due, frame - 1
        due = frame + 1
    if frames is not None and due < frames:
        yield due, frames - 1


def _report_gap(rule: IndexRule, start: int, end: int, seen: Mapping[int, int], problems: ProblemList) -> None:
    number, last, after = (rule.first + frame * rule.step for frame in (start, end, end + 1))
    if end + 1 in seen:
        line = seen[end + 1]
        fault = Fault.ONE_MISSING if start == end else Fault.SOME_MISSING
    else:
        line = max(seen.values(), default=1) + 1
        fault = Fault.ONE_LESS if start == end else Fault.SOME_LESS
    what = fault.format(row=line, index=rule.column, number=number, end=last, after=after, count=end - start + 1)
    problems.add(what, row=line, column=rule.column)
