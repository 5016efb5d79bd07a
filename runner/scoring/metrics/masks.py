"""Label images: classes counted by pixel, their overlap by frame and set of classes, then by sequence and overall.

A frame is reduced to three counts a class at once, so that masks stream and never sit in memory together.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from runner.scoring.metrics.counts import Counts, Numbers, Values, counts_of, f1, iou, means_over_classes
from runner.scoring.metrics.policies import AveragedOver, Undefined

Mask = NDArray[np.integer]
_PAIRS_OF_BYTES = 16
"""With up to 16 classes a pair of labels fits a byte, and two pixels a 16-bit number."""
_RUN = 16
"""Where runs are shorter than this on average, pixels are counted instead: a run costs about as much as 16 pixels."""


class Measure(StrEnum):
    """How the overlap of one class is measured: TP / (TP + FP + FN), or 2 TP / (2 TP + FP + FN)."""

    IOU = "iou"
    DICE = "dice"


class SequenceWeight(StrEnum):
    """What a sequence weighs in the mean over sequences."""

    EQUAL = "equal"
    FRAMES = "frames"
    COUNTED_FRAMES = "counted frames"


@dataclass(frozen=True, kw_only=True)
class SequenceMean:
    """Mean over the counted frames of a sequence, NaN where all were discounted; frames; and how many counted."""

    value: float
    frames: int
    counted: int


def joint_histogram(reference: Mask, prediction: Mask, *, classes: int) -> Numbers:
    """Count pairs of labels over the pixels of one frame.

    Args:
        reference: Class indices 0 to K - 1, any shape; uint8 is fastest.
        prediction: The same shape.
        classes: K, 1 to 256.

    Returns:
        Pixels, shape ``(K, K)``, reference by prediction.

    Raises:
        ValueError: The shapes differ, a mask is no array of integers, or a label is out of range (with its place).
    """
    if reference.shape != prediction.shape:
        raise ValueError(f"shapes differ: reference {reference.shape}, prediction {prediction.shape}")
    if not 1 <= classes <= 256:
        raise ValueError(f"{classes} classes are not 1 to 256")
    ours, theirs = _bytes(prediction, "prediction", classes), _bytes(reference, "reference", classes)
    width = np.uint8 if classes <= _PAIRS_OF_BYTES else np.uint16
    # Four bits for the prediction keep the codes of two pixels apart; 256 classes need eight.
    step = 16 if classes <= _PAIRS_OF_BYTES else 256
    codes = np.multiply(theirs, width(step), dtype=width).ravel()
    codes += ours.ravel()
    counted = _count(codes, step * step)
    return counted.reshape(step, step)[:classes, :classes]


def _bytes(mask: Mask, name: str, classes: int) -> NDArray[np.uint8]:
    if not np.issubdtype(mask.dtype, np.integer):
        raise ValueError(f"the {name} holds {mask.dtype} in place of class indices")
    if mask.size and (int(mask.max()) >= classes or int(mask.min()) < 0):
        place = tuple(int(axis) for axis in np.argwhere((mask >= classes) | (mask < 0))[0])
        raise ValueError(f"the {name} holds label {int(mask[place])} at {place}; labels are 0 to {classes - 1}")
    return mask.astype(np.uint8, copy=False)


def _count(codes: NDArray[np.unsignedinteger], size: int) -> Numbers:
    """As ``bincount``, by runs where there are few, else by two pixels at once where a code is a byte."""
    cuts = codes[1:] != codes[:-1]
    if np.count_nonzero(cuts) * _RUN <= codes.size and codes.size:
        starts = np.concatenate([[0], np.flatnonzero(cuts) + 1])
        lengths = np.diff(starts, append=codes.size)
        # Sums of whole numbers below 2^53 are exact as floats.
        return np.bincount(codes[starts], weights=lengths, minlength=size).astype(np.int64)
    if codes.dtype != np.uint8:
        return np.bincount(codes, minlength=size).astype(np.int64)
    even = codes.size & ~1
    pairs: Numbers = np.bincount(codes[:even].view(np.uint16), minlength=1 << 16).reshape(256, 256)
    both: Numbers = pairs.sum(axis=0) + pairs.sum(axis=1) + np.bincount(codes[even:], minlength=256)
    return both


class MaskCounter:
    """Takes the frames of a sequence one by one; keeps three counts a class and frame, no pixel."""

    def __init__(self, *, classes: int) -> None:
        self._classes = classes
        self._frames: list[Counts] = []

    def add(self, reference: Mask, prediction: Mask) -> None:
        """Count one frame.

        Raises:
            ValueError: As ``joint_histogram``.
        """
        histogram = joint_histogram(reference, prediction, classes=self._classes)
        self._frames.append(counts_of(histogram, classes=self._classes))

    def counts(self) -> Counts:
        """The counts of all frames so far, each of shape ``(frames, K)``.

        Raises:
            ValueError: No frame was added.
        """
        if not self._frames:
            raise ValueError("no frame was added")
        return Counts(
            hits=np.stack([frame.hits for frame in self._frames]),
            in_reference=np.stack([frame.in_reference for frame in self._frames]),
            in_prediction=np.stack([frame.in_prediction for frame in self._frames]),
        )


def frame_overlap(
    counts: Counts, *, classes: Sequence[int], measure: Measure, averaged_over: AveragedOver, undefined: Undefined
) -> Values:
    """Mean overlap over a set of classes, frame by frame.

    Args:
        counts: Shape ``(frames, K)``.
        classes: The set S, as indices.
        measure: IoU or Dice.
        averaged_over: The classes of S that count in a frame: those in the reference (RobSeg 2018), in the reference
            or the prediction (PETRAW 2021), or all.
        undefined: What a class absent from both counts as where it enters, that is under ``ALL``.

    Returns:
        Shape ``(frames,)``, in [0, 1]; higher is better. NaN: no class of S counts, the frame is discounted.

    Raises:
        ValueError: A class is undefined and the policy is ``FAIL``, or S holds no such class.

    Source:
        Allan et al., 2018 Robotic Scene Segmentation Challenge, arXiv 2001.11190, section on evaluation; Huaulmé et
        al., PETRAW, 2023, equation 1 (which divides by all six classes: ``ALL`` with ``ZERO``).
    """
    chosen = counts.of(classes)
    values = iou(chosen) if measure is Measure.IOU else f1(chosen)
    return means_over_classes(values, chosen, averaged_over=averaged_over, undefined=undefined)


def mean_over_frames(values: Values) -> SequenceMean:
    """Mean over the frames that count, each the same.

    Args:
        values: Shape ``(frames,)``, NaN where a frame is discounted.
    """
    counted = values[~np.isnan(values)]
    mean = float(counted.mean()) if counted.size else float("nan")
    return SequenceMean(value=mean, frames=values.size, counted=counted.size)


def mean_over_sequences(sequences: Sequence[SequenceMean], *, weight: SequenceWeight) -> float:
    """Weighted mean over the sequences with a counted frame; the others are left out with their weight.

    Args:
        sequences: At least one with a counted frame.
        weight: The same for each, its frames (discounted ones too; RobSeg 2018), or its counted frames.

    Raises:
        ValueError: No sequence has a counted frame.
    """
    kept = [one for one in sequences if one.counted]
    if not kept:
        raise ValueError("the mean over sequences is undefined: no sequence has a counted frame")
    weights = {
        SequenceWeight.EQUAL: [1] * len(kept),
        SequenceWeight.FRAMES: [one.frames for one in kept],
        SequenceWeight.COUNTED_FRAMES: [one.counted for one in kept],
    }[weight]
    return float(np.average([one.value for one in kept], weights=weights))
