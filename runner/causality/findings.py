"""What the evidence says at one cut point, and what would have to be run to say more.

A difference between two runs is only a candidate: methods flip answers by themselves. Frame t is *suspect* at a view if
all runs of the view agree on it, all full runs agree on it, and they differ. Only a frame that is still suspect after
three runs of each is proof that the view made the difference. Suspects can only become fewer as runs are added, so a
confirmation ends as soon as none is left.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from runner.causality.evidence import Answers, Evidence, FullRun, Observation, Request, differing
from runner.causality.schedule import CutPoint
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
        request: What to run next; None unless it is open.
        view: The view on which it was decided.
        suspects: Frames whose answer the view changed, in order; empty unless something was confirmed.
        failure: Why there is no answer, for ``failed`` and ``broken-off``.
    """

    point: CutPoint
    standing: Standing
    request: Request | None = None
    view: CutKind = CutKind.PREFIX
    suspects: tuple[int, ...] = ()
    failure: str = ""

    @property
    def decided(self) -> bool:
        """The comparison here came to an end, whichever."""
        undecided = {Standing.OPEN, Standing.FAILED, Standing.UNCONFIRMED, Standing.BROKEN_OFF}
        return self.standing not in undecided


def _agreed(runs: tuple[Answers, ...], frames: int) -> NDArray[np.bool_]:
    agreed = np.ones(frames, dtype=np.bool_)
    for run in runs[1:]:
        agreed &= ~differing(runs[0], run, frames)
    return agreed


def suspects_of(full: tuple[Answers, ...], view: tuple[Answers, ...], frames: int) -> tuple[int, ...]:
    """Frames on which all runs of a side agree with each other and the sides differ, among the first ``frames``."""
    differ = differing(full[0], view[0], frames) & _agreed(full, frames) & _agreed(view, frames)
    return tuple(np.flatnonzero(differ).tolist())


def _answers(observations: tuple[Observation, ...]) -> tuple[Answers, ...]:
    return tuple(o.answers for o in observations if o.answers is not None)


def look_at_view(evidence: Evidence, point: CutPoint, kind: CutKind) -> Finding:
    """Judge one view at one cut point; ``leaking`` means here that the view provably changes answers."""
    runs = evidence.of_view(point.frames, kind)
    failure = next((o.failure for o in runs if o.answers is None), "")
    if failure:
        standing = Standing.FAILED if len(runs) == 1 else Standing.BROKEN_OFF
        return Finding(point=point, standing=standing, view=kind, failure=failure)
    suspects = suspects_of(evidence.full, _answers(runs), point.frames) if runs else ()
    if runs and not suspects:
        standing = Standing.CLEAN if len(runs) == 1 else Standing.UNCONFIRMED
        return Finding(point=point, standing=standing, view=kind)
    if len(runs) < RUNS_THAT_PROVE:
        request: Request = Cut(frames=point.frames, kind=kind, repeat=len(runs))
        return Finding(point=point, standing=Standing.OPEN, view=kind, request=request)
    if len(evidence.full) < RUNS_THAT_PROVE:
        again = FullRun(repeat=len(evidence.full_observations))
        return Finding(point=point, standing=Standing.OPEN, view=kind, request=again)
    return Finding(point=point, standing=Standing.LEAKING, view=kind, suspects=suspects)


def look_at(evidence: Evidence, point: CutPoint) -> Finding:
    """Judge a cut point by its prefix and, where that changes answers, by an altered future of the full length.

    The altered future takes the length out of the question: if it changes answers too, they depended on the future
    frames themselves; if it does not, a single run says so, and the length alone made the difference.
    """
    shorter = look_at_view(evidence, point, CutKind.PREFIX)
    if shorter.standing is not Standing.LEAKING:
        return shorter
    if not evidence.can_alter:
        return Finding(point=point, standing=Standing.UNPROVEN, suspects=shorter.suspects)
    altered = look_at_view(evidence, point, CutKind.ALTERED_FUTURE)
    match altered.standing:
        case Standing.CLEAN:
            return Finding(point=point, standing=Standing.LENGTH_DEPENDENT, suspects=shorter.suspects)
        case Standing.FAILED:
            return Finding(
                point=point, standing=Standing.BROKEN_OFF, view=CutKind.ALTERED_FUTURE, failure=altered.failure
            )
        case _:
            return altered
