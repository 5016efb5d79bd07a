"""The protocol of streamed frames, as a state machine without input or output: lines in, events out.

What a container says is believed in nothing. A line is bounded before it is parsed, in depth, values and digits too
(``strict_json``), and all that is taken from it is an index, compared with those that are open, and the answer, plain
values that go to the confined reader of the task's format like any file. That is why lines are parsed here and not in
a child: a child for each frame would cost more than many methods, and it could not be one that lives on, since the
next answer must not meet what the one before left. Each breach has a sentence of ours, with no byte of the container
in it; after the first nothing that is said counts.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from runner.challenge import FrameWay
from runner.confine import JsonValue
from runner.confine.strict_json import JsonBounds, NotStrictError, parse_strictly

VERSION = 1
"""Raised only where a client of the one before could not go on."""

LONGEST_LINE = 1 << 20
"""Bytes of a line of the container, where the answers of a format need no more."""

_BOUNDS = JsonBounds(depth=16, values=200_000, digits=32)


class Breach(StrEnum):
    """How a container can break the protocol; the closed list."""

    NO_HELLO = "no-hello"
    LATE_HELLO = "late-hello"
    SECOND_HELLO = "second-hello"
    WRONG_VERSION = "wrong-version"
    WAY_NOT_OFFERED = "way-not-offered"
    EARLY = "early"
    TWICE = "twice"
    OUT_OF_ORDER = "out-of-order"
    OTHER_CASE = "other-case"
    UNKNOWN_FIELD = "unknown-field"
    UNKNOWN_TYPE = "unknown-type"
    BAD_FIELD = "bad-field"
    NOT_UTF8 = "not-utf8"
    NOT_JSON = "not-json"
    TOO_LONG = "too-long"
    TOO_MUCH = "too-much"
    FLOOD = "flood"
    UNFINISHED_LINE = "unfinished-line"
    ERROR_TOLD = "error-told"
    SILENT = "silent"
    NOT_READING = "not-reading"
    EXITED = "exited"


TOO_SLOW = frozenset({Breach.SILENT, Breach.NOT_READING, Breach.LATE_HELLO})
"""Those that are nothing but a deadline that was not kept."""


@dataclass(frozen=True, kw_only=True)
class Broken:
    """A breach, and our sentence about it: safe to show to anybody."""

    breach: Breach
    sentence: str


@dataclass(frozen=True, kw_only=True)
class Greeted:
    """The container said hello, and in which way it wants its images."""

    way: FrameWay


@dataclass(frozen=True, kw_only=True)
class Answered:
    """A frame was answered."""

    index: int
    answer: Mapping[str, JsonValue]


Event: TypeAlias = Greeted | Answered | Broken


class Conversation:
    """One case's conversation: says what to send, and what a line means that came.

    Args:
        ways: The ways of images that are offered.
    """

    def __init__(self, *, ways: Sequence[FrameWay]) -> None:
        self._ways = tuple(ways)
        self._greeted = self._begun = self._over = False
        self._broken: Broken | None = None
        self._frames = bytearray()
        self._last = -1

    @property
    def open_frame(self) -> int | None:
        """Index of the first frame that was shown since the last answer; None where there is none."""
        place = self._frames.find(_SHOWN, self._last + 1)
        return None if place < 0 else place

    # What we say

    def hello(self, task: str) -> bytes:
        """Say hello."""
        return message(type="hello", protocol=VERSION, frames=[way.value for way in self._ways], task=task)

    def begin(self, *, case: str, fps: float, inputs: Sequence[str], files: Mapping[str, str] | None = None) -> bytes:
        """Begin the case; how many frames it has is not told. ``files``: by name, where inputs without frames lie."""
        assert self._greeted
        self._begun = True
        there = {"files": dict(files)} if files else {}
        return message(type="begin", case=case, fps=fps, inputs=list(inputs), **there)

    def release(self) -> int:
        """Count a frame as shown; its index. Its message is made before, by ``frame_message``."""
        assert self._begun
        assert not self._over
        self._frames.append(_SHOWN[0])
        return len(self._frames) - 1

    def leave_out(self) -> int:
        """Count a frame that is never shown; its index."""
        self._frames.append(_LEFT_OUT[0])
        return len(self._frames) - 1

    def end(self) -> bytes:
        """End the case."""
        self._over = True
        return message(type="end")

    # What it says

    def hear(self, line: bytes) -> Event:
        """Take a line meant as a message; after the first breach each is that breach."""
        if self._broken is not None:
            return self._broken
        try:
            return self._understand(line)
        except _BreachError as error:
            return self.breach(error.breach, **error.numbers)

    def breach(self, breach: Breach, **numbers: object) -> Broken:
        """Count a breach that is not one of a line's content; the first one stays.

        Args:
            breach: Which.
            numbers: What its sentence names.
        """
        if self._broken is None:
            self._broken = Broken(breach=breach, sentence=_SENTENCES[breach].format(**numbers))
        return self._broken

    def _understand(self, line: bytes) -> Event:
        fields = _fields(line)
        kind = fields.get("type")
        names = _FIELDS.get(kind) if isinstance(kind, str) else None
        if names is None:
            raise _BreachError(Breach.UNKNOWN_TYPE)
        if "case" in fields:
            raise _BreachError(Breach.OTHER_CASE)
        if not fields.keys() <= names:
            raise _BreachError(Breach.UNKNOWN_FIELD)
        if kind == "error":
            raise _BreachError(Breach.ERROR_TOLD)
        return self._greet(fields) if kind == "hello" else self._take(fields)

    def _greet(self, fields: Mapping[str, JsonValue]) -> Greeted:
        if self._greeted:
            raise _BreachError(Breach.SECOND_HELLO)
        version, way = fields.get("protocol"), fields.get("frames")
        if type(version) is not int or not isinstance(way, str):
            raise _BreachError(Breach.BAD_FIELD)
        if version != VERSION:
            raise _BreachError(Breach.WRONG_VERSION)
        if way not in self._ways:
            raise _BreachError(Breach.WAY_NOT_OFFERED, offered=" or ".join(self._ways))
        self._greeted = True
        return Greeted(way=FrameWay(way))

    def _take(self, fields: Mapping[str, JsonValue]) -> Answered:
        if not self._greeted:
            raise _BreachError(Breach.NO_HELLO)
        index, answer = fields.get("index"), fields.get("answer")
        if type(index) is not int or index < 0 or not isinstance(answer, dict):
            raise _BreachError(Breach.BAD_FIELD)
        if index >= len(self._frames) or self._frames[index] == _LEFT_OUT[0]:
            raise _BreachError(Breach.EARLY)
        if self._frames[index] == _ANSWERED[0]:
            raise _BreachError(Breach.TWICE, index=index)
        if index < self._last:
            raise _BreachError(Breach.OUT_OF_ORDER, index=index, last=self._last)
        self._frames[index] = _ANSWERED[0]
        self._last = index
        return Answered(index=index, answer=answer)


_SHOWN, _ANSWERED, _LEFT_OUT = b"s", b"a", b"-"

_FIELDS = {
    "hello": frozenset(("type", "protocol", "frames")),
    "answer": frozenset(("type", "index", "answer")),
    "error": frozenset(("type", "message")),
}

_SENTENCES = {
    Breach.NO_HELLO: "it sent an answer before it had said hello",
    Breach.LATE_HELLO: "it did not say hello within {seconds} of its start",
    Breach.SECOND_HELLO: "it said hello a second time",
    Breach.WRONG_VERSION: f"it speaks another version of the protocol; this is version {VERSION}",
    Breach.WAY_NOT_OFFERED: "it asked for images in a way that is not offered; offered: {offered}",
    Breach.EARLY: "it answered a frame that it had not been shown",
    Breach.TWICE: "it answered frame {index} a second time",
    Breach.OUT_OF_ORDER: "it answered frame {index} after frame {last}",
    Breach.OTHER_CASE: "a message names a case; a container has one case, and its answers name the frame only",
    Breach.UNKNOWN_FIELD: "a message has a field that the protocol does not know",
    Breach.UNKNOWN_TYPE: "a message has no type that the protocol knows",
    Breach.BAD_FIELD: "a field of a message is missing, or is not of its kind",
    Breach.NOT_UTF8: "a message is not UTF-8",
    Breach.NOT_JSON: "a message is not strict JSON, or is too deep or has too many values",
    Breach.TOO_LONG: "a message is longer than {limit}",
    Breach.TOO_MUCH: "its answers come to more than {limit} together",
    Breach.FLOOD: "it sent messages faster than they can be asked for",
    Breach.UNFINISHED_LINE: "it ended in the middle of a message",
    Breach.ERROR_TOLD: "it said that it cannot go on",
    Breach.SILENT: "frame {index} was not answered within {seconds}",
    Breach.NOT_READING: "it did not read frame {index} within {seconds}",
    Breach.EXITED: "it ended, or closed its output, before {what}",
}


class _BreachError(Exception):
    """A line breaks the protocol."""

    def __init__(self, breach: Breach, **numbers: object) -> None:
        super().__init__(breach)
        self.breach = breach
        self.numbers = numbers


def _fields(line: bytes) -> dict[str, JsonValue]:
    try:
        text = line.decode("utf-8")
        value = parse_strictly(text, _BOUNDS)
        if "\\u" in text:  # half of a surrogate pair can be escaped, and never be written
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeDecodeError:
        raise _BreachError(Breach.NOT_UTF8) from None
    except (NotStrictError, UnicodeEncodeError):
        raise _BreachError(Breach.NOT_JSON) from None
    assert isinstance(value, dict)  # it begins with a brace
    return value


def message(**fields: object) -> bytes:
    """A line of ours, with its end."""
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def frame_message(*, index: int, time: float, inputs: Mapping[str, object]) -> bytes:
    """The message of a frame."""
    return message(type="frame", index=index, time=time, inputs=inputs)
