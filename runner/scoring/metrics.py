"""Metrics of label sequences. Every undefined case is decided by an argument, never by a library's default."""

from collections.abc import Sequence
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein

Labels = NDArray[np.int64]


class AveragedOver(StrEnum):
    """The classes whose F1 enters the mean."""

    REFERENCE = "reference"
    REFERENCE_OR_PREDICTION = "reference or prediction"
    ALL = "all"


def macro_f1(reference: Labels, prediction: Labels, *, labels: Sequence[int], averaged_over: AveragedOver) -> float:
    """Mean over classes of F1 = 2 TP / (2 TP + FP + FN), on one sequence.

    A frame whose predicted label is outside ``labels`` is a false negative of its reference class and a false
    positive of none; the other way round likewise. A class of ``labels`` that occurs in neither sequence has no F1:
    it counts as 0 under ``ALL`` and is left out otherwise. A class that occurs in one of them only has F1 0.

    Args:
        reference: Class ids, shape ``(frames,)``.
        prediction: Class ids, shape ``(frames,)``.
        labels: The fixed set of K classes.
        averaged_over: Which of them enter the mean.

    Returns:
        In [0, 1]; higher is better.

    Raises:
        ValueError: The shapes differ, or no class enters the mean.

    Source:
        PitVis 2023, task 1: ``REFERENCE_OR_PREDICTION`` over the 12 scored steps. The organisers' published script
        averages over the union of the labels it meets; pass that union as ``labels`` to reproduce it.
    """
    counts = confusion(reference, prediction, labels=labels)
    hits = np.diagonal(counts)[:-1].astype(np.float64)
    in_reference, in_prediction = counts.sum(axis=1)[:-1], counts.sum(axis=0)[:-1]
    present = in_reference + in_prediction
    f1 = np.divide(2 * hits, present, out=np.zeros_like(hits), where=present > 0)
    chosen = {
        AveragedOver.REFERENCE: in_reference > 0,
        AveragedOver.REFERENCE_OR_PREDICTION: present > 0,
        AveragedOver.ALL: np.ones_like(present, dtype=np.bool_),
    }[averaged_over]
    if not chosen.any():
        raise ValueError("macro F1 is undefined: none of the classes occurs")
    return float(f1[chosen].mean())


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
    if reference.shape != prediction.shape or reference.ndim != 1:
        raise ValueError(f"shapes differ: reference {reference.shape}, prediction {prediction.shape}")
    if len(set(labels)) != len(labels):
        raise ValueError("a label is doubled")
    size = len(labels) + 1
    pairs = _places(reference, labels) * size + _places(prediction, labels)
    return np.bincount(pairs, minlength=size * size).reshape(size, size).astype(np.int64)


def _places(ids: Labels, labels: Sequence[int]) -> NDArray[np.intp]:
    """The place of each id in ``labels``, or K."""
    order = np.argsort(labels)
    known = np.asarray(labels, dtype=np.int64)[order]
    nearest = np.minimum(np.searchsorted(known, ids), len(known) - 1)
    return np.where(known[nearest] == ids, order[nearest], len(known))


def segments(ids: Labels) -> Labels:
    """Collapse runs of equal labels: ``1 1 2 2 1`` is ``1 2 1``.

    Args:
        ids: Class ids, shape ``(frames,)``.

    Returns:
        Class ids, shape ``(runs,)``.
    """
    if not ids.size:
        return ids
    starts = np.concatenate([[0], np.flatnonzero(np.diff(ids)) + 1])
    runs: Labels = ids[starts]
    return runs


def edit_score(reference: Labels, prediction: Labels) -> float:
    """Normalised edit score of two sequences' segments: 1 - Lev(P, G) / max(\\|P\\|, \\|G\\|).

    Only the order of the segments counts, not their length, and the two may differ in their number of frames.

    Args:
        reference: Class ids, shape ``(frames,)``.
        prediction: Class ids, shape ``(frames,)``.

    Returns:
        In [0, 1]; higher is better.

    Raises:
        ValueError: Both are empty.

    Source:
        PitVis 2023, task 1, in the normalised form its printed results are consistent with; its paper prints
        1 / Lev, under which those results are impossible.
    """
    ours, theirs = segments(prediction), segments(reference)
    longest = max(ours.size, theirs.size)
    if not longest:
        raise ValueError("the edit score is undefined: both sequences are empty")
    # rapidfuzz compares hashes, and -1 and -2 have the same one in Python: places are compared instead of ids.
    _, places = np.unique(np.concatenate([ours, theirs]), return_inverse=True)
    numbers = places.tolist()
    return 1.0 - Levenshtein.distance(numbers[: ours.size], numbers[ours.size :]) / longest
