"""Reads a text table from a descriptor within fixed bounds, and lists everything that is wrong with it.

The bounds come first, then the bytes, then the lines, then the fields: a step never sees what an earlier one refused.
Each line is split for itself. So a quote that is never closed costs its own row, not the rest of the file, and memory
is bounded by the size of the file whatever stands in it. pandas is not used: a header of a million names keeps it
busy for minutes, it renames doubled columns, and it reads ``1e400`` as infinity.
"""

import codecs
import csv
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.formats.readers.file_bytes import read_bytes, wide_encoding
from runner.formats.readers.problems import ProblemList


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


class Fault(StrEnum):
    """Every sentence about the text of a table."""

    TOO_LARGE = "the file is larger than {cap} bytes"
    ROWS = "the file has more than {cap} rows"
    WIDE = "the file is {encoding}: save it as UTF-8"
    EMPTY = "the file is empty"
    NUL = "row {row}: a NUL byte stands here: the file is not text"
    NOT_UTF8 = "row {row}: the bytes are not UTF-8"
    LONG = "row {row}: the line is longer than {cap} characters"
    EMPTY_ROW = "row {row}: the row is empty"
    CARRIAGE_RETURN = "row {row}: a carriage return stands inside the row: end rows with \\n"
    QUOTE = "row {row}: a quotation mark is not closed, or stands inside a field"
    COLUMNS = "row {row}: there are more than {cap} fields"


class Mistake(StrEnum):
    """What can be wrong with a number, as the rest of a sentence that begins with the column's name."""

    EMPTY = "is empty"
    SPACES = "has spaces around it"
    NOT_FINITE = "is no number (NaN, infinite or null)"
    PLUS = "has a plus sign"
    DIGITS = "has too many digits"
    DECIMAL = "is a decimal number: ids are whole numbers, write 3 and not 3.0"
    NO_INTEGER = "is not a whole number: only the digits 0 to 9 and a minus sign are read"
    INFINITE = "is too large: it would be read as infinite"
    NO_FIRST_DIGIT = "has no digit before its point: write 0.5 and not .5"
    COMMA = "has a decimal comma: write 0.5 and not 0,5"
    NO_DECIMAL = "is not a number: only the digits 0 to 9, a point, a minus sign and an exponent are read"


class Line(NamedTuple):
    """A line of the file, counted from 1, without its end."""

    number: int
    text: str


class Row(NamedTuple):
    """The fields of a line."""

    line: int
    fields: Sequence[str]


def read_text(descriptor: int, *, caps: CsvCaps, problems: ProblemList) -> str:
    """Read a file; empty where its bytes are refused as a whole.

    Args:
        descriptor: Open for reading; its position is neither used nor moved.
        caps: How large it may be.
        problems: What is wrong is added here.
    """
    content = read_bytes(descriptor, caps.size)
    if len(content) > caps.size:
        problems.add(Fault.TOO_LARGE.format(cap=caps.size))
        return ""
    text = _decode(content, problems)
    if text.count("\n") > caps.rows:
        problems.add(Fault.ROWS.format(cap=caps.rows))
        return ""
    if len(text) > caps.line_length and len(text.partition("\n")[0].removesuffix("\r")) > caps.line_length:
        _report_long_line(1, caps, problems)  # here already, for whoever looks at the header before the lines are split
        return ""
    return text


def _decode(content: bytes, problems: ProblemList) -> str:
    encoding = wide_encoding(content)
    if encoding is not None:
        problems.add(Fault.WIDE.format(encoding=encoding), row=1)
        return ""
    if b"\0" in content:
        row = content.count(b"\n", 0, content.index(b"\0")) + 1
        problems.add(Fault.NUL.format(row=row), row=row)
        return ""
    content = content.removeprefix(codecs.BOM_UTF8)
    if not content.strip():
        problems.add(Fault.EMPTY.value)
        return ""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        row = content.count(b"\n", 0, error.start) + 1
        problems.add(Fault.NOT_UTF8.format(row=row), row=row)
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
            _report_long_line(number, caps, problems)
        elif not bare:
            problems.add(Fault.EMPTY_ROW.format(row=number), row=number)
        elif "\r" in bare:
            problems.add(Fault.CARRIAGE_RETURN.format(row=number), row=number)
        else:
            lines.append(Line(number, bare))
    return lines


def _report_long_line(number: int, caps: CsvCaps, problems: ProblemList) -> None:
    problems.add(Fault.LONG.format(row=number, cap=caps.line_length), row=number)


def split_fields(lines: Sequence[Line], *, separator: str, caps: CsvCaps, problems: ProblemList) -> list[Row]:
    """Split lines into fields; a line that cannot be split is a problem and left out."""
    rows = []
    for number, text in lines:
        fields = text.split(separator) if '"' not in text else _unquote(text, separator)
        if fields is None:
            problems.add(Fault.QUOTE.format(row=number), row=number)
        elif len(fields) > caps.columns:
            problems.add(Fault.COLUMNS.format(row=number, cap=caps.columns), row=number)
        else:
            rows.append(Row(number, fields))
    return rows


def split_evenly(text: str, *, columns: int, separator: str, caps: CsvCaps) -> Sequence[Sequence[str]] | None:
    """Split rows into columns all at once, if there is nothing whatever to be said about how they are written.

    Args:
        text: The rows under the header.
        columns: Fields a row.
        separator: Between them.
        caps: How large they may be.

    Returns:
        The fields of each column; None where a row is uneven, empty or too long, or anything is quoted.
    """
    rows = text.replace("\r\n", "\n").rstrip("\n")
    if '"' in rows or "\r" in rows:
        return None
    lines = rows.split("\n")
    if max(map(len, lines)) > caps.line_length or any(line.count(separator) != columns - 1 for line in lines):
        return None
    fields = rows.replace("\n", separator).split(separator)
    return [fields[column::columns] for column in range(columns)]


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

_MISTAKES: tuple[tuple[Callable[[str], object], Mistake], ...] = (
    (lambda text: not text, Mistake.EMPTY),
    (lambda text: text != text.strip(), Mistake.SPACES),
    (lambda text: text.lower() in _NO_NUMBER, Mistake.NOT_FINITE),
    (_SIGNED.fullmatch, Mistake.PLUS),
    (_LONG_INTEGER.fullmatch, Mistake.DIGITS),
    (_DECIMAL.fullmatch, Mistake.DECIMAL),
    (lambda _: True, Mistake.NO_INTEGER),
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
    return next(mistake.value for applies, mistake in _MISTAKES if applies(text))


_PLAIN_DECIMAL = re.compile(r"[+-]?[0-9]{1,32}+(?:\.[0-9]{0,32}+)?+(?:[eE][+-]?[0-9]{1,4}+)?+")
_NO_FIRST_DIGIT = re.compile(r"[+-]?\.[0-9]+(?:[eE][+-]?[0-9]+)?")
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+(?:[eE][+-]?[0-9]+)?")

_DECIMAL_MISTAKES: tuple[tuple[Callable[[str], object], Mistake], ...] = (
    *_MISTAKES[:3],
    (_PLAIN_DECIMAL.fullmatch, Mistake.INFINITE),
    (_NO_FIRST_DIGIT.fullmatch, Mistake.NO_FIRST_DIGIT),
    (_DECIMAL.fullmatch, Mistake.DIGITS),
    (_DECIMAL_COMMA.fullmatch, Mistake.COMMA),
    (lambda _: True, Mistake.NO_DECIMAL),
)


def parse_decimal(text: str) -> float | str:
    """Read a decimal number as strictly as it is written, and only if it is finite.

    ASCII digits, at most 32 on each side of a point, perhaps a sign, and an exponent of at most 4 digits: ``-0.5``,
    ``3``, ``3.``, ``1e-7``.

    Returns:
        The number, or what is wrong, as the rest of a sentence that begins with the column's name.
    """
    if _PLAIN_DECIMAL.fullmatch(text) and math.isfinite(number := float(text)):
        return number
    return next(mistake.value for applies, mistake in _DECIMAL_MISTAKES if applies(text))


def read_decimals(text: str, *, columns: int, separator: str) -> NDArray[np.float64] | None:
    """Read rows of decimal numbers all at once, if there is nothing whatever to be said about them.

    Args:
        text: The rows under the header.
        columns: Fields a row.
        separator: Between them.

    Returns:
        Shape ``(rows, columns)``; None where any field is not as ``parse_decimal`` reads it, or any row is uneven.
    """
    rows = text.replace("\r\n", "\n").rstrip("\n")
    number = _PLAIN_DECIMAL.pattern
    row = f"(?:{number}{re.escape(separator)}){{{columns - 1}}}{number}"
    if not re.fullmatch(f"{row}(?:\n{row})*+", rows):
        return None
    numbers = np.fromstring(rows.replace("\n", separator), dtype=np.float64, sep=separator).reshape(-1, columns)
    return numbers if np.isfinite(numbers).all() else None
