"""The formulas and means that labels and masks share."""

import numpy as np
import pytest

from runner.scoring.metrics import (
    AveragedOver,
    Counts,
    Undefined,
    counts_of,
    f1,
    iou,
    macro,
    means_over_classes,
    pooled,
    precision,
    recall,
    weighted,
)


def counts(hits: object, in_reference: object, in_prediction: object) -> Counts:
    arrays = (np.array(values, dtype=np.int64) for values in (hits, in_reference, in_prediction))
    return Counts(**dict(zip(("hits", "in_reference", "in_prediction"), arrays, strict=True)))


# hit with misses; only in the reference; only predicted; nowhere
FOUR = counts([3, 0, 0, 0], [4, 2, 0, 0], [5, 0, 2, 0])


def test_each_ratio_and_where_it_is_undefined() -> None:
    none = -1.0
    assert np.nan_to_num(recall(FOUR), nan=none).tolist() == [3 / 4, 0, none, none]
    assert np.nan_to_num(precision(FOUR), nan=none).tolist() == [3 / 5, none, 0, none]
    assert np.nan_to_num(f1(FOUR), nan=none).tolist() == [6 / 9, 0, 0, none]
    assert np.nan_to_num(iou(FOUR), nan=none).tolist() == [3 / 6, 0, 0, none]


@pytest.mark.parametrize(
    ("averaged_over", "undefined", "mean"),
    [
        (AveragedOver.REFERENCE, Undefined.LEFT_OUT, 0.6),
        (AveragedOver.REFERENCE, Undefined.ZERO, 0.3),
        (AveragedOver.REFERENCE, Undefined.ONE, 0.8),
        (AveragedOver.REFERENCE_OR_PREDICTION, Undefined.LEFT_OUT, 0.3),
        (AveragedOver.REFERENCE_OR_PREDICTION, Undefined.ZERO, 0.2),
        (AveragedOver.ALL, Undefined.LEFT_OUT, 0.3),
        (AveragedOver.ALL, Undefined.ZERO, 0.15),
        (AveragedOver.ALL, Undefined.ONE, 0.65),
    ],
)
def test_the_mean_of_precisions_by_policy(averaged_over: AveragedOver, undefined: Undefined, mean: float) -> None:
    ours = macro(precision(FOUR), FOUR, averaged_over=averaged_over, undefined=undefined)
    assert ours == pytest.approx(mean, abs=1e-15)


def test_fail_names_the_class() -> None:
    with pytest.raises(ValueError, match=r"the value of class 1 is undefined, and the policy .* is 'fail'"):
        macro(precision(FOUR), FOUR, averaged_over=AveragedOver.ALL, undefined=Undefined.FAIL)
    with pytest.raises(ValueError, match="the value of class 1 is undefined"):
        weighted(precision(FOUR), FOUR, undefined=Undefined.FAIL)


def test_a_mean_of_nothing_is_an_error() -> None:
    empty = counts([0, 0], [0, 0], [0, 0])
    for undefined in (Undefined.LEFT_OUT, Undefined.ZERO):
        with pytest.raises(ValueError, match="none of the classes occurs"):
            macro(f1(empty), empty, averaged_over=AveragedOver.REFERENCE_OR_PREDICTION, undefined=undefined)
    with pytest.raises(ValueError, match="none of the classes occurs"):
        macro(f1(empty), empty, averaged_over=AveragedOver.ALL, undefined=Undefined.LEFT_OUT)


@pytest.mark.parametrize(
    ("undefined", "mean"), [(Undefined.LEFT_OUT, 0.6), (Undefined.ZERO, 0.4), (Undefined.ONE, (4 * 0.6 + 2) / 6)]
)
def test_weighted_by_frequency(undefined: Undefined, mean: float) -> None:
    assert weighted(precision(FOUR), FOUR, undefined=undefined) == pytest.approx(mean, abs=1e-15)


def test_weighted_without_a_class_in_the_reference() -> None:
    empty = counts([0, 0], [0, 0], [3, 0])
    assert weighted(f1(empty), empty, undefined=Undefined.ONE) == 1.0
    assert weighted(f1(empty), empty, undefined=Undefined.ZERO) == 0.0
    for undefined in (Undefined.LEFT_OUT, Undefined.FAIL):
        with pytest.raises(ValueError, match="weighted by frequency is undefined"):
            weighted(f1(empty), empty, undefined=undefined)


def test_strangers_are_nobodys_hit() -> None:
    table = np.array([[2, 1, 4], [0, 3, 0], [5, 0, 9]], dtype=np.int64)
    found = counts_of(table, classes=2)
    assert found.hits.tolist() == [2, 3]
    assert found.in_reference.tolist() == [7, 3]
    assert found.in_prediction.tolist() == [7, 4]


def test_many_frames_at_once_are_each_alone() -> None:
    frames = counts([[3, 0], [0, 0]], [[4, 2], [0, 0]], [[5, 0], [0, 1]])
    policy = {"averaged_over": AveragedOver.REFERENCE, "undefined": Undefined.FAIL}
    means = means_over_classes(iou(frames), frames, **policy)  # type: ignore[arg-type]
    assert means[0] == 0.25
    assert np.isnan(means[1])


def test_pooling_adds_frames_and_parts() -> None:
    frames = counts([[1, 0], [2, 1]], [[3, 0], [2, 2]], [[1, 5], [2, 1]])
    both = pooled([frames, counts([10, 20], [30, 40], [50, 60])])
    assert both.hits.tolist() == [13, 21]
    assert both.in_reference.tolist() == [35, 42]
    assert both.in_prediction.tolist() == [53, 66]
    with pytest.raises(ValueError, match="nothing to pool"):
        pooled([])


@pytest.mark.parametrize("classes", [(0, 0), (4,), (-1,)])
def test_a_set_of_classes_must_exist(classes: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="different ones of 0 to 3"):
        FOUR.of(classes)
    assert FOUR.of((3, 0)).hits.tolist() == [0, 3]
