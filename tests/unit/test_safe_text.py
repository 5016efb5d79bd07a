"""Other people's text: every destination, every trick."""

import csv
import html
import io
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.safe_text import excerpt, for_csv, for_html, for_markdown, for_plain, for_terminal

ANY_TEXT = st.text(alphabet=st.characters())
"""Everything Python calls a string, lone surrogates included."""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Team A", "Team A"),
        ("Équipe 東京 🙂", "Équipe 東京 🙂"),
        ("\x1b[31mred\x07", "␛[31mred␇"),
        ("two\nlines\tand\rmore\x00", "two␊lines␉and␍more␀"),
        ("del\x7f", "del␡"),
        ("c1 \x9b31m", "c1 ⟨U+009B⟩31m"),
        ("a\u202eb\u2066c\u2069\u200f\u061c", "a⟨U+202E⟩b⟨U+2066⟩c⟨U+2069⟩⟨U+200F⟩⟨U+061C⟩"),
        ("zero\u200bwidth\ufeff", "zero⟨U+200B⟩width⟨U+FEFF⟩"),
        ("sep\u2028arated\u2029", "sep⟨U+2028⟩arated⟨U+2029⟩"),
        ("tag\U000e0041", "tag⟨U+E0041⟩"),
        ("half\ud800", "half⟨U+D800⟩"),
        ("", ""),
    ],
)
def test_what_cannot_be_seen_is_shown(text: str, shown: str) -> None:
    assert for_plain(text) == shown


@given(ANY_TEXT)
def test_plain_text_holds_nothing_invisible_and_is_stable(text: str) -> None:
    shown = for_plain(text)
    assert not {unicodedata.category(c) for c in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert for_plain(shown) == shown
    shown.encode("utf-8")


def test_a_terminal_gets_a_bounded_line() -> None:
    assert for_terminal("x" * 500, limit=10) == "x" * 9 + "…"
    assert for_terminal("\x1b]0;title\x07") == "␛]0;title␇"


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("\" onload='x'", "&quot; onload=&#x27;x&#x27;"),
        ("a & b", "a &amp; b"),
        ("\u202egnp", "⟨U+202E⟩gnp"),
    ],
)
def test_html_is_inert(text: str, escaped: str) -> None:
    assert for_html(text) == escaped


@given(ANY_TEXT)
def test_html_says_what_plain_says(text: str) -> None:
    escaped = for_html(text)
    assert not set("<>\"'") & set(escaped)
    assert html.unescape(escaped) == for_plain(text)


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("**bold** _it_", r"\*\*bold\*\* \_it\_"),
        ("[click](http://x)", r"\[click\]\(http\:\/\/x\)"),
        ("a|b", r"a\|b"),
        ("<img src=x>", r"&lt;img src\=x&gt;"),
        ("@admin #12", r"\@&#8203;admin \#&#8203;12"),
        ("# head\n- item", r"\#&#8203; head␊\- item"),
        ("`code`", r"\`code\`"),
        ("www.evil.example", r"www\.evil\.example"),
    ],
)
def test_markdown_is_inert(text: str, escaped: str) -> None:
    assert for_markdown(text) == escaped


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("+A1", "'+A1"),
        ("-A1", "'-A1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'␉=1"),
        ("\r=1", "'␍=1"),
        ("  =1", "'  =1"),
        ("\uff1d1", "'\uff1d1"),
        ("team-1", "team-1"),
        ("a,b", "a,b"),
    ],
)
def test_a_cell_is_never_a_formula(text: str, cell: str) -> None:
    assert for_csv(text) == cell


@given(ANY_TEXT)
def test_a_cell_stays_one_cell(text: str) -> None:
    sheet = io.StringIO()
    csv.writer(sheet).writerow([for_csv(text), "end"])
    assert next(csv.reader(io.StringIO(sheet.getvalue()))) == [for_csv(text), "end"]


@pytest.mark.parametrize(
    ("content", "limit", "shown"),
    [
        (b"one\ntwo\n", 100, "one\ntwo"),
        (b"one\r\ntwo", 100, "one\ntwo"),
        (b"bar 1%\rbar 2%", 100, "bar 1%␍bar 2%"),
        (b"\xff\xfe", 100, r"\xff\xfe"),
        (b"\x1b[2J", 100, "␛[2J"),
        (b"abcdef", 4, "abcd\n… 2 more bytes"),
        ("abc€".encode(), 4, "abc\n… 3 more bytes"),
        ("abc€".encode(), 5, "abc\n… 3 more bytes"),
        ("abc€".encode(), 6, "abc€"),
        ("a🙂b".encode(), 4, "a\n… 5 more bytes"),
        ("a🙂b".encode(), 5, "a🙂\n… 1 more bytes"),
        (b"\x80\x80\x80\x80\x80\x80", 4, "\\x80\\x80\\x80\\x80\n… 2 more bytes"),
        (b"", 10, ""),
    ],
)
def test_an_excerpt_is_bounded_and_readable(content: bytes, limit: int, shown: str) -> None:
    assert excerpt(content, limit) == shown


@given(st.binary(max_size=60), st.integers(0, 70))
def test_an_excerpt_holds_lines_and_nothing_else_invisible(content: bytes, limit: int) -> None:
    for line in excerpt(content, limit).split("\n"):
        assert for_plain(line) == line
