"""Hits, reference and prediction counted by class, the four ratios made of them, and their means over classes.

Labels of frames, sets of labels and pixels of masks end in the same three counts, so that all share one formula and
one set of policies. Arrays have classes last, any axes before: ``(K,)`` is one sequence, ``(frames, K)`` many frames.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from runner.scoring.metrics.policies import AveragedOver, Undefined, settled

Numbers = NDArray[np.int64]
Values = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Counts:
    """How often each class was hit, occurs in the reference, and occurs in the prediction; each ``(..., K)``."""

    hits: Numbers
    in_reference: Numbers
    in_prediction: Numbers

    def of(self, classes: Sequence[int]) -> "Counts":
        """Only these classes, by their place.

        Raises:
            ValueError: A class is doubled, or there is no such place.
        """
        known = self.hits.shape[-1]
        chosen = np.asarray(classes, dtype=np.intp)
        if len(set(classes)) != len(classes) or not ((chosen >= 0) & (chosen < known)).all():
            raise ValueError(f"classes {list(classes)} are not {len(classes)} different ones of 0 to {known - 1}")
        return Counts(
            hits=self.hits[..., chosen],
            in_reference=self.in_reference[..., chosen],
            in_prediction=self.in_prediction[..., chosen],
        )


def counts_of(histogram: Numbers, *, classes: int) -> Counts:
    """Counts of the first classes of a confusion matrix.

    Args:
        histogram: Pairs counted, reference by prediction, shape ``(..., L, L)`` with ``L >= classes``.
        classes: K; rows and columns behind K are strangers, which are nobody's hit.
    """
    return Counts(
        hits=np.diagonal(histogram, axis1=-2, axis2=-1)[..., :classes],
        in_reference=histogram.sum(axis=-1)[..., :classes],
        in_prediction=histogram.sum(axis=-2)[..., :classes],
    )


def pooled(parts: Sequence[Counts]) -> Counts:
    """Add up parts, each ``(K,)`` or ``(frames, K)``, into one ``(K,)``: every pixel or frame weighs the same.

    Raises:
        ValueError: There is no part.
    """
    if not parts:
        raise ValueError("nothing to pool")

    def total(arrays: Sequence[Numbers]) -> Numbers:
        summed: Numbers = np.sum([array.reshape(-1, array.shape[-1]).sum(axis=0) for array in arrays], axis=0)
        return summed

    return Counts(
        hits=total([part.hits for part in parts]),
        in_reference=total([part.in_reference for part in parts]),
        in_prediction=total([part.in_prediction for part in parts]),
    )


def recall(counts: Counts) -> Values:
    """TP / (TP + FN), shape ``(..., K)``, in [0, 1]; NaN where a class does not occur in the reference."""
    return _ratio(counts.hits, counts.in_reference)


def precision(counts: Counts) -> Values:
    """TP / (TP + FP), shape ``(..., K)``, in [0, 1]; NaN where a class was not predicted."""
    return _ratio(counts.hits, counts.in_prediction)


def f1(counts: Counts) -> Values:
    """2 TP / (2 TP + FP + FN), shape ``(..., K)``, in [0, 1]; NaN where a class occurs in neither. Dice is the same."""
    return _ratio(2 * counts.hits, counts.in_reference + counts.in_prediction)


def iou(counts: Counts) -> Values:
    """TP / (TP + FP + FN) (Jaccard), shape ``(..., K)``, in [0, 1]; NaN where a class occurs in neither."""
    return _ratio(counts.hits, counts.in_reference + counts.in_prediction - counts.hits)


def _ratio(above: Numbers, below: Numbers) -> Values:
    quotient: Values = np.full(below.shape, np.nan)
    return np.divide(above, below, out=quotient, where=below > 0)


def means_over_classes(values: Values, counts: Counts, *, averaged_over: AveragedOver, undefined: Undefined) -> Values:
    """Unweighted mean over classes, one for each place of the leading axes.

    Args:
        values: A ratio by class, shape ``(..., K)``, NaN where it is undefined.
        counts: The counts it was made of.
        averaged_over: The classes that enter.
        undefined: What an entering class without a value counts as.

    Returns:
        Shape ``(...,)``; NaN where no class enters.

    Raises:
        ValueError: An entering class has no value and the policy is ``FAIL``.
    """
    entering = _entering(counts, averaged_over)
    holes = np.isnan(values) & entering
    filled = (
        np.where(holes, settled(undefined, f"the value of class {_last(holes)}"), values) if holes.any() else values
    )
    entering = entering & ~np.isnan(filled)
    number = entering.sum(axis=-1)
    total = np.where(entering, filled, 0.0).sum(axis=-1)
    means: Values = np.full(np.shape(number), np.nan)
    np.divide(total, number, out=means, where=number > 0)
    return means


def macro(values: Values, counts: Counts, *, averaged_over: AveragedOver, undefined: Undefined) -> float:
    """Unweighted mean over classes of one sequence: as ``means_over_classes``, with values of shape ``(K,)``.

    Raises:
        ValueError: No class enters the mean; or one has no value and the policy is ``FAIL``.
    """
    mean = float(means_over_classes(values, counts, averaged_over=averaged_over, undefined=undefined))
    if np.isnan(mean):
        raise ValueError("the mean over classes is undefined: none of the classes occurs")
    return mean


def weighted(values: Values, counts: Counts, *, undefined: Undefined) -> float:
    """Mean over classes weighted by their frequency in the reference.

    Args:
        values: A ratio by class, shape ``(K,)``, NaN where it is undefined.
        counts: The counts it was made of.
        undefined: What a class of the reference without a value counts as (precision of a class never predicted), and
            what the whole counts as where no class occurs in the reference. ``LEFT_OUT`` takes its weight away too.

    Returns:
        In [0, 1]; higher is better.

    Raises:
        ValueError: Nothing is left to average, or something is undefined and the policy is ``FAIL``.
    """
    weights = counts.in_reference
    holes = np.isnan(values) & (weights > 0)
    filled = (
        np.where(holes, settled(undefined, f"the value of class {_last(holes)}"), values) if holes.any() else values
    )
    kept = (weights > 0) & ~np.isnan(filled)
    if kept.any():
        return float(np.average(filled[kept], weights=weights[kept]))
    whole = settled(undefined, "the mean weighted by frequency")
    if np.isnan(whole):
        raise ValueError("the mean weighted by frequency is undefined: none of the classes occurs in the reference")
    return whole


def _entering(counts: Counts, averaged_over: AveragedOver) -> NDArray[np.bool_]:
    if averaged_over is AveragedOver.ALL:
        return np.ones(counts.in_reference.shape, dtype=np.bool_)
    if averaged_over is AveragedOver.REFERENCE:
        return counts.in_reference > 0
    return (counts.in_reference > 0) | (counts.in_prediction > 0)


def _last(holes: NDArray[np.bool_]) -> int:
    """The place of the first class among the holes, for a message."""
    return int(np.argwhere(holes)[0][-1])
