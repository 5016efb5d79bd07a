"""Reads a container at all times, in a thread of its own, and holds no more of it than it may.

Were it ever left unread, the engine would stand still for everybody (moby #41827), so nothing here waits for whoever
takes the lines: what they do not take in time is dropped, and that it was is told.
"""

import queue
import threading
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from runner.clock import Clock
from runner.engine import Attached, Output
from runner.streaming.lines import Line, Lines, Tail, TooLong

_LINE_COST = 256
"""Bytes that a line takes beside its own, about."""

_LINES_HELD = 8 << 20


@dataclass(frozen=True, kw_only=True)
class Flooded:
    """Lines meant as messages came faster than they were taken, and were dropped."""

    at: float


@dataclass(frozen=True, kw_only=True)
class Closed:
    """There is no more to come; ``unfinished``: it ended in the middle of a line meant as a message."""

    unfinished: bool
    at: float


Heard: TypeAlias = Line | TooLong | Flooded | Closed


class Channel(Protocol):
    """What the conductor needs of a container that it talks to."""

    def send(self, data: bytes, *, seconds: float) -> bool:
        """Pass bytes on, behind those that are still pending; whether all were taken within ``seconds``.

        What was not taken stays pending; ``send(b"", …)`` goes on with it.
        """

    def receive(self, *, seconds: float) -> Heard | None:
        """The next thing heard, waiting for it ``seconds`` at most; ``Closed`` is the last, and stays."""

    def note(self, text: bytes) -> None:
        """Add to the log."""

    def end_input(self) -> None:
        """Close the container's standard input."""


class AttachedChannel:
    """A ``Channel`` to a container that an engine has attached us to.

    To be closed before the container is killed. Between the end of a conversation and then it goes on reading.

    Args:
        attached: The container's streams; taken over.
        clock: Stamps what comes.
        longest: Bytes of a line meant as a message.
        log_bytes: How much of the log's end is kept.
    """

    def __init__(self, attached: Attached, *, clock: Clock, longest: int, log_bytes: int) -> None:
        self._attached = attached
        self._clock = clock
        self._log = Tail(log_bytes)
        self._lines = Lines(longest=longest, log=self._log)
        self._heard: queue.SimpleQueue[Heard | Exception] = queue.SimpleQueue()
        self._most_held = _LINES_HELD + 2 * longest
        self._counting = threading.Lock()
        self._held = 0
        self._flooded = False
        self._pending = b""
        self._last: Closed | None = None
        self._reader = threading.Thread(target=self._read, name="streamed output", daemon=True)
        self._reader.start()

    def send(self, data: bytes, *, seconds: float) -> bool:
        """Pass bytes on, behind those that are still pending; whether all were taken within ``seconds``."""
        self._pending += data
        if self._pending:
            self._pending = self._pending[self._attached.write(self._pending, seconds=seconds) :]
        return not self._pending

    def receive(self, *, seconds: float) -> Heard | None:
        """The next thing heard, waiting for it ``seconds`` at most; ``Closed`` is the last, and stays."""
        if self._last is not None:
            return self._last
        began = self._clock.now()
        try:
            heard = self._heard.get(timeout=seconds) if seconds > 0 else self._heard.get_nowait()
        except queue.Empty:
            # A clock that does not go by itself, which tests have, is moved as far as was waited.
            self._clock.sleep(max(0.0, seconds - (self._clock.now() - began)))
            return None
        if isinstance(heard, Exception):
            raise heard
        if isinstance(heard, Closed):
            self._last = heard
        with self._counting:
            self._held -= _cost(heard)
        return heard

    def note(self, text: bytes) -> None:
        """Add to the log."""
        with self._counting:
            self._log.write(text + b"\n")

    def end_input(self) -> None:
        """Close the container's standard input."""
        self._attached.end_input()

    def log(self) -> bytes:
        """The end of what was printed beside messages."""
        with self._counting:
            return self._log.content()

    @property
    def log_written(self) -> int:
        """Bytes that were printed beside messages."""
        return self._log.written

    def close(self) -> None:
        """Let go of the container, before it is killed."""
        self._attached.close()
        self._reader.join()

    def _read(self) -> None:
        try:
            self._read_all()
        except Exception as error:  # noqa: BLE001  handed over to who takes the lines
            self._heard.put(error)

    def _read_all(self) -> None:
        while (piece := self._attached.read()) is not None:
            at = self._clock.now()
            with self._counting:
                if piece.output is Output.STDERR:
                    self._log.write(piece.content)
                    continue
                for heard in self._lines.feed(piece.content, at):
                    self._pass_on(heard)
        self._heard.put(Closed(unfinished=self._lines.unfinished, at=self._clock.now()))

    def _pass_on(self, heard: Line | TooLong) -> None:
        if self._flooded:
            return
        self._flooded = self._held + _cost(heard) > self._most_held
        passed = Flooded(at=heard.at) if self._flooded else heard
        self._held += _cost(passed)
        self._heard.put(passed)


def _cost(heard: Heard) -> int:
    """Bytes that something heard takes, about; the end takes none."""
    if isinstance(heard, Closed):
        return 0
    return _LINE_COST + (len(heard.text) if isinstance(heard, Line) else 0)
