"""The answers of one run, and which of them differ between runs.

Labels are compared exactly, scores by a tolerance. Two sets of runs are compared column by column and frame by frame:
they *provably differ* where all runs of one set agree, all runs of the other agree, and each of the one differs from
each of the other. For a single run on either side this is a plain comparison. A column that one run answers and
another leaves out is an answer of its own: it differs in every frame.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from runner.formats.contract import FrameScores, FrameTable, LabelImages, Prediction

IMAGE_COLUMN = "image digest"

Value = int | float | None
"""A label, a score, or that the column was left out."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Answers:
    """The answers of one run.

    Attributes:
        columns: Names of the columns with labels, sorted.
        labels: Whole numbers of shape ``(columns, frames)``, read-only; row i belongs to ``columns[i]``.
        scored: Names of the columns with scores, in the order of their classes.
        scores: Finite numbers of shape ``(scored, frames)``, read-only; row i belongs to ``scored[i]``.
    """

    columns: tuple[str, ...]
    labels: NDArray[np.int64]
    scored: tuple[str, ...] = ()
    scores: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))

    def __post_init__(self) -> None:
        if self.labels.ndim != 2 or self.labels.shape[0] != len(self.columns):
            raise ValueError(f"labels of shape {self.labels.shape} do not fit the columns {self.columns}")
        if self.scores.ndim != 2 or self.scores.shape[0] != len(self.scored):
            raise ValueError(f"scores of shape {self.scores.shape} do not fit the columns {self.scored}")
        if self.columns and self.scored and self.labels.shape[1] != self.scores.shape[1]:
            raise ValueError(f"labels of {self.labels.shape[1]} frames, scores of {self.scores.shape[1]}")
        if len({*self.columns, *self.scored}) != len(self.columns) + len(self.scored):
            raise ValueError(f"a column is named twice: {self.columns + self.scored}")

    @classmethod
    def of(cls, prediction: Prediction) -> Self:
        """The answers of a prediction that has some for each frame; a copy.

        Of an image a digest of 63 bits is kept; images are read one after the other.

        Raises:
            ValueError: It has no answers by frame, so that causality has no meaning for it.
        """
        match prediction:
            case FrameTable():
                columns = tuple(sorted(prediction.columns))
                return cls._labelled(columns, np.stack([prediction.columns[name] for name in columns]).astype(np.int64))
            case FrameScores():
                scores = np.array(prediction.scores.T, dtype=np.float64, order="C")
                scores.flags.writeable = False
                names = tuple(f"class {number}" for number in range(len(scores)))
                return cls(columns=(), labels=np.empty((0, scores.shape[1]), np.int64), scored=names, scores=scores)
            case LabelImages():
                digests = np.fromiter((_digest(image) for image in prediction), dtype=np.int64)
                return cls._labelled((IMAGE_COLUMN,), digests[None, :])
            case _:
                raise ValueError(f"{type(prediction).__name__} has no answers by frame that could be compared")

    @classmethod
    def _labelled(cls, columns: tuple[str, ...], labels: NDArray[np.int64]) -> Self:
        labels.flags.writeable = False
        return cls(columns=columns, labels=labels)

    @property
    def frames(self) -> int:
        """Number of frames answered."""
        return int(self.labels.shape[1] if self.columns else self.scores.shape[1])

    def changes(self) -> NDArray[np.intp]:
        """Frames t ≥ 1 whose label, in any column, or class of highest score differs from that of frame t − 1."""
        changed = (self.labels[:, 1:] != self.labels[:, :-1]).any(axis=0)
        if self.scored:
            top = self.scores.argmax(axis=0)
            differs = top[1:] != top[:-1]
            changed = changed | differs if self.columns else differs
        return 1 + np.flatnonzero(changed)

    def value(self, column: str, frame: int) -> Value:
        """The answer of a column for a frame; None where the column was left out."""
        if column in self.columns:
            return int(self.labels[self.columns.index(column), frame])
        return float(self.scores[self.scored.index(column), frame]) if column in self.scored else None

    def upto(self, frames: int) -> "Answers":
        """The answers for the first ``frames`` frames."""
        return replace(self, labels=self.labels[:, :frames], scores=self.scores[:, :frames])

    def then(self, other: "Answers") -> "Answers":
        """These answers, then those of the other, of the same columns, for the frames that are not answered here."""
        labels = np.concatenate((self.labels, other.labels[:, self.labels.shape[1] :]), axis=1)
        scores = np.concatenate((self.scores, other.scores[:, self.scores.shape[1] :]), axis=1)
        return replace(self, labels=labels, scores=scores)


def _digest(image: NDArray[np.uint8]) -> int:
    digest = hashlib.blake2b(str(image.shape).encode(), digest_size=8)
    digest.update(np.ascontiguousarray(image).tobytes())
    return int.from_bytes(digest.digest(), "big") >> 1


@dataclass(frozen=True, kw_only=True, eq=False)
class Differences:
    """Where two sets of runs provably differ.

    Attributes:
        columns: Every column that any of the runs has: those with labels, those with scores, those not in all runs.
        changed: Of shape ``(columns, frames)``.
    """

    columns: tuple[str, ...]
    changed: NDArray[np.bool_]

    @property
    def frames(self) -> NDArray[np.bool_]:
        """Frames that differ in any column."""
        return np.asarray(self.changed.any(axis=0))


def differences(
    some: Sequence[Answers], others: Sequence[Answers], frames: int, *, first: int = 0, tolerance: float = 0.0
) -> Differences:
    """Where two sets of runs provably differ, among the frames ``first`` … ``frames − 1``.

    Raises:
        ValueError: A run has fewer frames.
    """
    runs = [*some, *others]
    if min(run.frames for run in runs) < frames:
        raise ValueError(f"cannot compare {frames} frames of runs with {sorted({run.frames for run in runs})} frames")
    span = slice(first, frames)
    columns, scored = _shared([run.columns for run in runs]), _shared([run.scored for run in runs])
    exact = _apart([_labels(r, columns, span) for r in some], [_labels(r, columns, span) for r in others])
    parts = [exact]
    if scored:
        near = _far([_scores(r, scored, span) for r in some], [_scores(r, scored, span) for r in others], tolerance)
        parts.append(near)
    missing = sorted({name for run in runs for name in (*run.columns, *run.scored)} - {*columns, *scored})
    if missing:
        gone = [{_presence(some, name), _presence(others, name)} == {True, False} for name in missing]
        parts.append(np.repeat(np.array(gone)[:, None], frames - first, axis=1))
    changed = parts[0] if len(parts) == 1 else np.concatenate(parts)
    return Differences(columns=(*columns, *scored, *missing), changed=changed)


def differing(one: Answers, other: Answers, frames: int, *, tolerance: float = 0.0) -> NDArray[np.bool_]:
    """Which of the first ``frames`` frames differ in any column; shape ``(frames,)``."""
    return differences((one,), (other,), frames, tolerance=tolerance).frames


def _shared(names: list[tuple[str, ...]]) -> tuple[str, ...]:
    """Names that every run has, in the order of the first."""
    if all(one == names[0] for one in names):
        return names[0]
    return tuple(name for name in names[0] if all(name in one for one in names))


def _presence(runs: Sequence[Answers], name: str) -> bool | None:
    """Whether the runs have a column; None where they do not agree."""
    found = {name in (*run.columns, *run.scored) for run in runs}
    return found.pop() if len(found) == 1 else None


def _labels(run: Answers, names: tuple[str, ...], span: slice) -> NDArray[np.int64]:
    rows = run.labels if run.columns == names else run.labels[[run.columns.index(name) for name in names]]
    return rows[:, span]


def _scores(run: Answers, names: tuple[str, ...], span: slice) -> NDArray[np.float64]:
    rows = run.scores if run.scored == names else run.scores[[run.scored.index(name) for name in names]]
    return rows[:, span]


def _apart(some: list[NDArray[np.int64]], others: list[NDArray[np.int64]]) -> NDArray[np.bool_]:
    apart = some[0] != others[0]
    for runs in (some, others):
        for run in runs[1:]:
            apart &= run == runs[0]
    return np.asarray(apart)


def _far(some: list[NDArray[np.float64]], others: list[NDArray[np.float64]], tolerance: float) -> NDArray[np.bool_]:
    """Each set within the tolerance, and each run of the one farther than that from each run of the other."""
    low, high = np.minimum.reduce(some), np.maximum.reduce(some)
    least, most = np.minimum.reduce(others), np.maximum.reduce(others)
    with np.errstate(over="ignore"):  # two scores of 1e308 may be farther apart than any number
        agree = (high - low <= tolerance) & (most - least <= tolerance)
        return np.asarray(agree & ((low - most > tolerance) | (least - high > tolerance)))
