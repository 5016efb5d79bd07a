"""Every file belongs to a step, and what depends on a step is told."""

import pytest

from runner.receipt.steps import ABOUT, Step, dependents_of, doubt_in_words, step_of
from tests.finished_run import STEP_OF


@pytest.mark.parametrize(("path", "step"), STEP_OF.items())
def test_a_file_belongs_to_its_step(path: str, step: str) -> None:
    assert step_of(path) == step


@pytest.mark.parametrize(
    "path",
    [
        "other/run.json", "scores.csv.old", "submissions/notes.txt", "submissions/a/other.json",
        "submissions/a/t/x.json",
        "submissions/a/t/c/other.json", "submissions/a/t/c/full/attempt-x/log.txt", "submissions/a/t/c/full/attempt-1",
        "submissions", "private", "challenge", ".scores.csv.0123abcd",
    ],
)  # fmt: skip
def test_what_proctor_does_not_write_is_of_no_step(path: str) -> None:
    assert step_of(path) is Step.OTHER


def test_what_stands_for_the_folder_of_predictions_is_the_attempts() -> None:
    assert step_of("submissions/a/t/c/full/attempt-1/predictions") is Step.ATTEMPTS
    assert step_of("submissions/a/t/data-set-1/full/attempt-12/predictions/01/p.csv") is Step.PREDICTIONS


LATER = "outcomes causality scores leaderboard ensembles report"


@pytest.mark.parametrize(
    ("step", "dependents"),
    [
        (Step.SETTINGS, f"attempts predictions {LATER}"),
        (Step.CHALLENGE, f"preflight attempts predictions {LATER}"),
        (Step.DATA, f"attempts predictions {LATER}"),
        (Step.IMAGE, f"preflight attempts predictions {LATER}"),
        (Step.PREFLIGHT, LATER),
        (Step.ATTEMPTS, f"predictions {LATER}"),
        (Step.PREDICTIONS, LATER),
        (Step.OUTCOMES, "causality scores leaderboard ensembles report"),
        (Step.CAUSALITY, "leaderboard report"),
        (Step.SCORES, "leaderboard report"),
        (Step.LEADERBOARD, "report"),
        (Step.ENSEMBLES, ""),
        (Step.REPORT, ""),
        (Step.OTHER, ""),
        (Step.PURGE, ""),
        (Step.RECEIPT, f"settings challenge data image preflight attempts predictions {LATER}"),
    ],
)
def test_what_depends_on_a_step(step: Step, dependents: str) -> None:
    assert [one.value for one in dependents_of(step)] == dependents.split()


def test_each_step_says_what_it_holds_and_what_to_do() -> None:
    assert set(ABOUT) == set(Step)
    assert all(about.holds and about.remedy for about in ABOUT.values())


def test_the_doubt_is_one_sentence() -> None:
    assert doubt_in_words(Step.CAUSALITY) == (
        "what was found of the method's causality (step causality) is doubtful, and with it leaderboard and report"
    )
    assert doubt_in_words(Step.LEADERBOARD) == "the ranking (step leaderboard) is doubtful, and with it report"
    assert doubt_in_words(Step.REPORT) == "the report (step report) is doubtful, and no other step depends on it"
