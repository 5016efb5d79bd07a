"""Any long table of scores is ranked, and a wrong one is told where it is wrong."""

from pathlib import Path
from typing import Any

import pytest

from runner.challenge import MissingCase, RankingRule
from runner.errors import UsageError
from runner.pipeline.long_table import Columns, read_long_table
from runner.pipeline.rank import METHODS, RankRequest, rank_table

GOOD = "team,case,value\na,1,0.9\na,2,0.8\nb,1,0.5\nb,2,0.6\n"


def write(folder: Path, text: str) -> Path:
    path = folder / "scores.csv"
    path.write_text(text, encoding="utf-8")
    return path


def request(path: Path, **changes: Any) -> RankRequest:
    values: dict[str, Any] = {
        "table": path, "columns": Columns(), "metric": None, "rule": RankingRule(method="mean_then_rank"),
        "higher_is_better": True, "missing": MissingCase.FAIL, "worst": None, "resamples": 50, "seed": 1,
        "challenger": False,
    }  # fmt: skip
    return RankRequest(**{**values, **changes})


def test_a_table_without_tasks_is_one_task(tmp_path: Path) -> None:
    (task,) = rank_table(request(write(tmp_path, GOOD))).tasks
    assert (task.task, task.cases, task.missing) == ("all", 2, 0)
    assert [(team.team, team.by_method["mean_then_rank"]) for team in task.teams] == [("a", 1.0), ("b", 2.0)]
    assert [team.value for team in task.teams] == pytest.approx([0.85, 0.55])
    assert all(set(team.by_method) == set(METHODS) for team in task.teams)
    assert task.stability is not None
    assert [row.wins for row in task.stability.rows] == [1.0, 0.0]
    assert task.influences == ()


def test_direction_and_columns_are_options(tmp_path: Path) -> None:
    path = write(tmp_path, "who;x,sequence,score,task\na,1,0.9,t\nb,1,0.5,t\n")
    columns = Columns(team="who;x", case="sequence", value="score")
    (task,) = rank_table(request(path, columns=columns, higher_is_better=False, resamples=0)).tasks
    assert [team.team for team in task.teams] == ["b", "a"]
    assert task.stability is None


def test_several_tasks_have_a_consensus_where_their_teams_are_the_same(tmp_path: Path) -> None:
    rows = "".join(f"{team},{case},{value},{task}\n" for task in "xy" for case in "12" for team, value in
                   (("a", 0.9 if task == "x" else 0.1), ("b", 0.5), ("c", 0.3)))  # fmt: skip
    found = rank_table(request(write(tmp_path, f"team,case,value,task\n{rows}")))
    assert [task.task for task in found.tasks] == ["x", "y"]
    assert found.consensus == {"a": 2.0, "b": 1.0, "c": 3.0}
    one_less = rank_table(request(write(tmp_path, f"team,case,value,task\n{rows}d,1,0.2,y\nd,2,0.2,y\n")))
    assert one_less.consensus is None


def test_missing_values_follow_the_policy(tmp_path: Path) -> None:
    path = write(tmp_path, "team,case,value\na,1,0.9\na,2,\nb,1,0.5\nb,2,0.6\n")
    (failed,) = rank_table(request(path)).tasks
    assert ([team.team for team in failed.teams], failed.missing) == (["b"], 1)
    (worst,) = rank_table(request(path, missing=MissingCase.WORST, worst=0.0)).tasks
    assert [team.team for team in worst.teams] == ["b", "a"]
    assert [team.value for team in worst.teams] == pytest.approx([0.55, 0.45])
    (without,) = rank_table(request(path, missing=MissingCase.EXCLUDE)).tasks
    assert ([team.team for team in without.teams], without.cases) == (["a", "b"], 1)
    with pytest.raises(UsageError, match="needs a value"):
        rank_table(request(path, missing=MissingCase.WORST))


def test_one_metric_of_several_is_chosen(tmp_path: Path) -> None:
    path = write(tmp_path, "team,case,value,metric\na,1,0.9,f1\na,1,0.1,edit\nb,1,0.5,f1\nb,1,0.2,edit\n")
    (task,) = rank_table(request(path, metric="edit")).tasks
    assert [team.team for team in task.teams] == ["b", "a"]
    with pytest.raises(UsageError, match="the table holds 2 metrics: f1, edit"):
        rank_table(request(path))
    with pytest.raises(UsageError, match="there is no metric 'iou'; there are f1, edit"):
        rank_table(request(path, metric="iou"))


@pytest.mark.parametrize(
    ("text", "what", "line"),
    [
        ("team,case\na,1\n", "there is no column 'value'; there are 'team', 'case'", "line 1"),
        ("", "there is no column 'team'; there are none", "line 1"),
        ("team,case,value\n", "the table has no row", ""),
        ("team,case,value\na,1,x\n", "'x' is not a finite number", "line 2"),
        ("team,case,value\na,1,1\nb,1,inf\n", "'inf' is not a finite number", "line 3"),
        ("team,case,value\na,1,1\na,1,2\n", "team 'a' has two values for case '1' of task 'all'", "line 3"),
        ("team,case,value\na,1\n", "the row has not as many fields as the header has names, 3", "line 2"),
        ("team,case,value\na,1,1,2\n", "the row has not as many fields as the header has names, 3", "line 2"),
    ],
)
def test_a_wrong_table_is_told_where(tmp_path: Path, text: str, what: str, line: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_long_table(write(tmp_path, text), Columns())
    assert caught.value.what == what
    assert caught.value.where.endswith(line)
    assert caught.value.remedy


@pytest.mark.parametrize("content", [b"team,case,value\n\xff,1,1\n", None])
def test_a_file_that_is_no_text_or_not_there(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "scores.csv"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match="cannot be read"):
        read_long_table(path, Columns())
