"""Reads a text table from a descriptor within fixed bounds, and lists everything that is wrong with it.

The bounds come first, then the bytes, then the lines, then the fields: a step never sees what an earlier one refused.
Each line is split for itself. So a quote that is never closed costs its own row, not the rest of the file, and memory
is bounded by the size of the file whatever stands in it. pandas is not used: a header of a million names keeps it
busy for minutes, it renames doubled columns, and it reads ``1e400`` as infinity.
"""

import codecs
import csv
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from string import Formatter
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from runner.confine import Confine, ConfinedFailure, FailureKind, JsonValue, Privileges, Reply
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
    content = read_bytes(descriptor, caps.size)
    if len(content) > caps.size:
        problems.add(f"the file is larger than {caps.size} bytes")
        return ""
    text = _decode(content, problems)
    ends = text.count("\n")
    if ends > caps.rows:
        problems.add(f"the file has {ends} rows; more than {caps.rows} are not read")
        return ""
    if len(text) > caps.line_length and len(text.partition("\n")[0].removesuffix("\r")) > caps.line_length:
        _report_long_line(1, caps, problems)  # here already, for whoever looks at the header before the lines are split
        return ""
    return text


def read_bytes(descriptor: int, cap: int) -> bytes:
    """The bytes of a file, and one more than ``cap`` where it is larger; its position is left alone."""
    content = bytearray()
    while len(content) <= cap:
        chunk = os.pread(descriptor, 1 << 20, len(content))
        if not chunk:
            break
        content += chunk
    return bytes(content)


def _decode(content: bytes, problems: ProblemList) -> str:
    encoding = wide_encoding(content)
    if encoding is not None:
        problems.add(f"the file is {encoding}: save it as UTF-8", row=1)
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


_MARKS = {  # the longer first: UTF-16's mark is the beginning of UTF-32's
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


def wide_encoding(content: bytes) -> str | None:
    """UTF-16 or UTF-32, by the mark in front or, without one, by the NULs beside the first two characters."""
    for mark, name in _MARKS.items():
        if content.startswith(mark):
            return name
    nuls = [byte == 0 for byte in content[:4]]
    if nuls in ([False, True, False, True], [True, False, True, False]):
        return "UTF-16"
    return "UTF-32" if nuls in ([False, True, True, True], [True, True, True, False]) else None


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
            problems.add(f"row {number}: the row is empty", row=number)
        elif "\r" in bare:
            problems.add(f"row {number}: a carriage return stands inside the row: end rows with \\n", row=number)
        else:
            lines.append(Line(number, bare))
    return lines


def _report_long_line(number: int, caps: CsvCaps, problems: ProblemList) -> None:
    problems.add(f"row {number}: the line is longer than {caps.line_length} characters", row=number)


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


_PLAIN_DECIMAL = re.compile(r"[+-]?[0-9]{1,32}+(?:\.[0-9]{0,32}+)?+(?:[eE][+-]?[0-9]{1,4}+)?+")
_NO_FIRST_DIGIT = re.compile(r"[+-]?\.[0-9]+(?:[eE][+-]?[0-9]+)?")
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+(?:[eE][+-]?[0-9]+)?")

_DECIMAL_MISTAKES: tuple[tuple[Callable[[str], object], str], ...] = (
    *_MISTAKES[:3],
    (_PLAIN_DECIMAL.fullmatch, "is too large: it would be read as infinite"),
    (_NO_FIRST_DIGIT.fullmatch, "has no digit before its point: write 0.5 and not .5"),
    (_DECIMAL.fullmatch, "has too many digits"),
    (_DECIMAL_COMMA.fullmatch, "has a decimal comma: write 0.5 and not 0,5"),
    (lambda _: True, "is not a number: only the digits 0 to 9, a point, a minus sign and an exponent are read"),
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
    return next(words for applies, words in _DECIMAL_MISTAKES if applies(text))


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
    row = re.escape(separator).join([_PLAIN_DECIMAL.pattern] * columns)
    if not re.fullmatch(f"{row}(?:\n{row})*+", rows):
        return None
    numbers = np.fromstring(rows.replace("\n", separator), dtype=np.float64, sep=separator).reshape(-1, columns)
    return numbers if np.isfinite(numbers).all() else None


# What all readers share: a file's problems on their way from the confined child to the program.
#
# A child may have been taken over, and then its sentences are a stranger's. They would be shown where no byte of a
# container may be: on hidden data a sentence is a way out for that data. So every reader has one list of templates;
# the child fills numbers in, and the parent lets through what could have come from a template, and nothing else.

READ_DEADLINE = 30.0
"""Seconds a reader may take."""

READ_MEMORY = 1 << 30
"""Bytes a reader may use."""

_NUMBER_FIELD = r"-?[0-9]{1,20}"
_LARGEST_PLACE = 1 << 40

_Value = TypeVar("_Value")


def sentence_pattern(templates: Iterable[StrEnum], **fields: str) -> re.Pattern[str]:
    """What sentences these templates can become.

    Args:
        templates: Every sentence a reader has, with ``{fields}``.
        fields: What may stand in a field, as a regular expression; in all others, a whole number.
    """

    def pattern(template: str) -> str:
        parts = Formatter().parse(template)
        return "".join(
            re.escape(text) + ("" if name is None else f"(?:{fields.get(name, _NUMBER_FIELD)})")
            for text, name, _, _ in parts
        )

    return re.compile("|".join(pattern(template.value) for template in templates))


def told(problems: ProblemList) -> dict[str, JsonValue]:
    """Problems as the header of a reply; for the child."""
    entries: list[JsonValue] = [[one.what, one.row, one.value] for one in problems.kept]
    return {"problems": entries, "count": problems.count}


def confined_call(
    confine: Confine,
    function: str,
    request: Mapping[str, JsonValue],
    descriptor: int,
    *,
    sentences: re.Pattern[str],
    check: Callable[[Reply], _Value],
    problems: ProblemList,
) -> _Value | None:
    """Let a reader work in a child that can do nothing else, and believe nothing it says unchecked; for the parent.

    Args:
        confine: Where children come from.
        function: The reader, which puts ``told`` into the header of its reply.
        request: Its request.
        descriptor: The file; it stays open.
        sentences: What the reader may say.
        check: Makes a value of a reply without problems, or raises what ``garbled`` answers.
        problems: What is wrong is added here, the reader's own end included.

    Raises:
        HostFault: No child could be started.
    """
    try:
        reply = confine.call(
            function,
            request,
            descriptors=[descriptor],
            deadline=READ_DEADLINE,
            memory=READ_MEMORY,
            privileges=Privileges.DROP,
        )
        found = _check_told(reply, sentences)
        value = check(reply) if not found.count else None
    except ConfinedFailure as failure:
        problems.add(f"the file could not be read: the reader stopped: {failure.detail}")
        return None
    problems.take(found)
    return value


def _check_told(reply: Reply, sentences: re.Pattern[str]) -> ProblemList:
    match reply.header:
        case {"problems": list() as entries, "count": int() as count} if len(entries) == min(count, MAX_KEPT):
            return ProblemList(kept=[_check_problem(entry, sentences) for entry in entries], count=count)
        case _:
            raise garbled("its answer lacks its parts")


def _check_problem(entry: JsonValue, sentences: re.Pattern[str]) -> Problem:
    match entry:
        case [str() as what, int() | None as row, str() | None as value] if (
            sentences.fullmatch(what) and _is_place(row) and _is_quoted(value)
        ):
            return Problem(what=what, row=row, value=value)
        case _:
            raise garbled("its list of problems is malformed")


def _is_place(row: int | None) -> bool:
    return row is None or (not isinstance(row, bool) and 1 <= row <= _LARGEST_PLACE)


def _is_quoted(value: str | None) -> bool:
    if value is None:
        return True
    body = value.removesuffix("…")
    return len(value) <= _VALUE_CHARACTERS and body.isascii() and body.isprintable()


def garbled(detail: str) -> ConfinedFailure:
    """An answer that is not to be believed; to be raised."""
    return ConfinedFailure(FailureKind.GARBLED, detail)
