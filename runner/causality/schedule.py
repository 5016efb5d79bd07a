"""Where a case is cut, and in which order.

Which k reveal what
-------------------
Write y[t] for the answer on the full sequence and p[t] for the answer on the prefix of k frames, so that frame k − 1 is
the last one the method sees. Suppose y changes at frame c: y[c] ≠ y[c − 1].

*Look-ahead by L* frames answers y[t] = g[t + L]. On the prefix the last frames have no future; whatever stands in for
it (the last frame repeated, frames mirrored, zeros) is not frame k − 1 + L. With the last frame repeated, the last
answer is p[k − 1] = g[k − 1] = y[k − 1 − L], so it differs from y[k − 1] exactly where y changed within the last L
frames. A cut in the middle of a phase therefore shows nothing. k = c + 1 ends on the changed answer and shows *every*
L ≥ 1 at once, because y[c] ≠ y[c − L] as long as the phase before c lasted L frames; for L = 1 it is the *only* k
around c that does.

*Centred smoothing and median filters* of width 2h + 1 change at c because the future half of the window tipped the
balance. The prefix c + 1 keeps the past half and one new frame: the old answer wins, and p[c] = y[c − 1] ≠ y[c].

*Bidirectional networks, decoders over the whole sequence, removal of short segments* decide a change with what follows
it. At k = c + 1 the new phase is one frame long, which is the least they can be given.

*Whole-sequence normalisation and length-relative features* shift all answers at once. What moves first are frames close
to a decision boundary, and those lie at the changes; the shift is largest for short prefixes.

So the first targets are k = c + 1. Changes between two long phases come first (they show the largest look-ahead and
are the least likely to be flicker); among equals the early ones, whose prefixes are short. Then the same changes once
more *just around*: k = c + 2 for methods that copy or hold their last answer, and k = c, the end of the old phase, for
those whose raw answers waver before the change. In a simulation of thirteen methods that look ahead, k = c + 1 showed
it at a third of the changes in the worst case and at nearly all in most, and no other offset from c − 6 to c + 12 did
better by more than a few per cent.

Every second cut is drawn from the organisers' seed, without replacement and without regard to the answers. They find
what no change betrays, and only they carry a statement about *all* cut points: targets are no sample of anything.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from runner.causality.evidence import Answers
from runner.challenge import CausalityRule

_AROUND = (1, 2, 0)


@dataclass(frozen=True, kw_only=True)
class CutPoint:
    """A length at which a case is cut.

    Attributes:
        frames: k, frames kept.
        random: It was drawn from the seed (also where a target had been there before): counts for the bound.
    """

    frames: int
    random: bool


def cuts_possible(rule: CausalityRule, frames: int) -> int:
    """Number of prefixes that could be tested: lengths ``min_frames`` … ``frames − 1``."""
    return max(0, frames - rule.min_frames)


def cut_points(rule: CausalityRule, answers: Answers, seed: int) -> tuple[CutPoint, ...]:
    """All cut points in the order in which they are tested, at most ``rule.cuts``; each length once."""
    possible = np.arange(rule.min_frames, answers.frames)
    drawn = iter(np.random.default_rng(seed).permutation(possible).tolist())
    aimed = iter(targets(answers, rule.min_frames))
    order: dict[int, bool] = {}
    wanted = min(rule.cuts, len(possible))
    while len(order) < wanted:
        target = next((k for k in aimed if k not in order), None)
        if target is not None:
            order[target] = False
        if len(order) < wanted:
            _draw(drawn, order)
    return tuple(CutPoint(frames=k, random=random) for k, random in order.items())


def _draw(drawn: Iterator[int], order: dict[int, bool]) -> None:
    """Draw lengths until a new one comes; one that was a target already counts as drawn too, and costs no run."""
    for k in drawn:
        new = k not in order
        order[k] = True
        if new:
            return


def targets(answers: Answers, min_frames: int) -> tuple[int, ...]:
    """Cut lengths around the changes of ``answers``, the most telling first; may hold a length twice."""
    changes = answers.changes()
    bounds = np.concatenate(([0], changes, [answers.frames]))
    before, after = np.diff(bounds)[:-1], np.diff(bounds)[1:]
    ranked = changes[np.lexsort((changes, -np.minimum(before, after)))]
    lengths = [int(c) + step for step in _AROUND for c in ranked]
    return tuple(k for k in lengths if min_frames <= k < answers.frames)
