"""Ranks resampled cases by every method, beside one signed-rank test of scipy's for each pair and resample.

Five tasks of 60 cases and 4 to 6 teams, 1000 resamples each: the tables PETRAW 2021 printed. challengeR 1.0.5 (R 4.2.2)
took 30.6, 28.0, 49.5, 52.2 and 80.5 s for the five methods, on one core of another machine.

    python benchmarks/ranking.py [--resamples 1000] [--json]
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.stats

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from runner.challenge import RankingRule
from runner.pipeline.rank import METHODS
from runner.ranking import ScoreTable
from runner.ranking.stability import bootstrap, draw

RESULTS = Path(__file__).resolve().parents[1] / "tests" / "oracles" / "petraw_results.csv"


def tables() -> list[ScoreTable]:
    """The five tasks."""
    frame = pd.read_csv(RESULTS, dtype={"sequence": str, "task": str})
    found = []
    for _, rows in frame.groupby("task"):
        wide = rows.pivot_table(index="team", columns="sequence", values="ad_accuracy")
        found.append(ScoreTable.of(tuple(wide.index), tuple(wide.columns), wide.to_numpy()))
    return found


def seconds(act: Callable[[], object], runs: int = 5) -> float:
    """Median of several runs."""
    taken = []
    for _ in range(runs):
        began = time.perf_counter()
        act()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def one_by_one(table: ScoreTable, resamples: int) -> None:
    """The tests of ``test_based`` as scipy does them, one pair and one resample at a time."""
    for drawn in draw(len(table.cases), resamples=resamples, seed=1):
        cases = np.repeat(np.arange(len(table.cases)), drawn)
        for first in range(len(table.submissions)):
            for second in range(len(table.submissions)):
                if first != second:
                    difference = np.round(table.values[first, cases] - table.values[second, cases], 6)
                    scipy.stats.wilcoxon(difference, alternative="greater", correction=True, method="asymptotic")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--resamples", type=int, default=1000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found, result = tables(), {}
    for method in METHODS:
        rule = RankingRule.model_validate({"method": method})
        result[method] = seconds(
            lambda rule=rule: [  # type: ignore[misc]
                bootstrap(table, rule, higher_is_better=True, resamples=options.resamples, seed=1) for table in found
            ]
        )
    few = max(1, options.resamples // 50)
    began = time.perf_counter()
    for table in found:
        one_by_one(table, few)
    peer = (time.perf_counter() - began) * options.resamples / few
    if options.json:
        json.dump({"resamples": options.resamples, "seconds": result, "scipy_one_by_one_seconds": peer}, sys.stdout)
        return
    print(f"{len(found)} tasks, {options.resamples} resamples each, median of 5 runs, one thread of numpy or more")
    for method, taken in result.items():
        print(f"  {method:<18} {taken:8.3f} s")
    print(f"  scipy, one by one  {peer:8.1f} s (from {few} resamples), {peer / result['test_based']:.0f} × test_based")


if __name__ == "__main__":
    main()
