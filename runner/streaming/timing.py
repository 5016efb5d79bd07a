"""When each frame was released and answered, and what that says of a method's latency.

A frame's latency is the time from its release, when its images lie in the container's view and its message is about to
be handed to the engine, until the last byte of its answer has come back. It is measured from outside by a monotonic
clock, so it holds what the engine's pipe takes, a part of a millisecond, and nothing of what is done between frames.
The first frame stands apart as well, since it pays for all that a program puts off until then.

Percentiles are by nearest rank: the smallest latency that so many of a hundred frames did not exceed, so each is one
that was seen. A frame that was never answered is slower than any.

Online-compatible, as PETRAW 2021 has it, is a method that is causal and faster than the camera a frame. A streamed
method is causal by construction. *Faster* is taken to be: the 95th percentile of the latency is at most the time
between two frames. A mean hides a method that stalls for seconds and then catches up, which nobody could watch live;
the longest one lets a single hiccup of the host decide. The mean is reported beside it: PETRAW, where run times were
known for whole test sets only, could have had no other.
"""

import math
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

ONLINE_PERCENT = 95
"""Percentile of the latency that must be within the time between two frames."""

EDGES = tuple(float(f"{10 ** (step / 10):.3g}") for step in range(-40, 21))
"""Where bins of a histogram meet, in seconds: ten a decade, from 0.1 ms to 100 s."""

_NS = 1e9


@dataclass(frozen=True, kw_only=True)
class FrameTiming:
    """One frame, in nanoseconds of a monotonic clock.

    Attributes:
        released: None: it was never shown, since the container did not read the one before in time.
        answered: None: it never was.
        missed: With ``realtime``: it was not answered before the next frame was released.
    """

    index: int
    released: int | None
    answered: int | None
    missed: bool


class Timings:
    """The times of a case's frames, 24 bytes a frame.

    Args:
        period: With ``realtime``: seconds between two frames. None: a frame has no deadline of this kind.
    """

    def __init__(self, period: float | None = None) -> None:
        self._period = period
        self._released = array("q")
        self._answered = array("q")
        self._due = array("q")

    def __len__(self) -> int:
        return len(self._released)

    def __iter__(self) -> Iterator[FrameTiming]:
        for index, (released, answered) in enumerate(zip(self._released, self._answered, strict=True)):
            yield FrameTiming(
                index=index,
                released=None if released < 0 else released,
                answered=None if answered < 0 else answered,
                missed=self.missed(index),
            )

    def release(self, at: float) -> None:
        """The next frame is released now, which ends the time of the one before."""
        self._end_last(at)
        self._append(round(at * _NS), at)

    def leave_out(self, at: float) -> None:
        """The next frame would be released now, and is not shown."""
        self._end_last(at)
        self._append(-1, at)

    def answer(self, index: int, at: float) -> None:
        """A frame is answered."""
        self._answered[index] = round(at * _NS)

    def released(self, index: int) -> float:
        """When a frame that was shown was released, in seconds."""
        return self._released[index] / _NS

    @property
    def last_shown(self) -> int:
        """Index of the last frame that was shown; one was."""
        return max(index for index, at in enumerate(self._released) if at >= 0)

    def missed(self, index: int) -> bool:
        """Whether a frame was not answered before the next one was released; without ``realtime`` none is missed."""
        return self._period is not None and not 0 <= self._answered[index] < self._due[index]

    def _append(self, released: int, at: float) -> None:
        self._released.append(released)
        self._answered.append(-1)
        self._due.append(round((at + (self._period or 0.0)) * _NS))

    def _end_last(self, at: float) -> None:
        if self._due:
            self._due[-1] = round(at * _NS)


@dataclass(frozen=True, kw_only=True)
class Latency:
    """Latency of the frames of a case or of several, in seconds.

    Attributes:
        frames: How many there were.
        answered: Of them, in time or late.
        missed: With ``realtime``: not answered before the next frame was released.
        over_period: Slower than the camera: took longer than the time between two frames, or were never answered.
        period: The time between two frames.
        first_frame: Of the first; None: it was never answered.
        mean: Of those that were answered; None: there were none.
        p50: Percentiles, by nearest rank; None: that frame was never answered.
        longest: The 100th of them.
        online_compatible: The 95th percentile is within the period.
        counts: Frames by latency: below the first of ``EDGES``, from each to the next, from the last on.
    """

    frames: int
    answered: int
    missed: int
    over_period: int
    period: float
    first_frame: float | None
    mean: float | None
    p50: float | None
    p95: float | None
    p99: float | None
    longest: float | None
    online_compatible: bool
    counts: tuple[int, ...]


def latency(timings: Timings, *, period: float) -> Latency:
    """Sum up a case.

    Args:
        timings: Of its frames.
        period: Seconds between two frames of the camera, also where frames were not released at its rate.
    """
    every = list(timings)
    took = [_seconds(frame) for frame in every]
    known = sorted(seconds for seconds in took if seconds is not None)
    counts = [0] * (len(EDGES) + 1)
    for seconds in known:
        counts[bisect_right(EDGES, seconds)] += 1
    online = percentile(known, ONLINE_PERCENT, of=len(took))
    return Latency(
        frames=len(took),
        answered=len(known),
        missed=sum(frame.missed for frame in every),
        over_period=sum(seconds is None or seconds > period for seconds in took),
        period=period,
        first_frame=took[0] if took else None,
        mean=math.fsum(known) / len(known) if known else None,
        p50=percentile(known, 50, of=len(took)),
        p95=percentile(known, 95, of=len(took)),
        p99=percentile(known, 99, of=len(took)),
        longest=percentile(known, 100, of=len(took)),
        online_compatible=online is not None and online <= period,
        counts=tuple(counts),
    )


def percentile(ascending: list[float], percent: int, *, of: int) -> float | None:
    """The smallest value that ``percent`` of a hundred of ``of`` values do not exceed; None: it is not among the known.

    Args:
        ascending: The known ones; the rest are larger than any.
        percent: From 1 to 100.
        of: How many there are in all.
    """
    rank = -(-of * percent // 100)
    return ascending[rank - 1] if 0 < rank <= len(ascending) else None


def _seconds(frame: FrameTiming) -> float | None:
    if frame.released is None or frame.answered is None:
        return None
    return (frame.answered - frame.released) / _NS
