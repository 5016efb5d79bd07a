"""scikit-learn as a second opinion, to 1e-12, on random data with ties, absent classes, one frame and one class."""

import numpy as np
import pytest
from sklearn.metrics import (
    average_precision_score,
    balanced_accuracy_score,
    confusion_matrix,
    f1_score,
    jaccard_score,
    precision_score,
    recall_score,
    top_k_accuracy_score,
)

from runner.scoring.metrics import (
    AveragedOver,
    MaskCounter,
    Measure,
    Undefined,
    accuracy,
    average_precision,
    balanced_accuracy,
    confusion,
    count_labels,
    count_sets,
    f1,
    frame_overlap,
    frame_scores,
    iou,
    joint_histogram,
    macro,
    precision,
    published_instrument_f1,
    recall,
    top_k_recall,
    weighted,
)

SEEDS = range(30)
CLASSES = 6
RATIOS = {"precision": (precision, precision_score), "recall": (recall, recall_score), "f1": (f1, f1_score)}
ZERO_DIVISION = {Undefined.ZERO: 0.0, Undefined.ONE: 1.0, Undefined.LEFT_OUT: np.nan}


def labels(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """1 to 60 frames; some classes in neither sequence, some in one only; every fifth case is a single frame."""
    rng = np.random.default_rng(seed)
    frames = 1 if seed % 5 == 0 else int(rng.integers(2, 60))
    reference = rng.choice(rng.permutation(CLASSES)[: rng.integers(1, CLASSES)], frames)
    return reference, np.where(rng.random(frames) < 0.6, reference, rng.integers(0, CLASSES, frames))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", RATIOS)
@pytest.mark.parametrize("undefined", ZERO_DIVISION)
def test_macro_and_weighted_means(seed: int, name: str, undefined: Undefined) -> None:
    reference, prediction = labels(seed)
    ours, theirs = RATIOS[name]
    counts = count_labels(reference, prediction, labels=range(CLASSES))
    occurring = {
        AveragedOver.ALL: range(CLASSES),
        AveragedOver.REFERENCE: np.unique(reference),
        AveragedOver.REFERENCE_OR_PREDICTION: np.union1d(reference, prediction),
    }
    zero_division = ZERO_DIVISION[undefined]
    for averaged_over, chosen in occurring.items():
        expected = theirs(reference, prediction, labels=chosen, average="macro", zero_division=zero_division)
        mean = macro(ours(counts), counts, averaged_over=averaged_over, undefined=undefined)
        assert mean == pytest.approx(expected, abs=1e-12), averaged_over
    expected = theirs(reference, prediction, labels=range(CLASSES), average="weighted", zero_division=zero_division)
    if np.isnan(expected):
        with pytest.raises(ValueError, match="undefined"):
            weighted(ours(counts), counts, undefined=undefined)
    else:
        assert weighted(ours(counts), counts, undefined=undefined) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true:UserWarning")
@pytest.mark.filterwarnings("ignore:A single label was found:UserWarning")
def test_accuracies_and_confusion(seed: int) -> None:
    reference, prediction = labels(seed)
    assert confusion(reference, prediction, labels=range(CLASSES))[:-1, :-1].tolist() == (
        confusion_matrix(reference, prediction, labels=range(CLASSES)).tolist()
    )
    assert accuracy(reference, prediction) == pytest.approx(float((reference == prediction).sum() / reference.size))
    expected = balanced_accuracy_score(reference, prediction)
    assert balanced_accuracy(reference, prediction, labels=range(CLASSES)) == pytest.approx(expected, abs=1e-12)
    scores = frame_scores(reference, prediction, labels=range(CLASSES), undefined=Undefined.ZERO)
    assert scores.accuracy == pytest.approx(expected, abs=1e-12)
    for name, (_, theirs) in RATIOS.items():
        expected = theirs(reference, prediction, labels=range(CLASSES), average="weighted", zero_division=0)
        assert getattr(scores, name) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("undefined", [Undefined.ZERO, Undefined.ONE])
def test_sets_of_classes(seed: int, undefined: Undefined) -> None:
    rng = np.random.default_rng(seed)
    frames = 1 if seed % 5 == 0 else 30
    density = rng.choice([0.0, 0.3, 1.0], CLASSES)
    reference, prediction = rng.random((frames, CLASSES)) < density, rng.random((frames, CLASSES)) < density[::-1]
    counts = count_sets(reference, prediction)
    for ours, theirs in RATIOS.values():
        for average in ("macro", "weighted"):
            expected = theirs(reference, prediction, average=average, zero_division=ZERO_DIVISION[undefined])
            mean = (
                macro(ours(counts), counts, averaged_over=AveragedOver.ALL, undefined=undefined)
                if average == "macro"
                else weighted(ours(counts), counts, undefined=undefined)
            )
            assert mean == pytest.approx(expected, abs=1e-12)
    published = f1_score(reference, prediction, average="weighted", zero_division=1)
    assert published_instrument_f1(reference, prediction) == pytest.approx(published, abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_masks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = (1, 1) if seed % 5 == 0 else (23, 17)
    g = rng.choice([0, 1, 2, 4, 5], shape, p=[0.6, 0.2, 0.1, 0.05, 0.05]).astype(np.uint8)
    p = np.where(rng.random(shape) < 0.7, g, rng.integers(0, 4, shape)).astype(np.uint8)
    table = joint_histogram(g, p, classes=CLASSES)
    assert table.tolist() == confusion_matrix(g.ravel(), p.ravel(), labels=range(CLASSES)).tolist()
    counter = MaskCounter(classes=CLASSES)
    counter.add(g, p)
    counts = counter.counts()
    for chosen in (range(CLASSES), (1, 2, 3)):
        for zero, undefined in ((0, Undefined.ZERO), (1, Undefined.ONE)):
            how = {"labels": chosen, "average": "macro", "zero_division": zero}
            for measure, theirs in ((Measure.IOU, jaccard_score), (Measure.DICE, f1_score)):
                ours = frame_overlap(
                    counts, classes=chosen, measure=measure, averaged_over=AveragedOver.ALL, undefined=undefined
                )
                assert ours[0] == pytest.approx(theirs(g.ravel(), p.ravel(), **how), abs=1e-12)
    each = jaccard_score(g.ravel(), p.ravel(), labels=range(CLASSES), average=None, zero_division=0)
    np.testing.assert_allclose(np.nan_to_num(iou(counts)[0], nan=0.0), each, rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_average_precision(seed: int) -> None:
    rng = np.random.default_rng(seed)
    frames = 1 if seed % 5 == 0 else int(rng.integers(2, 300))
    levels = int(rng.choice([1, 2, 5, 1000]))
    score = rng.integers(0, levels, frames) / levels
    positive = rng.random(frames) < rng.choice([0.02, 0.5, 1.0])
    positive[0] = True
    expected = float(average_precision_score(positive, score))
    assert average_precision(positive, score, undefined=Undefined.FAIL) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_top_k_with_one_positive_a_frame(seed: int) -> None:
    """There micro recall@K is top-K accuracy; scores are all different, since ties are cut otherwise there."""
    rng = np.random.default_rng(seed)
    truth, score = rng.integers(0, CLASSES, 40), rng.random((40, CLASSES))
    positive = np.eye(CLASSES, dtype=np.bool_)[truth]
    ours = top_k_recall(positive, score, ks=(1, 2, 5), undefined=Undefined.FAIL)
    for k, value in ours.items():
        assert value == pytest.approx(top_k_accuracy_score(truth, score, k=k, labels=range(CLASSES)), abs=1e-12)
