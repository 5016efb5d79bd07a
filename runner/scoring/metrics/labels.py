"""Labels of frames: one class a frame, or a set of classes a frame."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from runner.scoring.metrics.counts import Counts, counts_of, f1, macro, precision, recall, weighted
from runner.scoring.metrics.policies import AveragedOver, Undefined

Labels = NDArray[np.int64]
Sets = NDArray[np.bool_]
"""Which of K classes a frame holds, shape ``(frames, K)``."""


@dataclass(frozen=True, kw_only=True)
class FrameScores:
    """Four scores of one sequence, each in [0, 1]; higher is better."""

    accuracy: float
    precision: float
    recall: float
    f1: float


def frame_scores(reference: Labels, prediction: Labels, *, labels: Sequence[int], undefined: Undefined) -> FrameScores:
    """Balanced accuracy, and precision, recall and F1 weighted by frequency.

    Args:
        reference: Class ids, shape ``(frames,)``.
        prediction: Class ids, shape ``(frames,)``.
        labels: The fixed set of K classes.
        undefined: What the precision of a class counts as that occurs but was never predicted (0 / 0).

    Raises:
        ValueError: The shapes differ, no class occurs in the reference, or ``undefined`` is ``FAIL`` and applies.

    Source:
        Huaulmé et al., PEg TRAnsfer Workflow recognition challenge (PETRAW), 2023, section on metrics and appendix.
    """
    counts = count_labels(reference, prediction, labels=labels)
    return FrameScores(
        accuracy=_balanced(counts),
        precision=weighted(precision(counts), counts, undefined=undefined),
        recall=weighted(recall(counts), counts, undefined=undefined),
        f1=weighted(f1(counts), counts, undefined=undefined),
    )


def accuracy(reference: Labels, prediction: Labels) -> float:
    """Share of frames with the right label, in [0, 1]; shapes ``(frames,)``.

    Raises:
        ValueError: The shapes differ, or there is no frame.
    """
    _check_shapes(reference, prediction)
    if not reference.size:
        raise ValueError("accuracy is undefined: there is no frame")
    return float((reference == prediction).mean())


def balanced_accuracy(reference: Labels, prediction: Labels, *, labels: Sequence[int]) -> float:
    """Mean of the recalls of the classes that occur in the reference.

    A class that was only predicted has no recall and does not enter. For another rule, average ``recall`` by ``macro``.

    Args:
        reference: Class ids, shape ``(frames,)``.
        prediction: Class ids, shape ``(frames,)``.
        labels: The fixed set of K classes.

    Returns:
        In [0, 1]; higher is better.

    Raises:
        ValueError: The shapes differ, or no class occurs in the reference.
    """
    return _balanced(count_labels(reference, prediction, labels=labels))


def _balanced(counts: Counts) -> float:
    return macro(recall(counts), counts, averaged_over=AveragedOver.REFERENCE, undefined=Undefined.FAIL)


def macro_f1(
    reference: Labels,
    prediction: Labels,
    *,
    labels: Sequence[int],
    averaged_over: AveragedOver,
    undefined: Undefined | None = None,
) -> float:
    """Mean over classes of F1 = 2 TP / (2 TP + FP + FN), on one sequence.

    A frame whose predicted label is outside ``labels`` is a false negative of its reference class and a false
    positive of none; the other way round likewise. A class that occurs in one sequence only has F1 0.

    Args:
        reference: Class ids, shape ``(frames,)``.
        prediction: Class ids, shape ``(frames,)``.
        labels: The fixed set of K classes.
        averaged_over: Which of them enter the mean.
        undefined: What a class counts as that occurs in neither sequence. Such a class enters under ``ALL`` only,
            where the policy must be said.

    Returns:
        In [0, 1]; higher is better.

    Raises:
        ValueError: The shapes differ, no class enters the mean, or ``ALL`` comes without a policy.

    Source:
        PitVis 2023, task 1: ``REFERENCE_OR_PREDICTION`` over the 12 scored steps.
    """
    if undefined is None:
        if averaged_over is AveragedOver.ALL:
            raise ValueError("say what a class without frames counts as: averaged over all, `undefined` is needed")
        undefined = Undefined.FAIL
    counts = count_labels(reference, prediction, labels=labels)
    return macro(f1(counts), counts, averaged_over=averaged_over, undefined=undefined)


def count_labels(reference: Labels, prediction: Labels, *, labels: Sequence[int]) -> Counts:
    """Count hits, reference and prediction of each class, ``(K,)``, in the order of ``labels``; see ``confusion``."""
    return counts_of(confusion(reference, prediction, labels=labels), classes=len(labels))


def count_sets(reference: Sets, prediction: Sets) -> Counts:
    """Count hits, reference and prediction of each class where a frame holds a set of classes.

    Args:
        reference: Shape ``(frames, K)``.
        prediction: Shape ``(frames, K)``.

    Raises:
        ValueError: The shapes differ.
    """
    if reference.shape != prediction.shape or reference.ndim != 2:
        raise ValueError(f"shapes differ: reference {reference.shape}, prediction {prediction.shape}")
    return Counts(
        hits=(reference & prediction).sum(axis=0),
        in_reference=reference.sum(axis=0),
        in_prediction=prediction.sum(axis=0),
    )


def sets_of(columns: Labels, *, labels: Sequence[int], none: Sequence[int]) -> Sets:
    """Turn columns of ids (instrument 1, instrument 2) into the set of each frame.

    Args:
        columns: Ids, shape ``(frames, columns)``; an id twice in a frame counts once.
        labels: The fixed set of K classes.
        none: Ids that stand for no class.

    Returns:
        Shape ``(frames, K)``, in the order of ``labels``.

    Raises:
        ValueError: An id is neither of ``labels`` nor of ``none``; the first one is named with its frame.
    """
    places = _places(columns, labels)
    strangers = np.argwhere((places == len(labels)) & ~np.isin(columns, none))
    if strangers.size:
        frame, column = strangers[0]
        raise ValueError(
            f"frame {frame} holds {int(columns[frame, column])}, which is no known id; {len(strangers)} like it"
        )
    sets = np.zeros((len(columns), len(labels) + 1), dtype=np.bool_)
    np.put_along_axis(sets, places, values=True, axis=1)
    return sets[:, :-1]


def confusion(reference: Labels, prediction: Labels, *, labels: Sequence[int]) -> NDArray[np.int64]:
    """Count pairs of labels.

    Args:
        reference: Class ids, shape ``(frames,)``.
        prediction: Class ids, shape ``(frames,)``.
        labels: K classes.

    Returns:
        Frames, shape ``(K + 1, K + 1)``, reference by prediction; the last row and column hold all other ids.

    Raises:
        ValueError: The shapes differ, or a label is doubled.
    """
    _check_shapes(reference, prediction)
    if len(set(labels)) != len(labels):
        raise ValueError("a label is doubled")
    size = len(labels) + 1
    pairs = _places(reference, labels) * size + _places(prediction, labels)
    return np.bincount(pairs, minlength=size * size).reshape(size, size).astype(np.int64)


def published_step_f1(reference: Labels, prediction: Labels) -> float:
    """Macro-F1 over the union of the labels met, as the PitVis 2023 organisers' script computes task 1.

    A prediction outside the scored set becomes a class of its own with F1 0, which lowers the mean of all. The
    script's ``zero_division=1`` never applies: each label met occurs somewhere.

    Args:
        reference: Class ids of the frames that are scored, shape ``(frames,)``.
        prediction: Class ids, shape ``(frames,)``.

    Raises:
        ValueError: The shapes differ, or there is no frame.
    """
    met = np.union1d(reference, prediction).tolist()
    return macro_f1(reference, prediction, labels=met, averaged_over=AveragedOver.REFERENCE_OR_PREDICTION)


def published_instrument_f1(reference: Sets, prediction: Sets) -> float:
    """F1 weighted by frequency with ``zero_division=1``, as the PitVis 2023 organisers' script computes task 2.

    Args:
        reference: Shape ``(frames, K)``, out-of-patient frames kept.
        prediction: Shape ``(frames, K)``.

    Returns:
        In [0, 1]; 1 where the reference holds no instrument at all.

    Raises:
        ValueError: The shapes differ.
    """
    counts = count_sets(reference, prediction)
    return weighted(f1(counts), counts, undefined=Undefined.ONE)


def _check_shapes(reference: Labels, prediction: Labels) -> None:
    if reference.shape != prediction.shape or reference.ndim != 1:
        raise ValueError(f"shapes differ: reference {reference.shape}, prediction {prediction.shape}")


def _places(ids: Labels, labels: Sequence[int]) -> NDArray[np.intp]:
    """The place of each id in ``labels``, or K."""
    if not len(labels):
        raise ValueError("there is no class")
    order = np.argsort(labels)
    known = np.asarray(labels, dtype=np.int64)[order]
    nearest = np.minimum(np.searchsorted(known, ids), len(known) - 1)
    return np.where(known[nearest] == ids, order[nearest], len(known))
