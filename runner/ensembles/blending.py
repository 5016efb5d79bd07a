"""Makes the members' predictions for a case into one."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from runner.challenge import FormatSection
from runner.ensembles.method import Method
from runner.ensembles.network import Network
from runner.ensembles.stacks import range_of, stacked, unstacked
from runner.formats.contract import FrameScores, FrameTable, LabelImages, Prediction

Values = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Blend:
    """A method, and what was fitted for it.

    Attributes:
        method: How predictions become one.
        weights: By column of the stack, shape ``(members,)`` or ``(members, classes)``, sum 1 over the members; under
            the empty name, those of every column. None for methods that weigh all members the same.
        networks: By column of the stack; for ``network`` only.
    """

    method: Method
    weights: Mapping[str, Values] = field(default_factory=dict)
    networks: Mapping[str, Network] = field(default_factory=dict)

    def weights_for(self, column: str, members: int) -> Values:
        """The weights in a column, equal ones where none were fitted for it."""
        equal = np.full(members, 1 / members)
        return self.weights.get(column, self.weights.get("", equal))


def combined(predictions: Sequence[Prediction], blend: Blend, rule: FormatSection) -> Prediction:
    """One prediction of several, for one case.

    Args:
        predictions: One a member, in the order of the weights; all of the same kind and frames.
        blend: How.
        rule: Their format.

    Returns:
        Of the same kind. Label images are read, one of each member at a time, when those that come of it are.

    Raises:
        ValueError: The members differ in their frames or classes.
    """
    images = [one for one in predictions if isinstance(one, LabelImages)]
    if images:
        return voted_images(images, blend.weights_for("", len(images)))
    return _of_stacks(stacked(predictions, rule), blend, rule)


def _of_stacks(stacks: Mapping[str, Values], blend: Blend, rule: FormatSection) -> FrameScores | FrameTable:
    low, high = range_of(rule)
    blended = {}
    for column, stack in stacks.items():
        if column in blend.networks:
            blended[column] = low + blend.networks[column].answer(stack) * (high - low)
        elif blend.method is Method.SOFT_VOTE:
            blended[column] = soft_vote(stack, middle=(low + high) / 2)
        elif blend.method is Method.MEAN:
            blended[column] = mean(stack)
        else:
            blended[column] = weighted_mean(stack, blend.weights_for(column, len(stack)))
    return unstacked(blended, rule)


def mean(stack: Values) -> Values:
    """The members' mean: ``(members, frames, classes)`` to ``(frames, classes)``."""
    return np.asarray(stack.mean(axis=0))


def weighted_mean(stack: Values, weights: Values) -> Values:
    """The members' weighted mean.

    Args:
        stack: Shape ``(members, frames, classes)``.
        weights: Shape ``(members,)`` or ``(members, classes)``, not negative, sum 1 over the members.

    Returns:
        Shape ``(frames, classes)``, never outside the members' own values.
    """
    spread = weights[:, None, None] if weights.ndim == 1 else weights[:, None, :]
    return np.asarray(np.clip((stack * spread).sum(axis=0), stack.min(axis=0), stack.max(axis=0)))


def soft_vote(stack: Values, *, middle: float = 0.5) -> Values:
    """The highest of the members' scores where their mean is at least the middle, else the lowest.

    Args:
        stack: Shape ``(members, frames, classes)``.
        middle: Of the range of the scores.

    Source:
        Nwoye et al., CholecTriplet2021, Medical Image Analysis 86, 2023: soft voting by the largest or smallest score
        around 0.5. That the mean decides on which side is our reading.
    """
    return np.asarray(np.where(mean(stack) >= middle, stack.max(axis=0), stack.min(axis=0)))


def voted_images(members: Sequence[LabelImages], weights: Values) -> LabelImages:
    """For each pixel the class of the largest weight; of equal ones the smallest class.

    Args:
        members: Label images of the same frames and size.
        weights: Shape ``(members,)``, not negative.

    Raises:
        ValueError: The members differ in their number of frames; in their size, when they are read.
    """
    if len({one.frames for one in members}) > 1:
        raise ValueError("the members differ in their frames")

    def read() -> Iterator[NDArray[np.uint8]]:
        for images in zip(*members, strict=True):
            yield _voted(np.stack(images), weights)

    return LabelImages(frames=members[0].frames, read=read)


def _voted(images: NDArray[np.uint8], weights: Values) -> NDArray[np.uint8]:
    best = np.zeros(images.shape[1:], dtype=np.uint8)
    most = np.full(images.shape[1:], -1.0)
    for label in np.flatnonzero(np.bincount(images.ravel(), minlength=256)).tolist():
        votes = np.tensordot(weights, images == label, axes=1)
        better = votes > most + 1e-9
        best[better], most[better] = label, votes[better]
    return best
