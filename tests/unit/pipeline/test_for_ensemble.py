"""A run that only keeps predictions for ensembles to be fitted on: scored, not checked for causality, nobody ranked."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from runner.catalog import load_challenge
from runner.challenge import CausalityMethod
from runner.cli.boundary import run_cli
from runner.confine import Confine
from runner.ensembles import Method
from runner.errors import UsageError
from runner.pipeline.evaluate import reopen, score_again
from runner.pipeline.record import EvaluateRequest, check_request, read_record, write_record
from runner.store import RunFolder, write_value
from tests.unit.pipeline.test_ensemble import OTHER, TEST, THREE, Hall


@pytest.fixture(scope="module")
def confine() -> Iterator[Confine]:
    with Confine(preload=("runner.scoring.child", "runner.formats.frame_table")) as confined:
        yield confined


@pytest.fixture
def hall(tmp_path: Path, confine: Confine) -> Hall:
    return Hall(tmp_path, confine, "frame_table")


@pytest.fixture
def flagged(hall: Hall) -> Path:
    """A run that was begun with ``--for-ensemble``."""
    root = hall.run("other", OTHER, THREE)
    run = RunFolder(root=root)
    write_value(run.record, replace(read_record(run), for_ensemble=True))
    return root


def test_it_is_scored_and_nobody_is_ranked(flagged: Path) -> None:
    score_again(RunFolder(root=flagged), lambda _: None)
    assert (flagged / "scores.csv").read_text().count("macro_f1") == len(OTHER) * len(THREE)
    assert [name for name in ("leaderboard.csv", "leaderboard.json") if (flagged / name).exists()] == []
    assert list(flagged.glob("report*")) == []


def test_ensembles_are_fitted_on_it_and_not_made_of_it(hall: Hall, flagged: Path) -> None:
    run = hall.run("final", TEST, THREE)
    (row,) = hall.make(run, Method.LEARNED, members=["a", "b"], fit=flagged).rows
    assert row.fitted_on == "other"
    with pytest.raises(UsageError, match="to be fitted on") as found:
        hall.make(flagged, Method.MAJORITY, members=["a"])
    assert found.value.remedy == f"name it with --fit {flagged}"


def test_no_cut_is_run_for_it(flagged: Path) -> None:
    run = RunFolder(root=flagged)
    record, plain = read_record(run), load_challenge(run.challenge)
    found, _ = reopen(run, record)
    assert found.challenge.causality.method is CausalityMethod.OFF
    assert (found.digest, found.challenge.tasks) == (plain.digest, plain.challenge.tasks)
    checked, _ = reopen(run, replace(record, for_ensemble=False))
    assert checked.challenge.causality == plain.challenge.causality != found.challenge.causality


@pytest.fixture
def begin(hall: Hall, tmp_path: Path) -> Callable[[bool], RunFolder]:
    """Begin a run, with or without the flag, as ``proctor evaluate`` does before it starts anything."""
    hall.run("data-only", OTHER, {})
    (tmp_path / "teams.yaml").write_text("submissions: [{submission: a, team: A, image: 'x:1'}]\n")
    run = RunFolder(root=tmp_path / "out")
    run.root.mkdir()

    def start(flag: bool) -> RunFolder:
        request = EvaluateRequest(
            challenge=str(tmp_path / "toy"), data=tmp_path / "data-only-data", submissions=tmp_path / "teams.yaml",
            out=run.root, flags={}, for_ensemble=flag,
        )  # fmt: skip
        write_record(run, request, check_request(request), lambda _: None)
        return run

    return start


@pytest.mark.parametrize("flag", [True, False])
def test_a_run_keeps_its_purpose(begin: Callable[[bool], RunFolder], flag: bool) -> None:
    assert read_record(begin(flag)).for_ensemble is flag
    assert read_record(begin(flag)).for_ensemble is flag
    with pytest.raises(UsageError, match="--for-ensemble, and cannot go on"):
        begin(not flag)
    assert read_record(begin(flag)).for_ensemble is flag


def test_the_screen_says_what_to_do_next(flagged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli(["score", str(flagged)]) == 0
    assert capsys.readouterr().out == f"kept and scored, nobody is ranked; next: proctor ensemble RUN --fit {flagged}\n"
    assert run_cli(["score", str(flagged), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "kept": str(flagged), "scores": str(flagged / "scores.csv"), "pending": [],
    }  # fmt: skip
    assert run_cli(["report", str(flagged)]) == 2
    assert "has no report" in capsys.readouterr().err
