"""Several metrics combined: submissions are ranked by each, and the weighted mean of these ranks is ranked again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from runner.challenge import MissingCase, RankingRule
from runner.errors import UsageError
from runner.ranking.multisets import every_case_once, rank_multisets, rank_rows
from runner.ranking.signed_rank import Counts, Values
from runner.ranking.stability import Stability, draw, stability_of
from runner.ranking.table import ScoreTable


@dataclass(frozen=True, kw_only=True, eq=False)
class WeighedMetric:
    """A metric that enters a combined ranking.

    Attributes:
        name: Its name.
        table: Its scores.
        higher_is_better: Its direction.
        weight: Above 0; only the ratio to the others' counts.
    """

    name: str
    table: ScoreTable
    higher_is_better: bool
    weight: float = 1.0


@dataclass(frozen=True, kw_only=True)
class CombinedRow:
    """A submission's place over several metrics.

    Attributes:
        submission: Its name.
        value: The weighted mean of its ranks; the smaller, the better.
        rank: From 1.
        by_metric: Its rank under each metric.
    """

    submission: str
    value: float
    rank: float
    by_metric: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class CombinedRanking:
    """All places, best first; equal ranks in the order of their names.

    Attributes:
        rows: The places.
        cases: Over how many cases.
        stability: The whole again on resampled cases, the same draw for every metric; None where none was asked for.
    """

    rows: tuple[CombinedRow, ...]
    cases: int
    stability: Stability | None


def rank_combined(
    metrics: Sequence[WeighedMetric], rule: RankingRule, *, missing: MissingCase, resamples: int = 0, seed: int = 0
) -> CombinedRanking:
    """Rank by the weighted mean of the ranks under each metric.

    Args:
        metrics: At least one, each name once. A submission or case that one of them lacks is missing there.
        rule: Ranks under each metric; its precision and ties hold for the mean of ranks as well.
        missing: ``exclude`` drops a case that anybody misses in any metric; ``fail`` drops who misses any value.
        resamples: How often cases are resampled; 0: not at all.
        seed: For the random numbers.

    Raises:
        UsageError: A value is missing and the policy is another, or no case is left.
        ValueError: There is no metric, a name is there twice, or a weight is not above 0.
    """
    if not metrics or len({metric.name for metric in metrics}) < len(metrics):
        raise ValueError("a combined ranking needs metrics with different names")
    if any(not np.isfinite(metric.weight) or metric.weight <= 0 for metric in metrics):
        raise ValueError("the weight of a metric must be above 0")
    submissions, cases, values = _complete(metrics, missing)
    if not submissions:
        return CombinedRanking(rows=(), cases=len(cases), stability=None)
    (full,), (places,), each = _ranked(metrics, values, every_case_once(len(cases)), rule)
    rows = [
        CombinedRow(
            submission=name, value=float(full[row]), rank=float(places[row]),
            by_metric={metric.name: float(one[0, row]) for metric, one in zip(metrics, each, strict=True)},
        )
        for row, name in enumerate(submissions)
    ]  # fmt: skip
    stability = None
    if resamples:
        _, ranks, _ = _ranked(metrics, values, draw(len(cases), resamples=resamples, seed=seed), rule)
        stability = stability_of(submissions, ranks, places, seed=seed)
    ordered = tuple(sorted(rows, key=lambda row: (row.rank, row.submission)))
    return CombinedRanking(rows=ordered, cases=len(cases), stability=stability)


def _ranked(
    metrics: Sequence[WeighedMetric], values: Sequence[Values], counts: Counts, rule: RankingRule
) -> tuple[Values, Values, list[Values]]:
    """Means of ranks and their ranks, each of shape ``(multisets, submissions)``, and the ranks under each metric."""
    each = [
        rank_multisets(own, counts, rule, higher_is_better=metric.higher_is_better)[1]
        for metric, own in zip(metrics, values, strict=True)
    ]
    weights = np.array([metric.weight for metric in metrics])
    means: Values = np.round(np.average(np.stack(each), axis=0, weights=weights), rule.precision).astype(np.float64)
    return means, rank_rows(means, ties=rule.ties), each


def _complete(
    metrics: Sequence[WeighedMetric], missing: MissingCase
) -> tuple[tuple[str, ...], tuple[str, ...], list[Values]]:
    """The submissions and cases that are ranked, and the values of each metric, shape ``(submissions, cases)``."""
    submissions = tuple(dict.fromkeys(name for metric in metrics for name in metric.table.submissions))
    cases = tuple(dict.fromkeys(case for metric in metrics for case in metric.table.cases))
    stack = np.stack([_laid_out(metric.table, submissions, cases) for metric in metrics])
    lacking: NDArray[np.bool_] = np.asarray(np.isnan(stack).any(axis=0))
    keep_rows: NDArray[np.bool_] = np.ones(len(submissions), np.bool_)
    keep_cases: NDArray[np.bool_] = np.ones(len(cases), np.bool_)
    if lacking.any():
        match missing:
            case MissingCase.FAIL:
                keep_rows = ~np.asarray(lacking.any(axis=1))
            case MissingCase.EXCLUDE:
                keep_cases = ~np.asarray(lacking.any(axis=0))
            case _:
                raise UsageError(
                    f"values are missing, and missing_case: {missing} has another value for each metric",
                    remedy="combine metrics with --missing exclude or --missing fail",
                )
    if not keep_cases.any():
        raise UsageError(
            "no case has a value of every metric for every submission",
            remedy="leave out who misses it, or combine with --missing fail",
        )
    return (
        tuple(name for name, kept in zip(submissions, keep_rows, strict=True) if kept),
        tuple(case for case, kept in zip(cases, keep_cases, strict=True) if kept),
        list(stack[:, keep_rows][:, :, keep_cases]),
    )


def _laid_out(table: ScoreTable, submissions: tuple[str, ...], cases: tuple[str, ...]) -> Values:
    found = np.full((len(submissions), len(cases)), np.nan)
    rows = [submissions.index(name) for name in table.submissions]
    columns = [cases.index(case) for case in table.cases]
    found[np.ix_(rows, columns)] = table.values
    return found
