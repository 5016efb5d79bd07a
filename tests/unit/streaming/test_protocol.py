"""Every message in every state, and the sentence of every breach."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.challenge import FrameWay
from runner.streaming.lines import Line, Lines, Tail
from runner.streaming.protocol import (
    Answered,
    Breach,
    Broken,
    Conversation,
    Event,
    Greeted,
    frame_message,
)

BOTH = (FrameWay.PATH, FrameWay.INLINE)
HELLO = b'{"type":"hello","protocol":1,"frames":"path"}'


def _answer(index: object, answer: object = None) -> bytes:
    return json.dumps({"type": "answer", "index": index, "answer": {} if answer is None else answer}).encode()


def _greeted() -> Conversation:
    conversation = Conversation(ways=BOTH)
    assert conversation.hear(HELLO) == Greeted(way=FrameWay.PATH)
    return conversation


def _begun(frames: int = 0, answered: int = 0) -> Conversation:
    """A case of which so many frames were shown, and the first so many answered."""
    conversation = _greeted()
    conversation.begin(case="c", fps=25.0, inputs=("frames",))
    for index in range(frames):
        assert conversation.release() == index
        if index < answered:
            assert conversation.hear(_answer(index)) == Answered(index=index, answer={})
    return conversation


def _breach(conversation: Conversation, line: bytes) -> tuple[Breach, str]:
    broken = conversation.hear(line)
    assert isinstance(broken, Broken)
    return broken.breach, broken.sentence


# What we say


def test_our_messages_are_lines_of_json() -> None:
    conversation = Conversation(ways=BOTH)
    assert conversation.hello("phases") == b'{"type":"hello","protocol":1,"frames":["path","inline"],"task":"phases"}\n'
    conversation.hear(HELLO)
    assert (
        conversation.begin(case="k3", fps=25.0, inputs=("frames", "kinematics"))
        == b'{"type":"begin","case":"k3","fps":25.0,"inputs":["frames","kinematics"]}\n'
    )
    assert conversation.end() == b'{"type":"end"}\n'
    assert (
        frame_message(index=3, time=0.12, inputs={"frames": {"path": "/data/inputs/é.png"}})
        == '{"type":"frame","index":3,"time":0.12,"inputs":{"frames":{"path":"/data/inputs/é.png"}}}\n'.encode()
    )


# What it says, in order


@pytest.mark.parametrize("way", BOTH)
def test_hello_chooses_one_of_the_ways(way: FrameWay) -> None:
    line = json.dumps({"type": "hello", "protocol": 1, "frames": way.value}).encode()
    assert Conversation(ways=BOTH).hear(line) == Greeted(way=way)


def test_each_frame_is_answered_once_in_its_turn() -> None:
    conversation = _begun()
    assert conversation.open_frame is None
    for index in range(3):
        conversation.release()
        assert conversation.open_frame == index
        assert conversation.hear(_answer(index, {"step": index})) == Answered(index=index, answer={"step": index})
    assert conversation.open_frame is None


def test_a_frame_may_be_passed_over_where_the_next_was_shown() -> None:
    conversation = _begun(frames=4)
    assert conversation.hear(_answer(1)) == Answered(index=1, answer={})
    assert conversation.open_frame == 2
    assert conversation.hear(_answer(3)) == Answered(index=3, answer={})
    assert conversation.open_frame is None


def test_a_frame_that_was_left_out_is_not_open() -> None:
    conversation = _begun(frames=1, answered=1)
    assert conversation.leave_out() == 1
    assert conversation.open_frame is None
    assert conversation.release() == 2
    assert conversation.open_frame == 2


# What it must not say

FIELD = "a field of a message is missing, or is not of its kind"
EARLY = "it answered a frame that it had not been shown"
NOT_JSON = "a message is not strict JSON, or is too deep or has too many values"
UNKNOWN_TYPE = "a message has no type that the protocol knows"
UNKNOWN_FIELD = "a message has a field that the protocol does not know"
CASE = "a message names a case; a container has one case, and its answers name the frame only"
VERSION = "it speaks another version of the protocol; this is version 1"


@pytest.mark.parametrize(
    ("line", "breach", "sentence"),
    [
        (_answer(0), Breach.NO_HELLO, "it sent an answer before it had said hello"),
        (b'{"type":"hello","protocol":2,"frames":"path"}', Breach.WRONG_VERSION, VERSION),
        (b'{"type":"hello","protocol":0,"frames":"path"}', Breach.WRONG_VERSION, VERSION),
        (b'{"type":"hello","protocol":1.0,"frames":"path"}', Breach.BAD_FIELD, FIELD),
        (b'{"type":"hello","protocol":true,"frames":"path"}', Breach.BAD_FIELD, FIELD),
        (b'{"type":"hello","protocol":1}', Breach.BAD_FIELD, FIELD),
        (b'{"type":"hello","frames":"path"}', Breach.BAD_FIELD, FIELD),
        (b'{"type":"hello","protocol":1,"frames":["path"]}', Breach.BAD_FIELD, FIELD),
        (
            b'{"type":"hello","protocol":1,"frames":"socket"}',
            Breach.WAY_NOT_OFFERED,
            "it asked for images in a way that is not offered; offered: path or inline",
        ),
        (b'{"type":"hello","protocol":1,"frames":"path","name":"x"}', Breach.UNKNOWN_FIELD, UNKNOWN_FIELD),
        (b'{"type":"ready"}', Breach.UNKNOWN_TYPE, UNKNOWN_TYPE),
        (b'{"type":["hello"]}', Breach.UNKNOWN_TYPE, UNKNOWN_TYPE),
        (b'{"protocol":1}', Breach.UNKNOWN_TYPE, UNKNOWN_TYPE),
        (b"{}", Breach.UNKNOWN_TYPE, UNKNOWN_TYPE),
        (b'{"type":"error","message":"no weights"}', Breach.ERROR_TOLD, "it said that it cannot go on"),
    ],
)
def test_before_hello(line: bytes, breach: Breach, sentence: str) -> None:
    assert _breach(Conversation(ways=BOTH), line) == (breach, sentence)


@pytest.mark.parametrize(
    ("line", "breach", "sentence"),
    [
        (HELLO, Breach.SECOND_HELLO, "it said hello a second time"),
        (_answer(0), Breach.EARLY, EARLY),
        (b'{"type":"error"}', Breach.ERROR_TOLD, "it said that it cannot go on"),
    ],
)
def test_before_the_first_frame(line: bytes, breach: Breach, sentence: str) -> None:
    assert _breach(_greeted(), line) == (breach, sentence)
    assert _breach(_begun(), line) == (breach, sentence)


@pytest.mark.parametrize(
    ("line", "breach", "sentence"),
    [
        (_answer(3), Breach.EARLY, EARLY),
        (_answer(10**31), Breach.EARLY, EARLY),
        (_answer(1), Breach.TWICE, "it answered frame 1 a second time"),
        (_answer(0), Breach.TWICE, "it answered frame 0 a second time"),
        (HELLO, Breach.SECOND_HELLO, "it said hello a second time"),
        (_answer(-1), Breach.BAD_FIELD, FIELD),
        (_answer(2.0), Breach.BAD_FIELD, FIELD),
        (_answer("2"), Breach.BAD_FIELD, FIELD),
        (_answer(index=True), Breach.BAD_FIELD, FIELD),
        (_answer(None), Breach.BAD_FIELD, FIELD),
        (_answer(2, [1]), Breach.BAD_FIELD, FIELD),
        (_answer(2, "x"), Breach.BAD_FIELD, FIELD),
        (b'{"type":"answer","index":2}', Breach.BAD_FIELD, FIELD),
        (b'{"type":"answer","answer":{}}', Breach.BAD_FIELD, FIELD),
        (b'{"type":"answer","index":2,"answer":{},"case":"k4"}', Breach.OTHER_CASE, CASE),
        (b'{"type":"answer","index":2,"answer":{},"time":1}', Breach.UNKNOWN_FIELD, UNKNOWN_FIELD),
        (b'{"type":"frame","index":2}', Breach.UNKNOWN_TYPE, UNKNOWN_TYPE),
        (b'{"type":"end"}', Breach.UNKNOWN_TYPE, UNKNOWN_TYPE),
        (b'{"type":"error","message":"\\u001b[31m"}', Breach.ERROR_TOLD, "it said that it cannot go on"),
        (b'{"type":"answer","index":2,"answer":{"x":NaN}}', Breach.NOT_JSON, NOT_JSON),
        (b'{"type":"answer","index":2,"answer":{"x":1e999}}', Breach.NOT_JSON, NOT_JSON),
        (b'{"type":"answer","index":2,"index":3,"answer":{}}', Breach.NOT_JSON, NOT_JSON),
        (b'{"type":"answer","index":2,"answer":{"x":' + b"9" * 33 + b"}}", Breach.NOT_JSON, NOT_JSON),
        (b'{"type":"answer","index":2,"answer":{"x":"\\ud800"}}', Breach.NOT_JSON, NOT_JSON),
        (b'{"type":"answer","index":2,"answer":{"x":' + b"[" * 900_000, Breach.NOT_JSON, NOT_JSON),
        (b'{"type":"answer","index":2,"answer":{"x":[' + b"0," * 450_000 + b"0]}}", Breach.NOT_JSON, NOT_JSON),
        (b'{"type":"answer"', Breach.NOT_JSON, NOT_JSON),
        (b"{" + HELLO, Breach.NOT_JSON, NOT_JSON),
        (HELLO + b" x", Breach.NOT_JSON, NOT_JSON),
        (b'{"type":"answer","index":2,"answer":{"x":"\xff"}}', Breach.NOT_UTF8, "a message is not UTF-8"),
        (b'{"type":"answer","index":2,"answer":{"x":"\xed\xa0\x80"}}', Breach.NOT_UTF8, "a message is not UTF-8"),
    ],
)
def test_while_the_third_of_three_frames_is_open(line: bytes, breach: Breach, sentence: str) -> None:
    assert _breach(_begun(frames=3, answered=2), line) == (breach, sentence)


def test_a_frame_that_was_passed_over_is_answered_no_more() -> None:
    conversation = _begun(frames=3)
    conversation.hear(_answer(2))
    assert _breach(conversation, _answer(1)) == (Breach.OUT_OF_ORDER, "it answered frame 1 after frame 2")


def test_a_frame_that_was_left_out_cannot_be_answered() -> None:
    conversation = _begun(frames=1, answered=1)
    conversation.leave_out()
    conversation.release()
    assert _breach(conversation, _answer(1)) == (Breach.EARLY, EARLY)


def test_after_the_end_there_is_nothing_to_answer() -> None:
    for line, breach in ((_answer(0), Breach.TWICE), (_answer(1), Breach.EARLY), (HELLO, Breach.SECOND_HELLO)):
        conversation = _begun(frames=1, answered=1)
        conversation.end()
        assert _breach(conversation, line)[0] is breach


@pytest.mark.parametrize(
    ("breach", "numbers", "sentence"),
    [
        (Breach.LATE_HELLO, {"seconds": "2.0 s"}, "it did not say hello within 2.0 s of its start"),
        (Breach.TOO_LONG, {"limit": "1 MiB"}, "a message is longer than 1 MiB"),
        (Breach.TOO_MUCH, {"limit": "1 GiB"}, "its answers come to more than 1 GiB together"),
        (Breach.FLOOD, {}, "it sent messages faster than they can be asked for"),
        (Breach.UNFINISHED_LINE, {}, "it ended in the middle of a message"),
        (Breach.SILENT, {"index": 7, "seconds": "10.0 s"}, "frame 7 was not answered within 10.0 s"),
        (Breach.NOT_READING, {"index": 7, "seconds": "10.0 s"}, "it did not read frame 7 within 10.0 s"),
        (
            Breach.EXITED,
            {"what": "frame 7 was answered"},
            "it ended, or closed its output, before frame 7 was answered",
        ),
    ],
)
def test_breaches_that_are_no_message(breach: Breach, numbers: dict[str, object], sentence: str) -> None:
    assert _begun().breach(breach, **numbers) == Broken(breach=breach, sentence=sentence)


def test_after_the_first_breach_nothing_counts() -> None:
    conversation = _begun(frames=1)
    first = conversation.hear(b"{}")
    assert conversation.hear(_answer(0)) == first
    assert conversation.breach(Breach.FLOOD) == first
    assert conversation.open_frame == 0


# However it comes


def _heard(data: bytes, places: list[int]) -> list[Event]:
    conversation = _begun(frames=2)
    lines = Lines(longest=1 << 20, log=Tail(1 << 10))
    events: list[Event] = []
    for start, end in zip([0, *places], [*places, len(data)], strict=True):
        for line in lines.feed(data[start:end], 0.0):
            assert isinstance(line, Line)
            events.append(conversation.hear(line.text))
    return events


@given(
    st.lists(
        st.sampled_from([_answer(0), _answer(1), _answer(2), HELLO, b"{", b"progress 3 %", b"", b'{"type":"error"}'])
    ).map(lambda lines: b"".join(line + b"\n" for line in lines)),
    st.data(),
)
def test_however_the_bytes_are_cut_the_events_are_the_same(data: bytes, draw: st.DataObject) -> None:
    places = sorted(draw.draw(st.lists(st.integers(0, len(data)), max_size=8)))
    assert _heard(data, places) == _heard(data, [])


@given(st.binary(max_size=200))
def test_no_bytes_of_a_container_make_it_raise_or_come_back_in_a_sentence(data: bytes) -> None:
    event = _begun(frames=1).hear(b"{" + data)
    assert isinstance(event, Broken)
    assert event.sentence in {NOT_JSON, UNKNOWN_TYPE, "a message is not UTF-8"}
