"""Metric values that independent implementations computed, to six digits, and where libraries disagree.

PitVis task 1 has a file of its own, since its scorer takes part there.
"""

import numpy as np
import pytest
from numpy.typing import NDArray

from runner.scoring.metrics import (
    AveragedOver,
    Between,
    Forgiving,
    Labels,
    MaskCounter,
    Measure,
    SequenceWeight,
    Sets,
    TransitionType,
    Undefined,
    average_precision,
    balanced_accuracy,
    component_values,
    count_labels,
    count_sets,
    delay_scores,
    f1,
    frame_overlap,
    iou,
    macro,
    macro_f1,
    mean_over_frames,
    mean_over_sequences,
    mean_precision,
    pooled,
    published_instrument_f1,
    recall,
    sets_of,
    top_k_recall,
    video_precision,
    weighted,
)

# PETRAW: balanced accuracy frame by frame, then application-dependent.

IDLE_A_B_IDLE = "I10 A20 B20 I10"
ONE_TRANSITION = "A30 B30"
SHORT = "I20 T4 I20"


def runs(text: str) -> Labels:
    """``I10 A20`` is ten frames of one label and twenty of another."""
    parts = [(ord(run[0]), int(run[1:])) for run in text.split()]
    return np.repeat([label for label, _ in parts], [length for _, length in parts]).astype(np.int64)


def forgiving(type_: TransitionType = TransitionType.PAIR, between: Between = Between.ANY) -> Forgiving:
    return Forgiving(delay=0.25, fps=30, type=type_, between=between)


@pytest.mark.parametrize(
    ("reference", "prediction", "frame_by_frame", "pair", "incoming"),
    [
        (IDLE_A_B_IDLE, "I14 A12 B30 I4", 0.766667, 1.0, 1.0),
        (ONE_TRANSITION, "A37 B23", 0.883333, 1.0, 1.0),
        (ONE_TRANSITION, "A38 B22", 0.866667, 0.866667, 0.866667),
        (ONE_TRANSITION, "A39 B21", 0.85, 0.85, 0.85),
        (IDLE_A_B_IDLE, "I8 B3 A19 B20 I10", 0.95, 0.95, 0.966667),
        (SHORT, "I44", 0.5, 0.5, 0.5),
        (SHORT, "I24 T4 I16", 0.45, 1.0, 1.0),
    ],
)
def test_petraw_accuracy(reference: str, prediction: str, frame_by_frame: float, pair: float, incoming: float) -> None:
    g, p = runs(reference), runs(prediction)
    labels = [ord(label) for label in "IABT"]
    assert round(balanced_accuracy(g, p, labels=labels), 6) == frame_by_frame
    for type_, expected in ((TransitionType.PAIR, pair), (TransitionType.INCOMING, incoming)):
        scores = delay_scores(g, p, labels=labels, forgiving=forgiving(type_), undefined=Undefined.ZERO)
        assert round(scores.accuracy, 6) == expected


# CholecTriplet: two videos, 100 classes of which three occur.


def triplets(
    frames: int, scores: dict[int, list[float]], positive: dict[int, list[int]]
) -> tuple[Sets, NDArray[np.float64]]:
    labels, values = np.zeros((frames, 100), dtype=np.bool_), np.zeros((frames, 100))
    for triplet, column in scores.items():
        values[:, triplet] = column
    for triplet, where in positive.items():
        labels[where, triplet] = True
    return labels, values


VIDEO_A = triplets(
    4, {17: [0.9, 0.2, 0.6, 0.1], 60: [0.3, 0.3, 0.3, 0.1], 94: [0.1, 0.2, 0.3, 0.4]}, {17: [0, 1], 60: [2], 94: [3]}
)
VIDEO_B = triplets(3, {17: [0.5, 0.7, 0.1], 60: [0.8, 0.1, 0.1]}, {17: [0]})


def test_cholectriplet_precision_by_video() -> None:
    by_video = np.stack([video_precision(*video, levels={"ivt": range(100)})["ivt"] for video in (VIDEO_A, VIDEO_B)])
    everything = mean_precision(by_video, classes=None, undefined=Undefined.LEFT_OUT)
    assert np.round(everything.by_class[[17, 60, 94]], 6).tolist() == [0.666667, 0.333333, 1.0]
    assert int((~np.isnan(everything.by_class)).sum()) == 3
    assert round(everything.mean, 6) == 0.666667
    assert mean_precision(by_video, classes=range(94), undefined=Undefined.LEFT_OUT).mean == 0.5
    # What ivtmetrics prints with scikit-learn 1.6 and newer: absent classes count as 0, in each video.
    with_zeros = np.nan_to_num(by_video, nan=0.0)
    assert round(mean_precision(with_zeros, classes=None, undefined=Undefined.FAIL).mean, 6) == 0.013333


def test_cholectriplet_precision_of_pooled_frames() -> None:
    labels, scores = (np.concatenate(parts) for parts in zip(VIDEO_A, VIDEO_B, strict=True))
    frames = video_precision(labels, scores, levels={"ivt": range(100)})["ivt"]
    assert np.round(frames[[17, 60]], 6).tolist() == [0.7, 0.25]
    assert round(mean_precision(frames[None], classes=None, undefined=Undefined.LEFT_OUT).mean, 6) == 0.65


# PitVis: sets of instruments.

G = sets_of(np.array([[0, -2], [8, 16], [16, -2], [16, -2]]), labels=range(19), none=(-1, -2))
P = sets_of(np.array([[0, -2], [3, 16], [16, -2], [16, -2]]), labels=range(19), none=(-1, -2))


def test_pitvis_instruments() -> None:
    counts = count_sets(G, P)

    def mean(averaged_over: AveragedOver, undefined: Undefined) -> float:
        return round(macro(f1(counts), counts, averaged_over=averaged_over, undefined=undefined), 6)

    assert mean(AveragedOver.REFERENCE_OR_PREDICTION, Undefined.FAIL) == 0.5
    assert mean(AveragedOver.REFERENCE, Undefined.FAIL) == 0.666667
    assert mean(AveragedOver.ALL, Undefined.ZERO) == 0.105263
    assert weighted(f1(counts), counts, undefined=Undefined.FAIL) == 0.8
    assert published_instrument_f1(G, P) == 0.8


# RobSeg: frames, sequences, weights.


def sequence(*frames: tuple[str, str]) -> MaskCounter:
    counter = MaskCounter(classes=4)
    for reference, prediction in frames:
        g, p = (np.array(list(text), dtype=np.uint8).reshape(1, -1) for text in (reference, prediction))
        counter.add(g, p)
    return counter


SEQUENCE_A = sequence(("001112", "011102"), ("000000", "000010"), ("111100", "111020"))
SEQUENCE_B = sequence(("222000", "200003"))


def test_robseg() -> None:
    a, b = (
        frame_overlap(
            counter.counts(),
            classes=(1, 2, 3),
            measure=Measure.IOU,
            averaged_over=AveragedOver.REFERENCE,
            undefined=Undefined.FAIL,
        )
        for counter in (SEQUENCE_A, SEQUENCE_B)
    )
    assert a[[0, 2]].tolist() == [0.75, 0.75]
    assert np.isnan(a[1])
    assert np.round(b, 6).tolist() == [0.333333]
    sequences = [mean_over_frames(values) for values in (a, b)]
    assert sequences[0].value == 0.75
    assert [(one.frames, one.counted) for one in sequences] == [(3, 2), (1, 1)]
    overall = {weight: round(mean_over_sequences(sequences, weight=weight), 6) for weight in SequenceWeight}
    assert overall == {
        SequenceWeight.EQUAL: 0.541667,
        SequenceWeight.FRAMES: 0.645833,
        SequenceWeight.COUNTED_FRAMES: 0.611111,
    }


def test_robseg_pooled_pixels() -> None:
    counts = pooled([SEQUENCE_A.counts(), SEQUENCE_B.counts()]).of((1, 2, 3))
    mean = macro(iou(counts), counts, averaged_over=AveragedOver.REFERENCE, undefined=Undefined.FAIL)
    assert round(mean, 6) == 0.477778


# Edge conventions: class 3 is only predicted, class 4 occurs nowhere.

EDGE_G = np.array(list("0000111122"), dtype=np.int64)
EDGE_P = np.array(list("0003111011"), dtype=np.int64)


@pytest.mark.parametrize(
    ("averaged_over", "undefined", "of_iou", "of_f1"),
    [
        (AveragedOver.REFERENCE_OR_PREDICTION, Undefined.FAIL, 0.275, 0.354167),
        (AveragedOver.ALL, Undefined.ZERO, 0.22, 0.283333),
        (AveragedOver.ALL, Undefined.ONE, 0.42, 0.483333),
        (AveragedOver.ALL, Undefined.LEFT_OUT, 0.275, 0.354167),
        (AveragedOver.REFERENCE, Undefined.FAIL, 0.366667, 0.472222),
    ],
)
def test_a_class_only_predicted_and_a_class_nowhere(
    averaged_over: AveragedOver, undefined: Undefined, of_iou: float, of_f1: float
) -> None:
    counts = count_labels(EDGE_G, EDGE_P, labels=range(5))
    assert round(macro(iou(counts), counts, averaged_over=averaged_over, undefined=undefined), 6) == of_iou
    ours = macro_f1(EDGE_G, EDGE_P, labels=range(5), averaged_over=averaged_over, undefined=undefined)
    assert round(ours, 6) == of_f1


def test_balanced_accuracy_with_a_class_only_predicted() -> None:
    """scikit-learn leaves the class out, torchmetrics counts its recall as 0."""
    assert balanced_accuracy(EDGE_G, EDGE_P, labels=range(5)) == 0.5
    counts = count_labels(EDGE_G, EDGE_P, labels=range(5))
    over_both = AveragedOver.REFERENCE_OR_PREDICTION
    assert macro(recall(counts), counts, averaged_over=over_both, undefined=Undefined.ZERO) == 0.375


def test_average_precision_without_positives_and_with_constant_scores() -> None:
    none, some = np.zeros(4, dtype=np.bool_), np.array([True, False, False, False])
    scores = np.full(4, 0.3)
    assert np.isnan(average_precision(none, scores, undefined=Undefined.LEFT_OUT))
    assert average_precision(none, scores, undefined=Undefined.ZERO) == 0.0
    assert average_precision(none, scores, undefined=Undefined.ONE) == 1.0
    with pytest.raises(ValueError, match="without a positive frame"):
        average_precision(none, scores, undefined=Undefined.FAIL)
    assert average_precision(some, scores, undefined=Undefined.FAIL) == 0.25
    with pytest.raises(ValueError, match=r"1 scores are not finite; the first is nan at frame 2"):
        average_precision(some, np.array([0.1, 0.2, np.nan, 0.3]), undefined=Undefined.FAIL)


def test_components_and_top_k_by_hand() -> None:
    """Three triplets of two instruments; the tie in frame 1 goes to the smaller id."""
    positive = np.array([[True, False, False], [False, False, True]])
    scores = np.array([[0.2, 0.9, 0.5], [0.4, 0.1, 0.4]])
    assert component_values(scores, (0, 0, 1)).tolist() == [[0.9, 0.5], [0.4, 0.4]]
    assert component_values(positive, (0, 0, 1)).tolist() == [[True, False], [False, True]]
    by_level = video_precision(positive, scores, levels={"i": (0, 0, 1), "ivt": range(3)})
    assert by_level["i"].tolist() == [1.0, 0.5]
    assert np.nan_to_num(by_level["ivt"], nan=-1).tolist() == [0.5, -1, 0.5]
    assert top_k_recall(positive, scores, ks=(1, 2, 3), undefined=Undefined.FAIL) == {1: 0.0, 2: 0.5, 3: 1.0}
