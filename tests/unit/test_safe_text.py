"""Other people's text: every destination, every trick."""

import csv
import html
import io
import json
import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from runner.safe_text import excerpt, for_csv, for_html, for_json, for_markdown, for_plain, for_terminal, inert_json

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
        ("[click](http://x)", r"\[click\](http\://x)"),
        ("HTTPS://x ftp://x mailto:a", r"HTTPS\://x ftp\://x mailto\:a"),
        ("int_time, __init__, _a", r"int_time, \_\_init\_\_, \_a"),
        ("/data/{case}.csv, at most 1.5 GiB - 2!", "/data/{case}.csv, at most 1.5 GiB - 2!"),
        ("- item", r"\- item"),
        ("12. item", r"12\. item"),
        ("12) item", r"12\) item"),
        ("1.", r"1\."),
        ("60.0 s (one): all", "60.0 s (one): all"),
        (":bug: a:", r"\:bug: a:"),
        ("===", r"\==="),
        ("    code", "&#32;&#32;&#32;&#32;code"),
        ("a|b", r"a\|b"),
        ("<img src=x>", "&lt;img src=x&gt;"),
        ("@admin #12", r"\@&#8203;admin \#&#8203;12"),
        ("# head\n- item", r"\#&#8203; head␊- item"),
        ("`code`", r"\`code\`"),
        ("WWW.evil.example", r"WWW\.evil.example"),
        ("www.evil.example", r"www\.evil.example"),
    ],
)
def test_markdown_is_inert(text: str, escaped: str) -> None:
    assert for_markdown(text) == escaped


MARKS = "*_`~[]()<>#+-=.!|:&\\\"'^$/{}@1 a\n\t"
"""What means something to Markdown, and little else."""

MARKDOWN = (
    *("    ", "* ", "- ", "+ ", "1. ", "1) ", "> ", "# ", "## ", "===", "---", "***", "```", "~~~", "~~a~~", "__a__"),
    *("_a_", "*a*", "`a`", "[a](b)", "[a]: b", "![a](b)", "[a]", "<b>", "<!--", "&amp;", "&#35;", "\\", "|", "|-|-|"),
    *("a@b.c", "<http://a.b>", " ", "  ", "a", "_", "1", "."),
)


def rendered(markdown: str, tag: str) -> list[str]:
    """What a Markdown parser puts into elements of this name: their text where there is no markup inside."""
    page = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(markdown).replace("\u200b", "")
    return [html.unescape(inner).strip(" ") for inner in re.findall(f"<{tag}>([^<]*)</{tag}>", page)]


@settings(max_examples=500)
@given(ANY_TEXT | st.text(MARKS) | st.lists(st.sampled_from(MARKDOWN), max_size=6).map("".join))
def test_a_markdown_parser_finds_nothing_but_the_text(text: str) -> None:
    shown = for_plain(text).strip(" ")
    inert = for_markdown(text)
    assert rendered(inert, "p") == ([shown] if text else [])
    assert rendered(f"# {inert}", "h1") == [shown]
    assert rendered(f"w{inert} w", "p") == [f"w{for_plain(text)} w"]
    assert rendered(f"| a | b |\n|---|---|\n| {inert} | end |\n", "td") == [shown, "end"]


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
        ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
        ("-2+3+cmd|' /C calc'!A0", "'-2+3+cmd|' /C calc'!A0"),
        ("a;=1+1", "a;'=1+1"),
        ("a; @x;b;-1", "a;' @x;b;'-1"),
        ("a;\n=1", "a;'␊=1"),
        ("-0.123456", "-0.123456"),
        ("+1", "+1"),
        ("-1.5e-07", "-1.5e-07"),
        ("12", "12"),
        ("-1.", "'-1."),
        ("-\u0661", "'-\u0661"),
        ("-1\n", "'-1␊"),
    ],
)
def test_a_cell_is_never_a_formula(text: str, cell: str) -> None:
    assert for_csv(text) == cell


@given(ANY_TEXT)
def test_a_cell_stays_one_cell(text: str) -> None:
    sheet = io.StringIO()
    csv.writer(sheet).writerow([for_csv(text), "end"])
    assert next(csv.reader(io.StringIO(sheet.getvalue()))) == [for_csv(text), "end"]


@given(ANY_TEXT | st.text(";=+-@ ,|\t'\"a1"))
def test_no_part_of_a_cell_that_any_separator_makes_is_a_formula(text: str) -> None:
    for part in for_csv(text).split(";"):
        assert not part.lstrip().startswith(("=", "+", "-", "@")) or re.fullmatch(r"[-+][0-9.eE+-]+", text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"é 東京 🙂": [1, None, True, 0.5]}, '{"é 東京 🙂": [1, null, true, 0.5]}'),
        ("\x1b[2J\x07", '"\\u001b[2J\\u0007"'),
        ("del\x7fc1\x9b", '"del\\u007fc1\\u009b"'),
        ("\u202eevil\u2066\u200b\ufeff", '"\\u202eevil\\u2066\\u200b\\ufeff"'),
        ("\u2028\u2029", '"\\u2028\\u2029"'),
        ("tag\U000e0041", '"tag\\udb40\\udc41"'),
        ("half\ud800", '"half\\ud800"'),
        ("</script><!-- <case>", '"\\u003c/script>\\u003c!-- <case>"'),
        ("=cmd|' /C calc'!A0", "\"=cmd|' /C calc'!A0\""),
        ({"\u202e": 1}, '{"\\u202e": 1}'),
    ],
)
def test_json_shows_everything(value: object, text: str) -> None:
    assert for_json(value) == text


@given(st.recursive(ANY_TEXT | st.text(MARKS + "\u202e\x9b"), lambda inner: st.lists(inner, max_size=3)
                    | st.dictionaries(ANY_TEXT, inner, max_size=3)), st.sampled_from([None, 1, 2]))  # fmt: skip
def test_json_says_the_same_and_holds_nothing_invisible(value: object, indent: int | None) -> None:
    text = for_json(value, indent=indent)
    assert json.loads(text) == value
    assert not {unicodedata.category(c) for c in text.replace("\n", "")} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert not re.search("</|<!", text)
    text.encode("utf-8")
    assert inert_json(text) == text


@pytest.mark.parametrize("value", [float("nan"), [float("inf")]])
def test_json_holds_no_number_that_is_none(value: object) -> None:
    with pytest.raises(ValueError, match="JSON"):
        for_json(value)


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
