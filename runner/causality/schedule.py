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

Every second target is an altered future in place of a prefix, where another case can lend frames. Where a sequence
ends, a method makes up its own future, and one that repeats its last frame or answer hides well: a median filter with
repeated ends answers its last frame as if it had seen all. Frames of another case do not hide. They cost a view of full
length; in the simulation they took that filter from 7 cuts at the 95th percentile to 5. The fourth target lies 16
frames before the end, for methods that treat the end in a way of their own.

Every second cut is drawn from the organisers' seed, without replacement and without regard to the answers. They find
what no change betrays, and only they carry a statement about *all* cut points: targets are no sample of anything. They
are prefixes. A target that is drawn as well is cut as a prefix and counts as drawn.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from runner.causality.answers import Answers
from runner.causality.evidence import Evidence
from runner.challenge import CausalityMethod, CausalityRule

_AROUND = (1, 2, 0)
_BEFORE_END, _END_COMES_AT = 16, 3


@dataclass(frozen=True, kw_only=True)
class CutPoint:
    """A length at which a case is cut.

    Attributes:
        frames: k, frames kept.
        random: It was drawn from the seed (also where a target had been there before): counts for the bound.
        altered: Later frames are replaced in place of withheld.
    """

    frames: int
    random: bool
    altered: bool = False


def possible_lengths(rule: CausalityRule, evidence: Evidence) -> tuple[int, ...]:
    """Lengths that could be tested, ascending: at least ``min_frames``, and shorter than the whole."""
    shortest, whole = rule.min_frames, evidence.frames
    copies = evidence.copied and rule.method is CausalityMethod.ALTERED_FUTURE
    if evidence.possible is None or copies:
        return tuple(range(shortest, whole))
    return tuple(k for k in evidence.possible if shortest <= k < whole)


def cuts_wanted(rule: CausalityRule, possible: int) -> int:
    """How many of the possible cuts a method makes at most."""
    match rule.method:
        case CausalityMethod.OFF:
            return 0
        case CausalityMethod.EXHAUSTIVE:
            return possible
        case CausalityMethod.CUT_RUN:
            return min(1, possible)
        case _:
            return min(rule.cuts, possible)


def cut_points(
    rule: CausalityRule, lengths: tuple[int, ...], answers: Answers, seed: int, *, alter: bool = False
) -> tuple[CutPoint, ...]:
    """All cut points in the order in which they are tested; each length once.

    Args:
        rule: The challenge's section.
        lengths: Those that are possible, ascending.
        answers: Of the whole sequence.
        seed: The organisers' secret.
        alter: Every second target is an altered future.
    """
    if rule.method is CausalityMethod.EXHAUSTIVE:
        return tuple(CutPoint(frames=k, random=False) for k in lengths)
    drawn = iter(np.random.default_rng(seed).permutation(np.array(lengths, dtype=np.int64)).tolist())
    aimed = iter(targets(answers, lengths))
    wanted = cuts_wanted(rule, len(lengths))
    if rule.method is CausalityMethod.CUT_RUN and seed % 2:
        aimed = iter(())
    order: dict[int, CutPoint] = {}
    altered = False
    while len(order) < wanted:
        target = next((k for k in aimed if k not in order), None)
        if target is not None:
            order[target] = CutPoint(frames=target, random=False, altered=alter and altered)
            altered = not altered
        if len(order) < wanted:
            _draw(drawn, order)
    return tuple(order.values())


def _draw(drawn: Iterator[int], order: dict[int, CutPoint]) -> None:
    """Draw lengths until a new one comes; one that was a target already counts as drawn too, and costs no run."""
    for k in drawn:
        new = k not in order
        order[k] = CutPoint(frames=k, random=True)
        if new:
            return


def targets(answers: Answers, lengths: tuple[int, ...]) -> tuple[int, ...]:
    """Possible lengths around the changes of ``answers``, the most telling first; may hold a length twice.

    A target that is not possible moves up to the next length that is: the change stays inside the prefix.
    """
    changes = answers.changes()
    bounds = np.concatenate(([0], changes, [answers.frames]))
    before, after = np.diff(bounds)[:-1], np.diff(bounds)[1:]
    ranked = changes[np.lexsort((changes, -np.minimum(before, after)))]
    wanted = [int(c) + step for step in _AROUND for c in ranked]
    if len(wanted) > _END_COMES_AT:
        wanted.insert(_END_COMES_AT, answers.frames - _BEFORE_END)
    shortest = lengths[0] if lengths else 0
    at = [bisect_left(lengths, k) for k in wanted if k >= shortest]
    return tuple(lengths[i] for i in at if i < len(lengths))
