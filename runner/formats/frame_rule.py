"""What is asked of a frame table, and every sentence in which one can be refused.

On hidden data whatever a verdict says is a way out for that data. So a sentence names places, rows and columns, and of
the numbers that a container wrote only those that are the number of a frame: every other one can be a pixel of the
hidden input, and goes into ``Problem.value``, which is shown on public data alone.
"""

import re
from collections.abc import Sequence
from enum import StrEnum

from runner.challenge.formats import ColumnRule, FrameTableFormat, IndexRule
from runner.formats.contract import Role
from runner.formats.readers import csv_table
from runner.formats.readers.csv_table import CsvCaps, Mistake
from runner.formats.readers.problems import any_of, sentence_pattern
from runner.formats.spelling import listed

CAPS = CsvCaps()
"""How large a table may be."""

SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab", " ": "a space", "|": "a bar"}
"""What a table could be separated by, in words."""

_LARGEST_INDEX = 10**15


class Fault(StrEnum):
    """Every sentence about a frame table, but for those about its text."""

    SEPARATOR = "the fields are separated by {found} where {due} is due"
    NO_HEADER = "there is no header: the first row must be {header}"
    NO_COLUMN = "there is no column {name}"
    NO_COLUMNS = "there is none of the columns {columns}"
    COLUMN_AGAIN = "column {place} is {name} again, as column {first_place}"
    NEARLY = "column {place} is not named exactly {name}, which is missing: did you mean it?"
    NO_NAME = "column {place} has no name: is it an index? (pandas: to_csv(..., index=False))"
    STRANGER = "column {place} is not asked for: the columns are {names}"
    FIELDS = "row {row}: there are {fields} fields where {width} are due"
    HEADER_AGAIN = "row {row}: the header stands here again"
    CELL = "row {row}: {column} {mistake}"
    NO_ROWS = "there are no rows under the header"
    NO_ROWS_OF = "there are no rows under the header; {frames} are due"
    NO_FRAMES = "none of the rows is that of a frame; {frames} are due"
    RISES_MORE = "{index} rises by more than {step} a row"
    RISES_LESS = "{index} rises by less than {step} a row"
    STARTS = "row {row}: {index} starts at {number} where {first} is due"
    STARTS_ELSEWHERE = "row {row}: {index} does not start at {first}"
    NO_FRAME = "row {row}: {index} is no frame: {first}, {second}, … are"
    BEYOND = "row {row}: {index} is beyond the last frame, {last}"
    MANY_BEYOND = "row {row}: {index} is beyond the last frame, {last}; {count} rows are too many"
    FRAME_AGAIN = "row {row}: {index} {number} stands here again, as in row {earlier}"
    ORDER = "row {row}: {index} {number} comes after {highest}: rows must be in order"
    ONE_MISSING = "row {row}: {index} is {after} where {number} was due: the row for frame {number} is missing"
    SOME_MISSING = (
        "row {row}: {index} is {after} where {number} was due: "
        "the rows for frames {number} to {end} are missing ({count})"
    )
    ONE_LESS = "row {row}: the table ends too early: the row for frame {number} is missing"
    SOME_LESS = "row {row}: the table ends too early: the rows for frames {number} to {end} are missing ({count})"


def legal_labels(rule: ColumnRule, role: Role) -> frozenset[int]:
    """The labels a column may hold."""
    if role is Role.REFERENCE:
        return frozenset(rule.ids + rule.reference_only) - frozenset(rule.prediction_only)
    return frozenset(rule.ids)


def required_columns(rule: FrameTableFormat, role: Role) -> tuple[str, ...]:
    """The columns of labels that must be there; in a reference, all."""
    return tuple(name for name, column in rule.columns.items() if role is Role.REFERENCE or column.missing == "refuse")


def no_label(rule: ColumnRule, role: Role) -> str:
    """What is wrong with what is no label of a column, as ``Mistake`` says it."""
    return f"is not a label: {_names(rule, role) if rule.names else _ranges(sorted(legal_labels(rule, role)))} are"


def is_a_number(rule: ColumnRule, role: Role) -> str:
    """What is wrong with a number in a column of names."""
    return f"is a number where a name is due: {_names(rule, role)} are"


def nearly_label(rule: ColumnRule, role: Role) -> str:
    """What is wrong with a name that differs from a label's in nothing that is heard.

    Which label it may be is not said: of all there are, the container chose it.
    """
    return f"is not written exactly as the label: mind case, spaces and underscores in {_names(rule, role)}"


def _label_mistakes(rule: ColumnRule, role: Role) -> list[str]:
    named = [is_a_number(rule, role), nearly_label(rule, role)] if rule.names else []
    return [no_label(rule, role), *named]


def _names(rule: ColumnRule, role: Role) -> str:
    legal = legal_labels(rule, role)
    return listed([name for label, name in enumerate(rule.names) if label in legal])


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


def sentences(rule: FrameTableFormat, frames: int | None, role: Role) -> re.Pattern[str]:
    """What may be said of a table with this rule and so many frames."""
    columns = list(rule.columns)
    names = [rule.index.column, *columns]
    return sentence_pattern(
        [*csv_table.Fault, *Fault],
        **index_fields(rule.index, frames),
        **dict.fromkeys(("place", "first_place"), "[1-9][0-9]?"),
        **dict.fromkeys(("fields", "width"), _COUNT),
        cap=any_of([CAPS.size, CAPS.rows, CAPS.line_length, CAPS.columns]),
        encoding="UTF-16|UTF-32",
        found=any_of(SEPARATORS.values()),
        due=any_of(SEPARATORS.values()),
        header=any_of([rule.separator.join(names)]),
        name=any_of(map(repr, names)),
        names=any_of([", ".join(names)]),
        columns=any_of([", ".join(columns)]),
        column=any_of(names),
        mistake=any_of(
            [*Mistake, *(text for column in rule.columns.values() for text in _label_mistakes(column, role))]
        ),
    )


_COUNT = "[1-9][0-9]{0,5}"
_LONG_COUNT = "[1-9][0-9]{0,14}"
"""Of rows that are missing where nobody knows how many there must be: as many as an index has numbers."""


def index_fields(rule: IndexRule, frames: int | None) -> dict[str, str]:
    """What may stand in the fields of a sentence about the numbers of frames, for ``sentence_pattern``."""
    return {
        **dict.fromkeys(("row", "earlier"), "[1-9][0-9]{0,7}"),
        **dict.fromkeys(("number", "highest", "after", "end"), _frame_numbers(rule, frames)),
        "count": _LONG_COUNT if frames is None else _COUNT,
        "index": any_of([rule.column]),
        "first": any_of([rule.first]),
        "second": any_of([rule.first + rule.step]),
        "step": any_of([rule.step]),
        "last": any_of(["" if frames is None else last_number(rule, frames)]),
        "frames": any_of(["" if frames is None else frames]),
    }


def last_number(rule: IndexRule, frames: int) -> int:
    """The number of the last of so many frames."""
    return rule.first + (frames - 1) * rule.step


def is_frame(rule: IndexRule, number: int, frames: int | None) -> bool:
    """True where a number is that of a frame."""
    frame, rest = divmod(number - rule.first, rule.step)
    return rest == 0 and frame >= 0 and (frames is None or frame < frames)


def _frame_numbers(rule: IndexRule, frames: int | None) -> str:
    """The form of a frame's number: no more digits than the longest one has."""
    last = _LARGEST_INDEX if frames is None else last_number(rule, max(1, frames))
    digits = max(len(str(abs(rule.first))), len(str(abs(last))))
    return f"{'-?' if rule.first < 0 else ''}(?:0|[1-9][0-9]{{0,{digits - 1}}})"
