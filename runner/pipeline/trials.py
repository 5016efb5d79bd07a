"""Predictions made of a reference, to see whether a scorer's numbers make sense. Pure.

Each is legal by the task's format, where the format leaves room for it.
"""

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from runner.challenge import AnswerFormat, ArraysFormat, FieldRule, FormatSection, FrameScoresFormat, FrameTableFormat
from runner.challenge import LabelImagesFormat as ImagesFormat
from runner.formats.contract import Answer, Arrays, FrameScores, FrameTable, LabelImages, Prediction

_Images = Callable[[NDArray[np.uint8]], NDArray[np.uint8]]


class Trial(StrEnum):
    """What is predicted: the reference itself, never what it says, one thing everywhere, or its parts in disorder."""

    PERFECT = "perfect"
    WORST = "worst"
    EMPTY = "empty"
    SHUFFLED = "shuffled"


def trial_of(
    trial: Trial, rule: FormatSection, reference: Prediction, another: Prediction, rng: np.random.Generator
) -> Prediction:
    """A prediction made of a reference.

    Args:
        trial: Which.
        rule: What a prediction must look like.
        reference: The reference.
        another: That of another case, which is what a single answer is shuffled with.
        rng: Shuffles.
    """
    if trial is Trial.PERFECT:
        return reference
    match reference:
        case FrameTable():
            return _table(trial, rule, reference, rng)
        case FrameScores():
            low, high = rule.range if isinstance(rule, FrameScoresFormat) else _bounds(reference.scores)
            return FrameScores(scores=_numbers(trial, reference.scores, low, high, rng).astype(np.float64))
        case LabelImages():
            return _label_images(trial, rule, reference, rng)
        case Arrays():
            return Arrays(arrays={name: _array(trial, rule, name, one, rng) for name, one in reference.arrays.items()})
        case _:
            return _answer(trial, rule, reference, another)


def _table(trial: Trial, rule: FormatSection, reference: FrameTable, rng: np.random.Generator) -> FrameTable:
    if trial is Trial.SHUFFLED:
        order = rng.permutation(reference.frames)
        return FrameTable(columns={name: labels[order] for name, labels in reference.columns.items()})
    columns = {}
    for name, labels in reference.columns.items():
        known = rule.columns.get(name) if isinstance(rule, FrameTableFormat) else None
        legal = np.array(known.ids if known else np.unique(labels), dtype=np.int64)
        columns[name] = np.full_like(labels, legal[0]) if trial is Trial.EMPTY else _next(labels, np.sort(legal))
    return FrameTable(columns=columns)


def _next(labels: NDArray[np.int64], legal: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each label the next legal one, which is another wherever there are two."""
    return legal[np.searchsorted(legal, labels, side="right") % len(legal)]


def _label_images(trial: Trial, rule: FormatSection, reference: LabelImages, rng: np.random.Generator) -> LabelImages:
    classes = sorted(rule.classes) if isinstance(rule, ImagesFormat) else list(range(256))
    following = np.full(256, classes[0], dtype=np.uint8)
    following[classes] = np.roll(np.array(classes, dtype=np.uint8), -1)
    seed = int(rng.integers(1 << 32))

    def shuffle(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
        return np.random.default_rng(seed).permutation(image.ravel()).reshape(image.shape)

    changes: Mapping[Trial, _Images] = {
        Trial.WORST: lambda image: following[image],
        Trial.EMPTY: lambda image: np.full_like(image, classes[0]),
        Trial.SHUFFLED: shuffle,
    }
    change = changes[trial]

    def read() -> Iterator[NDArray[np.uint8]]:
        return (change(image) for image in reference)

    return LabelImages(frames=reference.frames, read=read)


def _array(
    trial: Trial, rule: FormatSection, name: str, array: NDArray[np.generic], rng: np.random.Generator
) -> NDArray[np.generic]:
    if array.dtype == np.bool_:
        return _numbers(trial, array.astype(np.int8), 0, 1, rng).astype(np.bool_)
    stated = rule.arrays[name].range if isinstance(rule, ArraysFormat) and name in rule.arrays else None
    low, high = stated or _bounds(array)
    return _numbers(trial, array, low, high, rng)


def _bounds(array: NDArray[np.generic]) -> tuple[float, float]:
    values = array.astype(np.float64)
    return (float(values.min()), float(values.max())) if values.size else (0.0, 0.0)


def _numbers(
    trial: Trial, array: NDArray[np.generic], low: float, high: float, rng: np.random.Generator
) -> NDArray[np.generic]:
    """Numbers as far from the true ones as they may be, the number nearest to 0 everywhere, or the true ones shuffled.

    Of an array the rows are shuffled; of one that is a single row, its numbers.
    """
    values = array.astype(np.float64)
    match trial:
        case Trial.WORST:
            made = np.where(values - low > high - values, low, high)
        case Trial.EMPTY:
            made = np.full_like(values, min(max(0.0, low), high))
        case _:
            return rng.permutation(array) if array.ndim and len(array) > 1 else array
    return made.astype(array.dtype)


def _answer(trial: Trial, rule: FormatSection, reference: Answer, another: Prediction) -> Answer:
    if trial is Trial.SHUFFLED:
        assert isinstance(another, Answer)
        return another
    rules = rule.fields if isinstance(rule, AnswerFormat) else {}
    fields = {name: _field(trial, rules.get(name), value) for name, value in reference.fields.items()}
    return Answer(fields=fields)


def _field(trial: Trial, rule: FieldRule | None, value: JsonValue) -> JsonValue:
    low, high = (rule.range if rule else None) or (None, None)
    match value:
        case bool():
            return trial is Trial.WORST and not value
        case int() | float():
            return _number(trial, value, low, high)
        case str():
            choices = rule.choices if rule else (value,)
            return choices[(choices.index(value) + 1) % len(choices)] if trial is Trial.WORST else choices[0]
        case list():
            return [_field(trial, rule, one) for one in value]
        case _:
            return value


def _number(trial: Trial, value: float, low: float | None, high: float | None) -> float:
    if low is None or high is None:
        low, high = -2 * abs(value) - 1, 2 * abs(value) + 1
    furthest = low if value - low > high - value else high
    made = furthest if trial is Trial.WORST else min(max(0, low), high)
    return int(made) if isinstance(value, int) else made
