"""What can be asked of a table beside the ranks: tests, comparisons of tasks, policies, metrics combined."""

from pathlib import Path
from typing import Any

import pytest

from runner.challenge import MissingCase, RankingRule
from runner.errors import UsageError
from runner.pipeline.long_table import Columns, metrics_of, read_frames
from runner.pipeline.rank import Combined, Questions, RankedTable, RankRequest, RunsWanted, rank_table
from runner.ranking.signed_rank import Alternative
from runner.ranking.significance import Adjustment
from tests.unit.ranking.test_against_oracles import ORACLES

TWO = "metric,team,case,value\n" + "".join(
    f"{metric},{team},{case},{value}\n"
    for metric, values in (("dice", {"a": 0.9, "b": 0.8, "c": 0.7}), ("distance", {"a": 3, "b": 1, "c": 2}))
    for team, value in values.items()
    for case in "12"
)


def ask(table: Path, questions: Questions, **changes: Any) -> RankedTable:
    values: dict[str, Any] = {
        "table": table, "columns": Columns(), "metric": None, "rule": RankingRule(method="mean_then_rank"),
        "higher_is_better": True, "missing": MissingCase.FAIL, "worst": None, "resamples": 0, "seed": 1,
        "challenger": False, "questions": questions, **changes,
    }  # fmt: skip
    return rank_table(RankRequest(**values))


def petraw(questions: Questions, **changes: Any) -> RankedTable:
    columns = Columns(case="sequence", value="ad_accuracy")
    return ask(ORACLES / "petraw_results.csv", questions, columns=columns, **changes)


def written(folder: Path, text: str) -> Path:
    path = folder / "scores.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_nothing_is_answered_that_was_not_asked() -> None:
    found = petraw(Questions())
    assert found.comparisons == ()
    assert all((task.significance, task.policies, task.combined) == (None, (), None) for task in found.tasks)


def test_tests_between_teams_are_adjusted_by_holm_unless_asked() -> None:
    holm = petraw(Questions(significance=Alternative.GREATER)).tasks[1].significance
    plain = petraw(Questions(significance=Alternative.GREATER, adjustment=Adjustment.NONE)).tasks[1].significance
    assert holm is not None
    assert plain is not None
    assert (holm.adjustment, holm.tests, int(holm.significant.sum())) == (Adjustment.HOLM, 30, 11)
    assert (plain.adjustment, int(plain.significant.sum())) == (Adjustment.NONE, 12)
    assert holm.submissions == ("Hutom", "JHU_CIRL", "MedAIR", "NCC_NEXT", "SK", "MediCIS")


def test_the_level_is_the_rules() -> None:
    rule = RankingRule(method="mean_then_rank", alpha=0.001)
    found = petraw(Questions(significance=Alternative.TWO_SIDED, compare_tasks=True), rule=rule)
    assert found.tasks[0].significance is not None
    assert found.tasks[0].significance.alpha == 0.001
    assert all(one.significant == (one.p <= 0.001) for one in found.comparisons)


def test_tasks_of_a_team_are_compared_without_adjustment_unless_asked() -> None:
    plain = petraw(Questions(compare_tasks=True)).comparisons
    assert len(plain) == 43
    assert sum(one.significant for one in plain) == 36
    holm = petraw(Questions(compare_tasks=True, adjustment=Adjustment.HOLM)).comparisons
    assert {one.adjustment for one in plain} == {Adjustment.NONE}
    assert {one.adjustment for one in holm} == {Adjustment.HOLM}
    assert sum(one.significant for one in holm) < 36


def test_one_task_cannot_be_compared(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is one task, 'all'"):
        ask(written(tmp_path, "team,case,value\na,1,1\n"), Questions(compare_tasks=True))


def test_policies_are_answered_where_a_value_is_missing(tmp_path: Path) -> None:
    path = written(tmp_path, "team,case,value\na,1,0.9\na,2,\nb,1,0.5\nb,2,0.6\n")
    (task,) = ask(path, Questions(policies=True), worst=0.0).tasks
    assert {one.policy: dict(one.ranks) for one in task.policies} == {
        MissingCase.FAIL: {"b": 1.0},
        MissingCase.WORST: {"b": 1.0, "a": 2.0},
        MissingCase.EXCLUDE: {"a": 1.0, "b": 2.0},
        MissingCase.CHANCE: {},
    }


def test_metrics_are_combined_each_in_its_direction(tmp_path: Path) -> None:
    combine = (Combined(metric="distance", higher_is_better=False), Combined(metric="dice", weight=3.0))
    (task,) = ask(written(tmp_path, TWO), Questions(combine=combine)).tasks
    assert task.combined is not None
    assert {row.submission: (row.value, row.rank) for row in task.combined.rows} == {
        "a": (1.5, 1.0), "b": (1.75, 2.0), "c": (2.75, 3.0),
    }  # fmt: skip
    # What is ranked beside it is the first of them, in its own direction.
    assert [team.team for team in task.teams] == ["b", "c", "a"]


def test_a_metric_that_is_not_there_is_refused(tmp_path: Path) -> None:
    combine = (Combined(metric="dice"), Combined(metric="iou"))
    path = written(tmp_path, TWO)
    assert metrics_of(path, Columns()) == ("dice", "distance")
    with pytest.raises(UsageError, match="no metric 'iou' to combine; there are 'dice', 'distance'"):
        ask(path, Questions(combine=combine))
    with pytest.raises(UsageError, match="no metric 'dice' to combine; no column 'metric'"):
        ask(written(tmp_path, "team,case,value\na,1,1\n"), Questions(combine=combine))
    partly = TWO.replace("\n", ",x\n").replace("value,x", "value,task") + "dice,a,1,0.5,y\n"
    with pytest.raises(UsageError, match="task 'y' has no value of 'distance', which is to be combined"):
        ask(written(tmp_path, partly), Questions(combine=(Combined(metric="dice"), Combined(metric="distance"))))


# Random runs of frames

RIGHT = {"a": [1, 1, 1, 1, 0, 1], "b": [0, 1, 0, 1, 0, 0]}
FRAMES = "team,case,frame,value\n" + "".join(
    f"{team},{case},{number},{value}\n"
    for team, values in RIGHT.items()
    for case in ("v", "w")
    for number, value in reversed(list(enumerate(values, 1)))
)


def test_teams_are_compared_over_random_runs_of_a_table_of_frames(tmp_path: Path) -> None:
    runs = RunsWanted(number=6, length=3)
    (task,) = ask(written(tmp_path, FRAMES), Questions(), runs=runs).tasks
    assert {team.team: team.value for team in task.teams} == {"a": round(5 / 6, 6), "b": round(1 / 3, 6)}
    found = task.random_runs
    assert found is not None
    assert (len(found.windows), found.undefined, found.tests.tests) == (6, 0, 1)
    for team, values in zip(found.table.submissions, found.table.values.tolist(), strict=True):
        own = RIGHT[team]
        assert values == pytest.approx([sum(own[one.first : one.first + 3]) / 3 for one in found.windows])
    again = ask(written(tmp_path, FRAMES), Questions(), runs=runs).tasks[0].random_runs
    other = ask(written(tmp_path, FRAMES), Questions(), runs=runs, seed=2).tasks[0].random_runs
    assert again is not None
    assert other is not None
    assert found.windows == again.windows != other.windows


def test_runs_are_drawn_from_the_cases_that_all_ranked_teams_have(tmp_path: Path) -> None:
    extra = FRAMES + "".join(f"a,x,{number},1\n" for number in range(50))
    path = written(tmp_path, extra)
    asked: dict[str, Any] = {"missing": MissingCase.WORST, "worst": 0.0}
    (task,) = ask(path, Questions(), runs=RunsWanted(number=8, length=3), **asked).tasks
    assert task.random_runs is not None
    assert {one.case for one in task.random_runs.windows} == {"v", "w"}
    with pytest.raises(UsageError, match="gives 8 runs of 3 frames and not 9: 8 were drawn"):
        ask(path, Questions(), runs=RunsWanted(number=9, length=3), **asked)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("a,v,1.5,1\n", "'1.5' is not the number of a frame"),
        ("a,v,1,1\na,v,1,0\n", "team 'a' has two values for frame 1 of case 'v'"),
        ("a,v,1,1\na,v,3,0\n", "team 'a' has no value for frame 2 of case 'v'"),
        ("a,v,1,\n", "frame 1 has no value"),
        ("", "the table has no row"),
    ],
)
def test_a_wrong_table_of_frames_is_told(tmp_path: Path, text: str, what: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_frames(written(tmp_path, "team,case,frame,value\n" + text), Columns(), "frame")
    assert caught.value.what == what
    assert caught.value.remedy


def test_teams_must_have_the_same_frames(tmp_path: Path) -> None:
    path = written(tmp_path, FRAMES + "b,v,7,1\n")
    with pytest.raises(
        UsageError, match="the teams differ in their number of frames of case 'v': 'a' has 6, 'b' has 7"
    ):
        ask(path, Questions(), runs=RunsWanted(number=2, length=3))
