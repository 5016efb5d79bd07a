"""Reads JSON within fixed bounds, and says of everything that is wrong with it on which line and in which column.

Python's own parser is quick and lenient: it takes NaN, reads ``1e999`` as infinity, lets the last of two equal names
win, makes lone surrogates, and leaves by ``RecursionError`` where brackets are deep. So two things happen here. A walk
over the tokens, which needs no recursion and stops at the first bound, decides whether a text is sound; only a sound
text is parsed. And because a walk in Python is slow, there is a short way for a text about which there is nothing to
say: its depth is counted first, then Python's parser runs with hooks that refuse the rest. The short way never says
anything; where it gives up, the walk decides.
"""

import json
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from pydantic import TypeAdapter

from runner.confine import Confine, JsonValue, Reply
from runner.confine.wire import pack
from runner.formats.readers.csv_table import (
    MAX_KEPT,
    ProblemList,
    confined_call,
    garbled,
    read_bytes,
    sentence_pattern,
    told,
    wide_encoding,
)


@dataclass(frozen=True, kw_only=True)
class JsonCaps:
    """How large a JSON text may be.

    Attributes:
        size: Bytes.
        depth: Arrays and objects inside one another; at most 200, far below what Python's parser can bear.
        values: Values of any kind, names not counted; each takes some 70 bytes once it is read.
        digits: Digits of a number.
    """

    size: int = 16 << 20
    depth: int = 32
    values: int = 1_000_000
    digits: int = 64

    def __post_init__(self) -> None:
        if not 1 <= self.depth <= 200:
            raise ValueError(f"a depth of {self.depth} is not from 1 to 200")


_MOST_COUNTED = 1000
"""Problems after which no more are looked for: nobody mends the thousandth by hand."""


class Top(StrEnum):
    """What a text must hold."""

    ANY = "anything"
    OBJECT = "an object"
    ARRAY = "an array"


class Fault(StrEnum):
    """Every sentence of this reader."""

    EMPTY = "the file is empty"
    TOO_LARGE = "the file is larger than {cap} bytes"
    MARK = "the file begins with a byte order mark: save it as UTF-8 without one"
    WIDE = "the file is {encoding}: save it as UTF-8"
    NUL = "{place}a NUL byte stands here: the file is not text"
    NOT_UTF8 = "{place}the bytes are not UTF-8"
    TOP = "{place}the file holds {found} where {due} is due"
    DEPTH = "{place}arrays and objects are more than {cap} deep"
    VALUES = "{place}there are more than {cap} values"
    END_IN_STRING = "{place}the file ends inside the string that begins here"
    END_IN_ARRAY = "{place}the file ends inside an array"
    END_IN_OBJECT = "{place}the file ends inside an object"
    VALUE_DUE = "{place}a value is due here"
    NAME_DUE = "{place}a name in quotation marks is due here"
    COLON_DUE = "{place}a colon is due here"
    COMMA_OR_BRACKET = "{place}a comma or ] is due here"
    COMMA_OR_BRACE = "{place}a comma or }} is due here"
    TRAILING_COMMA = "{place}a comma stands before this bracket, with nothing between"
    TRAILING_DATA = "{place}the value has ended, and more follows"
    DOUBLE = "{place}the name stands here again, as in {first}"
    LINE_IN_STRING = "{place}a line ends inside a string: write \\n there"
    CONTROL = "{place}a control character stands inside a string"
    ESCAPE = "{place}this is no escape of JSON"
    SURROGATE = "{place}the string holds half of a surrogate pair (\\ud800 to \\udfff)"
    NOT_FINITE = "{place}NaN and infinity are not JSON"
    INFINITE = "{place}the number is too large: it would be read as infinite"
    DIGITS = "{place}the number has more than {cap} digits"
    NUMBER = "{place}the number is not as JSON writes it: no plus sign, no leading 0, a digit on each side of the point"
    PYTHON = "{place}this is Python: JSON writes true, false and null"
    SINGLE_QUOTE = '{place}JSON knows no single quotation marks: write "'
    COMMENT = "{place}JSON knows no comments"
    NO_VALUE = "{place}this is no JSON value"


_SENTENCES = sentence_pattern(
    Fault,
    place=r"line [0-9]{1,9}, column [0-9]{1,9}: ",
    first=r"line [0-9]{1,9}, column [0-9]{1,9}",
    encoding="UTF-16|UTF-32",
    found="an object|an array|a string|a number|true, false or null",
    due="an object|an array",
)


def read_json(descriptor: int, *, caps: JsonCaps, top: Top, problems: ProblemList) -> JsonValue:
    """Read a JSON text.

    Args:
        descriptor: Open for reading; its position is neither used nor moved.
        caps: How large it may be.
        top: What it must hold.
        problems: What is wrong is added here, the first thousand of it; ``row`` is the line.

    Returns:
        Its value, every number of it finite and every string without lone surrogates; None, too, where there is a
        problem.
    """
    before = problems.count
    text = _read_text(descriptor, caps, problems)
    if not text:
        return None
    _check_top(text, top, problems)
    if problems.count == before and (sound := _read_at_once(text, caps)) is not None:
        return sound.value
    _Walk(text, caps, problems).run()
    if problems.count > before:
        return None
    value: JsonValue = json.loads(text)
    return value


def _read_text(descriptor: int, caps: JsonCaps, problems: ProblemList) -> str:
    content = read_bytes(descriptor, caps.size)
    if len(content) > caps.size:
        problems.add(Fault.TOO_LARGE.format(cap=caps.size))
        return ""
    encoding = wide_encoding(content)
    if encoding is not None:
        problems.add(Fault.WIDE.format(encoding=encoding))
        return ""
    if content.startswith(b"\xef\xbb\xbf"):
        problems.add(Fault.MARK, row=1)
        content = content[3:]
    if not content.strip(b" \t\r\n"):
        problems.add(Fault.EMPTY)
        return ""
    return _decode(content, problems)


def _decode(content: bytes, problems: ProblemList) -> str:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        place = _place(content[: error.start].decode("utf-8"), error.start)
        problems.add(Fault.NOT_UTF8.format(place=place.words), row=place.line)
        return ""
    if (nul := text.find("\0")) >= 0:
        place = _place(text, nul)
        problems.add(Fault.NUL.format(place=place.words), row=place.line)
        return ""
    return text


class _Place(NamedTuple):
    """Where a character stands, both counted from 1."""

    line: int
    column: int

    @property
    def plain(self) -> str:
        return f"line {self.line}, column {self.column}"

    @property
    def words(self) -> str:
        return f"{self.plain}: "


def _place(text: str, position: int) -> _Place:
    return _Place(text.count("\n", 0, position) + 1, position - text.rfind("\n", 0, position))


_SPACE = re.compile(r"[ \t\n\r]*+")
_KINDS = {"{": "an object", "[": "an array", '"': "a string", "t": "true, false or null", "f": "true, false or null"}


def _check_top(text: str, top: Top, problems: ProblemList) -> None:
    space = _SPACE.match(text)
    assert space is not None
    first = text[space.end()]
    found = "true, false or null" if first == "n" else _KINDS.get(first, "a number")
    if top is not Top.ANY and found != top and first in '{["tfn-0123456789':
        place = _place(text, space.end())
        problems.add(Fault.TOP.format(place=place.words, found=found, due=top), row=place.line)


# The short way.


class _Sound(NamedTuple):
    value: JsonValue


class _GiveUpError(ValueError):
    """There is something to say."""


_STRINGS_AND_BRACKETS = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[{][ \t\n\r]*+[\]}]|[\[\]{},]', re.DOTALL)
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


def _read_at_once(text: str, caps: JsonCaps) -> _Sound | None:
    def parse_integer(digits: str) -> int:
        if len(digits) > caps.digits:  # or one less and a sign, which the walk will tell
            raise _GiveUpError
        return int(digits)

    def parse_float(digits: str) -> float:
        number = float(digits)
        if len(digits) > caps.digits or not math.isfinite(number):
            raise _GiveUpError
        return number

    if not _is_within(text, caps):
        return None
    try:
        value: JsonValue = json.loads(
            text,
            parse_int=parse_integer,
            parse_float=parse_float,
            parse_constant=_give_up,
            object_pairs_hook=_no_doubles,
        )
        if _SURROGATE_ESCAPE.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except ValueError:
        return None
    return _Sound(value)


def _is_within(text: str, caps: JsonCaps) -> bool:
    """Whether depth and number of values are within the caps; right for JSON, and of no meaning for anything else.

    A value stands behind each comma and at the beginning of each array or object that is not empty; one is the whole.
    """
    depth, values = 0, 1
    for match in _STRINGS_AND_BRACKETS.finditer(text):
        match match[0]:
            case "[" | "{":
                depth += 1
                values += 1
            case "]" | "}":
                depth -= 1
            case ",":
                values += 1
            case token if token[0] == '"' or depth < caps.depth:  # a string, or an array or object that is empty
                continue
            case _:
                return False
        if depth > caps.depth or values > caps.values:
            return False
    return True


def _give_up(_text: str) -> None:
    raise _GiveUpError


def _no_doubles(pairs: Sequence[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise _GiveUpError
    return values


# The walk.

_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+')
_WORD = re.compile(r'[^ \t\n\r,:\[\]{}"]++')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)(?P<decimal>(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+)")
_CUT_ESCAPE = re.compile(r"(?:\\(?:u[0-9a-fA-F]{0,3})?)?")
_SURROGATE = re.compile("[\ud800-\udfff]")

_State: TypeAlias = "Callable[[], _State]"
_Names: TypeAlias = dict[str, int]


class _Walk:
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
        space = _SPACE.match(self._text, self._at)
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
        place = _place(self._text, self._at if at is None else at)
        cap = self._caps.depth if fault is Fault.DEPTH else self._caps.values
        what = fault.format(
            place=place.words,
            first="" if first is None else _place(self._text, first).plain,
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
            if _SURROGATE.search(text):
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


# The two sides of the confined call.

_CAPS = TypeAdapter(JsonCaps)


def read_in_child(request: Mapping[str, JsonValue], descriptors: Sequence[int]) -> Reply:
    """The child's side of ``confined_json``."""
    problems = ProblemList()
    caps = _CAPS.validate_python(request["caps"])
    value = read_json(descriptors[0], caps=caps, top=Top(str(request["top"])), problems=problems)
    return Reply(header={**told(problems), "value": value})


def confined_json(confine: Confine, descriptor: int, *, caps: JsonCaps, top: Top, problems: ProblemList) -> JsonValue:
    """``read_json`` in a child that can do nothing else; the value is held against the caps again.

    Raises:
        HostFault: No child could be started.
    """
    return confined_call(
        confine,
        "runner.formats.readers.json_text.read_in_child",
        {"caps": _CAPS.dump_python(caps, mode="json"), "top": top.value},
        descriptor,
        sentences=_SENTENCES,
        check=lambda reply: check_json(reply, caps=caps, top=top),
        problems=problems,
    )


def check_json(reply: Reply, *, caps: JsonCaps, top: Top) -> JsonValue:
    """The value of an answer, if it is one that a text within the caps can have.

    Raises:
        ConfinedFailure: It is not; ``GARBLED``.
    """
    if "value" not in reply.header or reply.arrays:
        raise garbled("its answer lacks its parts")
    value = reply.header["value"]
    kinds: dict[Top, type] = {Top.OBJECT: dict, Top.ARRAY: list, Top.ANY: object}
    if not isinstance(value, kinds[top]):
        raise garbled("its answer is of another kind")
    level: list[JsonValue] = [value]
    depth = values = 0
    while level:  # a level at a time, so that nothing here is as deep as the value
        values += len(level)
        depth += any(isinstance(one, (dict, list)) for one in level)
        if depth > caps.depth or values > caps.values:
            raise garbled("its answer is larger than the file may be")
        level = [inner for one in level for inner in _inside(one, caps)]
    return value


def _inside(value: JsonValue, caps: JsonCaps) -> Sequence[JsonValue]:
    match value:
        case str():
            _check_string(value)
        case bool() | float() | None:
            pass
        case int():
            if abs(value) >= 10**caps.digits:
                raise garbled("its answer holds a number that is too long")
        case list():
            return value
        case dict():
            for name in value:
                _check_string(name)
            return list(value.values())
    return ()


def _check_string(text: str) -> None:
    if not text.isascii() and _SURROGATE.search(text):
        raise garbled("its answer holds half of a surrogate pair")


def warm_up() -> None:
    """Read a good and a bad text once; for the fork server."""
    for content in (b'{"a": [1, 1.5, "\\ud83d\\ude00"]}', b'{"a": 1, "a": NaN', b"\xef\xbb\xbf[1e999,]"):
        descriptor = os.memfd_create("warm", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, content)
            pack(read_in_child({"caps": {}, "top": Top.ANY.value}, [descriptor]))
        finally:
            os.close(descriptor)
