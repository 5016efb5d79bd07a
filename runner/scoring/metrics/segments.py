"""Runs of equal labels, compared by their order or by their overlap."""

from collections.abc import Sequence
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein

from runner.scoring.metrics.labels import Labels
from runner.scoring.metrics.policies import Undefined, settled


class Reaches(StrEnum):
    """When an overlap is enough."""

    AT_LEAST = "at least"
    ABOVE = "above"


def segments(ids: Labels) -> Labels:
    """Collapse runs of equal labels: ``1 1 2 2 1`` is ``1 2 1``.

    Args:
        ids: Class ids, shape ``(frames,)``.

    Returns:
        Class ids, shape ``(runs,)``.
    """
    runs: Labels = ids[_starts(ids)]
    return runs


def _starts(ids: Labels) -> NDArray[np.intp]:
    if not ids.size:
        return np.zeros(0, dtype=np.intp)
    return np.concatenate([[0], np.flatnonzero(ids[1:] != ids[:-1]) + 1])


def edit_score(reference: Labels, prediction: Labels) -> float:
    """Normalised edit score of two sequences' segments: 1 - Lev(P, G) / max(|P|, |G|).

    Only the order of the segments counts, not their length, and the two may differ in their number of frames.

    Args:
        reference: Class ids, shape ``(frames,)``.
        prediction: Class ids, shape ``(frames,)``.

    Returns:
        In [0, 1]; higher is better.

    Raises:
        ValueError: Both are empty.

    Source:
        Lea et al., Temporal Convolutional Networks for Action Segmentation and Detection, CVPR 2017, section 4.1, in
        [0, 1] in place of percent. PitVis 2023, task 1, prints 1 / Lev, under which its printed results are impossible.
    """
    ours, theirs = segments(prediction), segments(reference)
    longest = max(ours.size, theirs.size)
    if not longest:
        raise ValueError("the edit score is undefined: both sequences are empty")
    # rapidfuzz compares hashes, and -1 and -2 have the same one in Python: places are compared instead of ids.
    _, places = np.unique(np.concatenate([ours, theirs]), return_inverse=True)
    numbers = places.tolist()
    return 1.0 - Levenshtein.distance(numbers[: ours.size], numbers[ours.size :]) / longest


def segmental_f1(
    reference: Labels,
    prediction: Labels,
    *,
    overlap: float,
    reaches: Reaches,
    background: Sequence[int],
    undefined: Undefined,
) -> float:
    """Segmental F1@k: F1 = 2 TP / (2 TP + FP + FN) counted in segments.

    Each predicted segment looks at the reference segment of its class with the largest IoU, the earlier one of equals.
    It is a true positive if that IoU reaches ``overlap`` and no earlier prediction took the segment, else a false
    positive. Reference segments nobody took are false negatives.

    Args:
        reference: Class ids, shape ``(frames,)``.
        prediction: Class ids, shape ``(frames,)``.
        overlap: k as a share, in (0, 1]; usually 0.10, 0.25 and 0.50.
        reaches: Whether an IoU equal to ``overlap`` is enough. The authors' code says yes.
        background: Classes whose segments count in neither sequence; ``()`` for none.
        undefined: What a pair of sequences counts as that hold no segment but background; ``LEFT_OUT`` is NaN.

    Returns:
        In [0, 1]; higher is better.

    Raises:
        ValueError: The shapes differ, ``overlap`` is out of range, or the score is undefined and the policy ``FAIL``.

    Source:
        Lea et al., CVPR 2017, section 4.1.
    """
    if reference.shape != prediction.shape or reference.ndim != 1:
        raise ValueError(f"shapes differ: reference {reference.shape}, prediction {prediction.shape}")
    if not 0 < overlap <= 1:
        raise ValueError(f"overlap {overlap} is not in (0, 1]")
    theirs, ours = _starts(reference), _starts(prediction)
    wanted = ~np.isin(reference[theirs], background)
    offered = ~np.isin(prediction[ours], background)
    total = int(wanted.sum() + offered.sum())
    if not total:
        return settled(undefined, "segmental F1 of two sequences without a segment")
    return 2 * _taken(reference, prediction, overlap, reaches, offered) / total


def _taken(reference: Labels, prediction: Labels, overlap: float, reaches: Reaches, offered: NDArray[np.bool_]) -> int:
    """How many reference segments a prediction takes.

    Two segments meet in one interval at most, so that the intervals between all cuts are the pairs that meet.
    """
    theirs, ours = _starts(reference), _starts(prediction)
    cuts = np.union1d(theirs, ours)
    of_reference = np.searchsorted(theirs, cuts, side="right") - 1
    of_prediction = np.searchsorted(ours, cuts, side="right") - 1
    shared = np.diff(cuts, append=reference.size)
    lengths = np.diff(theirs, append=reference.size)[of_reference] + np.diff(ours, append=reference.size)[of_prediction]
    possible = (reference[cuts] == prediction[cuts]) & offered[of_prediction]
    iou = shared / (lengths - shared)
    # The best of each prediction: sorted by prediction, then by falling IoU; stable, so that the earlier one wins.
    order = np.lexsort((-iou[possible], of_prediction[possible]))
    predictions = of_prediction[possible][order]
    best = order[np.flatnonzero(np.diff(predictions, prepend=-1))]
    reached = iou[possible][best]
    enough = reached >= overlap if reaches is Reaches.AT_LEAST else reached > overlap
    return int(np.unique(of_reference[possible][best][enough]).size)
