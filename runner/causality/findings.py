"""What was found at one cut point.

A difference between two runs is only a candidate: methods flip answers by themselves. An answer is *suspect* at a view
if all runs of the view agree on it, all runs of the whole agree on it, and they differ. Only one that is still suspect
after three runs of each is proof that the view made the difference. Suspects can only become fewer as runs are added,
so a confirmation ends as soon as none is left.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from runner.causality.answers import Answers, differences
from runner.causality.schedule import CutPoint
from runner.challenge import AnswersCompared, CausalityRule
from runner.job import Cut, CutKind

RUNS_THAT_PROVE = 3


class Standing(StrEnum):
    """Where a cut point stands."""

    OPEN = "open"
    CLEAN = "clean"
    FAILED = "failed"
    UNCONFIRMED = "unconfirmed"
    BROKEN_OFF = "broken-off"
    UNPROVEN = "unproven"
    LENGTH_DEPENDENT = "length-dependent"
    LEAKING = "leaking"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What is known at one cut point.

    Attributes:
        point: The cut point.
        standing: Where it stands.
        view: The view on which it was decided.
        suspects: Frames whose answer the view changed, in order; empty unless something was confirmed.
        columns: The columns in which the answer for the first of them changed.
        failure: Why there is no answer, for ``failed`` and ``broken-off``.
    """

    point: CutPoint
    standing: Standing
    view: CutKind
    suspects: tuple[int, ...] = ()
    columns: tuple[str, ...] = ()
    failure: str = ""

    @property
    def decided(self) -> bool:
        """The comparison here came to an end, whichever."""
        undecided = {Standing.OPEN, Standing.FAILED, Standing.UNCONFIRMED, Standing.BROKEN_OFF}
        return self.standing not in undecided


@dataclass(frozen=True, kw_only=True)
class Leak:
    """The first frame whose answer provably depended on what came after the cut.

    Attributes:
        frame: Counted from 0.
        cut: The view that shows it; its ``frames`` is the cut.
        column: The first column that differs.
        full_answer: Label or score with the whole sequence; None where the column was left out.
        cut_answer: The same with the view.
        future_frames: How many of the frames after ``frame`` had to be the case's own for the answer to be that with
            the whole sequence. None where that could not be told.
    """

    frame: int
    cut: Cut
    column: str
    full_answer: int | float | None
    cut_answer: int | float | None
    future_frames: int | None = None


@dataclass(frozen=True, kw_only=True)
class Suspects:
    """Answers that a view changed in all runs so far.

    Attributes:
        frames: In order.
        columns: Those that changed in the first of the frames.
    """

    frames: tuple[int, ...] = ()
    columns: tuple[str, ...] = ()


def suspects_of(rule: CausalityRule, whole: Sequence[Answers], view: Sequence[Answers], frames: int) -> Suspects:
    """The suspects among the answers that the rule compares: of all the first ``frames`` frames, or of the last."""
    first = frames - 1 if rule.rule is AnswersCompared.LAST else 0
    found = differences(whole, view, frames, first=first, tolerance=rule.tolerance)
    changed = np.flatnonzero(found.frames)
    if not len(changed):
        return Suspects()
    columns = np.flatnonzero(found.changed[:, changed[0]])
    return Suspects(frames=tuple((changed + first).tolist()), columns=tuple(found.columns[i] for i in columns.tolist()))
