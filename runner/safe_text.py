"""The one room where other people's text is made fit to be shown.

Team names, case names, log lines and cells of a prediction are bytes that a stranger chose. Shown as they are they can
move the cursor, rewrite the window's title, turn the reading direction of the line they stand in (U+202E), forge a
second line, run as markup, call a person on a forge (``@name``), or be taken for a formula by a spreadsheet. Every
function here replaces what cannot be seen by something that can, and then adds the escaping of one destination:

============  ==========================================================================
for_plain     one line of visible characters; the base of all others
for_terminal  as for_plain, bounded
for_html      for_plain, then ``& < > " '`` as entities
for_markdown  for_plain, then inert in Markdown: no markup, no link, no mention
for_csv       for_plain, then no formula
for_json      any value; what cannot be seen is escaped, so the text says the same
excerpt       some lines of a file of unknown encoding, bounded
============  ==========================================================================
"""

import html
import json
import re
import unicodedata

_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories that have no picture: controls, format marks (bidi, zero width), surrogates, line separators."""

_MARKDOWN = re.compile(
    r"""[\\`*\[\]<>#|~@&^$]  # wherever it stands
        |(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])  # inside a word it means nothing
        |:(?!\s|$)|(?<=www)\.  # in an address, in the name of a picture
        |^[-+=]  # at the beginning of a line
    """,
    re.VERBOSE | re.IGNORECASE,
)
_LISTED = re.compile(r"^([0-9]+)([.)])(?=\s|$)")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_ESCAPED = re.compile(r"<(?=[/!])|[^\x00-\x7e]")
"""What may need an escape in JSON text: controls below 0x20 are escaped already, or are the text's own line ends."""

_INNER_FORMULA = re.compile(rf";(?=\s*[{re.escape(''.join(_FORMULA))}])")
_NUMBER = re.compile(r"[-+]?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_BREAKS_A_REFERENCE = "&#8203;"


def _visible(character: str) -> str:
    code = ord(character)
    if unicodedata.category(character) not in _INVISIBLE:
        return character
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else f"⟨U+{code:04X}⟩"


def for_plain(text: str) -> str:
    """One line in which every character can be seen.

    C0 controls become control pictures (``␛`` for ESC, ``␊`` for a line feed); C1 controls, bidi and zero-width marks,
    line separators and lone surrogates become ``⟨U+202E⟩``. Applying it twice changes nothing more.
    """
    return text if text.isascii() and text.isprintable() else "".join(map(_visible, text))


def for_terminal(text: str, *, limit: int = 400) -> str:
    """``for_plain``, with at most ``limit`` characters; rich's own markup is left to the caller (``markup=False``)."""
    shown = for_plain(text)
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def for_html(text: str) -> str:
    """``for_plain`` with the five characters that mean something in HTML, in text and in quoted attributes, escaped."""
    return html.escape(for_plain(text), quote=True)


def for_markdown(text: str) -> str:
    """``for_plain`` made inert in Markdown, also in a table cell; ``@name`` and ``#12`` refer to nobody and nothing."""
    shown = for_plain(text)
    bare = shown.lstrip(" ")  # four spaces in front would make it code
    inert = _LISTED.sub(r"\1\\\2", _MARKDOWN.sub(_markdown_piece, bare))
    return "&#32;" * (len(shown) - len(bare)) + inert


def _markdown_piece(found: re.Match[str]) -> str:
    character = found[0]
    if character in "<>&":
        return html.escape(character)
    return f"\\{character}{_BREAKS_A_REFERENCE}" if character in "@#" else f"\\{character}"


def for_csv(text: str) -> str:
    """``for_plain``, with an apostrophe where a spreadsheet would read a formula; a plain number stays as it is.

    Where the comma is a decimal comma, a spreadsheet splits a row at semicolons: what follows one is guarded as well.
    Quoting is the ``csv`` module's job.
    """
    if _NUMBER.fullmatch(text):
        return text
    guarded = text.startswith(_FORMULA) or text.lstrip().startswith(_FORMULA)
    return ("'" if guarded else "") + for_plain(_INNER_FORMULA.sub(";'", text))


def for_json(value: object, *, indent: int | None = None) -> str:
    """A value as JSON that is safe to show and to embed, and that reads back as the same value.

    Args:
        value: What JSON can hold; every float finite.
        indent: Spaces a level; None for one line.

    Raises:
        ValueError: A float is not finite.
    """
    return inert_json(json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent))


def inert_json(text: str) -> str:
    """JSON that somebody wrote, with everything that cannot be seen, and what ends a script element, as escapes.

    Such characters stand in strings only, line ends between values excepted, so the text says what it said before.
    """
    return _ESCAPED.sub(_json_escape, text)


def _json_escape(found: re.Match[str]) -> str:
    character = found[0]
    if character == "<":
        return "\\u003c"
    if unicodedata.category(character) not in _INVISIBLE:
        return character
    code = ord(character)
    units = [code] if code < 0x10000 else [0xD800 + (code - 0x10000 >> 10), 0xDC00 + (code & 0x3FF)]
    return "".join(f"\\u{unit:04x}" for unit in units)


def excerpt(content: bytes, limit: int) -> str:
    """The first ``limit`` bytes as safe lines, ``\\n`` between them; bytes that are not UTF-8 show as ``\\xff``.

    A cut in the middle of a character drops that character. What was left out is stated in a last line.
    """
    head = content[:limit]
    if len(content) > limit:
        head = _whole_characters(head)
    lines = head.decode("utf-8", errors="backslashreplace").replace("\r\n", "\n").split("\n")
    shown = "\n".join(for_plain(line) for line in lines).rstrip("\n")
    left = len(content) - len(head)
    return f"{shown}\n… {left} more bytes" if left else shown


def _whole_characters(head: bytes) -> bytes:
    """Drop the beginning of a UTF-8 character at the end, if one was cut."""
    for back in range(1, min(4, len(head)) + 1):
        byte = head[-back]
        if byte & 0xC0 == 0x80:  # a continuation byte: its leader lies further back
            continue
        needed = 1 if byte < 0x80 else 2 if byte >> 5 == 0b110 else 3 if byte >> 4 == 0b1110 else 4
        return head[:-back] if byte >= 0xC0 and needed > back else head
    return head
