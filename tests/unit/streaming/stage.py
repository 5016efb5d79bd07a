"""A container on a stage: what it says is scheduled on a simulated clock, so nothing takes time."""

import heapq
import itertools
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from runner.challenge import Stream
from runner.clock import SimulatedClock
from runner.confine import JsonValue
from runner.streaming.channel import Closed, Heard
from runner.streaming.conductor import Session, StreamOutcome, conduct
from runner.streaming.frame import ImageBytes, StreamedFrame
from runner.streaming.lines import Line

Play = Callable[["Stage", dict[str, Any]], None]
"""What the container does about a message of ours."""


class Stage:
    """A ``Channel`` whose other end is a function.

    Attributes:
        sent: The messages it read, in order, with the time.
        reads: Whether it reads; what is sent meanwhile is pending.
        seen: What lay in its folder when it read a frame.
        notes: What was added to the log.
        stop: Ends the case early.
    """

    def __init__(self, folder: Path, play: Play) -> None:
        self.clock = SimulatedClock()
        self.stop = threading.Event()
        self.sent: list[tuple[float, dict[str, Any]]] = []
        self.seen: list[list[str]] = []
        self.notes: list[bytes] = []
        self.kept: dict[int, Mapping[str, JsonValue]] = {}
        self.reads = True
        self.input_ended = False
        self.view, self.staging = folder / "view", folder / "staging"
        self.view.mkdir()
        self.staging.mkdir()
        self._play = play
        self._pending = b""
        self._serial = itertools.count()
        self._coming: list[tuple[float, int, Heard]] = []

    # For the container

    def say(self, after: float = 0.0, **fields: object) -> None:
        """Send a message, ``after`` so many seconds."""
        self.print(json.dumps(fields).encode(), after=after)

    def print(self, text: bytes, *, after: float = 0.0) -> None:
        """Send a line."""
        self.hear(Line(text=text, at=self.clock.now() + after))

    def hear(self, heard: Heard) -> None:
        """Let something be heard, at its time."""
        heapq.heappush(self._coming, (heard.at, next(self._serial), heard))

    def close(self, after: float = 0.0, *, unfinished: bool = False) -> None:
        """End."""
        self.hear(Closed(unfinished=unfinished, at=self.clock.now() + after))

    # The channel

    def send(self, data: bytes, *, seconds: float) -> bool:
        self._pending += data
        if self._pending and not self.reads:
            self.clock.sleep(seconds)
            return False
        lines, self._pending = self._pending.splitlines(), b""
        for line in lines:
            message = json.loads(line)
            self.sent.append((self.clock.now(), message))
            if message["type"] == "frame":
                self.seen.append(sorted(entry.name for entry in self.view.iterdir()))
            self._play(self, message)
        return True

    def receive(self, *, seconds: float) -> Heard | None:
        if self._coming and self._coming[0][0] <= self.clock.now() + seconds:
            at, _, heard = self._coming[0]
            if not isinstance(heard, Closed):
                heapq.heappop(self._coming)
            self.clock.sleep(at - self.clock.now())
            return heard
        self.clock.sleep(seconds)
        return None

    def note(self, text: bytes) -> None:
        self.notes.append(text)

    def end_input(self) -> None:
        self.input_ended = True

    # The play

    def conduct(
        self, frames: int = 3, *, source: Iterator[StreamedFrame] | None = None, **changes: Any
    ) -> StreamOutcome:
        """Stream so many frames at 25 a second."""
        rule = Stream(**{"answer": 10.0, "start_up": 120.0, **changes.pop("rule", {})})
        fields: dict[str, Any] = {
            "rule": rule, "task": "phases", "case": "c", "fps": 25.0, "inputs": ("frames",), "view": self.view,
            "staging": self.staging, "mount": "/in", "seconds": 1000.0, "longest_line": 1 << 20,
            "most_bytes": 1 << 30,
        }  # fmt: skip
        return conduct(
            self,
            source if source is not None else pictures(frames),
            Session(**{**fields, **changes}),
            keep=self.kept.__setitem__,
            clock=self.clock,
            stop=self.stop,
        )


def pictures(count: int) -> Iterator[StreamedFrame]:
    """Frames with an image each."""
    for index in range(count):
        image = ImageBytes(content=b"%d" % index, suffix=".png")
        yield StreamedFrame(index=index, time=index / 25, inputs={"frames": image})


def well(stage: Stage, message: dict[str, Any], *, after: float = 0.01) -> None:
    """Do all as it must be done, each answer ``after`` so many seconds."""
    match message["type"]:
        case "hello":
            stage.say(1.5, type="hello", protocol=1, frames="path")
        case "frame":
            stage.say(after, type="answer", index=message["index"], answer={"step": message["index"] * 2})
        case "end":
            stage.close(0.25)
