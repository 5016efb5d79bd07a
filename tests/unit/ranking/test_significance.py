"""Maps of significance and comparisons between tasks: against R's p-values and scipy's tests on printed results."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from runner.ranking import ScoreTable
from runner.ranking.between_tasks import TaskComparison, compare_tasks
from runner.ranking.signed_rank import Alternative
from runner.ranking.significance import Adjustment, SignificanceMap, significance_map
from tests.unit.ranking.test_against_oracles import ORACLES, table_of

ALL_FIVE = ("Hutom", "MediCIS", "NCC_NEXT", "SK")
"""The teams that took part in all tasks of PETRAW."""


def petraw(task: str) -> ScoreTable:
    results = pd.read_csv(ORACLES / "petraw_results.csv", dtype={"sequence": str, "task": str})
    return table_of(results[results.task == task], "team", "sequence", "ad_accuracy")


def mapped(table: ScoreTable, alternative: Alternative, adjustment: Adjustment) -> SignificanceMap:
    return significance_map(
        table, higher_is_better=True, precision=None, alternative=alternative, adjustment=adjustment
    )


def by_hand(p: list[float], adjustment: Adjustment) -> list[float]:
    """Holm in a plain loop; Benjamini and Hochberg by scipy."""
    if adjustment is Adjustment.NONE:
        return p
    if adjustment is Adjustment.BENJAMINI_HOCHBERG:
        return [float(value) for value in scipy.stats.false_discovery_control(p, method="bh")]
    found, reached = {}, 0.0
    for rank, (value, place) in enumerate(sorted((value, place) for place, value in enumerate(p))):
        reached = max(reached, min(1.0, value * (len(p) - rank)))
        found[place] = reached
    return [found[place] for place in range(len(p))]


@pytest.mark.parametrize("task", ["T1", "T2", "T3"])
@pytest.mark.parametrize("adjustment", Adjustment)
def test_the_one_sided_map_adjusts_rs_p_values_over_all_ordered_pairs(task: str, adjustment: Adjustment) -> None:
    oracle = pd.read_csv(ORACLES / "pairwise_wilcoxon.csv")
    rows = oracle[oracle.task == task]
    table = petraw(task[1:])
    found = mapped(table, Alternative.GREATER, adjustment)
    expected = by_hand([float(p) for p in rows.p_greater], adjustment)
    assert found.tests == len(expected) == len(table.submissions) * (len(table.submissions) - 1)
    for a, b, p in zip(rows.a.tolist(), rows.b.tolist(), expected, strict=True):
        first, second = table.submissions.index(str(a)), table.submissions.index(str(b))
        assert found.p[first, second] == pytest.approx(p, rel=1e-9, abs=1e-13)
        assert bool(found.significant[first, second]) == (p <= 0.05)


@pytest.mark.parametrize("task", ["T1", "T2", "T3"])
@pytest.mark.parametrize("adjustment", Adjustment)
def test_the_two_sided_map_is_symmetric_and_counts_a_pair_once(task: str, adjustment: Adjustment) -> None:
    oracle = pd.read_csv(ORACLES / "pairwise_wilcoxon.csv")
    rows = oracle[(oracle.task == task) & (oracle.a < oracle.b)]
    table = petraw(task[1:])
    found = mapped(table, Alternative.TWO_SIDED, adjustment)
    expected = by_hand([float(p) for p in rows.p_two], adjustment)
    assert found.tests == len(expected)
    np.testing.assert_array_equal(found.p, found.p.T)
    for a, b, p in zip(rows.a.tolist(), rows.b.tolist(), expected, strict=True):
        assert found.p[table.submissions.index(str(a)), table.submissions.index(str(b))] == pytest.approx(p, rel=1e-9)


def test_adjusting_decides_in_petraws_second_task() -> None:
    """What is significant alone is not always so among 30 tests."""
    table = petraw("2")
    counts = {
        adjustment: int(mapped(table, Alternative.GREATER, adjustment).significant.sum()) for adjustment in Adjustment
    }
    assert counts == {Adjustment.NONE: 12, Adjustment.HOLM: 11, Adjustment.BENJAMINI_HOCHBERG: 11}


def test_lower_can_be_better_and_no_difference_is_not_significant() -> None:
    values = [[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], [1.0] * 7]
    table = ScoreTable.of(("low", "high", "same"), tuple("1234567"), values)
    lower = significance_map(table, higher_is_better=False, precision=6, adjustment=Adjustment.NONE)
    assert lower.significant.tolist() == [[False, True, False], [False, False, False], [False, True, False]]
    higher = significance_map(table, higher_is_better=True, precision=6, adjustment=Adjustment.NONE)
    assert higher.significant.tolist() == lower.significant.T.tolist()
    assert np.isnan(lower.p[0, 2])
    assert lower.tests == 4


def test_one_submission_has_nobody_to_be_compared_with() -> None:
    alone = significance_map(ScoreTable.of(("a",), ("1",), [[1.0]]), higher_is_better=True, precision=6)
    assert (alone.p.shape, alone.tests, bool(alone.significant.any())) == ((1, 1), 0, False)


def test_missing_values_come_first() -> None:
    with pytest.raises(ValueError, match="missing-case policy"):
        significance_map(ScoreTable.of(("a",), ("1",), [[np.nan]]), higher_is_better=True, precision=6)


# Between tasks


def of_petraw() -> dict[tuple[str, str, str], TaskComparison]:
    found = compare_tasks({task: petraw(task) for task in "12345"}, precision=6)
    return {(one.team, one.first, one.second): one for one in found}


def test_every_pair_of_petraws_tasks_is_tested_as_scipy_does() -> None:
    found = of_petraw()
    results = pd.read_csv(ORACLES / "petraw_results.csv", dtype={"sequence": str, "task": str})
    expected = 0
    for team, rows in results.groupby("team"):
        wide = rows.pivot_table(index="task", columns="sequence", values="ad_accuracy")
        for first, second in combinations(wide.index, 2):
            difference = np.round(wide.loc[first].to_numpy() - wide.loc[second].to_numpy(), 6)
            peer = scipy.stats.wilcoxon(difference, correction=True, method="asymptotic", zero_method="wilcox")
            one = found[str(team), first, second]
            assert one.p == pytest.approx(float(peer.pvalue), rel=1e-12)
            assert one.significant == (float(peer.pvalue) <= 0.05)
            assert one.first_mean == pytest.approx(wide.loc[first].mean())
            assert one.second_mean == pytest.approx(wide.loc[second].mean())
            assert one.cases == 60
            expected += 1
    # Four teams in all five tasks, MedAIR in three, two teams in one.
    assert len(found) == expected == 43


def test_petraws_abstract_is_true_of_its_tables() -> None:
    """Video with kinematics is significantly better than each modality alone, for every team that had all tasks."""
    found = of_petraw()
    for team in ALL_FIVE:
        for alone in "123":
            one = found[team, alone, "4"]
            assert one.significant, (team, alone)
            assert one.second_mean > one.first_mean


def test_which_of_the_forty_cells_of_four_teams_are_not_significant() -> None:
    cells = [one for one in of_petraw().values() if one.team in ALL_FIVE]
    assert len(cells) == 40
    assert {(one.team, one.first, one.second): round(one.p, 3) for one in cells if not one.significant} == {
        ("Hutom", "4", "5"): 0.64,
        ("MediCIS", "1", "2"): 0.132,
        ("MediCIS", "2", "5"): 0.328,
        ("NCC_NEXT", "1", "3"): 0.76,
        ("NCC_NEXT", "4", "5"): 0.968,
        ("SK", "1", "2"): 0.052,
        ("SK", "4", "5"): 0.273,
    }


def test_only_cases_with_a_value_in_both_are_compared_and_others_are_not_there() -> None:
    tables = {
        "x": ScoreTable.of(("a", "b"), ("1", "2", "3"), [[0.1, 0.2, np.nan], [0.1, 0.1, 0.1]]),
        "y": ScoreTable.of(("b", "a"), ("3", "2", "1"), [[0.1, 0.1, 0.1], [0.9, 0.9, 0.9]]),
        "z": ScoreTable.of(("a",), ("4",), [[0.5]]),
    }
    a, b = compare_tasks(tables, precision=6)
    assert (a.team, a.first, a.second, a.cases) == ("a", "x", "y", 2)
    assert [a.first_mean, a.second_mean] == pytest.approx([0.15, 0.9])
    assert (b.team, b.cases, b.significant) == ("b", 3, False)
    assert np.isnan(b.p)


def test_comparisons_of_a_team_can_be_adjusted() -> None:
    tables = {task: petraw(task) for task in "12345"}
    plain = {(one.team, one.first, one.second): one for one in compare_tasks(tables, precision=6)}
    held = compare_tasks(tables, precision=6, adjustment=Adjustment.HOLM)
    own = [one for one in held if one.team == "MediCIS"]
    expected = by_hand([plain[one.team, one.first, one.second].p for one in own], Adjustment.HOLM)
    assert [one.p for one in own] == pytest.approx(expected, rel=1e-12)
    lost = {(one.first, one.second) for one in own if plain[one.team, one.first, one.second].significant}
    assert lost - {(one.first, one.second) for one in own if one.significant} == {("2", "4")}
