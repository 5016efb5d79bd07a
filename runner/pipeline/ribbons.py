"""The answers of a check as a report draws them: one column of the whole, and of some views below it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from runner.causality import Answers, CausalityVerdict, Evidence, Observation
from runner.causality.answers import IMAGE_COLUMN
from runner.job import Cut, CutKind

_MOST_VIEWS = 6
_MOST_ANSWERS = 4000


@dataclass(frozen=True, kw_only=True)
class Ribbon:
    """Answers of one run in one column.

    Attributes:
        cut: The view; None: the whole case.
        frames: How many frames were shown.
        step: The answers are those for every so manyth frame, from the first.
        answers: Labels; the class of the highest score; or, for images, a number for each that differs.
    """

    cut: Cut | None
    frames: int
    step: int
    answers: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Ribbons:
    """What is drawn of a case.

    Attributes:
        column: Name of the column; empty where it is the class of the highest score.
        whole: Of the sequence that was tested.
        views: The most telling ones; only their own frames are compared with the whole.
    """

    column: str
    whole: Ribbon
    views: tuple[Ribbon, ...]


def ribbons_of(evidence: Evidence, verdict: CausalityVerdict) -> Ribbons | None:
    """What is to be drawn; None where the whole has no answers."""
    whole = evidence.by_request.get(evidence.whole(evidence.prefix_kind, 0))
    if whole is None or whole.answers is None:
        return None
    column = _column(whole.answers, verdict)
    shown = [whole, *_views(evidence, verdict)]
    rows = [_row(one.answers, column) for one in shown if one.answers is not None]
    if column == IMAGE_COLUMN:
        rows = _numbered(rows)
    ribbons = [_ribbon(one, row) for one, row in zip(shown, rows, strict=True)]
    return Ribbons(column=column, whole=ribbons[0], views=tuple(ribbons[1:]))


def _column(answers: Answers, verdict: CausalityVerdict) -> str:
    """The column that leaks, else the first; none where there are scores only."""
    leak = verdict.first_leak
    if leak is not None and leak.column in answers.columns:
        return leak.column
    return answers.columns[0] if answers.columns else ""


def _views(evidence: Evidence, verdict: CausalityVerdict) -> list[Observation]:
    """Views with answers, those at the leak first, then in the order of their runs."""
    wholes = {evidence.whole(kind, 0) for kind in CutKind}
    at = verdict.first_leak.cut.frames if verdict.first_leak is not None else -1
    views = [
        one
        for one in evidence.observations
        if isinstance(one.request, Cut) and one.answers is not None and not one.request.repeat
        and one.request not in wholes
    ]  # fmt: skip
    return sorted(views, key=lambda one: isinstance(one.request, Cut) and one.request.frames != at)[:_MOST_VIEWS]


def _row(answers: Answers, column: str) -> NDArray[np.int64]:
    if column in answers.columns:
        return np.asarray(answers.labels[answers.columns.index(column)])
    if answers.scored:
        return np.asarray(answers.scores.argmax(axis=0))
    return np.full(answers.frames, -1)  # a run that left the column out


def _numbered(rows: Sequence[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
    """Small numbers in place of digests, in the order in which they come."""
    known: dict[int, int] = {}
    return [np.array([known.setdefault(value, len(known)) for value in row.tolist()], dtype=np.int64) for row in rows]


def _ribbon(observation: Observation, row: NDArray[np.int64]) -> Ribbon:
    step = -(-len(row) // _MOST_ANSWERS)
    cut = observation.request if isinstance(observation.request, Cut) else None
    return Ribbon(cut=cut, frames=len(row), step=step, answers=tuple(row[::step].tolist()))
