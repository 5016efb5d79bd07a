"""Goes over a JSON text from token to token, and says of everything that is wrong on which line and in which column.

It needs no recursion, and stops at the first bound, or at the first fault behind which nothing can be understood.
"""

import json
import math
import re
from collections.abc import Callable
from typing import TypeAlias

from runner.formats.readers.json_faults import Fault, JsonCaps, place_of
from runner.formats.readers.problems import MAX_KEPT, ProblemList

_MOST_COUNTED = 1000
"""Problems after which no more are looked for: nobody mends the thousandth by hand."""

SPACE = re.compile(r"[ \t\n\r]*+")
"""White space as JSON has it."""

_HALF_A_PAIR = re.compile("[\ud800-\udfff]")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+')
_WORD = re.compile(r'[^ \t\n\r,:\[\]{}"]++')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)(?P<decimal>(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+)")
_CUT_ESCAPE = re.compile(r"(?:\\(?:u[0-9a-fA-F]{0,3})?)?")

_State: TypeAlias = "Callable[[], _State]"
_Names: TypeAlias = dict[str, int]


class Walk:
    """Goes over a text from token to token; each state answers the next one, and the last is ``_end``.

    ``_open`` holds what is not closed yet: for an object the place of each of its names, for an array None.
    """

    def __init__(self, text: str, caps: JsonCaps, problems: ProblemList) -> None:
        self._text = text
        self._caps = caps
        self._problems = problems
        self._at = 0
        self._values = 0
        self._open: list[_Names | None] = []

    def run(self) -> None:
        """Go to the end, or to the first fault behind which nothing can be understood."""
        state: _State = self._value
        while state != self._end and self._problems.count < _MOST_COUNTED:
            self._skip()
            state = state()

    def _end(self) -> "_State":
        return self._end

    def _skip(self) -> None:
        space = SPACE.match(self._text, self._at)
        assert space is not None
        self._at = space.end()

    @property
    def _next(self) -> str:
        """The next character; empty at the end."""
        return self._text[self._at : self._at + 1]

    def _say(self, fault: Fault, *, at: int | None = None, value: str | None = None, first: int | None = None) -> None:
        if len(self._problems.kept) >= MAX_KEPT:
            self._problems.count += 1  # a place is costly to find, and would not be kept
            return
        place = place_of(self._text, self._at if at is None else at)
        cap = self._caps.depth if fault is Fault.DEPTH else self._caps.values
        what = fault.format(
            place=place.words,
            first="" if first is None else place_of(self._text, first).plain,
            cap=self._caps.digits if fault is Fault.DIGITS else cap,
        )
        self._problems.add(what, row=place.line, value=value)

    def _stop(self, fault: Fault, *, at: int | None = None, value: str | None = None) -> "_State":
        """Say what is wrong, and go no further: what follows could only be guessed at."""
        if not self._next and fault is not Fault.END_IN_STRING and self._open:
            fault = Fault.END_IN_ARRAY if self._open[-1] is None else Fault.END_IN_OBJECT
        self._say(fault, at=at, value=value)
        return self._end

    def _value(self) -> "_State":
        self._values += 1
        if self._values > self._caps.values:
            return self._stop(Fault.VALUES)
        match self._next:
            case "[" | "{" as bracket:
                if len(self._open) == self._caps.depth:
                    return self._stop(Fault.DEPTH)
                self._at += 1
                self._open.append(None if bracket == "[" else {})
                return self._first_item if bracket == "[" else self._first_name
            case '"':
                return self._end if self._string() is None else self._after
            case "]" | "}" if self._open:
                return self._stop(Fault.TRAILING_COMMA if self._before() == "," else Fault.VALUE_DUE)
            case _:
                return self._scalar()

    def _before(self) -> str:
        return self._text[: self._at].rstrip(" \t\n\r")[-1:]

    def _scalar(self) -> "_State":
        word = _WORD.match(self._text, self._at)
        if word is None:
            return self._stop(Fault.VALUE_DUE)
        fault = self._judge(word[0])
        if fault is not None and self._open and word.end() == len(self._text):
            self._at = word.end()  # cut off: what it would have been, nobody knows
            return self._stop(fault)
        if fault in (Fault.SINGLE_QUOTE, Fault.COMMENT):
            return self._stop(fault, value=word[0])
        if fault is not None:
            self._say(fault, value=word[0])
        self._at = word.end()
        return self._after

    def _judge(self, word: str) -> Fault | None:
        if word in ("true", "false", "null"):
            return None
        if number := _NUMBER.fullmatch(word):
            if sum(map(str.isdigit, word)) > self._caps.digits:
                return Fault.DIGITS
            return Fault.INFINITE if number["decimal"] and math.isinf(float(word)) else None
        return next(fault for applies, fault in _MISTAKES if applies(word))

    def _string(self) -> str | None:
        """Go over a string; None where it is none."""
        begin = self._at
        body = _STRING.match(self._text, begin)
        assert body is not None
        self._at = body.end()
        if self._next == '"':
            self._at += 1
            text: str = json.loads(self._text[begin : self._at])
            if _HALF_A_PAIR.search(text):
                self._say(Fault.SURROGATE, at=begin, value=text)
            return text
        self._stop_in_string(begin)
        return None

    def _stop_in_string(self, begin: int) -> None:
        rest = self._text[self._at : self._at + 6]
        if _CUT_ESCAPE.fullmatch(rest):
            self._stop(Fault.END_IN_STRING, at=begin)
        elif rest.startswith("\\"):
            self._stop(Fault.ESCAPE, value=rest)
        else:
            self._stop(Fault.LINE_IN_STRING if rest[0] in "\r\n" else Fault.CONTROL)

    def _first_item(self) -> "_State":
        return self._close() if self._next == "]" else self._value

    def _first_name(self) -> "_State":
        return self._close() if self._next == "}" else self._name

    def _name(self) -> "_State":
        match self._next:
            case '"':
                pass
            case "}":
                return self._stop(Fault.TRAILING_COMMA)
            case "'":
                return self._stop(Fault.SINGLE_QUOTE)
            case _:
                return self._stop(Fault.NAME_DUE)
        begin = self._at
        name = self._string()
        if name is None:
            return self._end
        names = self._open[-1]
        assert names is not None
        first = names.setdefault(name, begin)
        if first != begin:
            self._say(Fault.DOUBLE, at=begin, first=first, value=name)
        return self._colon

    def _colon(self) -> "_State":
        if self._next != ":":
            return self._stop(Fault.COLON_DUE)
        self._at += 1
        return self._value

    def _after(self) -> "_State":
        if not self._open:
            return self._stop(Fault.TRAILING_DATA) if self._next else self._end
        in_array = self._open[-1] is None
        if self._next == ",":
            self._at += 1
            return self._value if in_array else self._name
        if self._next == ("]" if in_array else "}"):
            return self._close()
        return self._stop(Fault.COMMA_OR_BRACKET if in_array else Fault.COMMA_OR_BRACE)

    def _close(self) -> "_State":
        self._open.pop()
        self._at += 1
        return self._after


_NOT_FINITE = frozenset({"nan", "inf", "infinity"})
_MISTAKES: tuple[tuple[Callable[[str], object], Fault], ...] = (
    (lambda word: word.lstrip("+-").lower() in _NOT_FINITE, Fault.NOT_FINITE),
    (re.compile(r"[-+]?\.?[0-9][-+.0-9eE]*").fullmatch, Fault.NUMBER),
    (frozenset({"True", "False", "None"}).__contains__, Fault.PYTHON),
    (lambda word: word.startswith("'"), Fault.SINGLE_QUOTE),
    (lambda word: word.startswith(("//", "/*", "#")), Fault.COMMENT),
    (lambda _: True, Fault.NO_VALUE),
)
