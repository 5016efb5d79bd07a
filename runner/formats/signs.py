"""What kind of mistake a refused file holds: typed signs for the hints, found in a confined child.

The readers say where a file is wrong. This says, in words of a closed list, what its author probably did: it looks at
a file that has been refused already, forgives everything, and decides nothing. A child that was taken over can choose
among these words and tell nothing else.
"""

import itertools
import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from pydantic import TypeAdapter

from runner.challenge.formats import (
    AnswerFormat,
    FormatSection,
    FrameScoresFormat,
    FrameTableFormat,
    LabelImagesFormat,
)
from runner.confine import Confine, ConfinedFailure, JsonValue, Privileges, Reply
from runner.formats.contract import Due as CaseDue
from runner.formats.readers.csv_table import CsvCaps
from runner.formats.readers.file_bytes import read_bytes, wide_encoding

_DEADLINE = 10.0
_MEMORY = 1 << 30
_SEEN = 8 << 20
"""Bytes that are looked at; what a file is can be told from its first megabytes."""
_CAPS = CsvCaps()
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MOST_ENTRIES = 20_000
"""Entries of a folder among which the first one is looked for."""


class Sign(StrEnum):
    """What can be seen of a refused file."""

    EMPTY = "empty"
    NOT_TEXT = "not-text"
    WIDE = "wide"
    HEADER_MISSING = "header-missing"
    HEADER_NUMBERED = "header-numbered"
    HEADER_AGAIN = "header-again"
    INDEX_COLUMN = "index-column"
    SEPARATOR = "separator"
    DECIMAL_COMMA = "decimal-comma"
    NO_ROWS = "no-rows"
    OFF_BY_ONE = "off-by-one"
    TOO_SHORT = "too-short"
    OTHER_STEP = "other-step"
    TEXT_ORDER = "text-order"
    NO_ORDER = "no-order"
    TWICE = "twice"
    NAMES = "names"
    FLOAT_IDS = "float-ids"
    UNKNOWN_LABELS = "unknown-labels"
    PROBABILITIES = "probabilities"
    PERCENT = "percent"
    LOGITS = "logits"
    NOT_A_NUMBER = "not-a-number"
    PYTHON_TEXT = "python-text"
    JPEG = "jpeg"
    OTHER_IMAGE = "other-image"
    IMAGE_SIZE = "image-size"
    COLOUR = "colour"


class Form(StrEnum):
    """What a file is to be."""

    TABLE = "table"
    JSON = "json"
    IMAGE = "image"


@dataclass(frozen=True, kw_only=True)
class Due:
    """What a file had to be, as far as signs need it.

    Attributes:
        form: What kind of file.
        frames: Rows of a table; None where nobody knows, or where some may be left out.
        names: Columns of a table, its index first.
        separator: Between the fields of a table.
        first: The first frame's number.
        step: From a frame's number to the next one's.
        labels: The labels of a table; None where its columns hold scores from 0 to 1.
        named: The labels of a table are names, or some are: of its cells nothing is seen.
        unit: The decimal numbers of a JSON text are scores from 0 to 1; of others nothing is seen.
        width: Of an image; None where any will do.
        height: As width.
        colour: The pixels of an image are red, green and blue.
    """

    form: Form
    frames: int | None = None
    names: tuple[str, ...] = ()
    separator: str = ","
    first: int = 0
    step: int = 1
    labels: tuple[int, ...] | None = None
    named: bool = False
    unit: bool = True
    width: int | None = None
    height: int | None = None
    colour: bool = False


_DUE = TypeAdapter(Due)


def table_due(rule: FrameTableFormat, frames: int | None) -> Due:
    """What a frame table had to be; the labels of all its columns together."""
    labels = sorted({label for column in rule.columns.values() for label in column.labels})
    return Due(
        form=Form.TABLE, frames=frames if rule.missing_frames == "refuse" else None,
        names=(rule.index.column, *rule.columns), separator=rule.separator,
        first=rule.index.first, step=rule.index.step, labels=tuple(labels),
        named=any(column.names for column in rule.columns.values()),
    )  # fmt: skip


def due_of(rule: FormatSection, due: CaseDue) -> Due | None:
    """What a file had to be; None where nothing is looked for in such files."""
    match rule:
        case FrameTableFormat():
            return table_due(rule, due.count)
        case FrameScoresFormat(layout="json"):
            return Due(form=Form.JSON, unit=rule.range == (0, 1))
        case AnswerFormat():
            return Due(form=Form.JSON, unit=False)
        case LabelImagesFormat():
            return Due(form=Form.IMAGE, width=rule.width, height=rule.height, colour=rule.coding == "colour")
        case _:
            return None


def confined_signs(confine: Confine, due: Due, path: Path) -> frozenset[Sign]:
    """Look at a refused file in a child that can do nothing else.

    Args:
        confine: Where children come from.
        due: What the file had to be.
        path: The file, as it was taken out; of a folder its first file, by name, is looked at.

    Returns:
        What was seen; nothing where the file cannot be opened or the child did not answer as it must: there is no hint
        then, and the reader has said already what is wrong.

    Raises:
        HostFault: No child could be started.
    """
    try:
        descriptor = _opened(path)
    except OSError:
        return frozenset()
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return frozenset()
        reply = confine.call(
            "runner.formats.signs.look_in_child",
            _DUE.dump_python(due, mode="json"),
            descriptors=[descriptor],
            deadline=_DEADLINE,
            memory=_MEMORY,
            privileges=Privileges.DROP,
        )
    except ConfinedFailure:
        return frozenset()
    finally:
        os.close(descriptor)
    return _known(reply)


def _opened(path: Path) -> int:
    """The file, or the first one of a folder, open for reading; by no link.

    Raises:
        OSError: There is none, or it cannot be opened.
    """
    descriptor = os.open(path, _FLAGS)
    if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
        return descriptor
    try:
        with os.scandir(descriptor) as entries:
            first = min((entry.name for entry in itertools.islice(entries, _MOST_ENTRIES)), default="")
        return os.open(first, _FLAGS, dir_fd=descriptor)
    finally:
        os.close(descriptor)


def _known(reply: Reply) -> frozenset[Sign]:
    words = reply.header.get("signs")
    known = {sign.value for sign in Sign}
    if not isinstance(words, list):
        return frozenset()
    return frozenset(Sign(word) for word in words if isinstance(word, str) and word in known)


def look_in_child(request: Mapping[str, JsonValue], descriptors: Sequence[int]) -> Reply:
    """The child's side of ``confined_signs``."""
    due = _DUE.validate_python(request)
    content = read_bytes(descriptors[0], _SEEN)[:_SEEN]
    return Reply(header={"signs": [sign.value for sign in sorted(find_signs(due, content))]})


def find_signs(due: Due, content: bytes) -> frozenset[Sign]:
    """Everything that can be seen of a file; to be called in a confined child.

    Args:
        due: What it had to be.
        content: Its first megabytes.
    """
    if not content.strip(b" \t\r\n\xef\xbb\xbf"):
        return frozenset({Sign.EMPTY})
    if due.form is Form.IMAGE:
        return frozenset(_image_signs(due, content))
    if wide_encoding(content):
        return frozenset({Sign.WIDE})
    if b"\0" in content or content.startswith((b"PK\x03\x04", b"\x80", b"%PDF", b"\xff\xd8\xff")):
        return frozenset({Sign.NOT_TEXT})
    text = content.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
    return frozenset(_json_signs(due, text) if due.form is Form.JSON else _table_signs(due, text))


# Images: the header alone.

_PNG = re.compile(rb"\x89PNG\r\n\x1a\n....IHDR(....)(....).(.)", re.DOTALL)
_COLOURED = (2, 6)
_OTHER_IMAGES = (b"GIF8", b"II*\0", b"MM\0*", b"BM", b"RIFF", b"P5", b"P6")


def _image_signs(due: Due, content: bytes) -> Iterable[Sign]:
    if content.startswith(b"\xff\xd8\xff"):
        yield Sign.JPEG
    if content.startswith(_OTHER_IMAGES):
        yield Sign.OTHER_IMAGE
    header = _PNG.match(content)
    if header is None:
        return
    width, height = (int.from_bytes(field, "big") for field in header.group(1, 2))
    if due.width not in (None, width) or due.height not in (None, height):
        yield Sign.IMAGE_SIZE
    if header[3][0] in _COLOURED and not due.colour:
        yield Sign.COLOUR


# JSON: its tokens, not its structure.

_JSON_NUMBER = re.compile(r"(?<![\w\".])-?[0-9]{1,18}(?:\.[0-9]{1,32})?(?:[eE][-+]?[0-9]{1,3})?(?=[\s,\]}])")
_JSON_WORD = re.compile(r"(?<![\w\"])-?(?:NaN|Infinity)(?![\w\"])")
_PYTHON_WORD = re.compile(r"(?<![\w\"])(?:True|False|None)(?![\w\"])|[{\[,]\s{0,20}'")


def _json_signs(due: Due, text: str) -> Iterable[Sign]:
    if _JSON_WORD.search(text):
        yield Sign.NOT_A_NUMBER
    if _PYTHON_WORD.search(text):
        yield Sign.PYTHON_TEXT
    if not due.unit:
        return
    scores = [float(found) for found in _JSON_NUMBER.findall(text) if "." in found or "e" in found.lower()]
    yield from _score_signs(scores, scores_due=True)


def _score_signs(numbers: Sequence[float], *, scores_due: bool) -> Iterable[Sign]:
    """What scale scores are on; those from 0 to 1 are a mistake only where labels are due."""
    if not numbers:
        return
    least, greatest = min(numbers), max(numbers)
    if least < 0 or greatest > 100:
        yield Sign.LOGITS
    elif greatest > 1:
        yield Sign.PERCENT
    elif not scores_due:
        yield Sign.PROBABILITIES


# Tables.

_SEPARATORS = (",", ";", "\t", " ", "|")
_NUMBER = re.compile(r"[-+]?(?:[0-9]{1,18}(?:\.[0-9]{0,32})?|\.[0-9]{1,32})(?:[eE][-+]?[0-9]{1,2})?")
_INTEGER = re.compile(r"-?[0-9]{1,15}")
_FLOAT_ID = re.compile(r"-?[0-9]{1,15}\.0{0,32}")
_COMMA = re.compile(r"-?[0-9]{1,15},[0-9]{1,32}")
_WORD = re.compile(r"[^\W\d_]")
_NO_NUMBER = frozenset({"nan", "na", "n/a", "null", "none", "inf", "-inf", "+inf", "infinity", "-infinity", ""})


@dataclass(frozen=True)
class _Table:
    """A table as its author may have meant it."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    index: int
    asked: tuple[str, ...]

    @property
    def cells(self) -> list[str]:
        """Those of the columns that are asked for; of all columns where none of those is there."""
        places = {place for place, name in enumerate(self.header) if name in self.asked and place != self.index}
        kept = places or {*range(_CAPS.columns)} - {self.index}
        return [cell for row in self.rows for place, cell in enumerate(row) if place in kept]


def _table_signs(due: Due, text: str) -> Iterable[Sign]:
    lines = [line.rstrip("\r") for line in text.split("\n", _CAPS.rows)[: _CAPS.rows] if line.strip()]
    if not lines:
        return
    lines = [line for line in lines if len(line) <= _CAPS.line_length] or lines[:1]
    separator = _separator_of(due, lines[0])
    if separator != due.separator:
        yield Sign.SEPARATOR
    split = [tuple(field.strip(' "') for field in line.split(separator, _CAPS.columns)) for line in lines]
    yield from _header_signs(due, split)
    table = _table_of(due, split)
    if not table.rows:
        yield Sign.NO_ROWS
        return
    if _has_decimal_commas(table, separator):
        yield Sign.DECIMAL_COMMA
    elif not due.named:
        yield from _cell_signs(due, table)
    yield from _index_signs(due, table)


def _separator_of(due: Due, line: str) -> str:
    """The one that finds the most names, else the one that splits a line of numbers."""

    def found(separator: str) -> tuple[int, int, bool]:
        fields = [field.strip(' "') for field in line.split(separator)]
        numbers = len(fields) if all(map(_NUMBER.fullmatch, fields)) else 0
        return len(set(due.names).intersection(fields)), numbers, separator == due.separator

    return max(_SEPARATORS, key=found)


def _is_header(fields: Sequence[str]) -> bool:
    """A row begins with a frame's number; a header does not."""
    return not _NUMBER.fullmatch(fields[0])


def _is_numbered(due: Due, split: Sequence[Sequence[str]]) -> bool:
    """Column numbers where their names are due, as pandas writes them: ``0,1`` over a row that is the first again."""
    numbers = [str(number) for number in range(len(split[0]))]
    return list(split[0]) == numbers and len(split) > 1 and split[1][0] == str(due.first)


def _header_signs(due: Due, split: Sequence[Sequence[str]]) -> Iterable[Sign]:
    if not _is_header(split[0]):
        yield Sign.HEADER_NUMBERED if _is_numbered(due, split) else Sign.HEADER_MISSING
    elif split[0] in split[1:]:
        yield Sign.HEADER_AGAIN
    if split[0][0] not in due.names and (not split[0][0] or split[0][0].startswith("Unnamed")):
        yield Sign.INDEX_COLUMN


def _table_of(due: Due, split: Sequence[tuple[str, ...]]) -> _Table:
    named = _is_header(split[0]) or _is_numbered(due, split)
    header = split[0] if named else due.names
    index = header.index(due.names[0]) if due.names[0] in header else 0
    rows = tuple(row for row in split[named:] if row != split[0] or not named)
    return _Table(header=header, rows=rows, index=index, asked=due.names)


def _has_decimal_commas(table: _Table, separator: str) -> bool:
    if separator != ",":
        return any(map(_COMMA.fullmatch, table.cells))
    due = 1 + 2 * (len(table.header) - 1)
    return due > 1 and all(len(row) == due and all(map(_INTEGER.fullmatch, row)) for row in table.rows)


def _cell_signs(due: Due, table: _Table) -> Iterable[Sign]:
    cells = set(table.cells)
    if any(cell.lower() in _NO_NUMBER for cell in cells):
        yield Sign.NOT_A_NUMBER
    cells = {cell for cell in cells if cell.lower() not in _NO_NUMBER}
    if any(map(_WORD.search, cells - {cell for cell in cells if _NUMBER.fullmatch(cell)})):
        yield Sign.NAMES
    broken = {cell for cell in cells if _NUMBER.fullmatch(cell) and not _INTEGER.fullmatch(cell)}
    if any(not _FLOAT_ID.fullmatch(cell) for cell in broken):
        scores = [float(cell) for cell in cells if _NUMBER.fullmatch(cell)]
        yield from _score_signs(scores, scores_due=due.labels is None)
    elif broken and due.labels is not None:
        yield Sign.FLOAT_IDS
    whole = {int(cell) for cell in cells if _INTEGER.fullmatch(cell)}
    if not broken and due.labels is not None and whole - set(due.labels):
        yield Sign.UNKNOWN_LABELS


def _index_signs(due: Due, table: _Table) -> Iterable[Sign]:
    numbers = [int(row[table.index]) for row in table.rows if _is_number_at(row, table.index)]
    if len(numbers) < 2 or len(numbers) != len(table.rows):
        return
    steps = {after - before for before, after in itertools.pairwise(numbers)}
    if steps == {due.step}:
        yield from _regular_signs(due, numbers)
    elif len(steps) == 1 and min(steps) > 0:
        yield Sign.OTHER_STEP
    elif len(set(numbers)) < len(numbers):
        half = len(numbers) // 2
        if numbers[:half] == numbers[half:]:
            yield Sign.TWICE
    elif steps and min(steps) < 0:
        by_text: Callable[[int], str] = str
        yield Sign.TEXT_ORDER if numbers == sorted(numbers, key=by_text) else Sign.NO_ORDER


def _is_number_at(row: Sequence[str], place: int) -> bool:
    return place < len(row) and _INTEGER.fullmatch(row[place]) is not None


def _regular_signs(due: Due, numbers: Sequence[int]) -> Iterable[Sign]:
    frames = len(numbers) if due.frames is None else due.frames
    shift, surplus = abs(numbers[0] - due.first), len(numbers) - frames
    if (shift, surplus) in ((due.step, 0), (0, 1), (0, -1)):
        yield Sign.OFF_BY_ONE
    elif shift == 0 and surplus < 0:
        yield Sign.TOO_SHORT
