"""Ranking methods: two verbs, aggregate and rank, in either order.

``mean_then_rank`` and ``median_then_rank`` aggregate a submission's values over the cases and rank the aggregates.
``rank_then_mean`` and ``rank_then_median`` rank the submissions within each case, aggregate the ranks, and rank those,
the smaller the better (Wiesenfarth et al., Scientific Reports 11:2369, 2021, Methods; challengeR 1.0.5).

Values are rounded to the stated precision before every ranking, so that float noise splits no ties; in what it returns
the aggregate is rounded too: what is shown is what was ranked.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from runner.challenge import RankingRule
from runner.ranking.table import ScoreTable

Values = NDArray[np.float64]
Aggregate = Callable[[Values], Values]
"""From shape ``(submissions, cases)`` to ``(submissions,)``."""


@dataclass(frozen=True, kw_only=True)
class RankedRow:
    """One submission's place.

    Attributes:
        submission: Its name.
        value: The aggregate that was ranked: of scores, or of ranks.
        rank: From 1; with ``ties: average`` it may end in .5.
    """

    submission: str
    value: float
    rank: float


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """All places, best first; equal ranks in the order of their names."""

    rows: tuple[RankedRow, ...]

    def rank_of(self, submission: str) -> float:
        """The rank of a submission.

        Raises:
            KeyError: It was not ranked.
        """
        return {row.submission: row.rank for row in self.rows}[submission]


def rank(table: ScoreTable, rule: RankingRule, *, higher_is_better: bool) -> Ranking:
    """Rank a complete table.

    Raises:
        ValueError: A value is missing (``apply_missing`` comes first), or there are submissions but no case.
    """
    if table.missing.any():
        raise ValueError("a table with missing values cannot be ranked; apply the missing-case policy first")
    if table.submissions and not table.cases:
        raise ValueError("there is no case to rank over")
    if not table.submissions:
        return Ranking(rows=())
    values, places = _places(table.values, rule, higher_is_better=higher_is_better)
    rows = [
        RankedRow(submission=name, value=float(value), rank=float(place))
        for name, value, place in zip(table.submissions, values, places, strict=True)
    ]
    return Ranking(rows=tuple(sorted(rows, key=lambda row: (row.rank, row.submission))))


def _places(values: Values, rule: RankingRule, *, higher_is_better: bool) -> tuple[Values, Values]:
    """Aggregates and ranks; a pure function of the matrix, so that a bootstrap can wrap it."""
    sign = -1.0 if higher_is_better else 1.0
    match rule.method:
        case "mean_then_rank":
            return _aggregate_then_rank(values, _mean, rule, sign)
        case "median_then_rank":
            return _aggregate_then_rank(values, _median, rule, sign)
        case "rank_then_mean":
            return _aggregate_then_rank(_within_cases(values, rule, sign), _mean, rule, 1.0)
        case "rank_then_median":
            return _aggregate_then_rank(_within_cases(values, rule, sign), _median, rule, 1.0)
        case _:
            assert_never(rule.method)


def _within_cases(values: Values, rule: RankingRule, sign: float) -> Values:
    """Ranks within each case; shape as ``values``."""
    cost = sign * np.round(values, rule.precision)
    columns = [ranks(column, ties=rule.ties) for column in cost.T]
    return np.stack(columns, axis=1)


def _aggregate_then_rank(values: Values, aggregate: Aggregate, rule: RankingRule, sign: float) -> tuple[Values, Values]:
    aggregates = np.round(aggregate(values), rule.precision)
    return aggregates, ranks(sign * aggregates, ties=rule.ties)


def _mean(values: Values) -> Values:
    return np.asarray(values.mean(axis=1))


def _median(values: Values) -> Values:
    return np.asarray(np.median(values, axis=1))


def ranks(cost: Values, *, ties: str) -> Values:
    """Ranks of the entries of a vector, 1 for the smallest; ties take their smallest rank, or their mean.

    Args:
        cost: Shape ``(n,)``.
        ties: ``min`` or ``average``.
    """
    _, group, sizes = np.unique(cost, return_inverse=True, return_counts=True)
    first = np.cumsum(sizes) - sizes + 1
    places = first + (sizes - 1) / 2 if ties == "average" else first
    return np.asarray(places[group], dtype=np.float64)
