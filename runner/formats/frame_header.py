"""Finds out which column of a frame table stands where, from its first row and in spite of its mistakes."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runner.challenge.formats import FrameTableFormat
from runner.formats.contract import Role
from runner.formats.frame_rule import SEPARATORS, Fault, required_columns
from runner.formats.readers.csv_table import Line, Row, parse_integer
from runner.formats.readers.problems import ProblemList


def separator_of(rule: FrameTableFormat, header: Line, problems: ProblemList) -> str:
    """What separates the fields, if need be another character than is due."""
    names = {rule.index.column, *rule.columns}

    def found(separator: str) -> int:
        return len(names & {name.strip(' "') for name in header.text.split(separator)})

    best = max(SEPARATORS, key=lambda separator: (found(separator), separator == rule.separator))
    if best == rule.separator or found(best) < 2:
        return rule.separator
    due, there = SEPARATORS[rule.separator], SEPARATORS[best]
    problems.add(Fault.SEPARATOR.format(found=there, due=due), row=header.number)
    return best


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Which column stands where, and the rows under the header."""

    names: tuple[str, ...]
    index: int | None
    columns: Mapping[str, int]
    rows: Sequence[Row]

    @property
    def width(self) -> int:
        """Fields a row must have."""
        return len(self.names)


def read_header(rule: FrameTableFormat, rows: Sequence[Row], role: Role, problems: ProblemList) -> Layout:
    """Read the first row; a table without a header is read all the same, as if it had the right one."""
    expected = (rule.index.column, *rule.columns)
    first = rows[0] if rows else Row(1, ())
    if rows and _is_data(rule, first.fields):
        problems.add(Fault.NO_HEADER.format(header=rule.separator.join(expected)), row=first.line)
        names = expected if len(first.fields) == len(expected) else tuple(first.fields)
        places = {name: place for place, name in enumerate(names) if name in expected}
        return _layout(rule, names, places, rows)
    places = _find_columns(expected, first, problems)
    strict = role is Role.PREDICTION and rule.extra_columns == "refuse"
    _match_strangers(expected, first, places, problems, strict=strict)
    for name in (rule.index.column, *required_columns(rule, role)):
        if name not in places:
            problems.add(Fault.NO_COLUMN.format(name=repr(name)), row=first.line, column=name)
    if not places.keys() & rule.columns.keys() and not required_columns(rule, role):
        problems.add(Fault.NO_COLUMNS.format(columns=", ".join(rule.columns)), row=first.line)
    return _layout(rule, tuple(first.fields), places, rows[1:])


def _is_data(rule: FrameTableFormat, fields: Sequence[str]) -> bool:
    """Whether a first row holds numbers and labels, and no header."""
    labels = {name for column in rule.columns.values() for name in column.names}
    numbers = [isinstance(parse_integer(field), int) for field in fields]
    return any(numbers) and all(is_number or field in labels for is_number, field in zip(numbers, fields, strict=True))


def _layout(rule: FrameTableFormat, names: Sequence[str], places: Mapping[str, int], rows: Sequence[Row]) -> Layout:
    return Layout(
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
            what = Fault.COLUMN_AGAIN.format(place=place + 1, name=repr(name), first_place=places[name] + 1)
            problems.add(what, row=header.line, column=name)
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
            what = Fault.NEARLY.format(place=place + 1, name=repr(close[0]))
            problems.add(what, row=header.line, column=close[0], value=name)
        elif strict and not name:
            problems.add(Fault.NO_NAME.format(place=place + 1), row=header.line, value=name)
        elif strict:
            what = Fault.STRANGER.format(place=place + 1, names=", ".join(expected))
            problems.add(what, row=header.line, value=name)
