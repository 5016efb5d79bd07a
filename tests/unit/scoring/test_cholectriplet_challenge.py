"""The CholecTriplet folder: its map of components, its scores by hand, its sample, and data made in its form."""

import importlib.util
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from runner.catalog import find_challenge, load_challenge
from runner.confine import Confine
from runner.dataset import find_cases
from runner.formats.contract import Due, FrameScores, Role
from runner.formats.reading import read_output, read_reference
from runner.scoring import CaseScore

LOADED = load_challenge(find_challenge("cholectriplet2021"))
TASK = LOADED.challenge.tasks["recognition"]
SAMPLE = LOADED.folder / "sample"
Positive = NDArray[np.bool_]
Scores = NDArray[np.float64]


def _module(name: str) -> ModuleType:
    own = f"cholectriplet_{name}"
    spec = importlib.util.spec_from_file_location(own, LOADED.folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[own] = module
    spec.loader.exec_module(module)
    return module


SCORER: Any = _module("scorer")
GENERATOR: Any = _module("generate")

MAP = """
0 2 1/0 2 0/0 2 10/0 0 3/0 0 2/0 0 4/0 0 1/0 0 0/0 0 12/0 0 8/0 0 10/0 0 11/0 0 13/0 8 0/0 1 2/0 1 4/0 1 1/0 1 0/0 1 12/
0 1 8/0 1 10/0 1 11/1 3 7/1 3 5/1 3 3/1 3 2/1 3 4/1 3 1/1 3 0/1 3 8/1 3 10/1 3 11/1 2 9/1 2 3/1 2 2/1 2 1/1 2 0/1 2 10/
1 0 1/1 0 8/1 0 13/1 1 2/1 1 4/1 1 0/1 1 8/1 1 10/2 3 5/2 3 3/2 3 2/2 3 4/2 3 1/2 3 0/2 3 8/2 3 10/2 5 5/2 5 11/2 2 5/
2 2 3/2 2 2/2 2 1/2 2 0/2 2 10/2 2 11/2 1 0/2 1 8/3 3 10/3 5 9/3 5 5/3 5 3/3 5 2/3 5 1/3 5 8/3 5 10/3 5 11/3 2 1/3 2 0/
3 2 10/4 4 5/4 4 3/4 4 2/4 4 4/4 4 1/5 6 6/5 2 2/5 2 4/5 2 1/5 2 0/5 2 10/5 7 7/5 7 4/5 7 8/5 1 0/5 1 8/5 1 10/
0 9 14/1 9 14/2 9 14/3 9 14/4 9 14/5 9 14
"""
"""Instrument, verb and target of each class as the organisers' package numbers them (maps.txt, ivtmetrics 0.1.5)."""


def video(frames: int, *, positives: Mapping[int, Sequence[int]], scores: Mapping[int, Sequence[float]]) -> CaseScore:
    """Score a video; classes that are not named have no positive frame and score 0."""
    truth, guess = np.zeros((2, frames, 100))
    for number, places in positives.items():
        truth[list(places), number] = 1
    for number, column in scores.items():
        guess[:, number] = column
    return score(truth, guess)


def score(truth: Scores, guess: Scores, **options: str | float) -> CaseScore:
    found: CaseScore = SCORER.Triplets(**options).score_case(FrameScores(scores=truth), FrameScores(scores=guess))
    return found


def aggregate(cases: Sequence[CaseScore], **options: str) -> Mapping[str, float | None]:
    found: Mapping[str, float | None] = SCORER.Triplets(**options).aggregate(cases)
    return found


A = video(
    4,
    positives={17: (0, 1), 60: (2,), 94: (3,)},
    scores={17: (0.9, 0.2, 0.6, 0.1), 60: (0.3, 0.3, 0.3, 0.1), 94: (0.1, 0.2, 0.3, 0.4)},
)
B = video(3, positives={17: (0,)}, scores={17: (0.5, 0.7, 0.1), 60: (0.8, 0.1, 0.1)})


def test_the_challenge_is_read_as_it_is_meant() -> None:
    invocation = LOADED.challenge.invocation
    assert (invocation.mode.value, invocation.input_mount, invocation.output_mount) == ("dataset", "/input", "/output")
    assert invocation.args == ()
    assert invocation.lists == {"data/{case}.txt": "record/{case}/{frame}.png"}
    assert TASK.missing_case.value == "fail"
    metric = next(metric for metric in SCORER.Triplets().metrics if metric.name == TASK.primary.metric)
    assert metric.higher_is_better
    assert SCORER.Triplets(**TASK.options).metrics == SCORER.Triplets.metrics


def test_the_map_of_components_is_the_data_sets() -> None:
    expected = [tuple(map(int, one.split())) for one in MAP.strip().replace("\n", "").split("/")]
    assert list(SCORER.TRIPLETS) == expected
    sizes = {level: len(set(components)) for level, components in SCORER.LEVELS.items()}
    assert sizes == {"ivt": 100, "i": 6, "v": 10, "t": 15, "iv": 26, "it": 59}
    null = (SCORER.VERBS.index("null_verb"), SCORER.TARGETS.index("null_target"))
    assert [number for number, triplet in enumerate(SCORER.TRIPLETS) if triplet[1:] == null] == list(range(94, 100))


@pytest.mark.parametrize(
    ("number", "names"),
    [
        (0, ("grasper", "dissect", "cystic_plate")),
        (17, ("grasper", "retract", "gallbladder")),
        (40, ("bipolar", "grasp", "specimen_bag")),
        (60, ("hook", "dissect", "gallbladder")),
        (82, ("irrigator", "aspirate", "fluid")),
        (93, ("irrigator", "retract", "omentum")),
    ],
)
def test_a_class_has_the_name_the_data_set_gives_it(number: int, names: tuple[str, str, str]) -> None:
    instrument, verb, target = SCORER.TRIPLETS[number]
    assert (SCORER.INSTRUMENTS[instrument], SCORER.VERBS[verb], SCORER.TARGETS[target]) == names


def test_videos_come_first_and_then_classes() -> None:
    """Frames pooled would give .70 and .25, and .65 with the null triplet."""
    by_class = [mean_over(number) for number in (17, 60, 94)]
    assert [round(value, 6) for value in by_class] == [0.666667, 0.333333, 1.0]
    assert aggregate([A, B])["ap_ivt"] == pytest.approx(0.5, abs=1e-12)
    assert aggregate([A, B], null_triplets="included")["ap_ivt"] == pytest.approx(2 / 3, abs=1e-12)


def mean_over(number: int) -> float:
    """AP of a class over the videos that have it, from what is kept of them."""
    kept = [one.details["precision"]["ivt"][number] for one in (A, B) if isinstance(one.details, dict)]  # type: ignore[index, call-overload]
    return float(np.mean([value for value in kept if value is not None]))


def test_one_video_is_scored_over_the_classes_it_has() -> None:
    assert A.values["ap_ivt"] == pytest.approx((5 / 6 + 1 / 3) / 2, abs=1e-12)
    assert B.values["ap_ivt"] == 0.5
    # Grasper: 17 or 94 in frames 0, 1, 3, scores .9 .2 .6 .4; hook: 60.
    assert A.values["ap_i"] == pytest.approx(((1 + 2 / 3 + 3 / 4) / 3 + 1 / 3) / 2, abs=1e-12)
    # Retract, dissect and no verb are 17, 60 and 94 alone; so are their targets and pairs, but for gallbladder.
    assert A.values["ap_v"] == A.values["ap_iv"] == A.values["ap_it"]
    assert A.values["ap_v"] == pytest.approx((5 / 6 + 1 / 3 + 1) / 3, abs=1e-12)
    # Gallbladder: 17 or 60 in frames 0, 1, 2, scores .9 .3 .6 .1; no target: 94.
    assert A.values["ap_t"] == 1.0


def test_top_k_counts_positives_over_all_videos() -> None:
    assert A.values["top_5"] == B.values["top_5"] == 1.0
    tied = video(2, positives={3: (0,), 4: (0, 1), 50: (1,)}, scores={50: (0.0, 0.1)})
    # Of equal scores the smaller class comes first: 50, 0, 1, 2, 3 in frame 1, which leaves 4 out.
    assert tied.values["top_5"] == 1.0 - 1 / 4
    assert tied.values["top_mean"] == (3 / 4 + 1 + 1 + 1) / 4
    assert aggregate([A, B, tied])["top_5"] == 8 / 9
    assert aggregate([A, B, tied])["top_mean"] == pytest.approx((8 / 9 + 3) / 4, abs=1e-12)


def test_a_video_without_a_prediction_counts_as_nothing_found() -> None:
    worst = CaseScore(values={metric.name: metric.worst for metric in SCORER.Triplets.metrics}, frames=4)
    found = aggregate([A, B, worst])
    assert found["ap_ivt"] == pytest.approx(((5 / 6 + 1 / 2) / 3 + 1 / 6) / 2, abs=1e-12)
    assert found["top_5"] == pytest.approx(2 / 3, abs=1e-12)
    assert set(aggregate([worst]).values()) == {0.0}


def test_what_no_video_has_is_not_defined() -> None:
    nothing = video(3, positives={}, scores={})
    assert set(nothing.values.values()) == {None}
    assert set(aggregate([nothing]).values()) == {None}
    null = video(3, positives={94: (1,)}, scores={})
    assert null.values["ap_ivt"] is None
    assert null.values["ap_i"] == pytest.approx(1 / 3, abs=1e-12)
    assert aggregate([null, nothing], null_triplets="included")["ap_ivt"] == pytest.approx(1 / 3, abs=1e-12)
    assert aggregate([A, nothing]) == aggregate([A])


def test_what_is_kept_of_a_video_is_plain_json() -> None:
    again = CaseScore(values=A.values, details=json.loads(json.dumps(A.details)), frames=4)
    assert aggregate([again]) == A.values


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_one_video_alone_is_its_own_aggregate_and_bounds_hold(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = (rng.random((int(rng.integers(1, 20)), 100)) < 0.05).astype(np.float64)
    found = score(truth, rng.integers(0, 4, truth.shape) / 4)
    assert aggregate([found]) == found.values
    assert all(value is None or 0.0 <= value <= 1.0 for value in found.values.values())
    perfect = score(truth, truth).values
    assert {perfect[name] for name in perfect if name.startswith("ap_")} <= {1.0, None}


def test_an_unknown_option_is_named() -> None:
    with pytest.raises(ValueError, match="null_triplets 'out' is none of left out, included"):
        SCORER.Triplets(null_triplets="out")


def test_scores_of_another_shape_are_refused() -> None:
    with pytest.raises(ValueError, match=r"shapes differ: positive \(3, 100\), score \(2, 100\)"):
        score(np.zeros((3, 100)), np.zeros((2, 100)))


def reference_of(case: str, folder: Path = SAMPLE) -> Scores:
    table = np.loadtxt(folder / "triplet" / f"{case}.txt", delimiter=",")
    assert table[:, 0].tolist() == list(range(1, len(table) + 1))
    found: Scores = table[:, 1:]
    return found


def prediction_of(case: str, folder: Path = SAMPLE) -> Scores:
    entries = json.loads((folder / "predictions" / f"{case}.json").read_text())
    return np.array([entries[f"{number:06d}"]["recognition"] for number in range(1, len(entries) + 1)])


def brightness_of(case: str) -> Scores:
    """What a method could see: the mean of each block of a frame."""
    frames = sorted((SAMPLE / "videos" / case).iterdir())
    images = np.array([np.asarray(Image.open(path)) for path in frames])
    blocks: Scores = images.reshape(len(frames), 10, 4, 10, 4, 3).mean(axis=(2, 4, 5))
    return blocks.reshape(len(frames), 100) / 255


def test_the_sample_is_small_and_in_the_form_of_the_challenge() -> None:
    cases = find_cases(SAMPLE, LOADED.challenge)
    assert [(case.name, len(case.frames), case.frames[0]) for case in cases] == [
        ("VID01", 48, "000001.png"), ("VID02", 39, "000001.png"),
    ]  # fmt: skip
    assert sum(path.stat().st_size for path in SAMPLE.rglob("*") if path.is_file()) < 160 << 10
    for case in cases:
        truth = reference_of(case.name)
        assert truth.shape == (len(case.frames), 100)
        assert set(np.unique(truth)) == {0.0, 1.0}
        assert truth[:, 94:].any()


def test_the_sample_is_read_as_the_challenge_says(confine: Confine) -> None:
    for case in find_cases(SAMPLE, LOADED.challenge):
        due = Due(frames=case.frames, count=len(case.frames))
        assert TASK.reference_format is not None
        reference = read_reference(confine, TASK.reference_format, case.references["recognition"], due=due)
        path = SAMPLE / "predictions" / f"{case.name}.json"
        prediction = read_output(confine, TASK.format, path, due=due, role=Role.PREDICTION).prediction
        assert isinstance(reference, FrameScores)
        assert isinstance(prediction, FrameScores)
        assert reference.scores.tolist() == reference_of(case.name).tolist()
        assert prediction.scores.tolist() == prediction_of(case.name).tolist()


def test_the_sample_scores_what_it_says() -> None:
    expected = json.loads((SAMPLE / "expected_scores.json").read_text())["recognition"]
    found = {}
    for case in expected:
        assert prediction_of(case).tolist() == brightness_of(case).round(4).tolist()
        found[case] = score(reference_of(case), prediction_of(case), **TASK.options)
        assert rounded(found[case].values) == expected[case]
    assert rounded(aggregate(list(found.values())))["ap_ivt"] == 0.899663


def rounded(values: Mapping[str, float | None]) -> dict[str, float | None]:
    return {name: None if value is None else round(value, 6) for name, value in values.items()}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("perfect", lambda value: value == 1.0),
        ("seen", lambda value: 0.7 < value < 0.95),
        ("shuffled", lambda value: value < 0.4),
        ("worst", lambda value: value < 0.2),
    ],
)
def test_better_predictions_score_better(kind: str, expected: Callable[[float], bool], tmp_path: Path) -> None:
    GENERATOR.generate(tmp_path, cases=2, frames=(150, 200), seed=3, predictions=kind)
    cases = [score(reference_of(case, tmp_path), prediction_of(case, tmp_path)) for case in ("VID01", "VID02")]
    found = aggregate(cases)
    assert found["ap_ivt"] is not None
    assert found["top_mean"] is not None
    assert expected(found["ap_ivt"])
    assert expected(found["top_mean"])


def contents(folder: Path) -> dict[str, bytes]:
    """Every file by name; of images the pixels, which no version of an encoder changes."""
    return {
        str(path.relative_to(folder)): np.asarray(Image.open(path)).tobytes()
        if path.suffix == ".png" else path.read_bytes()
        for path in folder.rglob("*.*")
    }  # fmt: skip


def test_the_sample_is_what_the_generator_makes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = "generate.py {} --cases 2 --frames 36 48 --seed 7 --predictions seen".format(tmp_path / "new")
    monkeypatch.setattr(sys, "argv", command.split())
    GENERATOR.main()
    made, kept = contents(tmp_path / "new"), contents(SAMPLE)
    assert kept.pop("expected_scores.json")
    assert made == kept


def test_a_seed_gives_the_same_data_whatever_is_predicted(tmp_path: Path) -> None:
    for name, seed, kind in (("a", 3, ""), ("b", 3, "shuffled"), ("c", 4, "")):
        GENERATOR.generate(tmp_path / name, cases=2, frames=(5, 9), seed=seed, predictions=kind)
    a, b, c = (contents(tmp_path / name) for name in "abc")
    assert {name: content for name, content in b.items() if not name.startswith("predictions")} == a
    assert a != c


def test_realistic_sizes_are_drawn_without_writing_frames() -> None:
    rng = np.random.default_rng(1)
    positive = GENERATOR.walk(rng, 20_000)
    bright = GENERATOR.look(rng, positive)
    assert positive.shape == bright.shape == (20_000, 100)
    assert 25 <= positive.any(axis=0).sum() <= 30
    assert 1.0 < positive.sum(axis=1).mean() < 2.0
