"""Ranking methods: two verbs, aggregate and rank, in either order.

``mean_then_rank`` and ``median_then_rank`` aggregate a submission's values over the cases and rank the aggregates.
``rank_then_mean`` and ``rank_then_median`` rank the submissions within each case, aggregate the ranks, and rank those,
the smaller the better. ``test_based`` ranks by the share of the others that a submission is significantly better than
(Wiesenfarth et al., Scientific Reports 11:2369, 2021, Methods; challengeR 1.0.5).

Values are rounded to the stated precision before every ranking, so that float noise splits no ties; in what it returns
the aggregate is rounded too: what is shown is what was ranked.
"""

from dataclasses import dataclass

from runner.challenge import RankingRule
from runner.ranking.multisets import every_case_once, rank_multisets
from runner.ranking.table import ScoreTable


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
    whole = every_case_once(len(table.cases))
    (values,), (places,) = rank_multisets(table.values, whole, rule, higher_is_better=higher_is_better)
    rows = [
        RankedRow(submission=name, value=float(value), rank=float(place))
        for name, value, place in zip(table.submissions, values, places, strict=True)
    ]
    return Ranking(rows=tuple(sorted(rows, key=lambda row: (row.rank, row.submission))))
