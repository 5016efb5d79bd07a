"""Ranking by hand: ties, precision, direction, and what a missing case does."""

from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from runner.challenge import MissingCase, RankingRule
from runner.errors import UsageError
from runner.ranking import RankedRow, ScoreTable, apply_missing, rank

NAN = float("nan")
MEAN = RankingRule(method="mean_then_rank")


def table(rows: dict[str, list[float]]) -> ScoreTable:
    length = len(next(iter(rows.values())))
    return ScoreTable.of(tuple(rows), tuple(f"c{i}" for i in range(length)), list(rows.values()))


def places(rows: dict[str, list[float]], rule: RankingRule, *, higher: bool = True) -> dict[str, float]:
    return {row.submission: row.rank for row in rank(table(rows), rule, higher_is_better=higher).rows}


@pytest.mark.parametrize(
    ("ties", "expected"),
    [("min", {"a": 1.0, "b": 2.0, "c": 2.0, "d": 4.0}), ("average", {"a": 1.0, "b": 2.5, "c": 2.5, "d": 4.0})],
)
def test_ties(ties: Literal["min", "average"], expected: dict[str, float]) -> None:
    rows = {"d": [0.1], "c": [0.5], "b": [0.5], "a": [0.9]}
    assert places(rows, RankingRule(method="mean_then_rank", ties=ties)) == expected


def test_rows_come_best_first_and_equals_by_name() -> None:
    ranking = rank(table({"d": [0.1], "c": [0.5], "b": [0.5]}), MEAN, higher_is_better=True)
    assert ranking.rows == (
        RankedRow(submission="b", value=0.5, rank=1.0),
        RankedRow(submission="c", value=0.5, rank=1.0),
        RankedRow(submission="d", value=0.1, rank=3.0),
    )
    assert ranking.rank_of("d") == 3.0
    with pytest.raises(KeyError):
        ranking.rank_of("e")


def test_float_noise_splits_no_tie() -> None:
    noisy = {"a": [0.1 + 0.2, 0.0], "b": [0.3, 0.0]}
    assert noisy["a"] != noisy["b"]
    for method in ("mean_then_rank", "median_then_rank", "rank_then_mean", "rank_then_median"):
        assert places(noisy, RankingRule(method=method)) == {"a": 1.0, "b": 1.0}


def test_a_coarser_precision_ties_more() -> None:
    rows = {"a": [0.911], "b": [0.909]}
    assert places(rows, RankingRule(method="mean_then_rank", precision=2)) == {"a": 1.0, "b": 1.0}
    assert places(rows, RankingRule(method="mean_then_rank", precision=3)) == {"a": 1.0, "b": 2.0}


def test_the_order_of_the_verbs_matters() -> None:
    rows = {"steady": [0.6, 0.6, 0.6], "wins twice": [0.7, 0.7, 0.0], "last": [0.1, 0.1, 0.1]}
    assert places(rows, MEAN)["steady"] == 1.0
    assert places(rows, RankingRule(method="rank_then_median"))["wins twice"] == 1.0


def test_lower_can_be_better() -> None:
    assert places({"a": [1.0, 2.0], "b": [3.0, 1.0]}, MEAN, higher=False) == {"a": 1.0, "b": 2.0}


@given(arrays(np.float64, (4, 5), elements=st.integers(0, 6).map(float)), st.sampled_from(["min", "average"]))
def test_turning_the_direction_turns_the_values(values: NDArray[np.float64], ties: Literal["min", "average"]) -> None:
    names, cases = tuple("abcd"), tuple("12345")
    for method in ("mean_then_rank", "median_then_rank", "rank_then_mean", "rank_then_median"):
        rule = RankingRule(method=method, ties=ties)
        up = rank(ScoreTable.of(names, cases, values), rule, higher_is_better=True)
        down = rank(ScoreTable.of(names, cases, -values), rule, higher_is_better=False)
        assert [(row.submission, row.rank) for row in up.rows] == [(row.submission, row.rank) for row in down.rows]
        if ties == "average":
            assert sum(row.rank for row in up.rows) == 10.0


HOLES = {"a": [0.9, NAN, 0.7], "b": [0.8, 0.6, 0.5]}


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (MissingCase.WORST, [[0.9, 0.0, 0.7], [0.8, 0.6, 0.5]]),
        (MissingCase.CHANCE, [[0.9, 0.25, 0.7], [0.8, 0.6, 0.5]]),
        (MissingCase.EXCLUDE, [[0.9, 0.7], [0.8, 0.5]]),
        (MissingCase.FAIL, [[0.8, 0.6, 0.5]]),
    ],
)
def test_missing_cases(policy: MissingCase, expected: list[list[float]]) -> None:
    done = apply_missing(table(HOLES), policy, worst=0.0, chance=0.25)
    assert done.values.tolist() == expected
    assert done.cases == (("c0", "c2") if policy is MissingCase.EXCLUDE else ("c0", "c1", "c2"))
    assert done.submissions == (("b",) if policy is MissingCase.FAIL else ("a", "b"))


def test_a_complete_table_needs_no_value() -> None:
    whole = table({"a": [0.5]})
    for policy in MissingCase:
        assert apply_missing(whole, policy).values.tolist() == [[0.5]]


@pytest.mark.parametrize("policy", [MissingCase.WORST, MissingCase.CHANCE])
def test_a_policy_whose_value_is_not_stated_is_refused(policy: MissingCase) -> None:
    with pytest.raises(UsageError, match=f"missing_case: {policy} needs a value"):
        apply_missing(table(HOLES), policy)


def test_excluding_every_case_is_refused_and_names_who_has_none() -> None:
    with pytest.raises(UsageError, match="leave out 'a'"):
        apply_missing(table({"a": [NAN, NAN], "b": [0.1, 0.2]}), MissingCase.EXCLUDE)
    with pytest.raises(UsageError, match="choose another"):
        apply_missing(table({"a": [NAN, 0.1], "b": [0.1, NAN]}), MissingCase.EXCLUDE)


def test_when_everybody_fails_nobody_is_ranked() -> None:
    nobody = apply_missing(table({"a": [NAN]}), MissingCase.FAIL)
    assert rank(nobody, MEAN, higher_is_better=True).rows == ()


def test_what_cannot_be_ranked_is_refused() -> None:
    with pytest.raises(ValueError, match="missing-case policy"):
        rank(table(HOLES), MEAN, higher_is_better=True)
    with pytest.raises(ValueError, match="no case"):
        rank(ScoreTable.of(("a",), (), []), MEAN, higher_is_better=True)


@pytest.mark.parametrize(
    ("submissions", "cases", "values", "message"),
    [
        (("a", "a"), ("c",), [[1.0], [2.0]], "twice"),
        (("a",), ("c", "c"), [[1.0, 2.0]], "twice"),
        (("a",), ("c",), [[float("inf")]], "infinite"),
    ],
)
def test_a_table_that_cannot_be_is_refused(
    submissions: tuple[str, ...], cases: tuple[str, ...], values: list[list[float]], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        ScoreTable.of(submissions, cases, values)
