"""What a prediction format answers: typed predictions, and every problem with its place."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One thing that is wrong with a file.

    Attributes:
        what: What is wrong, in our own words; safe to show to anybody.
        row: Line of the file, counted from 1; None where it is about the whole file.
        column: Name of a column of challenge.yaml; None where it is about a row or the file.
        value: What stood there, quoted, bounded and escaped; bytes of the container, so shown on public data only.
    """

    what: str
    row: int | None = None
    column: str | None = None
    value: str | None = None


@dataclass(frozen=True, kw_only=True)
class FrameTable:
    """Labels a frame.

    Attributes:
        columns: By column name, whole numbers of shape ``(frames,)``; row t is frame t.
    """

    columns: Mapping[str, NDArray[np.int64]]

    @property
    def frames(self) -> int:
        """Number of frames."""
        return len(next(iter(self.columns.values())))


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What came of reading a file.

    Attributes:
        table: The predictions; None where there is a problem.
        problems: The first problems, in the order of the file.
        problem_count: How many there are in all.
    """

    table: FrameTable | None
    problems: tuple[Problem, ...] = ()
    problem_count: int = 0
