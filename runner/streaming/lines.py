"""Cuts what a container prints into lines meant as messages and a log, in bounded memory, however it comes.

A line whose first byte is ``{`` is meant as a message. All else on its standard output, and all of its standard error,
is log, of which the end is kept. A flood of log costs one search a piece, so that the reader keeps up with it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line meant as a message, without its end; ``at``: when its last byte came, in seconds of the reader's clock."""

    text: bytes
    at: float


@dataclass(frozen=True, kw_only=True)
class TooLong:
    """A line meant as a message is longer than it may be; it was dropped."""

    at: float


class _State(Enum):
    START = auto()
    LOG = auto()
    MESSAGE = auto()
    DROPPED = auto()


class Tail:
    """The last bytes of a log."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept = bytearray()
        self.written = 0
        """Bytes written to it."""

    def write(self, data: bytes) -> None:
        """Add to it."""
        self.written += len(data)
        self._kept += data[-self._most :]
        if len(self._kept) > 2 * self._most:
            del self._kept[: -self._most]

    def content(self) -> bytes:
        """What is kept."""
        return bytes(self._kept[-self._most :])


class Lines:
    """Cuts a standard output into lines.

    Args:
        longest: Bytes of a line meant as a message, its end not counted.
        log: Takes what is none.
    """

    def __init__(self, *, longest: int, log: Tail) -> None:
        self._longest = longest
        self._log = log
        self._state = _State.START
        self._held = bytearray()

    @property
    def unfinished(self) -> bool:
        """Whether the last line meant as a message has no end yet."""
        return self._state is _State.MESSAGE

    def feed(self, data: bytes, at: float) -> Iterator[Line | TooLong]:
        """Cut what came at ``at``; it must be read to its end."""
        place = 0
        while place < len(data):
            match self._state:
                case _State.START:
                    self._state = _State.MESSAGE if data[place] == ord("{") else _State.LOG
                case _State.LOG:
                    end = data.find(b"\n{", place) + 1 or len(data)
                    self._log.write(data[place:end])
                    self._state = _State.START if data[end - 1] == ord("\n") else _State.LOG
                    place = end
                case _State.DROPPED:
                    place = data.find(b"\n", place) + 1 or len(data)
                    self._state = _State.START if data[place - 1] == ord("\n") else _State.DROPPED
                case _State.MESSAGE:
                    end = data.find(b"\n", place)
                    piece = data[place:] if end < 0 else data[place:end]
                    place += len(piece)
                    if len(self._held) + len(piece) > self._longest:
                        self._held.clear()
                        self._state = _State.DROPPED
                        yield TooLong(at=at)
                        continue
                    self._held += piece
                    if end >= 0:
                        place += 1
                        text = bytes(self._held)
                        self._held.clear()
                        self._state = _State.START
                        yield Line(text=text, at=at)
