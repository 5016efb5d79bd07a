"""Label images: counts against a plain loop, rules of presence by hand, streaming against memory."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from runner.scoring.metrics import (
    AveragedOver,
    Counts,
    MaskCounter,
    Measure,
    SequenceMean,
    SequenceWeight,
    Undefined,
    counts_of,
    frame_overlap,
    joint_histogram,
    mean_over_frames,
    mean_over_sequences,
    pooled,
)

SEED = st.integers(0, 2**32 - 1)
Masks = NDArray[np.uint8]


def masks(seed: int, classes: int, frames: int = 1) -> tuple[Masks, Masks]:
    """Noise, long runs or one colour, in odd and even sizes."""
    rng = np.random.default_rng(seed)
    height, width, run = int(rng.integers(1, 12)), int(rng.integers(1, 12)), int(rng.choice([1, 3, 40, 1000]))
    size = frames * height * width
    flat = [rng.integers(0, classes, size // run + 1).repeat(run)[:size].astype(np.uint8) for _ in range(2)]
    shape = (frames, height, width)
    return flat[0].reshape(shape), flat[1].reshape(shape)


def by_loop(reference: Masks, prediction: Masks, classes: int) -> list[list[int]]:
    table = [[0] * classes for _ in range(classes)]
    for g, p in zip(reference.ravel().tolist(), prediction.ravel().tolist(), strict=True):
        table[g][p] += 1
    return table


@settings(deadline=None, max_examples=300)
@given(SEED, st.sampled_from([1, 2, 10, 15, 16, 17, 200, 256]))
def test_pixels_are_counted_by_pair(seed: int, classes: int) -> None:
    reference, prediction = masks(seed, classes)
    ours = joint_histogram(reference, prediction, classes=classes)
    assert ours.tolist() == by_loop(reference, prediction, classes)
    assert joint_histogram(reference.astype(np.int64), prediction, classes=classes).tolist() == ours.tolist()


def test_runs_and_pixels_are_counted_alike() -> None:
    rng = np.random.default_rng(3)
    coarse = rng.integers(0, 16, (8, 8)).astype(np.uint8).repeat(50, axis=0).repeat(51, axis=1)
    noise = rng.integers(0, 16, coarse.shape).astype(np.uint8)
    for one, other in (
        (coarse, np.roll(coarse, 7)),
        (coarse, noise),
        (coarse[:, ::2], noise[:, ::2]),
        (noise.T, coarse.T),
    ):
        expected = np.zeros((16, 16), dtype=np.int64)
        np.add.at(expected, (one, other), 1)
        assert joint_histogram(one, other, classes=16).tolist() == expected.tolist()


def test_an_empty_mask_has_no_pixel() -> None:
    empty = np.zeros((0, 4), dtype=np.uint8)
    for classes in (3, 30):
        assert joint_histogram(empty, empty, classes=classes).sum() == 0


@pytest.mark.parametrize(
    ("reference", "prediction", "classes", "message"),
    [
        (np.zeros((2, 3), np.uint8), np.zeros((3, 2), np.uint8), 2, "shapes differ"),
        (np.zeros((2, 2), np.uint8), np.array([[0, 1], [2, 9]], np.uint8), 3, r"prediction holds label 9 at \(1, 1\)"),
        (np.array([[0, -1]]), np.array([[0, 0]]), 3, r"reference holds label -1 at \(0, 1\); labels are 0 to 2"),
        (np.array([[0, 256]]), np.array([[0, 0]]), 256, r"reference holds label 256 at \(0, 1\)"),
        (np.zeros((2, 2)), np.zeros((2, 2)), 3, "the prediction holds float64"),
        (np.zeros((2, 2), np.uint8), np.zeros((2, 2), np.uint8), 257, "257 classes are not 1 to 256"),
        (np.zeros((2, 2), np.uint8), np.zeros((2, 2), np.uint8), 0, "0 classes are not 1 to 256"),
    ],
)
def test_what_cannot_be_counted_is_refused(reference: Masks, prediction: Masks, classes: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        joint_histogram(reference, prediction, classes=classes)


# Class 0 is background everywhere. Frame 0: class 1 half hit, class 2 only predicted, class 3 nowhere.
# Frame 1: nothing but background. Frame 2: class 1 perfect.
FRAMES = (([0, 1, 1, 0], [0, 1, 2, 0]), ([0, 0, 0, 0], [0, 0, 0, 0]), ([1, 1, 0, 0], [1, 1, 0, 0]))


def three_frames() -> Counts:
    counter = MaskCounter(classes=4)
    for reference, prediction in FRAMES:
        counter.add(np.array([reference], dtype=np.uint8), np.array([prediction], dtype=np.uint8))
    return counter.counts()


@pytest.mark.parametrize(
    ("measure", "averaged_over", "undefined", "values"),
    [
        (Measure.IOU, AveragedOver.REFERENCE, Undefined.FAIL, [1 / 2, None, 1]),
        (Measure.DICE, AveragedOver.REFERENCE, Undefined.FAIL, [2 / 3, None, 1]),
        (Measure.IOU, AveragedOver.REFERENCE_OR_PREDICTION, Undefined.FAIL, [1 / 4, None, 1]),
        (Measure.IOU, AveragedOver.ALL, Undefined.LEFT_OUT, [1 / 4, None, 1]),
        (Measure.IOU, AveragedOver.ALL, Undefined.ZERO, [1 / 6, 0, 1 / 3]),
        (Measure.IOU, AveragedOver.ALL, Undefined.ONE, [1 / 2, 1, 1]),
        (Measure.DICE, AveragedOver.ALL, Undefined.ONE, [5 / 9, 1, 1]),
    ],
)
def test_rules_of_presence(
    measure: Measure, averaged_over: AveragedOver, undefined: Undefined, values: list[float | None]
) -> None:
    ours = frame_overlap(
        three_frames(), classes=(1, 2, 3), measure=measure, averaged_over=averaged_over, undefined=undefined
    )
    assert [None if np.isnan(value) else value for value in ours.tolist()] == pytest.approx(values, abs=1e-15)


def test_a_column_is_a_set_of_one_class() -> None:
    ours = frame_overlap(
        three_frames(),
        classes=(2,),
        measure=Measure.IOU,
        averaged_over=AveragedOver.REFERENCE_OR_PREDICTION,
        undefined=Undefined.FAIL,
    )
    assert ours[0] == 0.0
    assert np.isnan(ours[1:]).all()
    mean = mean_over_frames(ours)
    assert mean == SequenceMean(value=0.0, frames=3, counted=1)


def test_a_sequence_without_a_counted_frame_has_no_weight() -> None:
    empty = mean_over_frames(np.array([np.nan, np.nan]))
    assert np.isnan(empty.value)
    assert (empty.frames, empty.counted) == (2, 0)
    other = SequenceMean(value=0.25, frames=1, counted=1)
    for weight in SequenceWeight:
        assert mean_over_sequences([empty, other], weight=weight) == 0.25
        with pytest.raises(ValueError, match="no sequence has a counted frame"):
            mean_over_sequences([empty], weight=weight)


def test_nothing_counted_yet() -> None:
    with pytest.raises(ValueError, match="no frame was added"):
        MaskCounter(classes=2).counts()


@settings(deadline=None)
@given(SEED, st.integers(1, 5), st.sampled_from([3, 10, 20]))
def test_streaming_equals_in_memory(seed: int, frames: int, classes: int) -> None:
    reference, prediction = masks(seed, classes, frames)
    counter = MaskCounter(classes=classes)
    for one, other in zip(reference, prediction, strict=True):
        counter.add(one, other)
    streamed = counter.counts()
    for c in range(classes):
        g, p = reference == c, prediction == c
        axes = (1, 2)
        assert streamed.hits[:, c].tolist() == (g & p).sum(axis=axes).tolist()
        assert streamed.in_reference[:, c].tolist() == g.sum(axis=axes).tolist()
        assert streamed.in_prediction[:, c].tolist() == p.sum(axis=axes).tolist()
    whole = counts_of(joint_histogram(reference, prediction, classes=classes), classes=classes)
    added = pooled([streamed])
    for name in ("hits", "in_reference", "in_prediction"):
        assert getattr(added, name).tolist() == getattr(whole, name).tolist()


@settings(deadline=None)
@given(SEED, st.permutations(range(5)), st.sampled_from(Measure), st.sampled_from(AveragedOver))
def test_identity_bounds_symmetry_and_names(
    seed: int, names: list[int], measure: Measure, averaged_over: AveragedOver
) -> None:
    reference, prediction = masks(seed, 5)

    def overlap(one: Masks, other: Masks) -> float:
        counter = MaskCounter(classes=5)
        counter.add(one[0], other[0])
        values = frame_overlap(
            counter.counts(), classes=range(5), measure=measure, averaged_over=averaged_over, undefined=Undefined.ONE
        )
        return float(values[0])

    value = overlap(reference, prediction)
    assert 0.0 <= value <= 1.0
    assert overlap(reference, reference) == 1.0
    table = np.array(names, dtype=np.uint8)
    assert overlap(table[reference], table[prediction]) == pytest.approx(value, abs=1e-12)
    if averaged_over is not AveragedOver.REFERENCE:
        assert overlap(prediction, reference) == pytest.approx(value, abs=1e-12)
