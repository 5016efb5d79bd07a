"""Any ranking method on many multisets of cases at once: the whole method again for each, as one matrix.

A multiset is how often each case is in it. The full ranking is the one with every case once; a bootstrap draws them at
random; to leave a case out gives it a zero.
"""

from itertools import combinations
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from runner.challenge import RankingRule
from runner.ranking.signed_rank import Alternative, Counts, Values, holm, signed_rank_both_ways

_BLOCK = 512
"""Multisets worked on together: bounds the memory of a large table."""


def rank_multisets(
    values: Values, counts: Counts, rule: RankingRule, *, higher_is_better: bool, challenger: bool = False
) -> tuple[Values, Values]:
    """Rank the submissions over each multiset of cases.

    Args:
        values: Complete scores, shape ``(submissions, cases)``.
        counts: Shape ``(multisets, cases)``; each row holds at least one case.
        rule: The ranking method.
        higher_is_better: The metric's direction.
        challenger: As challengeR 1.0.5 resamples: the copies of a drawn case are ranked against each other, and a
            drawn case is tested once however often it was drawn. Rank frequencies are off by it.

    Returns:
        Aggregates and ranks, each of shape ``(multisets, submissions)``.
    """
    blocks = [
        _rank_block(
            values, counts[start : start + _BLOCK], rule, -1.0 if higher_is_better else 1.0, challenger=challenger
        )
        for start in range(0, len(counts), _BLOCK)
    ]
    return np.concatenate([a for a, _ in blocks]), np.concatenate([r for _, r in blocks])


def _rank_block(
    values: Values, counts: Counts, rule: RankingRule, sign: float, *, challenger: bool
) -> tuple[Values, Values]:
    match rule.method:
        case "mean_then_rank":
            return _ranked(_means(values, counts), rule, sign)
        case "median_then_rank":
            return _ranked(_medians(values, counts), rule, sign)
        case "rank_then_mean" | "rank_then_median":
            within = rank_rows((sign * np.round(values, rule.precision)).T, ties=rule.ties).T
            if challenger:
                return _ranked(_with_copies(within, counts, rule), rule, 1.0)
            found = _means(within, counts) if rule.method == "rank_then_mean" else _medians(within, counts)
            return _ranked(found, rule, 1.0)
        case "test_based":
            tested = (counts > 0).astype(np.int64) if challenger else counts
            return _ranked(win_shares(values * -sign, tested, rule), rule, -1.0)
        case _:
            assert_never(rule.method)


def _ranked(aggregates: Values, rule: RankingRule, sign: float) -> tuple[Values, Values]:
    rounded = np.round(aggregates, rule.precision)
    return rounded, rank_rows(sign * rounded, ties=rule.ties)


def _means(values: Values, counts: Counts) -> Values:
    return np.asarray(counts @ values.T / counts.sum(axis=1, keepdims=True))


def _medians(values: Values, counts: Counts) -> Values:
    """Medians of multisets: the middle entry, or the mean of the two, of the values in their order."""
    size = counts.sum(axis=1)
    low, high = (size - 1) // 2, size // 2
    found = np.empty((len(counts), len(values)))
    for row, cases in enumerate(values):
        order = np.argsort(cases, kind="stable")
        reached = np.cumsum(counts[:, order], axis=1)
        ordered = cases[order]
        at_low = ordered[(reached <= low[:, None]).sum(axis=1)]
        at_high = ordered[(reached <= high[:, None]).sum(axis=1)]
        found[:, row] = (at_low + at_high) / 2.0
    return found


def _with_copies(within: Values, counts: Counts, rule: RankingRule) -> Values:
    """Aggregates where the copies of a case are ranked together: all copies of a better one stand before the next."""
    found = np.empty((len(counts), len(within)))
    for number, drawn in enumerate(counts):
        ranks = drawn * (within - 1) + (1 if rule.ties == "min" else (drawn + 1) / 2)
        spread = np.repeat(ranks, drawn, axis=1)
        found[number] = spread.mean(axis=1) if rule.method == "rank_then_mean" else np.median(spread, axis=1)
    return found


def win_shares(values: Values, counts: Counts, rule: RankingRule) -> Values:
    """Share of the others that each submission is significantly better than, by one-sided signed-rank tests.

    Args:
        values: Higher is better, shape ``(submissions, cases)``.
        counts: Shape ``(multisets, cases)``.
        rule: Says alpha, the adjustment and the precision of differences.

    Returns:
        Shape ``(multisets, submissions)``, in [0, 1].
    """
    p = pairwise(values, counts, precision=rule.precision, alternative=Alternative.GREATER)
    if rule.adjust == "holm":
        k = len(values)
        flat = p.reshape(len(counts), k * k)
        p = np.stack([holm(row) for row in flat]).reshape(p.shape)
    wins = (p <= rule.alpha).sum(axis=2)
    return np.asarray(wins / max(1, len(values) - 1), dtype=np.float64)


def pairwise(values: Values, counts: Counts, *, precision: int | None, alternative: Alternative) -> Values:
    """P-values of every ordered pair.

    Args:
        values: Higher is better, shape ``(submissions, cases)``.
        counts: Shape ``(multisets, cases)``.
        precision: Decimals the differences are rounded to; None: not at all.
        alternative: What is tested against.

    Returns:
        Shape ``(multisets, submissions, submissions)``: first against second; NaN on the diagonal, and where all
        differences are zero.
    """
    k = len(values)
    found = np.full((len(counts), k, k), np.nan)
    for first, second in combinations(range(k), 2):
        difference = values[first] - values[second]
        if precision is not None:
            difference = np.round(difference, precision)
        both = signed_rank_both_ways(difference, counts, alternative=alternative)
        found[:, first, second], found[:, second, first] = both
    return found


def rank_rows(cost: Values, *, ties: str) -> Values:
    """Ranks within each row, 1 for the smallest; ties take their smallest rank, or their mean.

    Args:
        cost: Shape ``(rows, n)``.
        ties: ``min`` or ``average``.
    """
    smaller = np.zeros(cost.shape)
    equal = np.zeros(cost.shape)
    for column in range(cost.shape[1]):
        against = cost[:, [column]]
        smaller += against < cost
        equal += against == cost
    return smaller + 1 if ties == "min" else smaller + (equal + 1) / 2


def every_case_once(cases: int) -> NDArray[np.int64]:
    """The multiset of the full ranking, shape ``(1, cases)``."""
    return np.ones((1, cases), dtype=np.int64)
