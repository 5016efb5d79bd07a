"""The PETRAW folder: its tasks, its scorer, its sample and what that scores, and data made in its form."""

import csv
import importlib.util
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Protocol, cast

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from runner.catalog import find_challenge, load_challenge
from runner.challenge import FrameTableFormat
from runner.confine import Confine
from runner.dataset import Case, find_cases
from runner.formats.contract import FrameTable, Role
from runner.formats.frame_table import confined_read
from runner.plan import shared_runs
from runner.scoring import Metric
from runner.scoring.run import describe_scorer, score_case
from runner.video import video_length

LOADED = load_challenge(find_challenge("petraw2021"))
TASKS = ("video", "kinematics", "segmentation", "video_kinematics", "all")
SAMPLE = LOADED.folder / "sample"
COLUMNS = {"Phase": ("phase", 3), "Step": ("step", 13), "Verb_Left": ("verb_left", 7), "Verb_Right": ("verb_right", 7)}
"""By column: its name in the metrics, and its number of labels."""

Labels = NDArray[np.int64]


class Scorer(Protocol):
    metrics: Sequence[Metric]

    def score_case(self, reference: FrameTable, prediction: FrameTable) -> Mapping[str, float | None]: ...


class ScorerModule(Protocol):
    def Workflow(self, **options: str | float) -> Scorer: ...  # noqa: N802  a class


class Drawn(Protocol):
    labels: Mapping[str, Labels]


class Generator(Protocol):
    NAMES: Mapping[str, tuple[str, ...]]
    COLOURS: NDArray[np.float64]
    MOTION: tuple[str, ...]
    TASKS: tuple[str, ...]

    def draw(self, rng: np.random.Generator, frames: int) -> Drawn: ...

    def generate(
        self,
        folder: Path,
        *,
        cases: int,
        seconds: tuple[float, float],
        size: tuple[int, int],
        seed: int,
        predictions: Sequence[str] = (),
    ) -> None: ...

    def main(self) -> None: ...


def _module(name: str) -> object:
    key = f"petraw_{name}"
    spec = importlib.util.spec_from_file_location(key, LOADED.folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[key] = module  # dataclasses look for it there
    spec.loader.exec_module(module)
    return module


GENERATOR = cast("Generator", _module("generate"))
SCORER = cast("ScorerModule", _module("scorer"))
WORKFLOW = SCORER.Workflow(**LOADED.challenge.tasks["video"].options)


@pytest.fixture(scope="module")
def cases() -> tuple[Case, ...]:
    return find_cases(SAMPLE, LOADED.challenge)


def read(confine: Confine, task: str, path: Path, *, frames: int, role: Role) -> FrameTable:
    rule = LOADED.challenge.tasks[task].format
    assert isinstance(rule, FrameTableFormat)
    reading = confined_read(confine, rule, path, frames=frames, role=role)
    assert reading.problems == ()
    assert isinstance(reading.prediction, FrameTable)
    return reading.prediction


def pictures(path: Path) -> NDArray[np.uint8]:
    """Shape ``(frames, height, width, 3)``."""
    with av.open(str(path)) as container:
        decoded = [picture.to_ndarray(format="rgb24") for picture in container.decode(video=0)]
    return np.stack([picture.astype(np.uint8, copy=False) for picture in decoded])


# challenge.yaml


def test_the_tasks_differ_in_what_they_are_given() -> None:
    tasks = LOADED.challenge.tasks
    assert {name: task.inputs for name, task in tasks.items()} == {
        "video": ("video",),
        "kinematics": ("kinematics",),
        "segmentation": ("video",),
        "video_kinematics": ("video", "kinematics"),
        "all": ("video", "kinematics"),
    }
    assert len({task.model_copy(update={"title": "", "inputs": ()}).model_dump_json() for task in tasks.values()}) == 1
    assert {name: rule.inside for name, rule in LOADED.challenge.cases.rules.items()} == {
        "video": "{case}/video.mp4",
        "kinematics": "{case}/kinematics.tsv",
    }


def test_each_task_has_a_run_and_a_file_of_its_own() -> None:
    assert [(shared.names, shared.inputs, shared.files) for shared in shared_runs(LOADED.challenge, TASKS)] == [
        ((name,), LOADED.challenge.tasks[name].inputs, {name: name + "/{case}.txt"}) for name in TASKS
    ]


def test_labels_are_those_of_the_generator_and_of_the_scorer() -> None:
    rule = LOADED.challenge.tasks["all"].format
    assert isinstance(rule, FrameTableFormat)
    assert {name: column.names for name, column in rule.columns.items()} == GENERATOR.NAMES
    assert {name: (short, len(GENERATOR.NAMES[name])) for name, (short, _) in COLUMNS.items()} == COLUMNS
    assert all(column.missing == "allow" for column in rule.columns.values())
    assert (rule.separator, rule.index.column, rule.index.first) == ("\t", "Frame", 0)


# The scorer


def runs(text: str) -> Labels:
    """``I10 A20`` is ten frames idle and twenty of another verb."""
    verbs = {"I": 4, "A": 0, "B": 1, "T": 6}
    parts = [(verbs[run[0]], int(run[1:])) for run in text.split()]
    return np.repeat([label for label, _ in parts], [length for _, length in parts]).astype(np.int64)


def only_left(verbs: Labels) -> FrameTable:
    """A table that is right but for the left verb, whatever it is compared with."""
    return FrameTable(columns={name: np.zeros_like(verbs) for name in COLUMNS} | {"Verb_Left": verbs})


IDLE_A_B_IDLE = "I10 A20 B20 I10"
SHORT = "I20 T4 I20"


@pytest.mark.parametrize(
    ("reference", "prediction", "frame_by_frame", "pair", "incoming"),
    [
        (IDLE_A_B_IDLE, "I14 A12 B30 I4", 0.766667, 1.0, 1.0),
        ("A30 B30", "A37 B23", 0.883333, 1.0, 1.0),
        ("A30 B30", "A38 B22", 0.866667, 0.866667, 0.866667),
        ("A30 B30", "A39 B21", 0.85, 0.85, 0.85),
        (IDLE_A_B_IDLE, "I8 B3 A19 B20 I10", 0.95, 0.95, 0.966667),
        (SHORT, "I44", 0.5, 0.5, 0.5),
        (SHORT, "I24 T4 I16", 0.45, 1.0, 1.0),
    ],
)
def test_the_values_of_independent_implementations(
    reference: str, prediction: str, frame_by_frame: float, pair: float, incoming: float
) -> None:
    options = LOADED.challenge.tasks["all"].options
    for transition, expected in (("pair", pair), ("incoming", incoming)):
        scorer = SCORER.Workflow(**{**options, "transition": transition})
        values = scorer.score_case(only_left(runs(reference)), only_left(runs(prediction)))
        assert round(values["fbf_verb_left"] or 0, 6) == frame_by_frame
        assert round(values["ad_verb_left"] or 0, 6) == expected
        assert [values[f"ad_{name}"] for name in ("phase", "step", "verb_right")] == [1.0, 1.0, 1.0]
        assert values["ad_accuracy"] == pytest.approx((3 + expected) / 4, abs=1e-6)


@pytest.mark.parametrize(("between", "expected"), [("any", 1.0), ("clean", 0.9)])
def test_what_may_lie_between_two_transitions_is_an_option(between: str, expected: float) -> None:
    """B comes four frames late, and meanwhile the prediction goes to T and back: of B's 20 frames 16 are right."""
    reference, prediction = only_left(runs("A20 B20 A20")), only_left(runs("A22 T1 A1 B16 A20"))
    values = SCORER.Workflow(between=between).score_case(reference, prediction)
    assert values["ad_verb_left"] == pytest.approx(expected, abs=1e-12)
    assert values["fbf_verb_left"] == pytest.approx(0.9, abs=1e-12)


@pytest.mark.parametrize("column", COLUMNS)
def test_a_component_that_was_left_out_counts_chance(column: str) -> None:
    reference = only_left(runs("I10 A20"))
    rest = {name: labels for name, labels in reference.columns.items() if name != column}
    values = WORKFLOW.score_case(reference, FrameTable(columns=rest))
    name, classes = COLUMNS[column]
    chance = {"Phase": 1 / 3, "Step": 1 / 13, "Verb_Left": 1 / 7, "Verb_Right": 1 / 7}[column]
    for way in ("ad", "fbf"):
        accuracies = {short: values[f"{way}_{short}"] for short, _ in COLUMNS.values()}
        assert accuracies == {short: chance if short == name else 1.0 for short, _ in COLUMNS.values()}
        assert values[f"{way}_accuracy"] == pytest.approx((3 + 1 / classes) / 4, abs=1e-15)
        assert [values[f"{way}_{measure}"] for measure in ("precision", "recall", "f1")] == [None, None, None]
    worst = SCORER.Workflow(missing_component="worst").score_case(reference, FrameTable(columns=rest))
    assert (worst[f"ad_{name}"], worst[f"fbf_{name}"], worst["ad_accuracy"]) == (0.0, 0.0, 0.75)


def test_what_is_measured() -> None:
    assert [metric.name for metric in WORKFLOW.metrics] == [
        f"{way}_{name}"
        for way in ("ad", "fbf")
        for name in ("accuracy", "phase", "step", "verb_left", "verb_right", "precision", "recall", "f1")
    ]
    chances = {metric.name: metric.chance for metric in WORKFLOW.metrics}
    assert [chances[f"ad_{name}"] for name in ("phase", "step", "verb_left", "precision")] == [
        1 / 3,
        1 / 13,
        1 / 7,
        None,
    ]
    assert chances["ad_accuracy"] == fmean([1 / 3, 1 / 13, 1 / 7, 1 / 7])
    assert all(metric.worst == 0.0 and metric.higher_is_better for metric in WORKFLOW.metrics)


@pytest.mark.parametrize(
    ("option", "what"),
    [
        ({"missing_component": "skip"}, "'skip' is not a valid MissingComponent"),
        ({"transition": "outgoing"}, "'outgoing' is not a valid TransitionType"),
        ({"between": "none"}, "'none' is not a valid Between"),
        ({"delay": -1}, "a delay of -1 s at 30 frames a second is not possible"),
    ],
)
def test_an_option_that_does_not_exist_is_named(option: dict[str, str | float], what: str) -> None:
    with pytest.raises(ValueError) as caught:
        SCORER.Workflow(**option)
    assert str(caught.value) == what


@given(st.integers(0, 2**32), st.integers(1, 400), st.sampled_from([0.0, 0.1, 0.5]))
def test_forgiving_never_lowers_a_score_and_the_reference_is_best(seed: int, frames: int, wrong: float) -> None:
    rng = np.random.default_rng(seed)
    truth = GENERATOR.draw(rng, frames).labels
    guess = {
        name: np.where(rng.random(frames) < wrong, rng.integers(0, COLUMNS[name][1], frames), labels)
        for name, labels in truth.items()
    }
    values = WORKFLOW.score_case(FrameTable(columns=truth), FrameTable(columns=guess))
    assert set(values) == {metric.name for metric in WORKFLOW.metrics}
    for name in (metric.name.removeprefix("ad_") for metric in WORKFLOW.metrics[:8]):
        forgiven, plain = values[f"ad_{name}"], values[f"fbf_{name}"]
        assert forgiven is not None
        assert plain is not None
        assert 0 <= plain <= forgiven + 1e-12 <= 1 + 2e-12
    best = WORKFLOW.score_case(FrameTable(columns=truth), FrameTable(columns=truth))
    assert all(value == pytest.approx(1.0, abs=1e-12) for value in best.values())


# The sample


def test_the_sample_is_small_and_in_the_form_of_the_challenge(cases: tuple[Case, ...]) -> None:
    assert [(case.name, len(case.frames), round(case.media_seconds, 6)) for case in cases] == [
        ("001", 113, 3.766667),
        ("002", 91, 3.033333),
    ]
    files = [path for path in SAMPLE.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 256 << 10
    for case in cases:
        video, kinematics = case.inputs
        assert (video.name, kinematics.name) == ("video", "kinematics")
        assert video_length(video.path) == len(case.frames)
        with kinematics.path.open() as file:
            rows = list(csv.reader(file, delimiter="\t"))
        assert (tuple(rows[0]), {len(row) for row in rows}) == (GENERATOR.MOTION, {28})
        assert case.references["all"].read_text().startswith("Frame\tPhase\tStep\tVerb_Left\tVerb_Right\n0\t")


@pytest.mark.parametrize("task", TASKS)
def test_the_sample_scores_what_it_says(confine: Confine, cases: tuple[Case, ...], task: str) -> None:
    expected = json.loads((SAMPLE / "expected_scores.json").read_text())
    assert (list(expected), list(expected[task])) == (list(TASKS), [case.name for case in cases])
    assert describe_scorer(confine, LOADED, task).metrics == WORKFLOW.metrics
    for case in cases:
        path, frames = SAMPLE / "predictions" / task / f"{case.name}.txt", len(case.frames)
        prediction = read(confine, task, path, frames=frames, role=Role.PREDICTION)
        reference = read(confine, task, case.references[task], frames=frames, role=Role.REFERENCE)
        values = score_case(confine, LOADED, task, reference, prediction).values
        rounded = {name: None if value is None else round(value, 6) for name, value in values.items()}
        assert rounded == expected[task][case.name]
    assert expected["segmentation"]["001"]["ad_step"] == round(1 / 13, 6)


def test_the_sample_is_what_the_generator_makes(tmp_path: Path) -> None:
    GENERATOR.generate(tmp_path, cases=2, seconds=(3, 4), size=(64, 36), seed=2021, predictions=TASKS)
    made = tables(tmp_path)
    assert made == {name: text for name, text in tables(SAMPLE).items() if name in made}
    assert len(made) == 2 * (2 + len(TASKS))
    for path in (tmp_path / "videos").iterdir():
        assert np.array_equal(pictures(path), pictures(SAMPLE / "videos" / path.name))


# The generator


def tables(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.t*") if path.is_file()}


def test_the_same_seed_gives_the_same_tables_and_pictures(tmp_path: Path) -> None:
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        GENERATOR.generate(tmp_path / name, cases=1, seconds=(1, 2), size=(32, 18), seed=seed)
    contents = {name: tables(tmp_path / name) for name in ("a", "b", "c")}
    assert list(contents["a"]) == list(contents["c"])
    assert contents["a"] == contents["b"]
    assert contents["a"] != contents["c"]
    shown, again = (pictures(tmp_path / name / "videos" / "001.mp4") for name in ("a", "b"))
    assert np.array_equal(shown, again)
    assert shown.shape[1:] == (18, 32, 3)


def test_the_generator_has_a_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ["--cases", "2", "--seconds", "0.5", "1", "--size", "48", "32", "--seed", "1", "--predictions", "all"]
    monkeypatch.setattr(sys, "argv", ["generate.py", str(tmp_path / "new"), *arguments])
    GENERATOR.main()
    cases = find_cases(tmp_path / "new", LOADED.challenge)
    assert [case.name for case in cases] == ["001", "002"]
    assert all(15 <= len(case.frames) <= 30 for case in cases)
    assert sorted(path.name for path in (tmp_path / "new/predictions").rglob("*.txt")) == ["001.txt", "002.txt"]


def quarters(shown: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Mean colours of the quarters of each picture, shape ``(frames, 4, 3)``."""
    height, width = (extent // 2 for extent in shown.shape[1:3])
    parts = [shown[:, y : y + height, x : x + width] for y in (0, height) for x in (0, width)]
    return np.stack([part.mean(axis=(1, 2)) for part in parts], axis=1)


def test_a_video_gives_its_labels_away_but_not_quite(confine: Confine, cases: tuple[Case, ...]) -> None:
    """The predictions of the sample are those of the nearest colours before the video was packed."""
    for case in cases:
        shown = quarters(pictures(case.inputs[0].path))
        truth = read(confine, "video", case.references["video"], frames=len(case.frames), role=Role.REFERENCE)
        path = SAMPLE / "predictions" / "video" / f"{case.name}.txt"
        told = read(confine, "video", path, frames=len(case.frames), role=Role.PREDICTION)
        for place, (column, (_, classes)) in enumerate(COLUMNS.items()):
            distances = ((shown[:, place, None] - GENERATOR.COLOURS[:classes]) ** 2).sum(axis=2)
            seen = distances.argmin(axis=1)
            assert (seen == told.columns[column]).mean() > 0.95
            assert (seen == truth.columns[column]).mean() > 0.6
        assert (told.columns["Verb_Left"] != truth.columns["Verb_Left"]).any()


def test_a_realistic_length_holds_every_step() -> None:
    drawn = GENERATOR.draw(np.random.default_rng(5), 4200)
    assert {name: np.unique(labels).tolist() for name, labels in drawn.labels.items()} == {
        name: list(range(classes)) for name, (_, classes) in COLUMNS.items()
    }
