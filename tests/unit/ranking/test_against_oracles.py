"""The five methods give what challengeR gives on printed results and on ties."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
import pytest

from runner.challenge import MissingCase, RankingRule
from runner.ranking import ScoreTable, apply_missing, rank

ORACLES = Path(__file__).parents[2] / "oracles"
Method = Literal["mean_then_rank", "median_then_rank", "rank_then_mean", "rank_then_median", "test_based"]
METHODS: dict[str, Method] = {
    "meanThenRank": "mean_then_rank",
    "medianThenRank": "median_then_rank",
    "rankThenMean": "rank_then_mean",
    "rankThenMedian": "rank_then_median",
    "testBased": "test_based",
}


class Expected(NamedTuple):
    value: float
    rank: int


def table_of(frame: pd.DataFrame, submission: str, case: str, value: str) -> ScoreTable:
    wide = frame.pivot_table(index=submission, columns=case, values=value, dropna=False)
    return ScoreTable.of(tuple(map(str, wide.index)), tuple(map(str, wide.columns)), wide.to_numpy())


def expected_of(oracle: pd.DataFrame, name: str, aggregate: str) -> dict[str, Expected]:
    columns = (oracle[name].tolist(), oracle[aggregate].tolist(), oracle["rank"].tolist())
    return {who: Expected(float(value), int(place)) for who, value, place in zip(*columns, strict=True)}


def petraw() -> Iterator[tuple[str, str, str, bool]]:
    for method in METHODS:
        for task in ("T1", "T2", "T3"):
            for value in ("ad_accuracy", "fbf_accuracy"):
                for medicis in (True, False):
                    yield method, task, value, medicis


@pytest.mark.parametrize(("method", "task", "value", "medicis"), list(petraw()))
def test_petraw(method: str, task: str, value: str, medicis: bool) -> None:
    results = pd.read_csv(ORACLES / "petraw_results.csv", dtype={"sequence": str, "task": str})
    oracle = pd.read_csv(ORACLES / "petraw_rankings.csv")
    chosen = oracle[(oracle.method == method) & (oracle.task == task) & (oracle.value == value)]
    expected = expected_of(chosen[chosen.medicis == medicis], "team", "aggregate")
    ours = results[(results.task == task[1:]) & (medicis | (results.team != "MediCIS"))]
    table = table_of(ours, "team", "sequence", value)
    ranking = rank(table, RankingRule(method=METHODS[method], precision=10), higher_is_better=True)
    assert len(table.cases) == 60
    assert len(expected) >= 3
    assert {row.submission: row.rank for row in ranking.rows} == {team: e.rank for team, e in expected.items()}
    for row in ranking.rows:
        assert row.value == pytest.approx(expected[row.submission].value, abs=1e-9)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("small_better", [True, False])
def test_ties_and_missing_values(method: str, small_better: bool) -> None:
    toy = table_of(pd.read_csv(ORACLES / "toy_ties_na.csv"), "alg", "case", "value")
    assert int(toy.missing.sum()) == 3
    oracle = pd.read_csv(ORACLES / "toy_ties_na_rankings.csv")
    rows = oracle[(oracle.na == "zero") & (oracle.smallBetter == small_better) & (oracle.method == method)]
    expected = expected_of(rows, "alg", "agg")
    complete = apply_missing(toy, MissingCase.WORST, worst=0.0)
    ranking = rank(complete, RankingRule(method=METHODS[method], precision=10), higher_is_better=not small_better)
    assert {row.submission: row.rank for row in ranking.rows} == {name: e.rank for name, e in expected.items()}
    for row in ranking.rows:
        assert row.value == pytest.approx(expected[row.submission].value, abs=1e-9)
    assert not np.isnan(complete.values).any()
