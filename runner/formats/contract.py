"""What a prediction format answers: typed predictions, and every problem with its place."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue


class Role(StrEnum):
    """Whose file it is."""

    PREDICTION = "prediction"
    REFERENCE = "reference"


@dataclass(frozen=True, kw_only=True)
class Due:
    """The case a prediction answers, as far as its form depends on it.

    Attributes:
        frames: Names of the case's frames, in order; empty where a case has none.
        count: How many there are; None where nobody knows.
    """

    frames: tuple[str, ...] = ()
    count: int | None = None

    @property
    def stems(self) -> tuple[str, ...]:
        """Names of the frames without their extension."""
        return tuple(name.rpartition(".")[0] or name for name in self.frames)


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
        columns: By column name, whole numbers of shape ``(frames,)``; row t is frame t. A column that challenge.yaml
            allows to be missing is not there where it was not predicted.
    """

    columns: Mapping[str, NDArray[np.int64]]

    @property
    def frames(self) -> int:
        """Number of frames."""
        return len(next(iter(self.columns.values())))


@dataclass(frozen=True, kw_only=True)
class FrameScores:
    """Scores of every class for each frame.

    Attributes:
        scores: Finite numbers of shape ``(frames, classes)``; row t is frame t.
    """

    scores: NDArray[np.float64]

    @property
    def frames(self) -> int:
        """Number of frames."""
        return int(self.scores.shape[0])


@dataclass(frozen=True, kw_only=True)
class LabelImages:
    """A label image for each frame; read one after the other, so that they are never in memory together.

    Attributes:
        frames: Number of frames.
        read: Begins anew: an array of uint8 and shape ``(height, width)`` for each frame, in order; each pixel is the
            number of its class.
    """

    frames: int
    read: Callable[[], Iterator[NDArray[np.uint8]]]

    def __iter__(self) -> Iterator[NDArray[np.uint8]]:
        return self.read()


@dataclass(frozen=True, kw_only=True)
class Arrays:
    """NumPy arrays of a case, by name."""

    arrays: Mapping[str, NDArray[np.generic]]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The fields of a JSON answer, by name; an optional one that was left out is not there."""

    fields: Mapping[str, JsonValue]


Prediction = FrameTable | FrameScores | LabelImages | Arrays | Answer
"""What a scorer is given, of a submission and of the reference alike."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What came of reading a file, or a folder of files.

    Attributes:
        prediction: What it says; None where there is a problem.
        problems: The first problems, in the order of the file.
        problem_count: How many there are in all.
        notes: Where it is taken although something lacked or was too much, as challenge.yaml says: what, and how
            often, in our own words; safe to show to anybody.
    """

    prediction: Prediction | None
    problems: tuple[Problem, ...] = ()
    problem_count: int = 0
    notes: tuple[str, ...] = ()
