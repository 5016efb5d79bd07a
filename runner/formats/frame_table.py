"""Reads a table with one row a frame, and says of everything that is wrong with it where it stands.

``read_frame_table`` meets the bytes and runs in a confined child; ``confined_read`` is what the rest of the program
calls. Sentences are ours: names from challenge.yaml, row numbers, frame numbers. What a container wrote goes into
``Problem.value`` alone.
"""

import difflib
import itertools
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np

from runner.challenge.formats import ColumnRule, FrameTableFormat, IndexRule
from runner.confine import Confine, ConfinedFailure, FailureKind, JsonValue, Privileges, Reply
from runner.confine.wire import pack
from runner.errors import UsageError
from runner.formats.contract import FrameTable, Problem, Reading
from runner.formats.readers.csv_table import (
    MAX_KEPT,
    CsvCaps,
    Line,
    ProblemList,
    Row,
    parse_integer,
    read_integers,
    read_text,
    split_fields,
    split_lines,
)

READ_DEADLINE = 30.0
"""Seconds a reader may take; an hour at one frame a second takes some hundredths of one."""

READ_MEMORY = 1 << 30
"""Bytes a reader may use."""

_CAPS = CsvCaps()
_LARGEST_SHOWN = 1_000_000
_SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab", " ": "a space", "|": "a bar"}


class Role(StrEnum):
    """Whose table it is."""

    PREDICTION = "prediction"
    REFERENCE = "reference"


def legal_labels(rule: ColumnRule, role: Role) -> frozenset[int]:
    """The labels a column may hold."""
    if role is Role.REFERENCE:
        return frozenset(rule.labels + rule.reference_only) - frozenset(rule.prediction_only)
    return frozenset(rule.labels)


def read_frame_table(rule: FrameTableFormat, descriptor: int, *, frames: int | None, role: Role) -> Reading:
    """Read a table; to be called in a confined child.

    Args:
        rule: What it must look like.
        descriptor: The file, open for reading.
        frames: How many rows it must have; None where nobody knows.
        role: A reference may hold labels that a prediction may not, and further columns.

    Returns:
        The labels, ``(frames,)`` a column; or the problems, in the order of the file.
    """
    problems = ProblemList()
    text = read_text(descriptor, caps=_CAPS, problems=problems)
    if (table := _read_faultless(rule, text, frames, role)) is not None:
        return Reading(table=table)
    lines = split_lines(text, caps=_CAPS, problems=problems) if text else []
    if not lines:
        return Reading(table=None, problems=tuple(problems.kept), problem_count=problems.count)
    separator = _separator(rule, lines[0], problems)
    rows = split_fields(lines, separator=separator, caps=_CAPS, problems=problems)
    layout = _read_header(rule, rows, role, problems)
    cells = _read_cells(rule, layout, role)
    problems.take(cells.problems)
    if layout.index is not None:
        problems.take(_check_index(rule.index, cells.index, frames))
    if problems.count:
        return Reading(table=None, problems=tuple(problems.kept), problem_count=problems.count)
    columns = {name: np.array(values, dtype=np.int64) for name, values in cells.columns.items()}
    return Reading(table=FrameTable(columns=columns))


def _read_faultless(rule: FrameTableFormat, text: str, frames: int | None, role: Role) -> FrameTable | None:
    """The short way for a table about which there is nothing to say; says nothing itself, and gives up early."""
    expected = (rule.index.column, *rule.columns)
    header, _, body = text.partition("\n")
    names = header.removesuffix("\r").split(rule.separator)
    if any(names.count(name) != 1 for name in expected) or len(names) > _CAPS.columns:
        return None
    if len(names) > len(expected) and role is Role.PREDICTION and rule.extra_columns == "refuse":
        return None
    numbers = read_integers(body, columns=len(names), separator=rule.separator)
    if numbers is None or frames not in (None, len(numbers)):
        return None
    due = rule.index.first + rule.index.step * np.arange(len(numbers))
    if not np.array_equal(numbers[:, names.index(rule.index.column)], due):
        return None
    columns = {name: numbers[:, names.index(name)].copy() for name in rule.columns}
    legal = (np.isin(columns[name], list(legal_labels(column, role))).all() for name, column in rule.columns.items())
    return FrameTable(columns=columns) if all(legal) else None


def _separator(rule: FrameTableFormat, header: Line, problems: ProblemList) -> str:
    names = {rule.index.column, *rule.columns}

    def found(separator: str) -> int:
        return len(names & {name.strip(' "') for name in header.text.split(separator)})

    best = max(_SEPARATORS, key=lambda separator: (found(separator), separator == rule.separator))
    if best == rule.separator or found(best) < 2:
        return rule.separator
    due, there = _SEPARATORS[rule.separator], _SEPARATORS[best]
    problems.add(f"the fields are separated by {there} where {due} is due", row=header.number)
    return best


@dataclass(frozen=True, kw_only=True)
class _Layout:
    """Which column stands where, and the rows under the header."""

    names: tuple[str, ...]
    index: int | None
    columns: Mapping[str, int]
    rows: Sequence[Row]

    @property
    def width(self) -> int:
        return len(self.names)


def _read_header(rule: FrameTableFormat, rows: Sequence[Row], role: Role, problems: ProblemList) -> _Layout:
    expected = (rule.index.column, *rule.columns)
    first = rows[0] if rows else Row(1, ())
    if rows and all(isinstance(parse_integer(name), int) for name in first.fields):
        problems.add(f"there is no header: the first row must be {rule.separator.join(expected)}", row=first.line)
        names = expected if len(first.fields) == len(expected) else tuple(first.fields)
        places = {name: place for place, name in enumerate(names) if name in expected}
        return _layout(rule, names, places, rows)
    places = _find_columns(expected, first, problems)
    strict = role is Role.PREDICTION and rule.extra_columns == "refuse"
    _match_strangers(expected, first, places, problems, strict=strict)
    for name in expected:
        if name not in places:
            problems.add(f"there is no column {name!r}", row=first.line, column=name)
    return _layout(rule, tuple(first.fields), places, rows[1:])


def _layout(rule: FrameTableFormat, names: Sequence[str], places: Mapping[str, int], rows: Sequence[Row]) -> _Layout:
    return _Layout(
        names=tuple(names),
        index=places.get(rule.index.column),
        columns={name: places[name] for name in rule.columns if name in places},
        rows=rows,
    )


def _find_columns(expected: Sequence[str], header: Row, problems: ProblemList) -> dict[str, int]:
    places: dict[str, int] = {}
    for place, name in enumerate(header.fields):
        if name not in expected:
            continue
        if name in places:
            first = places[name] + 1
            problems.add(f"column {place + 1} is {name!r} again, as column {first}", row=header.line, column=name)
        else:
            places[name] = place
    return places


def _match_strangers(
    expected: Sequence[str], header: Row, places: dict[str, int], problems: ProblemList, *, strict: bool
) -> None:
    """Report columns that are not known; one that is nearly named like a missing column is taken for it."""
    for place, name in enumerate(header.fields):
        if name in expected:
            continue
        missing = [known for known in expected if known not in places]
        close = difflib.get_close_matches(name.strip().lower()[:100], missing, n=1, cutoff=0.7)
        if close:
            places[close[0]] = place
            what = f"column {place + 1} is not named exactly {close[0]!r}, which is missing: did you mean it?"
            problems.add(what, row=header.line, column=close[0], value=name)
        elif strict and not name:
            what = f"column {place + 1} has no name: is it an index? (pandas: to_csv(..., index=False))"
            problems.add(what, row=header.line, value=name)
        elif strict:
            what = f"column {place + 1} is not asked for: the columns are {', '.join(expected)}"
            problems.add(what, row=header.line, value=name)


@dataclass(frozen=True, kw_only=True)
class _Cells:
    """What the rows hold; the index of a row that has none that can be read is None."""

    index: list[tuple[int, int | None]]
    columns: dict[str, list[int]]
    problems: ProblemList


def _read_cells(rule: FrameTableFormat, layout: _Layout, role: Role) -> _Cells:
    cells = _Cells(index=[], columns={name: [] for name in layout.columns}, problems=ProblemList())
    labels = {name: _Labels(rule.columns[name], role) for name in layout.columns}
    index_name = rule.index.column
    for line, fields in layout.rows:
        if len(fields) != layout.width:
            what = f"row {line}: there are {len(fields)} fields where {layout.width} are due"
            cells.problems.add(what, row=line)
            cells.index.append((line, None))
            continue
        if tuple(fields) == layout.names:
            cells.problems.add(f"row {line}: the header stands here again", row=line)
            continue
        if layout.index is not None:
            number = parse_integer(fields[layout.index])
            if isinstance(number, str):
                what = f"row {line}: {index_name} {number}"
                cells.problems.add(what, row=line, column=index_name, value=fields[layout.index])
            cells.index.append((line, number if isinstance(number, int) else None))
        for name, place in layout.columns.items():
            label = labels[name].read(fields[place])
            if isinstance(label, str):
                what = f"row {line}: {name} {label}"
                cells.problems.add(what, row=line, column=name, value=fields[place])
            else:
                cells.columns[name].append(label)
    return cells


class _Labels:
    """Reads the cells of one column; few texts stand there again and again, so each is read once."""

    def __init__(self, rule: ColumnRule, role: Role) -> None:
        self._legal = legal_labels(rule, role)
        self._known: dict[str, int | str] = {}

    def read(self, text: str) -> int | str:
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = self._judge(text)
        return known

    def _judge(self, text: str) -> int | str:
        label = parse_integer(text)
        if isinstance(label, int) and label not in self._legal:
            return f"is not a label: {_ranges(sorted(self._legal))} are"
        return label


def _ranges(numbers: Sequence[int]) -> str:
    parts = []
    start = 0
    for place in range(1, len(numbers) + 1):
        if place < len(numbers) and numbers[place] == numbers[place - 1] + 1:
            continue
        first, last = numbers[start], numbers[place - 1]
        parts.append(f"{first}" if first == last else f"{first} to {last}")
        start = place
    return ", ".join(parts)


def _check_index(rule: IndexRule, entries: Sequence[tuple[int, int | None]], frames: int | None) -> ProblemList:
    problems = ProblemList()
    numbered = _fill_in(rule, entries)
    if not numbered:
        due = "" if frames is None else f"; {frames} are due"
        problems.add(f"there are no rows under the header{due}")
        return problems
    if not _one_mistake(rule, numbered, frames, problems):
        seen = _check_rows(rule, numbered, frames, problems)
        gaps = ProblemList()
        for start, end in _gaps(seen, frames):
            _report_gap(rule, start, end, seen, gaps)
        problems.take(gaps)
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
        what = f"{rule.column} rises by {_shown(rule, steps.pop(), None)} a row where {rule.step} is due"
        problems.add(what, row=line, column=rule.column)
        return True
    if steps <= {rule.step} and start != rule.first and frames in (None, len(entries)):
        what = f"row {line}: {rule.column} starts at {_shown(rule, start, frames)} where {rule.first} is due"
        problems.add(what, row=line, column=rule.column)
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
        what = ""
        if rest or frame < 0:
            what = f"is no frame: {rule.first}, {rule.first + rule.step}, … are"
        elif frames is not None and frame >= frames:
            beyond.append((line, number))
        elif frame in seen:
            what = f"stands here again, as in row {seen[frame]}"
        else:
            seen[frame] = line
            if frame < highest:
                what = f"comes after {_shown(rule, rule.first + highest * rule.step, frames)}: rows must be in order"
            highest = max(highest, frame)
        if what:
            problems.add(
                f"row {line}: {rule.column} {_shown(rule, number, frames)} {what}", row=line, column=rule.column
            )
    if beyond:
        assert frames is not None
        _report_beyond(rule, beyond, frames, problems)
    return seen


def _report_beyond(rule: IndexRule, beyond: Sequence[tuple[int, int]], frames: int, problems: ProblemList) -> None:
    line, number = beyond[0]
    last = rule.first + (frames - 1) * rule.step
    many = f"; {len(beyond)} rows are too many" if len(beyond) > 1 else ""
    what = f"row {line}: {rule.column} {_shown(rule, number, frames)} is beyond the last frame, {last}{many}"
    later = ProblemList()
    later.add(what, row=line, column=rule.column)
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
    numbers = (rule.first + frame * rule.step for frame in (start, end, end + 1))
    first, last, after = (_shown(rule, number, None) for number in numbers)
    gone = (
        f"the row for frame {first} is missing"
        if start == end
        else f"the rows for frames {first} to {last} are missing ({end - start + 1})"
    )
    if end + 1 in seen:
        line = seen[end + 1]
        what = f"row {line}: {rule.column} is {after} where {first} was due: {gone}"
        problems.add(what, row=line, column=rule.column)
    else:
        line = max(seen.values(), default=1) + 1
        problems.add(f"row {line}: the table ends too early: {gone}", row=line, column=rule.column)


def _shown(rule: IndexRule, number: int, frames: int | None) -> str:
    """A number of the container as a sentence of ours may hold it.

    Only one that can be meant for a frame, the places before the first and after the last included: any other can be
    a pixel of the hidden input.
    """
    largest = _LARGEST_SHOWN if frames is None else rule.first + frames * rule.step
    return str(number) if rule.first - rule.step <= number <= largest else "a number far out of range"


# The two sides of the confined call.


def read_in_child(request: Mapping[str, JsonValue], descriptors: Sequence[int]) -> Reply:
    """The child's side of ``confined_read``."""
    rule = FrameTableFormat.model_validate(request["rule"])
    frames = request["frames"]
    assert frames is None or isinstance(frames, int)
    reading = read_frame_table(rule, descriptors[0], frames=frames, role=Role(str(request["role"])))
    problems: list[JsonValue] = [[one.what, one.row, one.column, one.value] for one in reading.problems]
    header: dict[str, JsonValue] = {"problems": problems, "count": reading.problem_count}
    return Reply(header=header, arrays=reading.table.columns if reading.table else {})


def confined_read(
    confine: Confine, rule: FrameTableFormat, path_or_fd: Path | int, *, frames: int | None, role: Role
) -> Reading:
    """Read a table in a child that can do nothing else.

    Args:
        confine: Where children come from.
        rule: What the table must look like.
        path_or_fd: The file; a descriptor stays open.
        frames: How many rows it must have; None where nobody knows.
        role: A prediction's problems are values; a reference must have none.

    Raises:
        UsageError: A reference has problems.
        HostFault: No child could be started.
    """
    if isinstance(path_or_fd, int):
        reading = _read_descriptor(confine, rule, path_or_fd, frames=frames, role=role)
    else:
        reading = _read_path(confine, rule, path_or_fd, frames=frames, role=role)
    if role is Role.REFERENCE and reading.table is None:
        raise _bad_reference(path_or_fd, reading)
    return reading


def _bad_reference(path_or_fd: Path | int, reading: Reading) -> UsageError:
    sentences = [one.what + (f" (there: {one.value})" if one.value else "") for one in reading.problems]
    more = reading.problem_count - len(sentences)
    if more > 0:
        sentences.append(f"and {more} more")
    where = str(path_or_fd) if isinstance(path_or_fd, Path) else "a reference"
    return UsageError(
        "; ".join(sentences),
        where=where,
        remedy="mend the reference, or the task's format in challenge.yaml",
    )


def _read_path(confine: Confine, rule: FrameTableFormat, path: Path, *, frames: int | None, role: Role) -> Reading:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return _single(f"the file cannot be opened: {error.strerror}")
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return _single("this is no regular file")
        return _read_descriptor(confine, rule, descriptor, frames=frames, role=role)
    finally:
        os.close(descriptor)


def _read_descriptor(
    confine: Confine, rule: FrameTableFormat, descriptor: int, *, frames: int | None, role: Role
) -> Reading:
    request: dict[str, JsonValue] = {
        "rule": rule.model_dump(mode="json", by_alias=True),
        "frames": frames,
        "role": role.value,
    }
    try:
        reply = confine.call(
            "runner.formats.frame_table.read_in_child",
            request,
            descriptors=[descriptor],
            deadline=READ_DEADLINE,
            memory=READ_MEMORY,
            privileges=Privileges.DROP,
        )
        return _check_reply(rule, reply, frames=frames, role=role)
    except ConfinedFailure as failure:
        return _single(f"the file could not be read: the reader stopped: {failure.detail}")


def _single(what: str) -> Reading:
    return Reading(table=None, problems=(Problem(what=what),), problem_count=1)


def _check_reply(rule: FrameTableFormat, reply: Reply, *, frames: int | None, role: Role) -> Reading:
    """Believe nothing: the child may no longer be ours."""
    match reply.header:
        case {"problems": list() as entries, "count": int() as count} if len(entries) <= min(count, MAX_KEPT):
            problems = tuple(_problem(rule, entry) for entry in entries)
        case _:
            raise _garbled("its answer lacks its parts")
    if count or problems:
        return Reading(table=None, problems=problems, problem_count=count)
    columns = {}
    for name, column in rule.columns.items():
        array = reply.arrays.get(name)
        if array is None or array.dtype != np.int64 or array.ndim != 1 or not array.size:
            raise _garbled("a column is missing from its answer, or is no list of labels")
        if not np.isin(array, list(legal_labels(column, role))).all():
            raise _garbled("its answer holds labels that are none")
        columns[name] = array.astype(np.int64, copy=False)
    lengths = {array.size for array in columns.values()}
    if len(lengths) != 1 or frames not in (None, *lengths):
        raise _garbled("its answer has a wrong number of frames")
    return Reading(table=FrameTable(columns=columns))


def _problem(rule: FrameTableFormat, entry: JsonValue) -> Problem:
    match entry:
        case [str() as what, int() | None as row, str() | None as column, str() | None as value]:
            known = column if column in (rule.index.column, *rule.columns) else None
            return Problem(what=what[:500], row=row, column=known, value=value[:100] if value else value)
        case _:
            raise _garbled("its list of problems is malformed")


def _garbled(detail: str) -> ConfinedFailure:
    return ConfinedFailure(FailureKind.GARBLED, detail)


def warm_up() -> None:
    """Read a good and a bad table once; for the fork server."""
    rule = FrameTableFormat.model_validate(
        {"kind": "frame_table", "file": "{case}", "index": {"column": "t"}, "columns": {"x": {"labels": [0]}}}
    )
    for content in (b"t,x\n0,0\n1,0\n", b't,y\n0,a\n"', b"t;x\n0;nan\n5;\n", b"t,x\n\xff"):
        descriptor = os.memfd_create("warm", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, content)
            request: dict[str, JsonValue] = {"rule": rule.model_dump(mode="json"), "frames": 2, "role": "prediction"}
            pack(read_in_child(request, [descriptor]))
        finally:
            os.close(descriptor)
