"""The paired Wilcoxon signed-rank test, for many multisets of cases at once."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

Values = NDArray[np.float64]
Counts = NDArray[np.int64]


class Alternative(StrEnum):
    """What is tested against: the first is greater, or the two differ."""

    GREATER = "greater"
    TWO_SIDED = "two-sided"


@dataclass(frozen=True, kw_only=True)
class _Signed:
    """The statistic of some multisets, its mean and its variance, each of shape ``(multisets,)``."""

    positive: Values
    mean: Values
    variance: Values


def signed_rank(differences: Values, counts: Counts, *, alternative: Alternative) -> Values:
    """P-values of the signed-rank test, one a multiset.

    Normal approximation with continuity correction; zero differences are dropped, equal ones share their mean rank and
    lower the variance (Wilcoxon 1945; Hollander and Wolfe, Nonparametric Statistical Methods, 3.1; R's
    ``wilcox.test(paired = TRUE, exact = FALSE)``).

    Args:
        differences: First minus second, shape ``(cases,)``; round them before, float noise splits ties.
        counts: How often each case is in each multiset, shape ``(multisets, cases)``.
        alternative: What is tested against.

    Returns:
        Shape ``(multisets,)``, in [0, 1]; NaN where all differences are zero: nothing can be said.
    """
    return _p_values(_statistic(differences, counts), alternative)


def signed_rank_both_ways(differences: Values, counts: Counts, *, alternative: Alternative) -> tuple[Values, Values]:
    """P-values of a test and of the one with the two sides exchanged, for the price of one; as ``signed_rank``."""
    found = _statistic(differences, counts)
    other = _Signed(positive=2.0 * found.mean - found.positive, mean=found.mean, variance=found.variance)
    return _p_values(found, alternative), _p_values(other, alternative)


def _p_values(found: _Signed, alternative: Alternative) -> Values:
    off = found.positive - found.mean
    with np.errstate(divide="ignore", invalid="ignore"):
        if alternative is Alternative.GREATER:
            p = ndtr(-(off - 0.5) / np.sqrt(found.variance))
        else:
            p = 2.0 * ndtr(-np.maximum(np.abs(off) - 0.5, 0.0) / np.sqrt(found.variance))
    return np.where(found.variance > 0, p, np.nan)


def _statistic(differences: Values, counts: Counts) -> _Signed:
    kept = np.flatnonzero(differences)
    if not kept.size:
        nothing = np.zeros(len(counts))
        return _Signed(positive=nothing, mean=nothing, variance=nothing)
    order = kept[np.argsort(np.abs(differences[kept]), kind="stable")]
    sizes = np.abs(differences[order])
    starts = np.concatenate([[0], np.flatnonzero(sizes[1:] != sizes[:-1]) + 1])
    # A row a case: what is added up lies side by side in memory.
    drawn = np.ascontiguousarray(counts.T[order], dtype=np.float64)
    in_group = np.add.reduceat(drawn, starts, axis=0)
    drawn[differences[order] < 0] = 0.0
    positive_in_group = np.add.reduceat(drawn, starts, axis=0)
    mean_rank = np.cumsum(in_group, axis=0) - in_group / 2.0 + 0.5
    n = in_group.sum(axis=0)
    ties = np.einsum("gm,gm,gm->m", in_group, in_group, in_group) - n
    return _Signed(
        positive=np.einsum("gm,gm->m", mean_rank, positive_in_group),
        mean=n * (n + 1.0) / 4.0,
        variance=n * (n + 1.0) * (2.0 * n + 1.0) / 24.0 - ties / 48.0,
    )


def holm(p: Values) -> Values:
    """Holm's step-down adjustment (Holm 1979).

    Args:
        p: P-values, shape ``(tests,)``; NaN is no test and stays.
    """
    return _adjusted(p, _holm)


def benjamini_hochberg(p: Values) -> Values:
    """Benjamini and Hochberg's step-up adjustment (1995), which bounds the false discovery rate.

    Args:
        p: P-values, shape ``(tests,)``; NaN is no test and stays.
    """
    return _adjusted(p, _step_up)


def _adjusted(p: Values, adjust: Callable[[Values], Values]) -> Values:
    result = p.astype(np.float64).copy()
    tested = np.flatnonzero(~np.isnan(result))
    order = tested[np.argsort(result[tested], kind="stable")]
    if order.size:
        result[order] = np.minimum(adjust(result[order]), 1.0)
    return result


def _holm(ordered: Values) -> Values:
    return np.maximum.accumulate(ordered * np.arange(ordered.size, 0, -1))


def _step_up(ordered: Values) -> Values:
    scaled = ordered * ordered.size / np.arange(1, ordered.size + 1)
    return np.minimum.accumulate(scaled[::-1])[::-1]
