"""The PitVis folder: its sample, what that scores, and data made in its form."""

import csv
import functools
import importlib.util
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, cast

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from runner.catalog import find_challenge, load_challenge
from runner.challenge import FrameTableFormat
from runner.confine import Confine
from runner.dataset import Case, find_cases
from runner.errors import ScorerFault
from runner.formats.contract import FrameTable, Role
from runner.formats.frame_table import confined_read
from runner.plan import shared_runs
from runner.scoring import Metric
from runner.scoring.metrics import AveragedOver, edit_score, macro_f1
from runner.scoring.run import score_case

LOADED = load_challenge(find_challenge("pitvis2023"))
SAMPLE = LOADED.folder / "sample"


class Scorer(Protocol):
    metrics: Sequence[Metric]

    def score_case(self, reference: FrameTable, prediction: FrameTable) -> Mapping[str, float]: ...


class ScorerModule(Protocol):
    def Steps(self, *, scoring: str = "ours") -> Scorer: ...  # noqa: N802  a class, as the two below

    def Instruments(self, *, scoring: str = "ours") -> Scorer: ...  # noqa: N802

    def StepsAndInstruments(self, *, scoring: str = "ours") -> Scorer: ...  # noqa: N802


class Generator(Protocol):
    COLOURS: Mapping[int, tuple[int, int, int]]
    SPREAD: float
    USUAL: Mapping[int, tuple[int, int]]

    def generate(self, folder: Path, *, cases: int, frames: tuple[int, int], seed: int) -> None: ...

    def main(self) -> None: ...


def _module(name: str) -> object:
    spec = importlib.util.spec_from_file_location(f"pitvis_{name}", LOADED.folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATOR = cast("Generator", _module("generate"))
SCORER = cast("ScorerModule", _module("scorer"))
SCORERS = {"steps": SCORER.Steps, "instruments": SCORER.Instruments, "both": SCORER.StepsAndInstruments}
LABELS = np.array(list(GENERATOR.COLOURS))
COLOURS = np.array(list(GENERATOR.COLOURS.values()), dtype=np.float64)


@functools.cache
def distances(folder: Path) -> NDArray[np.float64]:
    """Squared distance of every frame's mean colour from every step's, shape (frames, steps)."""
    means = [np.asarray(Image.open(path)).reshape(-1, 3).mean(axis=0) for path in sorted(folder.iterdir())]
    found: NDArray[np.float64] = ((np.array(means)[:, None] - COLOURS) ** 2).sum(axis=2)
    return found


def nearest(case: Case) -> NDArray[np.int64]:
    found: NDArray[np.int64] = LABELS[distances(case.inputs[0].path).argmin(axis=1)]
    return found


def forward_filter(case: Case) -> NDArray[np.int64]:
    """Uses the past only: a hidden Markov model that stays with 90 %."""
    squared = distances(case.inputs[0].path)
    moves = np.full((len(LABELS), len(LABELS)), 0.1 / (len(LABELS) - 1))
    np.fill_diagonal(moves, 0.9)
    belief = np.full(len(LABELS), 1 / len(LABELS))
    answers = []
    for row in squared:
        belief = (belief @ moves) * np.exp((row.min() - row) / (2 * GENERATOR.SPREAD**2))
        belief /= belief.sum()
        answers.append(LABELS[belief.argmax()])
    return np.array(answers)


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


def reference_of(confine: Confine, case: Case, task: str = "steps") -> FrameTable:
    return read(confine, task, case.references[task], frames=len(case.frames), role=Role.REFERENCE)


def test_one_run_and_one_file_answer_every_task() -> None:
    (shared,) = shared_runs(LOADED.challenge, tuple(LOADED.challenge.tasks))
    assert shared.names == tuple(LOADED.challenge.tasks)
    assert set(shared.files.values()) == {"{case}.csv"}


def test_labels_are_those_of_the_challenge() -> None:
    legal = {"int_step": range(-1, 15), "int_instrument1": range(-1, 19), "int_instrument2": range(-2, 19)}
    for task in LOADED.challenge.tasks.values():
        assert isinstance(task.format, FrameTableFormat)
        assert {name: column.ids for name, column in task.format.columns.items()} == {
            name: tuple(legal[name]) for name in task.format.columns
        }
        assert task.format.extra_columns == "ignore"


def test_the_sample_is_small_and_in_the_form_of_the_challenge(cases: tuple[Case, ...]) -> None:
    assert [(case.name, len(case.frames)) for case in cases] == [("01", 42), ("02", 60)]
    files = [path for path in SAMPLE.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 256 << 10
    for case in cases:
        assert case.frames[0] == "00000.png"
        with Image.open(case.inputs[0].path / case.frames[-1]) as image:
            assert (image.size, image.mode) == ((64, 36), "RGB")
        with case.references["steps"].open() as file:
            assert next(csv.reader(file)) == ["int_video", "int_time", "int_step", "int_instrument1", "int_instrument2"]


def test_the_sample_holds_what_is_not_evaluated(confine: Confine, cases: tuple[Case, ...]) -> None:
    labels = np.concatenate([reference_of(confine, case).columns["int_step"] for case in cases])
    assert {-1, 11} <= set(labels.tolist())
    assert 0 not in labels


@pytest.mark.parametrize("task", LOADED.challenge.tasks)
def test_the_sample_scores_what_it_says(confine: Confine, cases: tuple[Case, ...], task: str) -> None:
    expected = json.loads((SAMPLE / "expected_scores.json").read_text())
    assert list(expected) == list(SCORERS)
    assert list(expected[task]) == [case.name for case in cases]
    for case in cases:
        path = SAMPLE / "predictions" / f"{case.name}.csv"
        prediction = read(confine, task, path, frames=len(case.frames), role=Role.PREDICTION)
        score = score_case(confine, LOADED, task, reference_of(confine, case, task), prediction)
        assert {name: round(value or 0, 6) for name, value in score.values.items()} == expected[task][case.name]


def test_the_predictions_of_the_sample_are_the_nearest_colours_and_what_is_usual_then(cases: tuple[Case, ...]) -> None:
    for case in cases:
        with (SAMPLE / "predictions" / f"{case.name}.csv").open() as file:
            rows = list(csv.DictReader(file))
        steps = [int(row["int_step"]) for row in rows]
        assert steps == nearest(case).tolist()
        usual = [GENERATOR.USUAL[step][0] if step > 0 else -1 for step in steps]
        assert [int(row["int_instrument1"]) for row in rows] == usual
        assert {row["int_instrument2"] for row in rows} == {"-2"}


def test_the_sample_is_what_the_generator_makes(tmp_path: Path) -> None:
    GENERATOR.generate(tmp_path, cases=2, frames=(40, 60), seed=1901)
    made = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*.*")}
    assert len(made) == 42 + 60 + 2
    assert made == {path: (SAMPLE / path).read_bytes() for path in made}


def test_instruments_are_mostly_the_usual_ones_of_the_step(tmp_path: Path) -> None:
    GENERATOR.generate(tmp_path, cases=4, frames=(400, 400), seed=5)
    usual = others = 0
    for path in sorted((tmp_path / "references").iterdir()):
        with path.open() as file:
            rows = [{name: int(value) for name, value in row.items()} for row in csv.DictReader(file)]
        for row in rows:
            first, second = row["int_instrument1"], row["int_instrument2"]
            assert (first == -1) == (row["int_step"] == -1)
            assert first in range(-1, 19)
            assert second in (-2, *range(19))
            if first != -1:
                usual += first == GENERATOR.USUAL[row["int_step"]][0]
                others += first != GENERATOR.USUAL[row["int_step"]][0]
    assert 0.5 < usual / (usual + others) < 0.9


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        GENERATOR.generate(tmp_path / name, cases=1, frames=(20, 20), seed=seed)
    contents = {
        name: [path.read_bytes() for path in sorted((tmp_path / name).rglob("*.*"))] for name in ("a", "b", "c")
    }
    assert contents["a"] == contents["b"]
    assert contents["a"] != contents["c"]
    assert len(contents["a"]) == 21


def test_the_generator_has_a_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = ["generate.py", str(tmp_path / "new"), "--cases", "2", "--frames", "5", "7", "--seed", "1"]
    monkeypatch.setattr(sys, "argv", command)
    GENERATOR.main()
    cases = find_cases(tmp_path / "new", LOADED.challenge)
    assert [case.name for case in cases] == ["01", "02"]
    assert all(5 <= len(case.frames) <= 7 for case in cases)


def test_the_data_reward_memory_but_give_most_frames_away(tmp_path: Path) -> None:
    GENERATOR.generate(tmp_path, cases=8, frames=(70, 70), seed=11)
    sizes = [path.stat().st_size for path in tmp_path.rglob("*.png")]
    assert 1000 < sum(sizes) / len(sizes) < 2500
    truths = [(case, reference_labels(case)) for case in find_cases(tmp_path, LOADED.challenge)]
    means = {}
    for method in (nearest, forward_filter):
        scores = [f1_and_edit(truth, method(case)) for case, truth in truths]
        means[method] = np.mean(scores, axis=0)
    assert 0.8 < means[nearest][0] < 0.9
    assert means[nearest][1] < means[nearest][0] - 0.1
    assert means[forward_filter][0] > means[nearest][0] + 0.05
    assert means[forward_filter][1] > means[nearest][1] + 0.1


def reference_labels(case: Case) -> NDArray[np.int64]:
    with case.references["steps"].open() as file:
        return np.array([int(row["int_step"]) for row in csv.DictReader(file)])


def f1_and_edit(truth: NDArray[np.int64], guess: NDArray[np.int64]) -> tuple[float, float]:
    kept = ~np.isin(truth, (-1, 11, 13))
    scored = (*range(1, 11), 12, 14)
    f1 = macro_f1(truth[kept], guess[kept], labels=scored, averaged_over=AveragedOver.REFERENCE_OR_PREDICTION)
    return f1, edit_score(truth[kept], guess[kept])


@pytest.mark.parametrize(
    ("reference", "what"),
    [
        ([1, 0, 2], "ValueError: the reference holds int_step [0], which is the organisers' error"),
        ([-1, 11, 13], "ValueError: no frame of the reference is scored: all are out of patient, or steps 11 or 13"),
    ],
)
def test_a_reference_that_cannot_be_scored_is_the_organisers_error(
    confine: Confine, reference: list[int], what: str
) -> None:
    table = FrameTable(columns={"int_step": np.array(reference)})
    with pytest.raises(ScorerFault) as caught:
        score_case(confine, LOADED, "steps", table, table)
    assert caught.value.what == what


# The scorer, by values of independent implementations.

G = [-1, 1, 1, 2, 2, 2, 3, 3, 11, 3]
P = [1, 1, 1, 1, 2, 2, 2, 3, 3, 3]
P_OUT = [1, 1, -1, 1, 2, 2, 2, 3, 3, 3]
TOOLS_G = [(0, -2), (8, 16), (16, -2), (16, -2)]
TOOLS_P = [(0, -2), (3, 16), (16, -2), (16, -2)]


def table(*, steps: Sequence[int] = (), tools: Sequence[tuple[int, int]] = ()) -> FrameTable:
    columns = {"int_step": np.array(steps, dtype=np.int64)} if steps else {}
    if tools:
        first, second = np.array(tools, dtype=np.int64).T
        columns |= {"int_instrument1": first, "int_instrument2": second}
    return FrameTable(columns=columns)


@pytest.mark.parametrize(
    ("scoring", "reference", "prediction", "expected"),
    [
        ("ours", G, P, (0.877778, 0.755556, 1.0)),
        ("as-published", G, P, (0.877778, 0.755556, 1.0)),
        # -1 comes between two frames of step 1: five segments in place of three.
        ("ours", G, P_OUT, (0.627778, 0.655556, 0.6)),
        ("as-published", G, P_OUT, (0.545833, 0.491667, 0.6)),
        ("ours", [1, 1, 1, 1, 2, 2, 2, 2], [1, 1, 1, 2, 2, 1, 2, 2], (0.625, 0.75, 0.5)),
    ],
)
def test_steps(scoring: str, reference: list[int], prediction: list[int], expected: tuple[float, float, float]) -> None:
    values = SCORER.Steps(scoring=scoring).score_case(table(steps=reference), table(steps=prediction))
    assert tuple(round(values[name], 6) for name in ("mean_f1_edit", "macro_f1", "edit")) == expected


@pytest.mark.parametrize(("scoring", "expected"), [("ours", 0.5), ("as-published", 0.8)])
def test_instruments(scoring: str, expected: float) -> None:
    values = SCORER.Instruments(scoring=scoring).score_case(table(tools=TOOLS_G), table(tools=TOOLS_P))
    assert {name: round(value, 6) for name, value in values.items()} == {"instrument_f1": expected}


@pytest.mark.parametrize(("scoring", "expected"), [("ours", 1.0), ("as-published", 0.8)])
def test_frames_out_of_patient_are_dropped_in_our_reading_and_kept_in_the_published_one(
    scoring: str, expected: float
) -> None:
    """As published, an instrument that is said to be seen out of patient is a false positive."""
    reference, prediction = table(tools=[(5, -2), (5, -2), (-1, -2)]), table(tools=[(5, -2), (5, -2), (5, -2)])
    assert SCORER.Instruments(scoring=scoring).score_case(reference, prediction)["instrument_f1"] == expected


def test_an_instrument_named_twice_counts_once_and_order_does_not_matter() -> None:
    reference, prediction = table(tools=[(5, -2), (8, 16), (0, -2)]), table(tools=[(5, 5), (16, 8), (0, -1)])
    assert SCORER.Instruments().score_case(reference, prediction) == {"instrument_f1": 1.0}


@pytest.mark.parametrize(("scoring", "f1", "tools"), [("ours", 0.655556, 0.5), ("as-published", 0.491667, 0.8)])
def test_task_3_is_the_mean_of_the_other_two(scoring: str, f1: float, tools: float) -> None:
    padding = [(-1, -2)] * 6
    reference, prediction = table(steps=G, tools=TOOLS_G + padding), table(steps=P_OUT, tools=TOOLS_P + padding)
    values = SCORER.StepsAndInstruments(scoring=scoring).score_case(reference, prediction)
    steps = (f1 + 0.6) / 2
    assert {name: round(value, 5) for name, value in values.items()} == {
        "mean_steps_instruments": round((steps + tools) / 2, 5),
        "mean_f1_edit": round(steps, 5),
        "macro_f1": round(f1, 5),
        "edit": 0.6,
        "instrument_f1": tools,
    }


@pytest.mark.parametrize("name", SCORERS)
def test_a_scorer_answers_what_it_measures_and_knows_its_options(name: str) -> None:
    scorer = SCORERS[name]()
    same = table(steps=[1, 2, 3, 4], tools=TOOLS_G)
    assert scorer.score_case(same, same) == dict.fromkeys((metric.name for metric in scorer.metrics), 1.0)
    with pytest.raises(ValueError, match=r"^'printed' is not a valid Scoring$"):
        SCORERS[name](scoring="printed")


@pytest.mark.parametrize(
    ("tools", "what"),
    [
        ([(5, -2), (-1, 16)], "frame 1 of the reference is out of patient and holds an instrument"),
        ([(5, -1), (5, -2)], "frame 0 of the reference is out of patient and holds an instrument"),
        ([(-1, -2), (-1, -1)], "no frame of the reference is scored: all are out of patient"),
        ([(5, -2), (19, -2)], "frame 1 holds 19, which is no known id; 1 like it"),
    ],
)
def test_instruments_that_no_reference_may_hold(tools: list[tuple[int, int]], what: str) -> None:
    with pytest.raises(ValueError) as caught:
        SCORER.Instruments().score_case(table(tools=tools), table(tools=tools))
    assert str(caught.value) == what
