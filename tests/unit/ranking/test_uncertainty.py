"""Bootstraps, tests and what a case weighs: against R, challengeR, scipy and plain loops."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from runner.challenge import RankingRule
from runner.ranking import ScoreTable, rank
from runner.ranking.multisets import every_case_once, pairwise, rank_multisets, rank_rows
from runner.ranking.signed_rank import Alternative, benjamini_hochberg, holm, signed_rank
from runner.ranking.stability import bootstrap, consensus, draw, influences, kendall_tau, pronounce
from tests.unit.ranking.test_against_oracles import METHODS, ORACLES, table_of

RESAMPLES = 2000


def petraw(task: str, *, medicis: bool) -> ScoreTable:
    results = pd.read_csv(ORACLES / "petraw_results.csv", dtype={"sequence": str, "task": str})
    chosen = results[(results.task == task[1:]) & (medicis | (results.team != "MediCIS"))]
    return table_of(chosen, "team", "sequence", "ad_accuracy")


# The test


@pytest.mark.parametrize("task", ["T1", "T2", "T3"])
def test_p_values_are_those_of_r(task: str) -> None:
    oracle = pd.read_csv(ORACLES / "pairwise_wilcoxon.csv")
    table = petraw(task, medicis=True)
    whole = every_case_once(len(table.cases))
    rows = oracle[oracle.task == task]
    assert len(rows) == len(table.submissions) * (len(table.submissions) - 1)
    for column, alternative in (("p_greater", Alternative.GREATER), ("p_two", Alternative.TWO_SIDED)):
        (ours,) = pairwise(table.values, whole, precision=None, alternative=alternative)
        for a, b, p in zip(rows.a.tolist(), rows.b.tolist(), rows[column].tolist(), strict=True):
            found = ours[table.submissions.index(str(a)), table.submissions.index(str(b))]
            assert found == pytest.approx(float(p), rel=1e-9, abs=1e-14), (a, b, column)


@given(
    st.lists(st.integers(-4, 4), min_size=2, max_size=25).filter(any),
    st.integers(0, 2**32 - 1),
    st.sampled_from(Alternative),
)
def test_a_multiset_is_the_test_on_its_cases_written_out(
    differences: list[int], seed: int, alternative: Alternative
) -> None:
    values = np.array(differences, dtype=np.float64)
    counts = draw(values.size, resamples=3, seed=seed)
    ours = signed_rank(values, counts, alternative=alternative)
    for found, drawn in zip(ours, counts, strict=True):
        written = np.repeat(values, drawn)
        if not written.any():
            assert np.isnan(found)
            continue
        peer = scipy.stats.wilcoxon(
            written, alternative=alternative.value, correction=True, method="asymptotic", zero_method="wilcox"
        )
        assert found == pytest.approx(float(peer.pvalue), rel=1e-12, abs=1e-15)


def test_no_difference_is_no_win_and_no_answer() -> None:
    assert np.isnan(signed_rank(np.zeros(5), every_case_once(5), alternative=Alternative.GREATER)).all()
    rule = RankingRule(method="test_based")
    aggregates, ranks = rank_multisets(np.ones((3, 5)), every_case_once(5), rule, higher_is_better=True)
    assert aggregates.tolist() == [[0.0, 0.0, 0.0]]
    assert ranks.tolist() == [[1.0, 1.0, 1.0]]


def test_adjustments() -> None:
    p = np.array([0.01, np.nan, 0.04, 0.03, 0.005])
    np.testing.assert_allclose(holm(p), [0.03, np.nan, 0.06, 0.06, 0.02])
    np.testing.assert_allclose(benjamini_hochberg(p), [0.02, np.nan, 0.04, 0.04, 0.02])
    np.testing.assert_allclose(holm(np.array([0.6, 0.7])), [1.0, 1.0])
    assert holm(np.array([np.nan])).tolist() == pytest.approx([np.nan], nan_ok=True)


# Resampling


class Expected(NamedTuple):
    team: str
    frequencies: dict[float, float]
    resamples: int


def _frequencies(text: str) -> dict[float, float]:
    pairs = (part.split(":") for part in text.split())
    return {float(place): float(share) for place, share in pairs}


def _settings() -> Iterator[tuple[str, str, bool]]:
    for method in METHODS:
        for task in ("T1", "T2", "T3"):
            for medicis in (True, False):
                yield method, task, medicis


def _bound(p: float, ours: int, theirs: int) -> float:
    """Five standard errors of the difference of two shares, and one draw."""
    share = min(max(p, 1 / theirs), 1 - 1 / theirs)
    return float(5 * np.sqrt(share * (1 - share) * (1 / ours + 1 / theirs)) + 1 / theirs)


def _assert_like(expected: list[Expected], method: str, task: str, *, medicis: bool, challenger: bool) -> None:
    table = petraw(task, medicis=medicis)
    rule = RankingRule(method=METHODS[method], precision=10)
    found = bootstrap(table, rule, higher_is_better=True, resamples=RESAMPLES, seed=7, challenger=challenger)
    assert {row.team for row in expected} == set(table.submissions)
    ours = {row.submission: row for row in found.rows}
    for row in expected:
        places = row.frequencies.keys() | ours[row.team].frequencies.keys()
        for place in places:
            theirs, mine = row.frequencies.get(place, 0.0), ours[row.team].frequencies.get(place, 0.0)
            assert abs(theirs - mine) <= _bound(theirs, RESAMPLES, row.resamples), (row.team, place, theirs, mine)


@pytest.mark.parametrize(("method", "task", "medicis"), list(_settings()))
def test_a_true_multiset_is_resampled(method: str, task: str, medicis: bool) -> None:
    oracle = pd.read_csv(ORACLES / "bootstrap_correct.csv")
    rows = oracle[(oracle.method == method) & (oracle.task == task) & (oracle.medicis == medicis)]
    expected = [
        Expected(str(team), _frequencies(str(freq)), int(n))
        for team, freq, n in zip(rows.team, rows.freq, rows.nboot, strict=True)
    ]
    _assert_like(expected, method, task, medicis=medicis, challenger=False)


@pytest.mark.parametrize("task", ["T1", "T2", "T3"])
@pytest.mark.parametrize("method", METHODS)
def test_challengers_own_resampling_on_request(method: str, task: str) -> None:
    oracle = pd.read_csv(ORACLES / f"bootstrap_challengeR_{method}.csv")
    rows = oracle[(oracle.task == task) & oracle.medicis]
    expected = [
        Expected(str(team), {k: v / 1000 for k, v in _frequencies(str(freq)).items()}, 1000)
        for team, freq in zip(rows.team, rows.freq, strict=True)
    ]
    _assert_like(expected, method, task, medicis=True, challenger=True)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("higher", [True, False])
def test_every_resample_is_the_method_on_its_cases_written_out(method: str, higher: bool) -> None:
    generator = np.random.default_rng(3)
    values = generator.integers(0, 6, size=(4, 9)) / 10
    rule = RankingRule(method=METHODS[method], precision=8)
    counts = draw(9, resamples=25, seed=5)
    aggregates, ranks = rank_multisets(values, counts, rule, higher_is_better=higher)
    for number, drawn in enumerate(counts):
        written = np.repeat(values, drawn, axis=1)
        table = ScoreTable.of(tuple("abcd"), tuple(map(str, range(9))), written)
        expected = rank(table, rule, higher_is_better=higher)
        assert [expected.rank_of(name) for name in "abcd"] == ranks[number].tolist()
        by_name = {row.submission: row.value for row in expected.rows}
        assert [by_name[name] for name in "abcd"] == pytest.approx(aggregates[number].tolist(), abs=1e-9)


def test_the_same_seed_gives_the_same_and_another_another() -> None:
    table = petraw("T2", medicis=True)
    rule = RankingRule(method="mean_then_rank")
    one, again, other = (bootstrap(table, rule, higher_is_better=True, resamples=200, seed=seed) for seed in (1, 1, 2))
    assert one.rows == again.rows
    assert one.rows != other.rows
    assert all(sum(row.frequencies.values()) == pytest.approx(1.0) for row in one.rows)
    assert all(row.low <= row.median <= row.high for row in one.rows)
    assert sum(row.wins for row in one.rows) >= 1.0 - 1e-12


@given(st.lists(st.integers(0, 3), min_size=2, max_size=8), st.integers(0, 2**32 - 1))
def test_kendalls_tau_is_scipys(full: list[int], seed: int) -> None:
    others = np.random.default_rng(seed).integers(0, 4, size=(5, len(full))).astype(np.float64)
    ours = kendall_tau(others, np.array(full, dtype=np.float64))
    for tau, other in zip(ours, others, strict=True):
        assert tau == pytest.approx(float(scipy.stats.kendalltau(other, full).statistic), abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("method", METHODS)
def test_kendalls_tau_over_resamples_is_near_challengers(method: str) -> None:
    oracle = pd.read_csv(ORACLES / f"kendall_challengeR_{method}.csv")
    row = oracle[(oracle.task == "T1") & (oracle.medicis)].iloc[0]
    found = bootstrap(
        petraw("T1", medicis=True), RankingRule(method=METHODS[method], precision=10), higher_is_better=True,
        resamples=RESAMPLES, seed=7, challenger=True,
    )  # fmt: skip
    assert float(np.nanmean(found.taus)) == pytest.approx(float(row["mean"]), abs=0.02)


# One case less, several methods, several tasks


def test_a_case_that_decides_is_named() -> None:
    table = ScoreTable.of(("a", "b", "c"), ("1", "2", "3"), [[0.9, 0.1, 0.5], [0.5, 0.52, 0.5], [0.1, 0.1, 0.1]])
    found = influences(table, RankingRule(method="mean_then_rank"), higher_is_better=True)
    moved = {one.case: dict(one.moved) for one in found}
    assert moved == {"2": {"a": (2.0, 1.0), "b": (1.0, 2.0)}}


def test_one_case_cannot_be_left_out_of_one() -> None:
    with pytest.raises(ValueError, match="one case"):
        influences(ScoreTable.of(("a",), ("1",), [[1.0]]), RankingRule(method="mean_then_rank"), higher_is_better=True)


@pytest.mark.parametrize(
    ("ranks", "announced"),
    [
        ({"a": (1, 1, 1, 2, 1), "b": (2, 2, 2, 1, 2)}, {"a": (1, True, 4), "b": (2, True, 4)}),
        ({"a": (1, 2, 2), "b": (2, 1, 1), "c": (3, 3, 3)}, {"a": (1, False, 1), "b": (1, False, 1), "c": (3, True, 3)}),
        # PETRAW's task 2: the third is stable, the fourth is not, and they change places.
        ({"m": (3, 3, 4, 3, 4), "s": (4, 3, 3, 3, 3)}, {"m": (3, True, 3), "s": (3, False, 1)}),
        # Not stable, but never in dispute with its neighbour.
        ({"a": (1, 1, 1), "b": (2, 3, 3), "c": (3, 2, 2)}, {"a": (1, True, 3), "b": (2, False, 1), "c": (2, False, 1)}),
        ({"a": (1, 1), "b": (1, 2)}, {"a": (1, True, 2), "b": (1, False, 1)}),
    ],
)
def test_ranks_are_pronounced_by_the_majority(
    ranks: dict[str, tuple[float, ...]], announced: dict[str, tuple[float, bool, int]]
) -> None:
    assert {one.submission: (one.rank, one.stable, one.methods) for one in pronounce(ranks)} == announced


def test_ranks_that_are_not_equally_many_cannot_be_compared() -> None:
    with pytest.raises(ValueError, match="differ"):
        pronounce({"a": (1,), "b": (2, 1)})
    assert pronounce({}) == ()


def test_consensus_is_the_mean_rank_with_averaged_ties() -> None:
    assert consensus({"a": (1, 2), "b": (2, 1), "c": (3, 3)}) == {"a": 1.5, "b": 1.5, "c": 3.0}


@given(st.lists(st.lists(st.integers(0, 4), min_size=4, max_size=4), min_size=1, max_size=5))
def test_ranks_of_rows_are_scipys(rows: list[list[int]]) -> None:
    cost = np.array(rows, dtype=np.float64)
    for ties in ("min", "average"):
        expected = scipy.stats.rankdata(cost, method=ties, axis=1)
        np.testing.assert_array_equal(rank_rows(cost, ties=ties), expected)
