"""PitVis 2023, task 1: values computed by independent implementations, and scikit-learn as a second opinion.

The values marked as checked in the challenge's description are asserted to six digits. Those of the instruments are
in ``test_values.py``: the tasks that score them are not part of the challenge's folder.
"""

import importlib.util
from collections.abc import Callable, Mapping
from typing import Protocol, cast

import numpy as np
import pytest
from rapidfuzz.distance import Levenshtein
from sklearn.metrics import f1_score

from runner.catalog import find_challenge
from runner.formats.contract import FrameTable
from runner.scoring.metrics import (
    AveragedOver,
    Labels,
    Undefined,
    edit_score,
    macro_f1,
    published_step_f1,
    segments,
)


class _Steps(Protocol):
    def score_case(self, reference: FrameTable, prediction: FrameTable) -> Mapping[str, float]: ...


class _Module(Protocol):
    SCORED: tuple[int, ...]
    Steps: Callable[[], _Steps]


def _scorer() -> _Module:
    spec = importlib.util.spec_from_file_location("pitvis_scorer", find_challenge("pitvis2023") / "scorer.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return cast("_Module", module)


SCORER = _scorer()
G = [-1, 1, 1, 2, 2, 2, 3, 3, 11, 3]
P = [1, 1, 1, 1, 2, 2, 2, 3, 3, 3]
P_OUT = [1, 1, -1, 1, 2, 2, 2, 3, 3, 3]


def labels(values: list[int]) -> Labels:
    return np.array(values, dtype=np.int64)


def score(reference: list[int], prediction: list[int]) -> Mapping[str, float]:
    truth, guess = (FrameTable(columns={"int_step": labels(values)}) for values in (reference, prediction))
    return SCORER.Steps().score_case(truth, guess)


def kept(values: list[int]) -> Labels:
    return labels(values)[~np.isin(labels(G), [-1, 11, 13])]


def test_the_example_of_task_1() -> None:
    assert {name: round(value, 6) for name, value in score(G, P).items()} == {
        "macro_f1": 0.755556,
        "edit": 1.0,
        "mean_f1_edit": 0.877778,
    }


def test_the_example_with_a_prediction_out_of_patient() -> None:
    """-1 is outside the scored set: it is wrong for the reference's step only, and adds no class to the mean."""
    assert round(score(G, P_OUT)["macro_f1"], 6) == 0.655556
    over_reference = macro_f1(kept(G), kept(P_OUT), labels=SCORER.SCORED, averaged_over=AveragedOver.REFERENCE)
    assert round(over_reference, 6) == 0.655556


def test_the_same_example_as_published() -> None:
    """The published script averages over the union of the labels it meets."""
    reference, prediction = kept(G), kept(P_OUT)
    assert round(published_step_f1(reference, prediction), 6) == 0.491667
    assert round(float(f1_score(reference, prediction, average="macro", zero_division=1)), 6) == 0.491667


def test_the_example_of_the_edit_score() -> None:
    prediction, reference = labels([0, 0, 0, 1, 1, 0, 1, 1]), labels([0, 1])
    assert Levenshtein.distance(segments(prediction).tolist(), segments(reference).tolist()) == 2
    assert edit_score(reference, prediction) == 0.5


@pytest.mark.parametrize("seed", range(20))
def test_macro_f1_agrees_with_scikit_learn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    frames = int(rng.integers(1, 200))
    reference = rng.choice(SCORER.SCORED, frames)
    prediction = np.where(rng.random(frames) < 0.5, reference, rng.integers(-1, 15, frames))
    known = list(SCORER.SCORED)
    present = [step for step in known if step in reference or step in prediction]
    for averaged_over, chosen in (
        (AveragedOver.REFERENCE_OR_PREDICTION, present),
        (AveragedOver.REFERENCE, [step for step in known if step in reference]),
        (AveragedOver.ALL, known),
    ):
        ours = macro_f1(reference, prediction, labels=known, averaged_over=averaged_over, undefined=Undefined.ZERO)
        theirs = f1_score(reference, prediction, labels=chosen, average="macro", zero_division=0)
        assert ours == pytest.approx(float(theirs), abs=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_the_edit_score_agrees_with_dynamic_programming(seed: int) -> None:
    rng = np.random.default_rng(seed)
    one, other = (labels(rng.integers(-2, 4, int(rng.integers(1, 30))).tolist()) for _ in range(2))
    a, b = segments(one).tolist(), segments(other).tolist()
    table = np.zeros((len(a) + 1, len(b) + 1), dtype=np.int64)
    table[:, 0], table[0, :] = np.arange(len(a) + 1), np.arange(len(b) + 1)
    for i, x in enumerate(a, 1):
        for j, y in enumerate(b, 1):
            table[i, j] = min(table[i - 1, j] + 1, table[i, j - 1] + 1, table[i - 1, j - 1] + (x != y))
    assert edit_score(one, other) == 1 - table[-1, -1] / max(len(a), len(b))
