"""What is known of one method on one case: its answers, run by run."""

from dataclasses import dataclass, replace
from itertools import combinations
from typing import Self

import numpy as np
from numpy.typing import NDArray

from runner.formats.contract import FrameTable
from runner.job import Cut, CutKind


@dataclass(frozen=True, kw_only=True, eq=False)
class Answers:
    """The labels of one run; compared exactly.

    Attributes:
        columns: Names of the columns, sorted.
        labels: Whole numbers of shape ``(columns, frames)``, read-only; row i belongs to ``columns[i]``.
    """

    columns: tuple[str, ...]
    labels: NDArray[np.int64]

    def __post_init__(self) -> None:
        if self.labels.ndim != 2 or self.labels.shape[0] != len(self.columns):
            raise ValueError(f"labels of shape {self.labels.shape} do not fit the columns {self.columns}")

    @classmethod
    def of(cls, table: FrameTable) -> Self:
        """The answers of a table of labels; a copy."""
        columns = tuple(sorted(table.columns))
        labels = np.stack([table.columns[name] for name in columns]).astype(np.int64)
        labels.flags.writeable = False
        return cls(columns=columns, labels=labels)

    @property
    def frames(self) -> int:
        """Number of frames answered."""
        return int(self.labels.shape[1])

    def changes(self) -> NDArray[np.intp]:
        """Frames t ≥ 1 whose answer differs, in any column, from that of frame t − 1; in order."""
        return 1 + np.flatnonzero((self.labels[:, 1:] != self.labels[:, :-1]).any(axis=0))


def differing(one: Answers, other: Answers, frames: int) -> NDArray[np.bool_]:
    """Which of the first ``frames`` frames differ in any column; shape ``(frames,)``.

    Raises:
        ValueError: The columns are not the same, or a run has fewer frames.
    """
    if one.columns != other.columns or min(one.frames, other.frames) < frames:
        raise ValueError(
            f"cannot compare {frames} frames of {one.columns} × {one.frames} with {other.columns} × {other.frames}"
        )
    return np.asarray((one.labels[:, :frames] != other.labels[:, :frames]).any(axis=0))


@dataclass(frozen=True, kw_only=True, order=True)
class FullRun:
    """The whole sequence; ``repeat`` is 0 for the ordinary run of the evaluation, 1, 2, … for its repetitions."""

    repeat: int = 0


Request = FullRun | Cut
"""Something to run: the full sequence again, or a view of it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Observation:
    """What came of a request: answers, or why there are none.

    Attributes:
        request: What was run.
        answers: The valid predictions; None where there are none.
        failure: In our own words why not: the verdict's word (``crashed``, ``timed-out``, …).
    """

    request: Request
    answers: Answers | None = None
    failure: str = ""

    def __post_init__(self) -> None:
        if (self.answers is None) != bool(self.failure):
            raise ValueError("an observation has either answers or a failure")


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """Everything observed so far of one method on one case.

    Attributes:
        frames: Length of the full sequence.
        can_alter: Another case can lend its frames, so that an altered future can be laid out.
        observations: In any order; at most one for each request.
    """

    frames: int
    can_alter: bool = True
    observations: tuple[Observation, ...] = ()

    def __post_init__(self) -> None:
        seen: set[Request] = set()
        for observation in self.observations:
            if observation.request in seen:
                raise ValueError(f"{observation.request} was observed twice")
            seen.add(observation.request)
            self._check_length(observation)

    def _check_length(self, observation: Observation) -> None:
        shown = frames_shown(observation.request, self.frames)
        if observation.answers is not None and observation.answers.frames != shown:
            raise ValueError(
                f"{observation.request} shows {shown} frames, its answers have {observation.answers.frames}"
            )

    def plus(self, *observations: Observation) -> "Evidence":
        """The same with more observations."""
        return replace(self, observations=(*self.observations, *observations))

    @property
    def full_observations(self) -> tuple[Observation, ...]:
        """Runs of the full sequence, failed ones included, by their repeat."""
        found = {o.request.repeat: o for o in self.observations if isinstance(o.request, FullRun)}
        return tuple(found[repeat] for repeat in sorted(found))

    @property
    def full(self) -> tuple[Answers, ...]:
        """Answers of the full runs, by their repeat."""
        return tuple(o.answers for o in self.full_observations if o.answers is not None)

    def of_view(self, frames: int, kind: CutKind) -> tuple[Observation, ...]:
        """The runs of one view, by their repeat."""
        found = {
            o.request.repeat: o
            for o in self.observations
            if isinstance(o.request, Cut) and (o.request.frames, o.request.kind) == (frames, kind)
        }
        return tuple(found[repeat] for repeat in sorted(found))

    @property
    def noise(self) -> float:
        """Largest share of frames in which two full runs differ; 0 with fewer than two runs."""
        return max((float(differing(a, b, self.frames).mean()) for a, b in combinations(self.full, 2)), default=0.0)


def frames_shown(request: Request, frames: int) -> int:
    """How many frames a request shows, of a case of ``frames``."""
    return request.frames if isinstance(request, Cut) and request.kind is CutKind.PREFIX else frames
