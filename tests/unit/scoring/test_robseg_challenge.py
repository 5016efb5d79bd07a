"""The folder of the 2018 Robotic Scene Segmentation: its scores by hand, its sample, and data made in its form."""

import csv
import importlib.util
import json
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from runner.challenge import LabelImagesFormat
from runner.confine import Confine
from runner.dataset import find_cases
from runner.formats.contract import Due, LabelImages, Role
from runner.formats.reading import read_output, read_reference
from runner.scoring import CaseScore

LOADED = load_challenge(find_challenge("robseg2018"))
TASK = LOADED.challenge.tasks["scenes"]
SAMPLE = LOADED.folder / "sample"
PRINTED = Path(__file__).parents[2] / "oracles" / "robseg2018_results.csv"
Labels = NDArray[np.uint8]


def _module(name: str) -> ModuleType:
    own = f"robseg_{name}"
    spec = importlib.util.spec_from_file_location(own, LOADED.folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[own] = module
    spec.loader.exec_module(module)
    return module


SCORER: Any = _module("scorer")
GENERATOR: Any = _module("generate")


def row(*frames: str) -> LabelImages:
    """Frames of one row; a digit a pixel."""
    return LabelImages(
        frames=len(frames), read=lambda: (np.array([list(map(int, one))], dtype=np.uint8) for one in frames)
    )


def stacked(masks: Labels) -> LabelImages:
    """Masks of shape (frames, height, width)."""
    return LabelImages(frames=len(masks), read=lambda: iter(masks))


def score(reference: LabelImages, prediction: LabelImages) -> CaseScore:
    found: CaseScore = SCORER.Scenes().score_case(reference, prediction)
    return found


def aggregate(cases: Sequence[CaseScore], **options: str | float) -> Mapping[str, float | None]:
    found: Mapping[str, float | None] = SCORER.Scenes(**options).aggregate(cases)
    return found


def rounded(values: Mapping[str, float | None]) -> dict[str, float | None]:
    return {name: None if value is None else round(value, 6) for name, value in values.items()}


A = score(row("001112", "000000", "111100"), row("011102", "000100", "111020"))
B = score(row("222000"), row("200003"))


def test_the_challenge_is_read_as_it_is_meant() -> None:
    files = LOADED.challenge.cases
    assert {name: rule.inside for name, rule in files.rules.items()} == {
        "left": "{case}/left", "right": "{case}/right", "calibration": "{case}/calibration.txt",
    }  # fmt: skip
    assert files.timed == "left"
    rule = TASK.format
    assert isinstance(rule, LabelImagesFormat)
    assert (rule.width, rule.height, rule.coding, rule.file) == (1280, 1024, "colour", "{case}/{frame}.png")
    assert tuple(rule.classes[number].colour for number in range(12)) == GENERATOR.COLOURS
    assert len(rule.classes) == SCORER.CLASSES == 12
    assert TASK.missing_case.value == "worst"
    assert SCORER.Scenes(**TASK.options).metrics[0].name == TASK.primary.metric == "overall"


def test_ten_classes_are_scored_all_but_background_and_suction() -> None:
    rule = TASK.format
    assert isinstance(rule, LabelImagesFormat)
    names = {number: label.name for number, label in rule.classes.items() if number not in (0, 9)}
    scored = {number: name.replace("_", " ") for name, number in SCORER.SCORED.items()}
    assert {number: name.removeprefix("instrument ") for number, name in names.items()} == scored
    assert [metric.name for metric in SCORER.Scenes.metrics] == ["overall", *SCORER.SCORED]


def test_a_frame_counts_the_classes_in_its_reference() -> None:
    assert A.values["overall"] == 0.75
    assert B.values["overall"] == pytest.approx(1 / 3, abs=1e-12)
    assert A.values["shaft"] == pytest.approx((2 / 4 + 3 / 4) / 2, abs=1e-12)
    # Of the third frame's prediction class 2 is left out, for its reference has none.
    assert A.values["clasper"] == 1.0
    assert [A.values[name] for name in ("wrist", "ultrasound_probe")] == [None, None]
    assert (A.frames, B.frames) == (3, 1)
    assert A.details == {"counted": dict.fromkeys(SCORER.SETS, 0) | {"overall": 2, "shaft": 2, "clasper": 1}}


@pytest.mark.parametrize(("weight", "expected"), [("equal", 0.541667), ("frames", 0.645833), ("counted", 0.611111)])
def test_sequences_are_weighted_as_the_option_says(weight: str, expected: float) -> None:
    assert rounded(aggregate([A, B], weight=weight))["overall"] == expected


def test_frames_are_the_default_weight() -> None:
    assert TASK.options == {"weight": "frames"}
    assert aggregate([A, B]) == aggregate([A, B], **TASK.options) == aggregate([A, B], weight="frames")


def test_a_sequence_without_a_class_does_not_enter_its_mean() -> None:
    found = aggregate([A, B])
    assert found["shaft"] == A.values["shaft"]
    assert found["clasper"] == pytest.approx((3 * 1.0 + 1 / 3) / 4, abs=1e-12)
    assert found["thread"] is None
    nothing = score(row("099"), row("111"))
    assert set(nothing.values.values()) == {None}
    assert aggregate([A, nothing]) == A.values
    assert set(aggregate([nothing]).values()) == {None}


@pytest.mark.parametrize(("weight", "expected"), [("equal", 0.375), ("frames", 0.45), ("counted", 0.375)])
def test_a_sequence_without_a_prediction_counts_with_all_its_frames(weight: str, expected: float) -> None:
    worst = CaseScore(values=dict.fromkeys(SCORER.SETS, 0.0), frames=2)
    assert aggregate([A, worst], weight=weight)["overall"] == pytest.approx(expected, abs=1e-12)
    assert aggregate([A, worst], weight=weight)["thread"] == 0.0


def test_what_is_kept_of_a_sequence_is_plain_json() -> None:
    again = CaseScore(values=A.values, details=json.loads(json.dumps(A.details)), frames=3)
    assert aggregate([again, B], weight="counted") == aggregate([A, B], weight="counted")


def test_background_and_suction_are_not_scored() -> None:
    found = score(row("0991"), row("9001"))
    assert found.values["overall"] == found.values["shaft"] == 1.0


def test_an_unknown_weight_is_named() -> None:
    with pytest.raises(ValueError, match="weight 'pixels' is none of frames, equal, counted"):
        SCORER.Scenes(weight="pixels")


def test_images_that_differ_in_number_are_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        score(row("01", "01"), row("01"))


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_the_reference_itself_scores_1_and_all_lies_between_0_and_1(seed: int) -> None:
    rng = np.random.default_rng(seed)
    masks = rng.integers(0, 12, (2, int(rng.integers(1, 4)), 3, 4)).astype(np.uint8)
    reference, prediction = (stacked(one) for one in masks)
    perfect, found = score(reference, reference), score(reference, prediction)
    assert set(perfect.values.values()) <= {1.0, None}
    assert perfect.details == found.details
    assert all(value is None or 0.0 <= value <= 1.0 for value in found.values.values())
    for weight in ("frames", "equal", "counted"):
        assert rounded(aggregate([found], weight=weight)) == rounded(found.values)


def test_table_v_is_the_mean_of_the_printed_sequences() -> None:
    """Whatever the weight, for all four have as many frames; each column over the sequences that have the class."""
    columns = {
        "Overall": "overall", "Instrument Shaft": "shaft", "Instrument Clasper": "clasper", "Instrument Wrist": "wrist",
        "Parenchyma": "kidney_parenchyma", "Covered Kidney": "covered_kidney", "Thread": "thread", "Clips": "clamps",
        "Needle": "suturing_needle", "Intestine": "small_intestine", "US Probe": "ultrasound_probe",
    }  # fmt: skip
    printed: dict[str, dict[str, dict[str, float]]] = {}
    with PRINTED.open() as file:
        for line in csv.DictReader(file):
            team = printed.setdefault(line["team"], {})
            team.setdefault(line["test_set"], {})[columns[line["class"]]] = float(line["iou"])
    del printed["Average"]
    assert len(printed) == 18
    for team in printed.values():
        table_v = team.pop("overall")
        cases = [CaseScore(values=dict.fromkeys(SCORER.SETS) | values, frames=300) for values in team.values()]
        assert len(cases) == 4
        for weight in ("frames", "equal", "counted"):
            assert aggregate(cases, weight=weight) == pytest.approx(table_v, abs=0.0005 + 1e-9)


UNKNOWN = 255
TABLE = np.full(1 << 24, UNKNOWN, dtype=np.uint8)
for number, (red, green, blue) in enumerate(GENERATOR.COLOURS):
    TABLE[red << 16 | green << 8 | blue] = number


def codes_of(path: Path) -> NDArray[np.int32]:
    """The colour of each pixel as one number."""
    image = np.asarray(Image.open(path)).astype(np.int32)
    found: NDArray[np.int32] = image[..., 0] << 16 | image[..., 1] << 8 | image[..., 2]
    return found


def labels_of(path: Path) -> Labels:
    """Class numbers of a coloured image, every pixel of which has a colour of the challenge."""
    labels = TABLE[codes_of(path)]
    assert labels.max() < UNKNOWN
    return labels


def images(folder: Path) -> LabelImages:
    paths = sorted(folder.iterdir())
    return LabelImages(frames=len(paths), read=lambda: map(labels_of, paths))


def nearest(path: Path) -> Labels:
    """What a method could see: the class of the nearest colour."""
    codes = codes_of(path)
    met = np.unique(codes)
    colours = np.stack([met >> 16, met >> 8 & 255, met & 255], axis=1)
    table = TABLE.copy()
    table[met] = ((colours[:, None] - np.array(GENERATOR.COLOURS)) ** 2).sum(axis=2).argmin(axis=1)
    return table[codes]


def test_the_sample_is_small_and_in_the_form_of_the_challenge() -> None:
    cases = find_cases(SAMPLE, LOADED.challenge)
    assert [(case.name, case.stems) for case in cases] == [
        (name, ("frame000", "frame001", "frame002")) for name in ("seq_1", "seq_2")
    ]
    assert sum(path.stat().st_size for path in SAMPLE.rglob("*") if path.is_file()) < 320 << 10
    for path in SAMPLE.rglob("*.png"):
        with Image.open(path) as image:
            assert (image.size, image.mode) == ((1280, 1024), "RGB")
    for case in cases:
        assert case.references["scenes"] == SAMPLE / "labels" / case.name


def test_the_sample_is_read_as_the_challenge_says(confine: Confine) -> None:
    case = find_cases(SAMPLE, LOADED.challenge)[0]
    due = Due(frames=case.frames, count=len(case.frames))
    reference = read_reference(confine, TASK.format, case.references["scenes"], due=due)
    prediction = read_output(
        confine, TASK.format, SAMPLE / "predictions" / case.name, due=due, role=Role.PREDICTION
    ).prediction
    assert isinstance(reference, LabelImages)
    assert isinstance(prediction, LabelImages)
    expected = json.loads((SAMPLE / "expected_scores.json").read_text())["scenes"]
    assert rounded(score(reference, prediction).values) == expected[case.name]


def test_the_sample_scores_what_it_says() -> None:
    expected = json.loads((SAMPLE / "expected_scores.json").read_text())["scenes"]
    found = {}
    for case in expected:
        prediction = images(SAMPLE / "predictions" / case)
        left = [nearest(path) for path in sorted((SAMPLE / "sequences" / case / "left_frames").iterdir())]
        assert all(np.array_equal(one, seen) for one, seen in zip(prediction, left, strict=True))
        found[case] = score(images(SAMPLE / "labels" / case), prediction)
        assert rounded(found[case].values) == expected[case]
    assert rounded(aggregate(list(found.values()), **TASK.options))["overall"] == 0.601464


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("perfect", lambda value: value == 1.0),
        ("seen", lambda value: 0.5 < value < 0.95),
        ("turned", lambda value: value < 0.3),
        ("worst", lambda value: value == 0.0),
    ],
)
def test_better_predictions_score_better(kind: str, expected: Callable[[float], bool]) -> None:
    frames = [frame for seed in range(4) for frame in drawn(seed, 2)]
    reference = LabelImages(frames=len(frames), read=lambda: (frame.labels for frame in frames))
    predict = GENERATOR.PREDICTIONS[kind]
    found = score(reference, LabelImages(frames=len(frames), read=lambda: (predict(frame) for frame in frames)))
    assert found.values["overall"] is not None
    assert expected(found.values["overall"])


def drawn(seed: int, frames: int) -> list[Any]:
    scene = GENERATOR.Scene(np.random.default_rng(seed))
    return [scene.frame() for _ in range(frames)]


def test_images_are_taken_one_after_the_other() -> None:
    """Of 50 masks a side, no more than the one at hand and the one before are in memory."""
    most = 0

    def masks() -> Iterator[Labels]:
        nonlocal most
        drawn: list[weakref.ref[Labels]] = []
        for _ in range(50):
            mask = np.ones((3, 4), dtype=np.uint8)
            drawn.append(weakref.ref(mask))
            most = max(most, sum(one() is not None for one in drawn))
            yield mask

    sequence = LabelImages(frames=50, read=masks)
    assert score(sequence, sequence).values["overall"] == 1.0
    assert most <= 2


def contents(folder: Path) -> dict[str, bytes]:
    """Every file by name; of images the pixels, which no version of an encoder changes."""
    return {
        str(path.relative_to(folder)): np.asarray(Image.open(path)).tobytes()
        if path.suffix == ".png" else path.read_bytes()
        for path in folder.rglob("*.*")
    }  # fmt: skip


def test_the_sample_is_what_the_generator_makes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = "generate.py {} --cases 2 --frames 3 3 --seed 4 --predictions seen".format(tmp_path / "new")
    monkeypatch.setattr(sys, "argv", command.split())
    GENERATOR.main()
    made, kept = contents(tmp_path / "new"), contents(SAMPLE)
    assert kept.pop("expected_scores.json")
    assert made == kept


def test_a_seed_gives_the_same_data_whatever_is_predicted(tmp_path: Path) -> None:
    for name, seed, kind in (("a", 3, ""), ("b", 3, "turned"), ("c", 4, "")):
        GENERATOR.generate(tmp_path / name, cases=1, frames=(1, 2), seed=seed, predictions=kind)
    a, b, c = (contents(tmp_path / name) for name in "abc")
    assert {name: content for name, content in b.items() if not name.startswith("predictions")} == a
    assert a != c


def test_an_object_is_missing_in_some_frames() -> None:
    seen = [len(np.unique(frame.labels)) for frame in drawn(1, 12)]
    assert 1 < min(seen) < max(seen) <= 7
