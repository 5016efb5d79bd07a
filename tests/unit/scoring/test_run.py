"""The organisers' code is found, checked, run and, where it fails, named."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from runner.catalog import LoadedChallenge, find_challenge, load_challenge
from runner.confine import Confine
from runner.errors import ConfigError, ScorerFault
from runner.formats.contract import FrameTable
from runner.scoring import run as run_module
from runner.scoring.contract import Aggregate, CaseScore, aggregate
from runner.scoring.run import describe_scorer, score_case

WithScorer = Callable[[str], LoadedChallenge]

GOOD = """
import numpy as np
from runner.scoring import Metric

class Steps:
    metrics = (
        Metric(name="mean_f1_edit", title="x", worst=0.0, chance=None, higher_is_better=True),
        Metric(name="frames", title="Frames", worst=-1.0, chance=0.5, higher_is_better=True),
    )
    def score_case(self, reference, prediction):
        same = reference.columns["int_step"] == prediction.columns["int_step"]
        return {"mean_f1_edit": same.mean(), "frames": np.int64(reference.frames)}

steps = Steps()
"""


def steps(*labels: int) -> FrameTable:
    return FrameTable(columns={"int_step": np.array(labels, dtype=np.int64)})


def fault_of(confine: Confine, loaded: LoadedChallenge) -> ScorerFault:
    with pytest.raises(ScorerFault) as caught:
        score_case(confine, loaded, "steps", steps(1, 2), steps(1, 1))
    return caught.value


def test_a_case_is_scored_in_a_child(confine: Confine, with_scorer: WithScorer) -> None:
    score = score_case(confine, with_scorer(GOOD), "steps", steps(1, 2, 3, 4), steps(1, 2, 3, 3))
    assert score == CaseScore(values={"mean_f1_edit": 0.75, "frames": 4.0})
    assert not any(name.startswith("proctor_scorer_") for name in __import__("sys").modules)


def test_a_scorer_says_what_it_measures(confine: Confine, with_scorer: WithScorer) -> None:
    found = describe_scorer(confine, with_scorer(GOOD), "steps")
    assert [(metric.name, metric.worst, metric.chance) for metric in found.metrics] == [
        ("mean_f1_edit", 0.0, None),
        ("frames", -1.0, 0.5),
    ]
    assert found.aggregates is False


def test_a_scorer_may_be_spread_over_files(confine: Confine, with_scorer: WithScorer) -> None:
    loaded = with_scorer("from more import steps\n")
    (loaded.folder / "more.py").write_text(GOOD)
    assert score_case(confine, loaded, "steps", steps(1), steps(1)).values["mean_f1_edit"] == 1.0


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        ("steps = Steps()", "other = Steps()", "scorer.py has no 'steps' (did you mean 'Steps'?)"),
        ("self, reference, prediction", "self, reference", ("'steps' is no scorer: its method must be "
         "score_case(reference, prediction), but is score_case(reference)")),
        ("def score_case", "def score", ("'steps' is no scorer: it must have a method "
         "score_case(reference, prediction)")),
        ("    metrics = (", "    names = (", ("'steps' is no scorer: its attribute 'metrics' must be a tuple of "
         "Metric, and not empty")),
        ('"frames", title', '"mean_f1_edit", title', ("'steps' is no scorer: 'metrics' names one twice: mean_f1_edit, "
         "mean_f1_edit")),
        ("worst=-1.0", "worst=float('nan')", ("'steps' is no scorer: a worst or chance value of 'metrics' is not "
         "finite")),
        ('"frames": np', '"fames": np', ("score_case must answer mean_f1_edit, frames, but answers mean_f1_edit, "
         "fames")),
        ('return {"', 'return 3\n        {"', "score_case must answer mean_f1_edit, frames, but answers int"),
        ("same.mean()", "float('nan')", "score_case answers nan for 'mean_f1_edit'"),
        ("same.mean()", "None", ("score_case answers None for 'mean_f1_edit', which ranks: only a scorer with an "
         "aggregate of its own may")),
        ("same.mean()", "[]", "score_case answers [] for 'mean_f1_edit'"),
        ("    def score_case", "    aggregate = 3\n    def score_case", ("'steps' is no scorer: its attribute "
         "'aggregate' must be a method aggregate(cases)")),
        ("    def score_case", "    def aggregate(self, a, b): pass\n    def score_case", ("'steps' is no scorer: its "
         "method must be aggregate(cases), but is aggregate(a, b)")),
    ],
)  # fmt: skip
def test_a_scorer_that_is_none_is_named(
    confine: Confine, with_scorer: WithScorer, before: str, after: str, what: str
) -> None:
    assert GOOD.count(before) == 1
    loaded = with_scorer(GOOD.replace(before, after))
    fault = fault_of(confine, loaded)
    assert (fault.what, fault.where) == (what, str(loaded.folder / "scorer.py"))


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("np.zeros(3) + np.zeros(4)", "ValueError: operands could not be broadcast together with shapes (3,) (4,)"),
        ("reference.columns['x']", "KeyError: 'x'"),
    ],
)
def test_a_scorer_that_raises_is_named_with_its_line(
    confine: Confine, with_scorer: WithScorer, statement: str, what: str
) -> None:
    loaded = with_scorer(GOOD.replace("        return {", f"        {statement}\n        return {{"))
    fault = fault_of(confine, loaded)
    assert (fault.what.strip(), fault.where) == (what, f"{loaded.folder / 'scorer.py'}:12")
    assert fault.exit_code == 4


def test_a_scorer_that_cannot_be_compiled_is_named_with_its_line(confine: Confine, with_scorer: WithScorer) -> None:
    loaded = with_scorer("x = 1\ndef (:\n")
    fault = fault_of(confine, loaded)
    assert (fault.what, fault.where) == ("SyntaxError: invalid syntax", f"{loaded.folder / 'scorer.py'}:2")


def test_a_scorer_that_is_missing_is_named(confine: Confine, with_scorer: WithScorer) -> None:
    loaded = with_scorer("")
    (loaded.folder / "scorer.py").unlink()
    assert str(fault_of(confine, loaded)).startswith(f"{loaded.folder}: there is no scorer.py beside challenge.yaml")


def named(loaded: LoadedChallenge, name: str) -> LoadedChallenge:
    path = loaded.folder / "challenge.yaml"
    path.write_text(path.read_text().replace("scorer: pitvis2023.steps", f"scorer: '{name}'", 1))
    return load_challenge(loaded.folder)


@pytest.mark.parametrize("name", ["steps", "other.steps", "os.system"])
def test_a_scorer_is_named_after_its_challenge(confine: Confine, with_scorer: WithScorer, name: str) -> None:
    loaded = named(with_scorer(GOOD), name)
    fault = fault_of(confine, loaded)
    assert fault.what == (
        f"there is no scorer {name!r}: it must be 'pitvis2023', a dot, and a name from scorer.py, or the name of an "
        "installed one: there is none"
    )
    assert fault.where == str(loaded.folder / "challenge.yaml")


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("while True: pass", "the scorer of task 'steps' did not answer: it took longer than 0.5 s"),
        ("np.ones(1 << 30)", "the scorer of task 'steps' did not answer: it needed more than 256 MiB"),
        ("__import__('os')._exit(9)", "the scorer of task 'steps' did not answer: it ended with code 9"),
    ],
)
def test_a_scorer_is_held_to_limits(
    confine: Confine, with_scorer: WithScorer, monkeypatch: pytest.MonkeyPatch, statement: str, what: str
) -> None:
    monkeypatch.setattr(run_module, "SCORE_DEADLINE", 0.5)
    monkeypatch.setattr(run_module, "SCORE_MEMORY", 256 << 20)
    loaded = with_scorer(GOOD.replace("        return {", f"        {statement}\n        return {{"))
    assert fault_of(confine, loaded).what == what


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("metric: mean_f1_edit", "metric: f1", "primary.metric is 'f1', which the scorer does not measure"),
        ("higher_is_better: true", "higher_is_better: false", "primary.higher_is_better contradicts the scorer's"),
        ("missing_case: worst", "missing_case: chance", "states no chance value for 'mean_f1_edit'"),
    ],
)
def test_challenge_yaml_must_agree_with_the_scorer(
    confine: Confine, with_scorer: WithScorer, before: str, after: str, message: str
) -> None:
    loaded = with_scorer(GOOD)
    path = loaded.folder / "challenge.yaml"
    path.write_text(path.read_text().replace(before, after))
    with pytest.raises(ConfigError, match=message) as caught:
        describe_scorer(confine, load_challenge(loaded.folder), "steps")
    assert caught.value.where == f"{path}: tasks.steps"


def test_no_descriptor_is_left_open(confine: Confine, with_scorer: WithScorer) -> None:
    loaded = with_scorer(GOOD)
    score_case(confine, loaded, "steps", steps(1), steps(1))
    before = set(os.listdir("/proc/self/fd"))  # noqa: PTH208
    score_case(confine, loaded, "steps", steps(1), steps(1))
    assert set(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


def test_scores_are_aggregated_by_mean_and_deviation() -> None:
    scores = [CaseScore(values={"a": a, "b": 1.0}) for a in (0.0, 1.0, 0.5)]
    found = aggregate(scores)
    assert found["a"].mean == 0.5
    assert found["a"].std == pytest.approx(np.sqrt(1 / 6), abs=1e-15)
    assert found["b"] == Aggregate(mean=1.0, std=0.0, cases=3)
    assert list(found) == ["a", "b"]


def test_what_cannot_be_aggregated_is_refused() -> None:
    with pytest.raises(ValueError, match="no case"):
        aggregate([])
    with pytest.raises(ValueError, match="differ in their metrics"):
        aggregate([CaseScore(values={"a": 1.0}), CaseScore(values={"b": 1.0})])
    with pytest.raises(ValueError, match="not a finite number: b"):
        CaseScore(values={"a": 1.0, "b": float("inf")})


def test_the_scorer_in_use_is_the_one_beside_challenge_yaml(confine: Confine) -> None:
    loaded = load_challenge(find_challenge("pitvis2023"))
    assert (loaded.folder / "scorer.py").is_file()
    found = describe_scorer(confine, loaded, "steps")
    assert [metric.name for metric in found.metrics] == ["mean_f1_edit", "macro_f1", "edit"]
    assert Path(loaded.folder).name == loaded.challenge.name
