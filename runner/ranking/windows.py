"""Random runs of consecutive frames, over which submissions are compared where there are few cases and many frames.

Five videos are too few for a test over cases. CholecTriplet 2021 draws 30 runs of 100 consecutive frames and compares
teams by the signed-rank test over them (Nwoye et al., Medical Image Analysis 86:102803, 2023). Runs may overlap: they
are not independent, and p-values are smaller than over as many videos.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from runner.ranking.signed_rank import Values
from runner.ranking.table import ScoreTable

RUNS = 30
LENGTH = 100


@dataclass(frozen=True, kw_only=True)
class Window:
    """Consecutive frames of a case.

    Attributes:
        case: Its name.
        first: Number of the first frame, from 0.
        length: How many.
    """

    case: str
    first: int
    length: int

    @property
    def frames(self) -> slice:
        """Where they lie in the case."""
        return slice(self.first, self.first + self.length)

    @property
    def name(self) -> str:
        """Case, first and last frame: ``VID01 frames 20 to 119``."""
        return f"{self.case} frames {self.first} to {self.first + self.length - 1}"


def draw_windows(lengths: Mapping[str, int], *, length: int = LENGTH, seed: int) -> Iterator[Window]:
    """Draw windows, each place of each case equally likely, without end; a place that was drawn is not drawn again.

    Args:
        lengths: Number of frames by case. A case that is shorter than a window has none.
        length: Frames of a window, at least 1.
        seed: For the random numbers; the same seed and lengths give the same windows.

    Yields:
        Windows until every place was drawn.

    Raises:
        ValueError: The length is below 1.
    """
    if length < 1:
        raise ValueError(f"a window of {length} frames")
    places = {case: max(0, frames - length + 1) for case, frames in lengths.items()}
    names = list(places)
    ends = np.cumsum([places[name] for name in names], dtype=np.int64)
    total = int(ends[-1]) if names else 0
    for place in np.random.default_rng(seed).permutation(total).tolist():
        number = int(np.searchsorted(ends, place, side="right"))
        before = int(ends[number - 1]) if number else 0
        yield Window(case=names[number], first=place - before, length=length)


def window_means(frames: Mapping[str, Mapping[str, Values]], windows: Sequence[Window]) -> ScoreTable:
    """The mean of a value of every frame over windows, as a table to be tested; for values that a mean is right for.

    Args:
        frames: By submission and case, a value a frame, such as 1 where it is right and 0 where not; shape
            ``(frames,)``, equally many for each submission.
        windows: Of these cases, each once.

    Returns:
        The windows in place of the cases; NaN where a frame of it has none.

    Raises:
        KeyError: A submission lacks a case.
        ValueError: A window reaches beyond its case.
    """
    for window in windows:
        for name, cases in frames.items():
            if window.frames.stop > len(cases[window.case]):
                raise ValueError(f"{window.name}: {name!r} has {len(cases[window.case])} frames of that case")
    return ScoreTable.of(
        tuple(frames),
        tuple(window.name for window in windows),
        [[float(cases[window.case][window.frames].mean()) for window in windows] for cases in frames.values()],
    )
