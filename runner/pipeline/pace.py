"""How long a frame takes a method that reads whole sequences, from runs on sequences of different length.

A container that is given all frames at once does not tell when it answers which. But a run is a start-up and so many
seconds a frame, and the views of a check have many lengths: a straight line through them, by least squares, parts the
two. It is reported and never judged: runs side by side disturb each other, and a method may be slower at the end.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, kw_only=True)
class Pace:
    """Run time by the slope over views.

    Attributes:
        start_up_seconds: Where the line meets no frames; at least 0.
        seconds_per_frame: Its slope; at least 0.
        runs: Number of runs it was drawn through.
    """

    start_up_seconds: float
    seconds_per_frame: float
    runs: int


def pace_of(points: Sequence[tuple[int, float]]) -> Pace | None:
    """The line through runs; None where they do not have two lengths.

    A line that would begin below 0 or fall is the nearest one that does not.

    Args:
        points: Of each run the frames shown and the seconds it took.
    """
    frames, seconds = np.array([frames for frames, _ in points], float), np.array([time for _, time in points], float)
    if len(set(frames.tolist())) < 2:
        return None
    slope = float(np.sum((frames - frames.mean()) * (seconds - seconds.mean())) / np.sum((frames - frames.mean()) ** 2))
    start = float(seconds.mean() - slope * frames.mean())
    if slope < 0:
        slope, start = 0.0, float(seconds.mean())
    elif start < 0:
        slope, start = float(np.sum(frames * seconds) / np.sum(frames**2)), 0.0
    return Pace(start_up_seconds=start, seconds_per_frame=slope, runs=len(points))
