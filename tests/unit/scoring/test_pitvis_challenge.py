"""The PitVis folder: its sample, what that scores, and data made in its form."""

import csv
import functools
import importlib.util
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, cast

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from runner.catalog import find_challenge, load_challenge
from runner.confine import Confine
from runner.dataset import Case, find_cases
from runner.errors import ScorerFault
from runner.formats.contract import FrameTable
from runner.formats.frame_table import Role, confined_read
from runner.scoring.metrics import AveragedOver, edit_score, macro_f1
from runner.scoring.run import score_case

LOADED = load_challenge(find_challenge("pitvis2023"))
RULE = LOADED.challenge.tasks["steps"].format
SAMPLE = LOADED.folder / "sample"


class Generator(Protocol):
    COLOURS: Mapping[int, tuple[int, int, int]]
    SPREAD: float

    def generate(self, folder: Path, *, cases: int, frames: tuple[int, int], seed: int) -> None: ...

    def main(self) -> None: ...


def _generator() -> Generator:
    spec = importlib.util.spec_from_file_location("pitvis_generate", LOADED.folder / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return cast("Generator", module)


GENERATOR = _generator()
LABELS = np.array(list(GENERATOR.COLOURS))
COLOURS = np.array(list(GENERATOR.COLOURS.values()), dtype=np.float64)


@functools.cache
def distances(case: Case) -> NDArray[np.float64]:
    """Squared distance of every frame's mean colour from every step's, shape (frames, steps)."""
    means = [np.asarray(Image.open(case.folder / name)).reshape(-1, 3).mean(axis=0) for name in case.frames]
    found: NDArray[np.float64] = ((np.array(means)[:, None] - COLOURS) ** 2).sum(axis=2)
    return found


def nearest(case: Case) -> NDArray[np.int64]:
    found: NDArray[np.int64] = LABELS[distances(case).argmin(axis=1)]
    return found


def forward_filter(case: Case) -> NDArray[np.int64]:
    """Uses the past only: a hidden Markov model that stays with 90 %."""
    squared = distances(case)
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
    return find_cases(SAMPLE, LOADED.challenge.cases)


def reference_of(confine: Confine, case: Case) -> FrameTable:
    table = confined_read(confine, RULE, case.reference, frames=len(case.frames), role=Role.REFERENCE).table
    assert table is not None
    return table


def test_the_sample_is_small_and_in_the_form_of_the_challenge(cases: tuple[Case, ...]) -> None:
    assert [(case.name, len(case.frames)) for case in cases] == [("01", 42), ("02", 60)]
    files = [path for path in SAMPLE.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 256 << 10
    for case in cases:
        assert case.frames[0] == "00000.png"
        with Image.open(case.folder / case.frames[-1]) as image:
            assert (image.size, image.mode) == ((64, 36), "RGB")
        with case.reference.open() as file:
            assert next(csv.reader(file)) == ["int_video", "int_time", "int_step", "int_instrument1", "int_instrument2"]


def test_the_sample_holds_what_is_not_evaluated(confine: Confine, cases: tuple[Case, ...]) -> None:
    labels = np.concatenate([reference_of(confine, case).columns["int_step"] for case in cases])
    assert {-1, 11} <= set(labels.tolist())
    assert 0 not in labels


def test_the_sample_scores_what_it_says(confine: Confine, cases: tuple[Case, ...]) -> None:
    expected = json.loads((SAMPLE / "expected_scores.json").read_text())["steps"]
    assert sorted(expected) == [case.name for case in cases]
    for case in cases:
        path = SAMPLE / "predictions" / f"{case.name}.csv"
        prediction = confined_read(confine, RULE, path, frames=len(case.frames), role=Role.PREDICTION).table
        assert prediction is not None
        assert prediction.columns["int_step"].tolist() == nearest(case).tolist()
        score = score_case(confine, LOADED, "steps", reference_of(confine, case), prediction)
        assert {name: round(value, 6) for name, value in score.values.items()} == expected[case.name]


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
    cases = find_cases(tmp_path / "new", LOADED.challenge.cases)
    assert [case.name for case in cases] == ["01", "02"]
    assert all(5 <= len(case.frames) <= 7 for case in cases)


def test_the_data_reward_memory_but_give_most_frames_away(tmp_path: Path) -> None:
    GENERATOR.generate(tmp_path, cases=8, frames=(70, 70), seed=11)
    sizes = [path.stat().st_size for path in tmp_path.rglob("*.png")]
    assert 1000 < sum(sizes) / len(sizes) < 2500
    truths = {case: reference_labels(case) for case in find_cases(tmp_path, LOADED.challenge.cases)}
    means = {}
    for method in (nearest, forward_filter):
        scores = [f1_and_edit(truth, method(case)) for case, truth in truths.items()]
        means[method] = np.mean(scores, axis=0)
    assert 0.8 < means[nearest][0] < 0.9
    assert means[nearest][1] < means[nearest][0] - 0.1
    assert means[forward_filter][0] > means[nearest][0] + 0.05
    assert means[forward_filter][1] > means[nearest][1] + 0.1


def reference_labels(case: Case) -> NDArray[np.int64]:
    with case.reference.open() as file:
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
