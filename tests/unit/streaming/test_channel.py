"""The reader keeps reading whatever nobody takes, and holds no more of it than it may."""

import queue

import pytest

from runner.clock import MonotonicClock, SimulatedClock
from runner.engine import Output, Piece
from runner.streaming.channel import AttachedChannel, Closed, Flooded, Heard
from runner.streaming.lines import Line, TooLong


class Wire:
    """An ``Attached`` of which the test holds the other end."""

    def __init__(self) -> None:
        self.pieces: queue.SimpleQueue[Piece | Exception | None] = queue.SimpleQueue()
        self.written = b""
        self.takes = 1 << 30
        self.input_ended = False

    def print(self, content: bytes, output: Output = Output.STDOUT) -> None:
        self.pieces.put(Piece(output=output, content=content))

    def read(self) -> Piece | None:
        piece = self.pieces.get()
        if isinstance(piece, Exception):
            raise piece
        return piece

    def write(self, data: bytes, *, seconds: float) -> int:  # noqa: ARG002  # it takes at once
        taken = data[: self.takes]
        self.written += taken
        return len(taken)

    def end_input(self) -> None:
        self.input_ended = True

    def close(self) -> None:
        self.pieces.put(None)


def _channel(wire: Wire, *, longest: int = 1 << 10, log_bytes: int = 1 << 10) -> AttachedChannel:
    return AttachedChannel(wire, clock=MonotonicClock(), longest=longest, log_bytes=log_bytes)


def _next(channel: AttachedChannel) -> Heard:
    heard = channel.receive(seconds=10)
    assert heard is not None
    return heard


def test_messages_come_in_order_and_the_rest_is_log() -> None:
    wire = Wire()
    channel = _channel(wire)
    wire.print(b'loading\n{"a"')
    wire.print(b"{a warning}\n", Output.STDERR)
    wire.print(b':1}\n{"b":2}\nmore\n')
    heard = [_next(channel), _next(channel)]
    assert [line.text for line in heard if isinstance(line, Line)] == [b'{"a":1}', b'{"b":2}']
    channel.close()
    channel.note(b"a note")
    assert channel.log() == b"loading\n{a warning}\nmore\na note\n"
    assert channel.log_written == len(channel.log())


def test_the_end_is_told_again_and_again() -> None:
    for text, unfinished in ((b"{}\n", False), (b"{}\n{", True)):
        wire = Wire()
        channel = _channel(wire)
        wire.print(text)
        channel.close()
        assert isinstance(_next(channel), Line)
        for _ in range(3):
            closed = channel.receive(seconds=0)
            assert isinstance(closed, Closed)
            assert closed.unfinished is unfinished


def test_what_is_not_taken_stays_pending_in_order() -> None:
    wire = Wire()
    channel = _channel(wire)
    wire.takes = 3
    assert not channel.send(b"hello", seconds=0)
    assert channel.send(b"!", seconds=0)
    assert channel.send(b"", seconds=0)
    assert wire.written == b"hello!"
    channel.end_input()
    assert wire.input_ended
    channel.close()


def test_messages_that_nobody_takes_are_bounded_and_reading_goes_on() -> None:
    wire = Wire()
    channel = _channel(wire, longest=1 << 20)
    for _ in range(40):
        wire.print(b"{" + b"x" * 999_998 + b"\n")
    wire.print(b"still read\n")
    channel.close()
    heard: list[Heard] = []
    while not isinstance(last := _next(channel), Closed):
        heard.append(last)
    assert isinstance(heard[-1], Flooded)
    assert all(isinstance(line, Line) for line in heard[:-1])
    assert 9 <= len(heard) - 1 <= 11
    assert channel.log() == b"still read\n"


def test_many_short_messages_that_nobody_takes_are_bounded_too() -> None:
    wire = Wire()
    channel = _channel(wire)
    for _ in range(100):
        wire.print(b"{}\n" * 1000)
    channel.close()
    count = 0
    while isinstance(heard := _next(channel), Line):
        count += 1
    assert isinstance(heard, Flooded)
    assert count < 33_000


def test_messages_that_are_taken_are_no_flood() -> None:
    wire = Wire()
    channel = _channel(wire)
    for _ in range(100):
        wire.print(b"{}\n" * 1000)
        assert all(isinstance(_next(channel), Line) for _ in range(1000))
    channel.close()


def test_a_line_that_is_too_long_is_told_and_not_kept() -> None:
    wire = Wire()
    channel = _channel(wire, longest=10)
    wire.print(b"{" * 1000)
    wire.print(b"{" * 1000 + b"\n{}\n")
    assert isinstance(_next(channel), TooLong)
    assert isinstance(_next(channel), Line)
    channel.close()


def test_of_the_log_the_end_is_kept() -> None:
    wire = Wire()
    channel = _channel(wire, log_bytes=10)
    for number in range(1000):
        wire.print(b"%d\n" % number)
    channel.close()
    assert channel.log() == b"7\n998\n999\n"
    assert channel.log_written == 3890


def test_a_fault_of_the_reader_is_raised_and_no_silence_of_the_container() -> None:
    wire = Wire()
    channel = _channel(wire)
    wire.pieces.put(MemoryError("ours"))
    with pytest.raises(MemoryError, match="ours"):
        channel.receive(seconds=10)
    channel.close()


def test_waiting_moves_a_clock_that_does_not_go_by_itself() -> None:
    clock = SimulatedClock()
    wire = Wire()
    channel = AttachedChannel(wire, clock=clock, longest=10, log_bytes=10)
    assert channel.receive(seconds=0.05) is None
    assert clock.now() == pytest.approx(0.05)
    assert channel.receive(seconds=0) is None
    channel.close()
