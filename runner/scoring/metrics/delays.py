"""Application-dependent scores: a transition that comes a little early or late is forgiven (PETRAW 2021).

The definition is our reading of the paper; it was not checked against the organisers' scripts.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from runner.scoring.metrics.labels import FrameScores, Labels, frame_scores
from runner.scoring.metrics.policies import Undefined


class TransitionType(StrEnum):
    """When two transitions are of equal type: both labels are equal, or the one that begins."""

    PAIR = "pair"
    INCOMING = "incoming"


class Between(StrEnum):
    """What may lie between a transition and its late or early twin: anything, or no other transition of either."""

    ANY = "any"
    CLEAN = "clean"


@dataclass(frozen=True, kw_only=True)
class Forgiving:
    """Which transitions are forgiven.

    Args:
        delay: d, the acceptable delay in seconds; PETRAW: 0.25.
        fps: Frames a second; PETRAW: 30. d * fps is a real number: of 7.5 frames, 7 are forgiven and 8 are not.
        type: PETRAW: ``PAIR``.
        between: PETRAW: ``ANY``. ``CLEAN`` looks at the frames strictly between the two transitions.

    Raises:
        ValueError: The delay is negative, or the frame rate is not positive.
    """

    delay: float
    fps: float
    type: TransitionType
    between: Between

    def __post_init__(self) -> None:
        if not (0 <= self.delay < math.inf and 0 < self.fps < math.inf):
            raise ValueError(f"a delay of {self.delay} s at {self.fps} frames a second is not possible")

    @property
    def frames(self) -> int:
        """The largest distance that is forgiven."""
        return math.floor(self.delay * self.fps + 1e-9)


def delay_scores(
    reference: Labels, prediction: Labels, *, labels: Sequence[int], forgiving: Forgiving, undefined: Undefined
) -> FrameScores:
    """Balanced accuracy, and precision, recall and F1 weighted by frequency, of the adjusted prediction.

    None is lower than its frame-by-frame value, as long as ``undefined`` is ``ZERO``: adjusting only mends frames.

    Args:
        reference: Class ids, shape ``(frames,)``.
        prediction: Class ids, shape ``(frames,)``.
        labels: The fixed set of K classes.
        forgiving: Which transitions are forgiven.
        undefined: As in ``frame_scores``.

    Raises:
        ValueError: As ``frame_scores``.

    Source:
        Huaulmé et al., PETRAW, 2023, section on application-dependent scores, after Dergachyova et al., Automatic
        data-driven real-time segmentation and recognition of surgical workflow, IJCARS 11, 2016.
    """
    return frame_scores(reference, adjusted(reference, prediction, forgiving), labels=labels, undefined=undefined)


def adjusted(reference: Labels, prediction: Labels, forgiving: Forgiving) -> Labels:
    """The prediction with forgiven frames set to the reference.

    Frame i >= 1 is a transition of x where x[i] != x[i-1]. Transitions i of the reference and j of the prediction of
    equal type with |i - j| <= d * fps are candidates, accepted greedily by (|i - j|, i, j), each transition once.
    Of an accepted pair, frames min(i, j) to max(i, j) - 1 become the reference.

    Args:
        reference: Class ids, shape ``(frames,)``.
        prediction: Class ids, shape ``(frames,)``.
        forgiving: Which transitions are forgiven.

    Returns:
        Class ids, shape ``(frames,)``; the prediction is left as it was.

    Raises:
        ValueError: The shapes differ.
    """
    if reference.shape != prediction.shape or reference.ndim != 1:
        raise ValueError(f"shapes differ: reference {reference.shape}, prediction {prediction.shape}")
    mended = prediction.copy()
    taken_i, taken_j = set[int](), set[int]()
    for i, j in _candidates(reference, prediction, forgiving):
        if i not in taken_i and j not in taken_j:
            taken_i.add(i)
            taken_j.add(j)
            mended[min(i, j) : max(i, j)] = reference[min(i, j) : max(i, j)]
    return mended


def _candidates(reference: Labels, prediction: Labels, forgiving: Forgiving) -> list[tuple[int, int]]:
    theirs, ours = _transitions(reference), _transitions(prediction)
    first = np.searchsorted(ours, theirs - forgiving.frames, side="left")
    number = np.searchsorted(ours, theirs + forgiving.frames, side="right") - first
    i = theirs.repeat(number)
    within = np.arange(i.size) - (np.cumsum(number) - number).repeat(number)
    j = ours[first.repeat(number) + within]
    fits = reference[i] == prediction[j]
    if forgiving.type is TransitionType.PAIR:
        fits &= reference[i - 1] == prediction[j - 1]
    if forgiving.between is Between.CLEAN:
        fits &= (_strictly_between(theirs, i, j) <= 0) & (_strictly_between(ours, i, j) <= 0)
    i, j = i[fits], j[fits]
    order = np.lexsort((j, i, np.abs(i - j)))
    return list(zip(i[order].tolist(), j[order].tolist(), strict=True))


def _transitions(ids: Labels) -> NDArray[np.intp]:
    return np.flatnonzero(ids[1:] != ids[:-1]) + 1


def _strictly_between(places: NDArray[np.intp], i: NDArray[np.intp], j: NDArray[np.intp]) -> NDArray[np.intp]:
    """How many places lie between i and j, neither counted; -1 where i and j are the same place."""
    low, high = np.minimum(i, j), np.maximum(i, j)
    return np.searchsorted(places, high, side="left") - np.searchsorted(places, low, side="right")
