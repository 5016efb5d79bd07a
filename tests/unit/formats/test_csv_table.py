"""The CSV primitive: bounds first, strict integers, every problem with its row."""

import os
import tempfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.formats.readers.csv_table import (
    CsvCaps,
    Line,
    Row,
    parse_decimal,
    parse_integer,
    read_decimals,
    read_integers,
    read_text,
    split_fields,
    split_lines,
)
from runner.formats.readers.problems import MAX_KEPT, ProblemList, quote

CAPS = CsvCaps(size=1000, rows=20, line_length=50, columns=4)


def rows_of(content: bytes, *, caps: CsvCaps = CAPS, separator: str = ",") -> tuple[list[Row], list[str]]:
    problems = ProblemList()
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.flush()
        text = read_text(file.fileno(), caps=caps, problems=problems)
    lines = split_lines(text, caps=caps, problems=problems) if text else []
    rows = split_fields(lines, separator=separator, caps=caps, problems=problems)
    return rows, [problem.what for problem in problems.kept]


@pytest.mark.parametrize(
    "content",
    [
        b"a,b\n1,2\n",
        b"a,b\r\n1,2\r\n",
        b"a,b\n1,2",
        b"\xef\xbb\xbfa,b\n1,2\n",
        b'"a","b"\n1,"2"\n',
        b"a,b\n1,2\n\n\r\n\n",
        b'"a"' + b",b\r\n1,2" + b"\n" * 18,
    ],
)
def test_the_same_table_in_other_clothes(content: bytes) -> None:
    rows, problems = rows_of(content)
    assert [(row.line, list(row.fields)) for row in rows] == [(1, ["a", "b"]), (2, ["1", "2"])]
    assert problems == []


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "the file is empty"),
        (b"\n \n", "the file is empty"),
        (b"\xef\xbb\xbf", "the file is empty"),
        (b"x" * 1001, "the file is larger than 1000 bytes"),
        (b"\n" * 21 + b"x", "the file has more than 20 rows"),
        (b"x" * 51 + b"\n1\n", "row 1: the line is longer than 50 characters"),
        (b"x" * 51, "row 1: the line is longer than 50 characters"),
        (b"a\nb\0\n", "row 2: a NUL byte stands here: the file is not text"),
        (b"a\n\xe9\n", "row 2: the bytes are not UTF-8"),
        (b"a\n\xed\xa0\x80\n", "row 2: the bytes are not UTF-8"),
        ("a\n".encode("utf-16"), "the file is UTF-16: save it as UTF-8"),
        ("ab\n".encode("utf-16-le"), "the file is UTF-16: save it as UTF-8"),
        ("ab\n".encode("utf-16-be"), "the file is UTF-16: save it as UTF-8"),
        ("a\n".encode("utf-32"), "the file is UTF-32: save it as UTF-8"),
        ("a\n".encode("utf-32-be"), "the file is UTF-32: save it as UTF-8"),
        (b"\0\0\0\0", "row 1: a NUL byte stands here: the file is not text"),
    ],
)
def test_bytes_that_are_refused_as_a_whole(content: bytes, problem: str) -> None:
    assert rows_of(content) == ([], [problem])


def test_a_table_separated_by_tabs_may_hold_commas_and_quotation_marks() -> None:
    rows, problems = rows_of(b'a\tb,c\n"1\t2"\t3\n\t\n', separator="\t")
    assert problems == []
    assert [list(row.fields) for row in rows] == [["a", "b,c"], ["1\t2", "3"], ["", ""]]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"", "row 2: the row is empty"),
        (b"x" * 51, "row 2: the line is longer than 50 characters"),
        (b"1\r2", "row 2: a carriage return stands inside the row: end rows with \\n"),
        (b'"1', "row 2: a quotation mark is not closed, or stands inside a field"),
        (b'"1"2,3', "row 2: a quotation mark is not closed, or stands inside a field"),
        (b"1,2,3,4,5", "row 2: there are more than 4 fields"),
    ],
)
def test_a_bad_line_costs_itself_and_no_other(line: bytes, problem: str) -> None:
    rows, problems = rows_of(b"a,b\n" + line + b"\n1,2\n")
    assert [row.line for row in rows] == [1, 3]
    assert problems == [problem]


def test_all_problems_are_counted_and_the_first_are_kept() -> None:
    problems = ProblemList()
    split_fields([Line(n, '"') for n in range(1, 201)], separator=",", caps=CAPS, problems=problems)
    assert problems.count == 200
    assert [problem.row for problem in problems.kept] == list(range(1, MAX_KEPT + 1))


def test_two_lists_merge_in_the_order_of_the_file() -> None:
    first, second = ProblemList(), ProblemList()
    for row in (1, 3):
        first.add("a", row=row)
    second.add("b", row=2)
    second.add("c")
    first.take(second)
    assert [(problem.what, problem.row) for problem in first.kept] == [("c", None), ("a", 1), ("b", 2), ("a", 3)]
    assert first.count == 4


def test_reading_leaves_the_position_of_the_descriptor_alone() -> None:
    with tempfile.TemporaryFile() as file:
        file.write(b"a\nb\n")
        file.flush()
        assert read_text(file.fileno(), caps=CAPS, problems=ProblemList()) == "a\nb\n"
        assert os.lseek(file.fileno(), 0, os.SEEK_CUR) == 4


DECIMAL = "is a decimal number: ids are whole numbers, write 3 and not 3.0"
OTHER = "is not a whole number: only the digits 0 to 9 and a minus sign are read"
NOTHING = "is no number (NaN, infinite or null)"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("-1", -1),
        ("007", 7),
        ("999999999999999", 999999999999999),
        ("", "is empty"),
        (" 1", "has spaces around it"),
        ("1\u00a0", "has spaces around it"),
        ("+1", "has a plus sign"),
        ("1" * 16, "has too many digits"),
        ("-" + "1" * 5000, "has too many digits"),
        ("3.0", DECIMAL),
        ("3.", DECIMAL),
        (".5", DECIMAL),
        ("1e3", DECIMAL),
        ("-2.5E-7", DECIMAL),
        ("nan", NOTHING),
        ("NaN", NOTHING),
        ("-inf", NOTHING),
        ("None", NOTHING),
        ("1_000", OTHER),
        ("\u0661", OTHER),
        ("\uff11", OTHER),
        ("1\u0661", OTHER),
        ("0x10", OTHER),
        ("Catch", OTHER),
        ("--1", OTHER),
        ("1\n", "has spaces around it"),
    ],
)
def test_integers_are_read_as_strictly_as_they_are_written(text: str, expected: int | str) -> None:
    assert parse_integer(text) == expected


@settings(deadline=None)
@given(st.integers(-(10**15) + 1, 10**15 - 1))
def test_every_integer_is_read(number: int) -> None:
    assert parse_integer(str(number)) == number


@settings(deadline=None)
@given(st.text())
def test_a_quoted_value_is_bounded_printable_ascii(text: str) -> None:
    shown = quote(text)
    assert len(shown) <= 60
    assert shown.removesuffix("…").isascii()
    assert shown.isprintable()


@settings(deadline=None)
@given(
    st.lists(st.lists(st.integers(-(10**14), 10**14), min_size=3, max_size=3), min_size=1, max_size=5),
    st.sampled_from(",;\t"),
)
def test_rows_of_integers_are_read_at_once(rows: list[list[int]], separator: str) -> None:
    for end in ("\n", "\r\n"):
        text = "".join(separator.join(map(str, row)) + end for row in rows)
        found = read_integers(text, columns=3, separator=separator)
        assert found is not None
        assert found.dtype == np.int64
        assert found.tolist() == rows


@pytest.mark.parametrize(
    "text", ["", "1,2\n3", "1,2,3\n", "1,2\n\n3,4\n", "1,2.0\n", "1,\n", "1,2\r3,4\n", "\u0661,2\n", "1, 2\n", "1,2"]
)
def test_rows_that_are_not_all_integers_are_not_read_at_once(text: str) -> None:
    found = read_integers(text, columns=2, separator=",")
    assert (found is None) == (text != "1,2")


NUMBER = "is not a number: only the digits 0 to 9, a point, a minus sign and an exponent are read"
HUGE = "is too large: it would be read as infinite"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0.0),
        ("-0.25", -0.25),
        ("+1.5e3", 1500.0),
        ("3.", 3.0),
        ("007.50", 7.5),
        ("1E-7", 1e-7),
        ("1e-999", 0.0),
        ("1.7976931348623157e308", 1.7976931348623157e308),
        ("1" * 32 + "." + "1" * 32, float("1" * 32)),
        ("", "is empty"),
        (" 1", "has spaces around it"),
        ("1\n", "has spaces around it"),
        ("nan", NOTHING),
        ("-Inf", NOTHING),
        ("1e999", HUGE),
        ("-1e400", HUGE),
        ("1.8e308", HUGE),
        (".5", "has no digit before its point: write 0.5 and not .5"),
        ("-.5e1", "has no digit before its point: write 0.5 and not .5"),
        ("1" * 33, "has too many digits"),
        ("1." + "1" * 33, "has too many digits"),
        ("1e00001", "has too many digits"),
        ("0,5", "has a decimal comma: write 0.5 and not 0,5"),
        ("1_000", NUMBER),
        ("\u0661", NUMBER),
        ("\uff11.5", NUMBER),
        ("0x1p3", NUMBER),
        ("1e", NUMBER),
        ("e5", NUMBER),
        (".", NUMBER),
        ("--1", NUMBER),
        ("1.2.3", NUMBER),
    ],
)
def test_decimals_are_read_as_strictly_as_they_are_written(text: str, expected: float | str) -> None:
    found = parse_decimal(text)
    assert found == expected
    assert type(found) is type(expected)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_that_python_writes_is_read(number: float) -> None:
    for text in (repr(number), f"{number:.17g}", f"{number:.17e}"):
        assert parse_decimal(text) == float(text)


DECIMAL_CELL = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(["1", "+2.5", "3.", "1e5", "007", "1e999", "nan", "", " 1", "1_0", "\u0661", "1" * 40, ".5"]),
)


@given(st.lists(st.lists(DECIMAL_CELL, min_size=2, max_size=2), min_size=1, max_size=4), st.sampled_from(",;\t"))
def test_rows_of_decimals_are_read_at_once_or_one_by_one_alike(rows: list[list[str]], separator: str) -> None:
    due = [[parse_decimal(cell) for cell in row] for row in rows]
    for end in ("\n", "\r\n"):
        found = read_decimals("".join(separator.join(row) + end for row in rows), columns=2, separator=separator)
        if any(isinstance(cell, str) for row in due for cell in row):
            assert found is None
        else:
            assert found is not None
            assert found.dtype == np.float64
            assert found.tolist() == due
