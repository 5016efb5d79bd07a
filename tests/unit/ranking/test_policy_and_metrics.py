"""What the missing-case policy does, several metrics in one ranking, and what a case decides, in words."""

from typing import Literal

import numpy as np
import pytest

from runner.challenge import MissingCase, RankingRule
from runner.errors import UsageError
from runner.ranking import ScoreTable, rank
from runner.ranking.combined import WeighedMetric, rank_combined
from runner.ranking.policy_effects import policy_effects
from runner.ranking.stability import Influence, bootstrap, flips, influence_sentence

MEAN = RankingRule(method="mean_then_rank")
NAN = float("nan")


def table(rows: dict[str, list[float]]) -> ScoreTable:
    cases = tuple(f"c{number}" for number in range(len(next(iter(rows.values())))))
    return ScoreTable.of(tuple(rows), cases, list(rows.values()))


# The policy


def test_a_ranking_under_every_policy() -> None:
    holes = table({"a": [0.9, NAN, 0.9], "b": [0.8, 0.6, 0.5], "c": [0.1, 0.9, 0.1]})
    found = policy_effects(
        holes, MEAN, in_force=MissingCase.EXCLUDE, higher_is_better=True, worst=0.0, chance=0.25
    )  # fmt: skip
    ranks = {one.policy: dict(one.ranks) for one in found}
    assert next(iter(ranks)) is MissingCase.EXCLUDE
    assert ranks == {
        MissingCase.EXCLUDE: {"a": 1.0, "b": 2.0, "c": 3.0},
        MissingCase.WORST: {"b": 1.0, "a": 2.0, "c": 3.0},
        MissingCase.CHANCE: {"a": 1.0, "b": 2.0, "c": 3.0},
        MissingCase.FAIL: {"b": 1.0, "c": 2.0},
    }
    moved = {one.policy: dict(one.moved) for one in found}
    assert moved == {
        MissingCase.EXCLUDE: {},
        MissingCase.WORST: {"a": (1.0, 2.0), "b": (2.0, 1.0)},
        MissingCase.CHANCE: {},
        MissingCase.FAIL: {"a": (1.0, None), "b": (2.0, 1.0), "c": (3.0, 2.0)},
    }
    assert [one.cases for one in found] == [2, 3, 3, 3]


def test_a_policy_that_cannot_be_applied_says_why() -> None:
    nowhere = table({"a": [0.9, NAN], "b": [NAN, 0.5]})
    found = policy_effects(nowhere, MEAN, in_force=MissingCase.WORST, higher_is_better=True, worst=0.0)
    why = {one.policy: one.impossible for one in found}
    assert why == {
        MissingCase.WORST: "",
        MissingCase.CHANCE: "missing_case: chance needs a value, and the scorer states None",
        MissingCase.EXCLUDE: "missing_case: exclude leaves no case that every submission has",
        MissingCase.FAIL: "",
    }
    with pytest.raises(UsageError, match="needs a value"):
        policy_effects(nowhere, MEAN, in_force=MissingCase.WORST, higher_is_better=True)


def test_policies_do_not_matter_where_nothing_is_missing() -> None:
    whole = table({"a": [0.9], "b": [0.1]})
    assert policy_effects(whole, MEAN, in_force=MissingCase.FAIL, higher_is_better=True) == ()


# Several metrics

DICE = table({"a": [0.9, 0.9], "b": [0.8, 0.8], "c": [0.7, 0.7]})
DISTANCE = table({"a": [3.0, 3.0], "b": [1.0, 1.0], "c": [2.0, 2.0]})


def metrics(weight: float = 1.0) -> tuple[WeighedMetric, ...]:
    return (
        WeighedMetric(name="dice", table=DICE, higher_is_better=True, weight=weight),
        WeighedMetric(name="distance", table=DISTANCE, higher_is_better=False),
    )


@pytest.mark.parametrize(
    ("weight", "expected"),
    [
        # Ranks by dice: 1, 2, 3; by distance: 3, 1, 2.
        (1.0, {"b": (1.5, 1.0), "a": (2.0, 2.0), "c": (2.5, 3.0)}),
        (2.0, {"a": (round(5 / 3, 6), 1.0), "b": (round(5 / 3, 6), 1.0), "c": (round(8 / 3, 6), 3.0)}),
        (3.0, {"a": (1.5, 1.0), "b": (1.75, 2.0), "c": (2.75, 3.0)}),
    ],
)
def test_the_weighted_mean_of_ranks_is_ranked(weight: float, expected: dict[str, tuple[float, float]]) -> None:
    found = rank_combined(metrics(weight), MEAN, missing=MissingCase.FAIL)
    assert {row.submission: (row.value, row.rank) for row in found.rows} == expected
    assert [row.submission for row in found.rows] == list(expected)
    assert {row.submission: dict(row.by_metric) for row in found.rows}["a"] == {"dice": 1.0, "distance": 3.0}
    assert found.stability is None


@pytest.mark.parametrize("method", ["mean_then_rank", "rank_then_mean", "test_based"])
def test_one_metric_alone_is_the_method_itself(
    method: Literal["mean_then_rank", "rank_then_mean", "test_based"],
) -> None:
    values = np.random.default_rng(2).random((4, 12))
    one = ScoreTable.of(tuple("abcd"), tuple(map(str, range(12))), values)
    rule = RankingRule(method=method)
    combined = rank_combined(
        [WeighedMetric(name="m", table=one, higher_is_better=True, weight=0.3)], rule, missing=MissingCase.FAIL,
        resamples=100, seed=5,
    )  # fmt: skip
    plain = rank(one, rule, higher_is_better=True)
    assert {row.submission: row.rank for row in combined.rows} == {row.submission: row.rank for row in plain.rows}
    expected = bootstrap(one, rule, higher_is_better=True, resamples=100, seed=5)
    assert combined.stability is not None
    assert combined.stability.rows == expected.rows
    np.testing.assert_array_equal(combined.stability.taus, expected.taus)


def test_the_metrics_of_a_resample_are_of_the_same_cases() -> None:
    """Two metrics that are one another's opposite cancel out in every resample; other draws would not."""
    values = np.random.default_rng(4).random((2, 9))
    up = ScoreTable.of(("a", "b"), tuple(map(str, range(9))), values)
    down = ScoreTable.of(("a", "b"), tuple(map(str, range(9))), -values)
    both = [WeighedMetric(name=name, table=own, higher_is_better=True) for name, own in (("up", up), ("down", down))]
    found = rank_combined(both, MEAN, missing=MissingCase.FAIL, resamples=200, seed=1)
    assert found.stability is not None
    assert [dict(row.frequencies) for row in found.stability.rows] == [{1.0: 1.0}, {1.0: 1.0}]


def test_what_one_metric_lacks_is_missing() -> None:
    lacking = ScoreTable.of(("b", "a"), ("c1", "c0"), [[1.0, 1.0], [NAN, 3.0]])
    two = (metrics()[0], WeighedMetric(name="distance", table=lacking, higher_is_better=False))
    failed = rank_combined(two, MEAN, missing=MissingCase.FAIL)
    assert [(row.submission, row.rank) for row in failed.rows] == [("b", 1.0)]
    with pytest.raises(UsageError, match="no case has a value of every metric"):
        rank_combined(two, MEAN, missing=MissingCase.EXCLUDE)
    with pytest.raises(UsageError, match="another value for each metric"):
        rank_combined(two, MEAN, missing=MissingCase.WORST)
    nobody = ScoreTable.of((), ("c0", "c1"), [])
    empty = rank_combined(
        (metrics()[0], WeighedMetric(name="x", table=nobody, higher_is_better=True)), MEAN, missing=MissingCase.FAIL
    )
    assert empty.rows == ()


def test_a_case_that_somebody_misses_in_one_metric_is_left_out_of_all() -> None:
    one = table({"a": [0.1, 0.9], "b": [0.9, 0.1]})
    other = table({"a": [NAN, 0.9], "b": [0.9, 0.1]})
    found = rank_combined(
        [WeighedMetric(name=name, table=own, higher_is_better=True) for name, own in (("x", one), ("y", other))],
        MEAN, missing=MissingCase.EXCLUDE,
    )  # fmt: skip
    assert found.cases == 1
    assert [(row.submission, row.value) for row in found.rows] == [("a", 1.0), ("b", 2.0)]


@pytest.mark.parametrize("weight", [0.0, -1.0, NAN, float("inf")])
def test_a_weight_must_weigh(weight: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        rank_combined(metrics(weight), MEAN, missing=MissingCase.FAIL)


def test_a_metric_counts_once() -> None:
    with pytest.raises(ValueError, match="different names"):
        rank_combined((*metrics(), metrics()[0]), MEAN, missing=MissingCase.FAIL)
    with pytest.raises(ValueError, match="different names"):
        rank_combined((), MEAN, missing=MissingCase.FAIL)


# What a case decides


@pytest.mark.parametrize(
    ("moved", "pairs", "sentence"),
    [
        ({"SK": (3.0, 2.0), "MedAIR": (2.0, 3.0)}, (("MedAIR", "SK"),),
         "without case 079 the order of 2 and 3 flips (MedAIR, SK)"),
        ({"a": (1.0, 3.0), "b": (2.0, 1.0), "c": (3.0, 2.0)}, (("a", "b"), ("a", "c")),
         "without case 079 the order of 1 and 2 flips (a, b), and the order of 1 and 3 flips (a, c)"),
        ({"b": (1.0, 2.0)}, (), "without case 079 b moves from 1 to 2"),
        ({"b": (2.0, 1.0), "a": (1.5, 1.0)}, (),
         "without case 079 b moves from 2 to 1, and a moves from 1.5 to 1"),
    ],
)  # fmt: skip
def test_what_a_case_decides_is_said(
    moved: dict[str, tuple[float, float]], pairs: tuple[tuple[str, str], ...], sentence: str
) -> None:
    influence = Influence(case="079", moved=moved)
    assert flips(influence) == pairs
    assert influence_sentence(influence) == sentence
