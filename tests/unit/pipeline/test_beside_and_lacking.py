"""What a challenge says of missing frames and of files that are not due, for containers and for handed-in files."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from runner.budget import Usage
from runner.catalog import load_challenge
from runner.challenge import Challenge
from runner.confine import Confine
from runner.dataset import Case, find_cases
from runner.engine import Exit
from runner.job import Intake, Job, JobResult, Output
from runner.judge import CaseOutcome
from runner.pipeline.attempts import Judged, _judge_one
from runner.pipeline.check import _noted
from runner.pipeline.context import Context
from runner.pipeline.handed_in import Reception
from runner.shelf import list_challenges
from runner.store import RunFolder, read_value
from runner.submissions import Submission
from runner.verdict import Verdict, VerdictWord

PITVIS = next(folder for folder in list_challenges() if folder.name == "pitvis2023")
FILL = {"int_step": -1}
HANDED_IN = "handed in as files: run time and causality were not tested"


@pytest.fixture(scope="module")
def confine() -> Iterator[Confine]:
    with Confine(preload=("runner.formats.frame_table",)) as confined:
        yield confined


@pytest.fixture(scope="module")
def cases() -> dict[str, Case]:
    return {case.name: case for case in find_cases(PITVIS / "sample", load_challenge(PITVIS).challenge)}


def challenge_with(**policies: object) -> Challenge:
    """PitVis with its first task alone."""
    challenge = load_challenge(PITVIS).challenge
    steps = challenge.tasks["steps"]
    mended = steps.model_copy(update={"format": steps.format.model_copy(update=policies)})
    return challenge.model_copy(update={"tasks": {"steps": mended}, "data": "hidden"})


def handed_in(folder: Path, challenge: Challenge, cases: dict[str, Case], confine: Confine) -> dict[str, Verdict]:
    """The verdict on each case of what lies in ``folder / in``."""
    run = RunFolder(root=folder / "run")
    reception = Reception(
        run=run, challenge=challenge, cases=cases, base=folder, confine=confine, observe=lambda _: None
    )  # fmt: skip
    submission = Submission(submission="a", team="A", predictions="in")
    reception.settle(submission)
    outcomes = (read_value(run.outcome(submission.slug, "steps", case), CaseOutcome) for case in cases)
    return {outcome.case: outcome.verdict for outcome in outcomes}


def sample(folder: Path) -> Path:
    return shutil.copytree(PITVIS / "sample" / "predictions", folder / "in")


def without_rows(path: Path, count: int) -> None:
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-count]))


def test_a_missing_frame_is_filled_in_and_told(tmp_path: Path, cases: dict[str, Case], confine: Confine) -> None:
    without_rows(sample(tmp_path) / "01.csv", 2)
    frames = len(cases["01"].frames)
    found = handed_in(tmp_path, challenge_with(missing_frames=FILL), cases, confine)
    assert [verdict.word.value for verdict in found.values()] == ["accepted", "accepted"]
    assert found["01"].sentence == f"{frames} frames answered; {HANDED_IN}"
    assert found["01"].notes == (f"2 of {frames} frames have no row and count as int_step -1",)
    assert found["02"].notes == ()


def test_a_missing_frame_is_refused_where_nothing_else_is_said(
    tmp_path: Path, cases: dict[str, Case], confine: Confine
) -> None:
    without_rows(sample(tmp_path) / "01.csv", 1)
    last = len(cases["01"].frames) - 1
    found = handed_in(tmp_path, challenge_with(), cases, confine)
    assert found["01"].word.value == "bad-output"
    assert found["01"].sentence == (
        f"<case>.csv has 1 problem: row {last + 2}: the table ends too early: the row for frame {last} is missing"
    )
    assert found["01"].notes == ()


@pytest.mark.parametrize(("policy", "words"), [("ignore", ["accepted"] * 2), ("refuse", ["bad-output"] * 2)])
def test_files_that_are_not_due(
    tmp_path: Path, cases: dict[str, Case], confine: Confine, policy: str, words: list[str]
) -> None:
    folder = sample(tmp_path)
    (folder / "README.md").touch()
    (folder / "more").mkdir()
    (folder / "more" / "01.csv").touch()
    found = handed_in(tmp_path, challenge_with(extra_files=policy), cases, confine)
    assert [verdict.word.value for verdict in found.values()] == words
    if policy == "refuse":
        assert {verdict.sentence for verdict in found.values()} == {
            "<case>.csv has 1 problem: the output folder holds 2 files or folders that are not due"
        }


def test_the_files_of_the_other_cases_are_due(tmp_path: Path, cases: dict[str, Case], confine: Confine) -> None:
    sample(tmp_path)
    found = handed_in(tmp_path, challenge_with(extra_files="refuse"), cases, confine)
    assert [verdict.word.value for verdict in found.values()] == ["accepted", "accepted"]


def judged(
    make_job: Callable[..., Job], folder: Path, challenge: Challenge, case: Case, confine: Confine, *, stray: int
) -> Judged:
    """A container's file, judged."""
    output = Output(case=case.name, file="{case}.csv", frames=len(case.frames))
    (folder / "predictions").mkdir()
    shutil.copy(PITVIS / "sample" / "predictions" / f"{case.name}.csv", folder / "predictions" / output.kept)
    result = JobResult(
        job="full", digest="d", attempt=1, exit=Exit(code=0, oom_killed=False, seconds=1.0), killed=None,
        usage=Usage(engine_seconds=1.0, monotonic_seconds=1.0, output_bytes=1, alone=True),
        intake=Intake(file="x.csv", size=1, stray=stray),
    )  # fmt: skip
    context = SimpleNamespace(
        challenge=challenge, cases={case.name: case}, confine=confine, public=False, bench=SimpleNamespace(gpus=None)
    )
    return _judge_one(cast("Context", context), "steps", make_job(outputs=(output,)), result, folder)


@pytest.mark.parametrize(
    ("policy", "stray", "sentence"),
    [
        ("refuse", 1, "<case>.csv has 1 problem: the output folder holds 1 file or folder that is not due"),
        ("refuse", 0, ""),
        ("ignore", 1, ""),
    ],
)
def test_what_a_container_left_beside(
    tmp_path: Path,
    cases: dict[str, Case],
    confine: Confine,
    make_job: Callable[..., Job],
    policy: str,
    stray: int,
    sentence: str,
) -> None:
    challenge = challenge_with(extra_files=policy)
    found = judged(make_job, tmp_path, challenge, cases["01"], confine, stray=stray).verdict
    assert found.word.value == ("bad-output" if sentence else "accepted")
    assert not sentence or found.sentence == sentence


@pytest.mark.parametrize(
    ("tasks", "where"),
    [(("steps",), ("case 01", "case 02")), (("steps", "both"), ("task steps, case 01", "task both, case 02"))],
)
def test_a_check_tells_what_was_noted(tasks: tuple[str, ...], where: tuple[str, str]) -> None:
    def outcome(task: str, case: str, *notes: str) -> CaseOutcome:
        verdict = Verdict(word=VerdictWord.ACCEPTED, sentence="s", notes=notes)
        return CaseOutcome(
            submission="a", task=task, case=case, verdict=verdict, digest="", attempt=1, seconds=1.0, limit=1.0
        )

    context = SimpleNamespace(challenge=SimpleNamespace(tasks=dict.fromkeys(tasks)))
    outcomes = [outcome(tasks[0], "01", "a", "b"), outcome(tasks[0], "03"), outcome(tasks[-1], "02", "c")]
    assert _noted(cast("Context", context), outcomes) == (f"{where[0]}: a", f"{where[0]}: b", f"{where[1]}: c")
