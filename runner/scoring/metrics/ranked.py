"""Scores of many classes a frame: average precision by video and class, component classes, top-K recall.

A precision-recall curve is never made. Each positive frame stands for one step of the curve, and its precision is
(positives with a score at least as high) / (frames with a score at least as high). The average over the positives is
AP with equal scores entering together, so that sorting values is enough, and no frame's index is moved.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from runner.scoring.metrics.counts import Values
from runner.scoring.metrics.labels import Sets
from runner.scoring.metrics.policies import Undefined, settled

Scores = NDArray[np.floating]
_CHUNK = 8192
"""Positives looked at together by top-K; 8192 x 100 scores are 6 MB."""


@dataclass(frozen=True, kw_only=True)
class MeanPrecision:
    """AP of each class over the videos, shape ``(K,)``, NaN where it is left out; and the mean over classes."""

    by_class: Values
    mean: float


def average_precision(positive: NDArray[np.bool_], score: Scores, *, undefined: Undefined) -> float:
    """AP = sum over distinct scores in falling order of (R_n - R_(n-1)) P_n; no interpolation.

    Args:
        positive: Shape ``(frames,)``.
        score: Finite, any range, shape ``(frames,)``; equal scores enter together.
        undefined: What a class without a positive frame counts as; ``LEFT_OUT`` is NaN.

    Returns:
        In (0, 1]; higher is better. Constant scores give the share of positive frames.

    Raises:
        ValueError: The shapes differ, a score is not finite, or no frame is positive and the policy is ``FAIL``.

    Source:
        Nwoye et al., CholecTriplet2021, Medical Image Analysis 86, 2023, section on metrics.
    """
    if positive.shape != score.shape or positive.ndim != 1:
        raise ValueError(f"shapes differ: positive {positive.shape}, score {score.shape}")
    _check_finite(score)
    value = _average_precision(np.asarray(positive, dtype=np.bool_), score)
    return settled(undefined, "the average precision of a class without a positive frame") if np.isnan(value) else value


def _average_precision(positive: NDArray[np.bool_], score: Scores) -> float:
    found = np.sort(score[positive])
    if not found.size:
        return float("nan")
    positives = found.size - np.searchsorted(found, found, side="left")
    frames = score.size - np.searchsorted(np.sort(score), found, side="left")
    return float((positives / frames).mean())


def video_precision(positive: Sets, score: Scores, *, levels: Mapping[str, Sequence[int]]) -> dict[str, Values]:
    """AP of each class of one video, at several levels of classes.

    Args:
        positive: Shape ``(frames, C)``.
        score: Finite, shape ``(frames, C)``.
        levels: By name, the component class of each of the C classes (see ``component_groups``); the identity
            ``range(C)`` is the classes themselves.

    Returns:
        By level, shape ``(components,)``, NaN where the video holds no positive frame of that class.

    Raises:
        ValueError: The shapes differ, a score is not finite (the first is named), or a level does not fit.
    """
    if positive.shape != score.shape or positive.ndim != 2:
        raise ValueError(f"shapes differ: positive {positive.shape}, score {score.shape}")
    _check_finite(score)
    marks = np.ascontiguousarray(np.asarray(positive, dtype=np.bool_).T)
    columns = np.ascontiguousarray(score.T)
    found: dict[str, Values] = {}
    for level, components in levels.items():
        groups = component_groups(components, classes=len(columns))
        found[level] = np.array([_group_precision(marks, columns, group) for group in groups])
    return found


def _group_precision(marks: NDArray[np.bool_], columns: Scores, group: NDArray[np.intp]) -> float:
    if len(group) == 1:
        return _average_precision(marks[group[0]], columns[group[0]])
    return _average_precision(np.logical_or.reduce(marks[group]), columns[group].max(axis=0))


def component_groups(components: Sequence[int], *, classes: int) -> list[NDArray[np.intp]]:
    """The classes each component class holds, components in rising order of their id.

    Args:
        components: The component's id of each class, as ``(0, 0, 1)``: two classes contain component 0.
        classes: C, the number of classes.

    Raises:
        ValueError: ``components`` does not hold one id for each class.
    """
    if len(components) != classes:
        raise ValueError(f"{len(components)} components are given for {classes} classes")
    ids = np.asarray(components)
    return [np.flatnonzero(ids == one) for one in np.unique(ids)]


def component_values(values: NDArray[np.generic], components: Sequence[int]) -> NDArray[np.generic]:
    """Scores or labels of component classes: the largest of the classes that contain each.

    Args:
        values: Scores or booleans, shape ``(frames, C)``.
        components: The component's id of each class.

    Returns:
        Shape ``(frames, components)``, of the same type.
    """
    groups = component_groups(components, classes=values.shape[1])
    return np.stack([values[:, group].max(axis=1) for group in groups], axis=1)


def mean_precision(by_video: Values, *, classes: Sequence[int] | None, undefined: Undefined) -> MeanPrecision:
    """Mean over videos for each class, then over classes: videos first, the order matters.

    Args:
        by_video: AP of each video and class, shape ``(videos, K)``, NaN where a video has no positive frame of it.
            Such a video is left out of the class's mean.
        classes: The classes that enter the mean over classes; None for all. CholecTriplet ranks 0 to 93 of 100.
        undefined: What one of them counts as that has no positive frame in any video.

    Raises:
        ValueError: Nothing is left to average; or a class is undefined and the policy is ``FAIL``.

    Source:
        Nwoye et al., CholecTriplet2021, 2023, section on metrics.
    """
    if by_video.ndim != 2:
        raise ValueError(f"AP by video and class is needed, not an array of shape {by_video.shape}")
    defined = ~np.isnan(by_video)
    number = defined.sum(axis=0)
    by_class: Values = np.full(by_video.shape[1], np.nan)
    np.divide(np.where(defined, by_video, 0.0).sum(axis=0), number, out=by_class, where=number > 0)
    chosen = by_class if classes is None else by_class[np.asarray(classes, dtype=np.intp)]
    holes = np.isnan(chosen)
    if holes.any():
        what = f"the average precision of {int(holes.sum())} classes without a positive frame in any video"
        chosen = np.where(holes, settled(undefined, what), chosen)
    chosen = chosen[~np.isnan(chosen)]
    if not chosen.size:
        raise ValueError("mean average precision is undefined: no class has a positive frame in any video")
    return MeanPrecision(by_class=by_class, mean=float(chosen.mean()))


def top_k_recall(positive: Sets, score: Scores, *, ks: Sequence[int], undefined: Undefined) -> dict[int, float]:
    """Micro recall@K: sum over frames of |positives among the K best| / sum over frames of |positives|.

    Args:
        positive: Shape ``(frames, C)``.
        score: Finite, shape ``(frames, C)``. Of equal scores, the smaller class id is the better one.
        ks: Each K >= 1; CholecTriplet: 5, 10, 15 and 20.
        undefined: What frames without any positive count as; ``LEFT_OUT`` is NaN.

    Returns:
        By K, in [0, 1]; higher is better.

    Raises:
        ValueError: The shapes differ, a score is not finite, or no frame is positive and the policy is ``FAIL``.

    Source:
        Nwoye et al., CholecTriplet2021, 2023, section on metrics.
    """
    if positive.shape != score.shape or positive.ndim != 2:
        raise ValueError(f"shapes differ: positive {positive.shape}, score {score.shape}")
    _check_finite(score)
    frames, classes = np.nonzero(positive)
    if not frames.size:
        value = settled(undefined, "top-K recall without a positive frame")
        return dict.fromkeys(ks, value)
    ids = np.arange(score.shape[1])
    ranks = np.empty(frames.size, dtype=np.intp)
    for begin in range(0, frames.size, _CHUNK):
        part = slice(begin, begin + _CHUNK)
        rows, own = score[frames[part]], score[frames[part], classes[part]][:, None]
        better = (rows > own) | ((rows == own) & (ids < classes[part][:, None]))
        ranks[part] = better.sum(axis=1)
    return {k: float((ranks < k).mean()) for k in ks}


def _check_finite(score: Scores) -> None:
    if not np.isfinite(score).all():
        places = np.argwhere(~np.isfinite(score))
        where = ", ".join(f"{axis} {place}" for axis, place in zip(("frame", "class"), places[0], strict=False))
        raise ValueError(f"{len(places)} scores are not finite; the first is {score[tuple(places[0])]} at {where}")
