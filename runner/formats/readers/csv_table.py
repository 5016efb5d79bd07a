"""Reads a text table from a descriptor within fixed bounds, and lists everything that is wrong with it.

The bounds come first, then the bytes, then the lines, then the fields: a step never sees what an earlier one refused.
Each line is split for itself. So a quote that is never closed costs its own row, not the rest of the file, and memory
is bounded by the size of the file whatever stands in it. pandas is not used: a header of a million names keeps it
busy for minutes, it renames doubled columns, and it reads ``1e400`` as infinity.
"""

import codecs
import csv
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.formats.contract import Problem

MAX_KEPT = 50
"""Problems that are kept; all are counted."""

_VALUE_CHARACTERS = 60


@dataclass(frozen=True, kw_only=True)
class CsvCaps:
    """How large a table may be.

    Attributes:
        size: Bytes.
        rows: Lines, the header included.
        line_length: Characters a line.
        columns: Fields a row.
    """

    size: int = 32 << 20
    rows: int = 500_000
    line_length: int = 4096
    columns: int = 64


@dataclass
class ProblemList:
    """Problems in the order they were met: the first are kept, all are counted."""

    kept: list[Problem] = field(default_factory=list)
    count: int = 0

    def add(self, what: str, *, row: int | None = None, column: str | None = None, value: str | None = None) -> None:
        """Note a problem; ``value`` is what stood there, as it was, and is quoted here."""
        self.count += 1
        if len(self.kept) < MAX_KEPT:
            shown = None if value is None else quote(value)
            self.kept.append(Problem(what=what, row=row, column=column, value=shown))

    def take(self, other: "ProblemList") -> None:
        """Take another list's problems in, in the order of the file; those about the whole file come first."""
        merged = sorted([*self.kept, *other.kept], key=lambda problem: problem.row or 0)
        self.kept, self.count = merged[:MAX_KEPT], self.count + other.count


class Line(NamedTuple):
    """A line of the file, counted from 1, without its end."""

    number: int
    text: str


class Row(NamedTuple):
    """The fields of a line."""

    line: int
    fields: Sequence[str]


def quote(text: str) -> str:
    """Bytes of a stranger as they may be shown: quoted, bounded, everything but printable ASCII escaped."""
    shown = ascii(text[: _VALUE_CHARACTERS + 1])
    return shown if len(shown) <= _VALUE_CHARACTERS else shown[: _VALUE_CHARACTERS - 1] + "…"


def read_text(descriptor: int, *, caps: CsvCaps, problems: ProblemList) -> str:
    """Read a file; empty where its bytes are refused as a whole.

    Args:
        descriptor: Open for reading; its position is neither used nor moved.
        caps: How large it may be.
        problems: What is wrong is added here.
    """
    content = _read_bytes(descriptor, caps.size)
    if len(content) > caps.size:
        problems.add(f"the file is larger than {caps.size} bytes")
        return ""
    text = _decode(content, problems)
    ends = text.count("\n")
    if ends > caps.rows:
        problems.add(f"the file has {ends} rows; more than {caps.rows} are not read")
        return ""
    return text


def _read_bytes(descriptor: int, cap: int) -> bytes:
    content = bytearray()
    while len(content) <= cap:
        chunk = os.pread(descriptor, 1 << 20, len(content))
        if not chunk:
            break
        content += chunk
    return bytes(content)


def _decode(content: bytes, problems: ProblemList) -> str:
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        problems.add("the file is UTF-16: save it as UTF-8", row=1)
        return ""
    if b"\0" in content:
        row = content.count(b"\n", 0, content.index(b"\0")) + 1
        problems.add(f"row {row}: a NUL byte stands here: the file is not text", row=row)
        return ""
    content = content.removeprefix(codecs.BOM_UTF8)
    if not content.strip():
        problems.add("the file is empty")
        return ""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        row = content.count(b"\n", 0, error.start) + 1
        problems.add(f"row {row}: the bytes are not UTF-8", row=row)
        return ""


def split_lines(text: str, *, caps: CsvCaps, problems: ProblemList) -> list[Line]:
    """Split text that is not empty into lines; one that is refused is a problem and left out."""
    texts = text.split("\n")
    while not texts[-1].rstrip("\r"):
        texts.pop()
    lines = []
    for number, line in enumerate(texts, 1):
        bare = line.removesuffix("\r")
        if len(bare) > caps.line_length:
            problems.add(f"row {number}: the line is longer than {caps.line_length} characters", row=number)
        elif not bare:
            problems.add(f"row {number}: the row is empty", row=number)
        elif "\r" in bare:
            problems.add(f"row {number}: a carriage return stands inside the row: end rows with \\n", row=number)
        else:
            lines.append(Line(number, bare))
    return lines


def split_fields(lines: Sequence[Line], *, separator: str, caps: CsvCaps, problems: ProblemList) -> list[Row]:
    """Split lines into fields; a line that cannot be split is a problem and left out."""
    rows = []
    for number, text in lines:
        fields = text.split(separator) if '"' not in text else _unquote(text, separator)
        if fields is None:
            problems.add(f"row {number}: a quotation mark is not closed, or stands inside a field", row=number)
        elif len(fields) > caps.columns:
            problems.add(f"row {number}: there are more than {caps.columns} fields", row=number)
        else:
            rows.append(Row(number, fields))
    return rows


def _unquote(text: str, separator: str) -> list[str] | None:
    try:
        return next(csv.reader([text], delimiter=separator, strict=True))
    except csv.Error:
        return None


_INTEGER = re.compile(r"-?[0-9]{1,15}")
_LONG_INTEGER = re.compile(r"-?[0-9]+")
_SIGNED = re.compile(r"\+[0-9]+")
_DECIMAL = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)(?:[eE][-+]?[0-9]+)?")
_NO_NUMBER = frozenset({"nan", "na", "n/a", "null", "none", "inf", "-inf", "+inf", "infinity", "-infinity"})

_MISTAKES: tuple[tuple[Callable[[str], object], str], ...] = (
    (lambda text: not text, "is empty"),
    (lambda text: text != text.strip(), "has spaces around it"),
    (lambda text: text.lower() in _NO_NUMBER, "is no number (NaN, infinite or null)"),
    (_SIGNED.fullmatch, "has a plus sign"),
    (_LONG_INTEGER.fullmatch, "has too many digits"),
    (_DECIMAL.fullmatch, "is a decimal number: ids are whole numbers, write 3 and not 3.0"),
    (lambda _: True, "is not a whole number: only the digits 0 to 9 and a minus sign are read"),
)


def read_integers(text: str, *, columns: int, separator: str) -> NDArray[np.int64] | None:
    """Read rows of whole numbers all at once, if there is nothing whatever to be said about them.

    Args:
        text: The rows under the header.
        columns: Fields a row.
        separator: Between them.

    Returns:
        Shape ``(rows, columns)``; None where any field is not as ``parse_integer`` reads it, or any row is uneven.
    """
    rows = text.replace("\r\n", "\n").rstrip("\n")
    row = separator.join([_INTEGER.pattern] * columns)
    if not re.fullmatch(f"{row}(?:\n{row})*+", rows):
        return None
    return np.fromstring(rows.replace("\n", separator), dtype=np.int64, sep=separator).reshape(-1, columns)


def parse_integer(text: str) -> int | str:
    """Read a whole number as strictly as it is written: ASCII digits, perhaps led by a minus sign.

    Returns:
        The number, or what is wrong, as the rest of a sentence that begins with the column's name.
    """
    if _INTEGER.fullmatch(text):
        return int(text)
    return next(words for applies, words in _MISTAKES if applies(text))
