"""The one clock durations are measured with, and a fake of it for tests."""

import time
from typing import Protocol


class Clock(Protocol):
    """A monotonic clock one can also sleep on; seconds."""

    def now(self) -> float:
        """Seconds since some fixed moment; never steps back."""

    def sleep(self, seconds: float) -> None:
        """Wait."""


class MonotonicClock:
    """The host's monotonic clock."""

    def now(self) -> float:
        """Seconds since some fixed moment; never steps back."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


class SimulatedClock:
    """A clock that moves only when somebody sleeps on it."""

    def __init__(self) -> None:
        self._now = 0.0

    def now(self) -> float:
        """Seconds slept so far."""
        return self._now

    def sleep(self, seconds: float) -> None:
        """Move the clock."""
        self._now += max(0.0, seconds)
