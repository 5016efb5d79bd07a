"""A run is ranked as its challenge says, also over random runs of frames, and while cases are pending on request."""

import json
import shutil
import threading
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runner.catalog import find_challenge, load_challenge
from runner.challenge import MissingCase
from runner.engine import Engine
from runner.errors import HostFault, UsageError
from runner.formats.contract import Answer, FrameScores, FrameTable, LabelImages
from runner.judge import CaseOutcome
from runner.pipeline.events import Event
from runner.pipeline.rank import Questions, RunsWanted
from runner.pipeline.rank_run import RankedRun, RunRankRequest, cut_to, rank_run
from runner.pipeline.score_files import FilesRequest, score_files
from runner.pipeline.scorer_container import EngineDoor
from runner.ranking.signed_rank import Alternative
from runner.ranking.windows import Window, draw_windows
from runner.scoring.metrics import Undefined, mean_precision, video_precision
from runner.store import RunFolder, read_value, write_value
from runner.verdict import Verdict, VerdictWord
from tests.unit.cli.test_rank import run as typed

FRAMES = {"VID01": 60, "VID02": 45}
NOISE = {"good": 0.5, "middling": 1.0, "poor": 2.0}


def no_engine(address: str) -> Engine:
    """No scorer of these runs in a container."""
    raise AssertionError(address)


def scored(challenge: str, folder: Path) -> RunFolder:
    """A run over ``folder/teams`` and ``folder/data``."""
    request = FilesRequest(
        loaded=load_challenge(find_challenge(challenge)), predictions=folder / "teams", references=folder / "data",
        out=folder / "run",
    )  # fmt: skip
    door = EngineDoor(connect=no_engine, stopping=lambda: nullcontext(threading.Event()))
    return score_files(request, list[Event]().append, door=door).run


Truth = dict[str, tuple[np.ndarray[Any, Any], dict[str, np.ndarray[Any, Any]]]]


@pytest.fixture(scope="module")
def triplets(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunFolder, Truth]:
    """Three teams on two short videos of CholecTriplet, and by video what is true and what each team said."""
    folder, generator = tmp_path_factory.mktemp("triplets"), np.random.default_rng(1)
    known: Truth = {}
    for video, frames in FRAMES.items():
        images = folder / "data" / "videos" / video
        images.mkdir(parents=True)
        for number in range(1, frames + 1):
            (images / f"{number:06d}.png").touch()
        truth = np.zeros((frames, 100), dtype=np.int64)
        truth[np.arange(12, frames), generator.integers(0, 4, size=frames - 12)] = 1
        labels = folder / "data" / "triplet" / f"{video}.txt"
        labels.parent.mkdir(exist_ok=True)
        labels.write_text(
            "".join(",".join(map(str, [number, *row])) + "\n" for number, row in enumerate(truth.tolist(), 1))
        )
        said = {}
        for team, noise in NOISE.items():
            scores = 1 / (1 + np.exp(1 - 2 * truth - noise * generator.normal(size=truth.shape)))
            said[team] = np.round(scores, 5)
            path = folder / "teams" / team / f"{video}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            answers = {f"{number:06d}": {"recognition": row} for number, row in enumerate(said[team].tolist(), 1)}
            path.write_text(json.dumps(answers))
        known[video] = (truth == 1, said)
    return scored("cholectriplet2021", folder), known


def ask(run: RunFolder, **changes: Any) -> RankedRun:
    values: dict[str, Any] = {
        "run": run, "resamples": 20, "seed": 3, "challenger": False, "questions": Questions(), **changes
    }  # fmt: skip
    return rank_run(RunRankRequest(**values))


@pytest.fixture
def copied(triplets: tuple[RunFolder, Truth], tmp_path: Path) -> Callable[[str, str, VerdictWord], RunFolder]:
    """Copies the run, with another verdict for one case of one team."""

    def change(team: str, case: str, word: VerdictWord) -> RunFolder:
        run = RunFolder(root=tmp_path / "run")
        shutil.copytree(triplets[0].root, run.root, dirs_exist_ok=True)
        path = run.outcome(team, "recognition", case)
        verdict = Verdict(word=word, sentence="so it ended")
        write_value(path, replace(read_value(path, CaseOutcome), verdict=verdict))
        return run

    return change


def test_a_run_is_ranked_as_its_leaderboard(triplets: tuple[RunFolder, Truth]) -> None:
    run, _ = triplets
    found = ask(run)
    board = json.loads(run.leaderboard_json.read_text())["boards"][0]
    (task,) = found.tasks
    assert [(team.team, team.by_method[found.method]) for team in task.ranked.teams] == [
        (row["submission"], row["rank"]) for row in board["rows"]
    ]
    assert (task.metric, task.ranked.cases, task.own_figure, found.watermark) == ("ap_ivt", 2, True, "")
    assert (task.left_out, task.resubmitted, dict(task.unranked), task.ranked.random_runs) == ((), (), {}, None)


def test_random_runs_are_scored_as_the_challenge_does(triplets: tuple[RunFolder, Truth]) -> None:
    """Against the metric called directly on the same frames."""
    run, known = triplets
    runs = ask(run, runs=RunsWanted(number=12, length=10)).tasks[0].ranked.random_runs
    assert runs is not None
    assert runs.table.submissions == tuple(NOISE)
    expected, kept, undefined = [], [], 0
    for window in draw_windows(FRAMES, length=10, seed=3):
        truth, said = known[window.case]
        if not truth[window.frames].any():
            undefined += 1
            continue
        kept.append(window)
        expected.append(
            [
                mean_precision(
                    video_precision(truth[window.frames], said[team][window.frames], levels={"ivt": range(100)})["ivt"][
                        None
                    ],
                    classes=range(94), undefined=Undefined.LEFT_OUT,
                ).mean
                for team in NOISE
            ]
        )  # fmt: skip
        if len(kept) == 12:
            break
    assert (runs.windows, runs.undefined) == (tuple(kept), undefined)
    np.testing.assert_allclose(runs.table.values, np.array(expected).T, rtol=1e-12)
    assert (runs.tests.alternative, runs.tests.adjustment.value) == (Alternative.TWO_SIDED, "none")
    assert runs.tests.significant[0, 2]


def test_too_few_runs_are_told(triplets: tuple[RunFolder, Truth]) -> None:
    with pytest.raises(UsageError, match="gives 0 runs of 61 frames and not 5: 0 were drawn"):
        ask(triplets[0], runs=RunsWanted(number=5, length=61))


def test_a_pending_run_is_ranked_on_request_only_and_says_so(
    copied: Callable[[str, str, VerdictWord], RunFolder],
) -> None:
    run = copied("good", "VID02", VerdictWord.HOST_FAULT)
    before = {path: path.stat().st_mtime_ns for path in run.root.rglob("*") if path.name != ".lock"}
    with pytest.raises(HostFault, match="1 pending, so there is no ranking yet") as caught:
        ask(run)
    assert caught.value.exit_code == 5
    found = ask(run, provisional=True)
    assert found.watermark == "PROVISIONAL: 1 pending, ranks may change"
    (task,) = found.tasks
    assert (task.left_out, task.ranked.cases) == (("VID02",), 1)
    assert [team.team for team in task.ranked.teams] == ["good", "middling", "poor"]
    after = {path: path.stat().st_mtime_ns for path in run.root.rglob("*") if path.name != ".lock"}
    assert after == before


def test_a_provisional_ranking_is_marked_above_and_below(
    copied: Callable[[str, str, VerdictWord], RunFolder],
) -> None:
    run = copied("good", "VID02", VerdictWord.HOST_FAULT)
    mark = "PROVISIONAL: 1 pending, ranks may change"
    lines = typed(str(run.root), "--provisional", "--resamples", "10").splitlines()
    assert (lines[0], lines[-1]) == (mark, mark)
    assert "left out for all, pending or not defined: VID02" in lines
    found = json.loads(typed(str(run.root), "--provisional", "--resamples", "10", "--json"))
    assert (found["provisional"], found["watermark"], len(found["pending"])) == (True, mark, 1)
    assert found["tasks"][0]["left_out_cases"] == ["VID02"]


def test_who_has_no_case_yet_is_not_ranked_so_far(copied: Callable[[str, str, VerdictWord], RunFolder]) -> None:
    copied("poor", "VID01", VerdictWord.HOST_FAULT)
    run = RunFolder(root=copied("poor", "VID02", VerdictWord.HOST_FAULT).root)
    path = run.outcome("poor", "recognition", "VID01")
    verdict = Verdict(word=VerdictWord.HOST_FAULT, sentence="so it ended")
    write_value(path, replace(read_value(path, CaseOutcome), verdict=verdict))
    (task,) = ask(run, provisional=True).tasks
    assert dict(task.unranked) == {"poor": "has no case yet"}
    assert (task.left_out, [team.team for team in task.ranked.teams]) == ((), ["good", "middling"])


def test_who_is_refused_is_not_ranked_and_the_reason_stands_there(
    copied: Callable[[str, str, VerdictWord], RunFolder],
) -> None:
    (task,) = ask(copied("good", "VID01", VerdictWord.TIMED_OUT)).tasks
    assert dict(task.unranked) == {"good": "is refused, timed-out: so it ended"}
    assert [team.team for team in task.ranked.teams] == ["middling", "poor"]


# Several tasks, and cases without a prediction


@pytest.fixture(scope="module")
def workflow(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """Two teams on PitVis's sample, of which one has no prediction of the second case."""
    folder = tmp_path_factory.mktemp("workflow")
    sample = find_challenge("pitvis2023") / "sample"
    for name in ("inputs", "references"):
        shutil.copytree(sample / name, folder / "data" / name)
    for team in ("whole", "half"):
        shutil.copytree(sample / "predictions", folder / "teams" / team)
    for path in (folder / "teams" / "half").rglob("02.csv"):
        path.unlink()
    return scored("pitvis2023", folder)


def test_every_policy_is_compared_with_the_one_in_force(workflow: RunFolder) -> None:
    found = ask(workflow, questions=Questions(policies=True))
    assert len(found.tasks) == 3
    for task in found.tasks:
        policies = {effect.policy: effect for effect in task.ranked.policies}
        assert set(policies) == set(MissingCase)
        assert dict(policies[MissingCase.FAIL].ranks) == {"whole": 1.0}
        assert policies[MissingCase.EXCLUDE].cases == 1
        assert dict(policies[MissingCase.EXCLUDE].ranks) == {"half": 1.0, "whole": 1.0}
        assert task.ranked.missing == 1


def test_tasks_with_different_metrics_are_not_compared(workflow: RunFolder) -> None:
    metrics = {task.metric for task in ask(workflow).tasks}
    assert len(metrics) > 1
    with pytest.raises(UsageError, match="the tasks are ranked by different metrics"):
        ask(workflow, questions=Questions(compare_tasks=True))


# Cutting


def test_every_kind_that_goes_by_frames_is_cut() -> None:
    window = Window(case="v", first=1, length=2)
    table = cut_to(FrameTable(columns={"step": np.array([5, 6, 7, 8])}), window)
    assert isinstance(table, FrameTable)
    assert table.columns["step"].tolist() == [6, 7]
    scores = cut_to(FrameScores(scores=np.arange(8.0).reshape(4, 2)), window)
    assert isinstance(scores, FrameScores)
    assert scores.scores.tolist() == [[2.0, 3.0], [4.0, 5.0]]
    images = [np.full((1, 1), number, dtype=np.uint8) for number in range(4)]
    cut = cut_to(LabelImages(frames=4, read=lambda: iter(images)), window)
    assert isinstance(cut, LabelImages)
    assert cut.frames == 2
    assert [[int(image[0, 0]) for image in cut] for _ in range(2)] == [[1, 2], [1, 2]]
    with pytest.raises(TypeError, match="Answer does not go by frames"):
        cut_to(Answer(fields={}), window)
