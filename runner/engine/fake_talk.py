"""The standard streams of a fake container: its program is a generator that runs whenever it is written to."""

import queue
import threading
from collections.abc import Callable, Generator
from typing import Generic, TypeVar

from runner.engine.contract import Output, Piece

Outcome = TypeVar("Outcome")

_END_READS = 100


class FakeAttached(Generic[Outcome]):
    """An ``Attached`` whose other end is a generator: yields what it prints, is sent what it reads."""

    def __init__(self) -> None:
        self._pieces: queue.SimpleQueue[Piece | None] = queue.SimpleQueue()
        self._turn = threading.Lock()
        self._ended = threading.Event()
        self._talk: Generator[bytes, bytes, Outcome] | None = None
        self._log = bytearray()
        self._told = 0
        self._closed = False

    def begin(self, talk: Generator[bytes, bytes, Outcome], log: bytearray, over: Callable[[Outcome], None]) -> None:
        """Start the program; ``log`` is where it prints beside its output, ``over`` is told what it returns."""
        self._talk, self._log, self._over = talk, log, over
        self._step(None)

    def print_all(self, printed: bytes) -> None:
        """Print what a program printed that does not talk, and let its output end."""
        self._pieces.put(Piece(output=Output.STDOUT, content=printed))
        self.end()

    def read(self) -> Piece | None:
        """Wait for the next piece; None once there is no more."""
        piece = self._pieces.get()
        if piece is None:
            self._pieces.put(None)
        return piece

    def write(self, data: bytes, *, seconds: float) -> int:  # noqa: ARG002  # it reads at once
        """Let the program read, and run until it reads again."""
        return len(data) if not data or self._step(data) else 0

    def end_input(self) -> None:
        """Let the program read that its input has ended, over and over, until it ends or has read so often enough."""
        for _ in range(_END_READS):
            if not self._step(b""):
                break

    def close(self) -> None:
        """Let go of it."""
        self._closed = True
        self._pieces.put(None)

    def end(self) -> None:
        """Let its output end: it was killed."""
        self._ended.set()
        self._pieces.put(None)

    def await_end(self, seconds: float) -> None:
        """Wait until it has ended, ``seconds`` at most, in real time."""
        self._ended.wait(seconds)

    def _step(self, data: bytes | None) -> bool:
        """Whether it took what it was sent."""
        with self._turn:
            if self._talk is None or self._closed or self._ended.is_set():
                return False
            try:
                printed = next(self._talk) if data is None else self._talk.send(data)
            except StopIteration as returned:
                self._tell(b"")
                self._over(returned.value)
                self.end()
            else:
                self._tell(printed)
            return True

    def _tell(self, printed: bytes) -> None:
        beside = bytes(self._log[self._told :])
        if beside:
            self._pieces.put(Piece(output=Output.STDERR, content=beside))
        if printed:
            self._pieces.put(Piece(output=Output.STDOUT, content=printed))
            self._log += printed
        self._told = len(self._log)
