"""A new challenge makes sense at once; one whose scores do not is told what is wrong with them."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from runner.catalog import LoadedChallenge, load_challenge
from runner.challenge import MetricRule, MissingCase, ScorerImage
from runner.challenge.limits import RunTimeFixed
from runner.confine import Confine
from runner.errors import ConfigError, UsageError
from runner.pipeline.challenge_check import CheckedTask, check_challenge, sense_of
from runner.pipeline.challenge_new import KINDS, new_challenge
from runner.pipeline.trials import Trial
from runner.scoring.contract import Metric
from runner.shelf import list_challenges

RISES = Metric(name="f1", title="F1", worst=0.0, chance=None, higher_is_better=True)
FALLS = Metric(name="error", title="Error", worst=9.0, chance=None, higher_is_better=False)


@pytest.fixture(scope="module")
def confine() -> Iterator[Confine]:
    with Confine(preload=("runner.scoring.child",)) as confined:
        yield confined


def only_task(loaded: LoadedChallenge, confine: Confine) -> CheckedTask:
    found = check_challenge(loaded, confine=confine, advance=lambda *_: None)
    (task,) = found.tasks
    assert found.sensible == (not task.problems)
    return task


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    new_challenge("toy", tmp_path, kind="frame_table")
    return tmp_path / "toy"


def mended(toy: Path, before: str, after: str, *, file: str = "scorer.py") -> LoadedChallenge:
    text = (toy / file).read_text()
    assert before in text
    (toy / file).write_text(text.replace(before, after))
    return load_challenge(toy)


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_challenge_makes_sense(kind: str, tmp_path: Path, confine: Confine) -> None:
    new_challenge("toy", tmp_path, kind=kind)
    task = only_task(load_challenge(tmp_path / "toy"), confine)
    assert (task.problems, task.notes) == ((), ())
    assert task.values[Trial.PERFECT] == 1.0
    assert all(value is not None and value < 1 for trial, value in task.values.items() if trial is not Trial.PERFECT)
    assert (task.refused, task.malformed) == (5, 5)


@pytest.mark.parametrize("folder", list_challenges(), ids=lambda folder: folder.name)
def test_every_bundled_challenge_makes_sense(folder: Path, confine: Confine) -> None:
    found = check_challenge(load_challenge(folder), confine=confine, advance=lambda *_: None)
    assert [task.problems for task in found.tasks] == [()] * len(found.tasks)
    assert [task.values[Trial.PERFECT] for task in found.tasks] == pytest.approx([1.0] * len(found.tasks))


def test_a_scorer_that_prefers_mistakes_is_told(toy: Path, confine: Confine) -> None:
    task = only_task(mended(toy, '{"macro_f1": f1}', '{"macro_f1": 1 - f1}'), confine)
    assert task.problems[0] == "worst predictions score 1, which is better than the reference itself, 0"
    assert len(task.problems) == 3


def test_a_scorer_that_fails_is_told_with_its_line(toy: Path, confine: Confine) -> None:
    task = only_task(mended(toy, '{"macro_f1": f1}', '{"macro_f1": f1 * (1 // int((guess == truth).sum()))}'), confine)
    assert any(
        problem.startswith("worst predictions: the scorer failed: ZeroDivisionError") and f"{toy}/scorer.py" in problem
        for problem in task.problems
    )
    task = only_task(mended(toy, "phases = Phases()", "other = Phases()"), confine)
    assert task.problems[0].startswith("the scorer failed: scorer.py has no 'phases'")
    assert task.values == {}


def test_a_scorer_that_is_not_deterministic_is_told(toy: Path, confine: Confine) -> None:
    task = only_task(mended(toy, '{"macro_f1": f1}', '{"macro_f1": f1 + __import__("time").time_ns() % 1e6}'), confine)
    assert "the same predictions scored twice give two values: the scorer is not deterministic" in task.problems


def test_a_scorer_in_a_container_is_not_tried_and_that_is_told(toy: Path, confine: Confine) -> None:
    loaded = load_challenge(toy)
    (name,) = loaded.challenge.tasks
    metric = MetricRule(title="F1", worst=0, higher_is_better=True)
    limits = loaded.challenge.limits.model_copy(update={"run_time": RunTimeFixed(fixed=60), "gpus": 0})
    image = ScorerImage(image="gone:1", limits=limits, metrics={"macro_f1": metric})
    task = loaded.challenge.tasks[name].model_copy(update={"scorer": "container", "scorer_image": image})
    challenge = loaded.challenge.model_copy(update={"tasks": {name: task}})
    found = only_task(replace(loaded, challenge=challenge), confine)
    assert (found.problems, found.values) == ((), {})
    (note,) = found.notes
    assert note == (
        "the scorer was not tried: it runs in a container; next: proctor score CHALLENGE --predictions DIR "
        "--references DIR --out DIR"
    )
    assert (found.refused, found.malformed) == (5, 5)  # the formats are tried all the same


def test_a_challenge_without_a_sample_is_refused(toy: Path, confine: Confine) -> None:
    (toy / "sample").rename(toy / "examples")
    with pytest.raises(UsageError, match=r"there is no folder 'sample' beside challenge\.yaml"):
        only_task(load_challenge(toy), confine)


def test_a_metric_the_scorer_does_not_measure_is_refused(toy: Path, confine: Confine) -> None:
    loaded = mended(toy, "metric: macro_f1", "metric: accuracy", file="challenge.yaml")
    with pytest.raises(ConfigError, match=r"primary\.metric is 'accuracy', which the scorer does not measure"):
        only_task(loaded, confine)


def values(perfect: float | None, worst: float, empty: float, shuffled: float) -> dict[Trial, float | None]:
    return {Trial.PERFECT: perfect, Trial.WORST: worst, Trial.EMPTY: empty, Trial.SHUFFLED: shuffled}


def test_what_makes_sense_has_no_problem() -> None:
    assert sense_of(RISES, values(1, 0, 0.1, 0.3), MissingCase.WORST) == ((), ())
    assert sense_of(FALLS, values(0, 9, 5, 3), MissingCase.WORST) == ((), ())


def test_a_best_value_that_is_another_is_noted() -> None:
    assert sense_of(FALLS, values(0.5, 9, 5, 3), MissingCase.FAIL) == (
        (),
        ("the reference itself scores 0.5 and not 0: is that the best there is?",),
    )


def test_a_sample_that_does_not_vary_is_noted() -> None:
    note = "shuffled predictions score as the reference itself does: does the sample vary?"
    assert sense_of(RISES, values(1, 0, 0.2, 1), MissingCase.WORST) == ((), (note,))


def test_nothing_is_better_than_the_reference_itself() -> None:
    assert sense_of(FALLS, values(2, 9, 1, 3), MissingCase.WORST)[0] == (
        "empty predictions score 1, which is better than the reference itself, 2",
    )


def test_the_worst_is_not_as_good_as_the_reference() -> None:
    assert sense_of(RISES, values(1, 1, 1, 1), MissingCase.WORST)[0] == (
        "the worst predictions score 1, as the reference itself does",
    )


def test_leaving_out_must_not_pay_where_it_counts_as_the_worst() -> None:
    problem = "a case that is left out counts 0, and worst predictions score -0.5: leaving out would pay"
    assert sense_of(RISES, values(1, -0.5, 0, 0), MissingCase.WORST)[0] == (problem,)
    assert sense_of(RISES, values(1, -0.5, 0, 0), MissingCase.EXCLUDE)[0] == ()


def test_a_reference_without_a_score_is_a_problem() -> None:
    assert sense_of(RISES, values(None, 0, 0, 0), MissingCase.WORST)[0] == ("the reference itself has no f1",)
