"""Predictions made of a reference: legal ones, and as far from it as they claim."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from runner.challenge import AnswerFormat, ArraysFormat, FrameScoresFormat, FrameTableFormat, LabelImagesFormat
from runner.formats.contract import Answer, Arrays, FrameScores, FrameTable, LabelImages
from runner.pipeline.trials import Trial, trial_of

TABLE = FrameTableFormat.model_validate({
    "kind": "frame_table", "file": "{case}.csv", "index": {"column": "t"},
    "columns": {"a": {"labels": ["-1..2"], "reference_only": [9]}, "b": {"names": ["x", "y", "z"]}},
})  # fmt: skip
SCORES = FrameScoresFormat(kind="frame_scores", file="{case}.json", classes=3)
IMAGES = LabelImagesFormat.model_validate({
    "kind": "label_images", "file": "{case}/{frame}.png", "coding": "index", "width": 4, "height": 3,
    "classes": {0: {"name": "a"}, 3: {"name": "b"}, 7: {"name": "c"}},
})  # fmt: skip
ANSWER = AnswerFormat.model_validate({
    "kind": "answer", "file": "{case}.json",
    "fields": {
        "n": {"type": "integer", "range": [0, 10]}, "x": {"type": "number"}, "yes": {"type": "boolean"},
        "word": {"type": "text", "choices": ["a", "b", "c"]}, "list": {"type": "numbers", "range": [-1, 1]},
    },
})  # fmt: skip


def made(trial: Trial, rule: Any, reference: Any, another: Any = None) -> Any:
    return trial_of(trial, rule, reference, another, np.random.default_rng(1))


def test_the_perfect_one_is_the_reference_itself() -> None:
    reference = FrameScores(scores=np.eye(3))
    assert made(Trial.PERFECT, SCORES, reference) is reference


labels = hnp.arrays(np.int64, st.integers(1, 30), elements=st.sampled_from([-1, 0, 1, 2, 9]))


@given(labels)
def test_the_worst_table_is_legal_and_never_right(a: Any) -> None:
    found = made(Trial.WORST, TABLE, FrameTable(columns={"a": a, "b": np.abs(a) % 3}))
    assert not (found.columns["a"] == a).any()
    assert not (found.columns["b"] == np.abs(a) % 3).any()
    assert set(found.columns["a"]) <= {-1, 0, 1, 2}
    assert set(found.columns["b"]) <= {0, 1, 2}


@given(labels)
def test_the_empty_table_says_one_thing_and_the_shuffled_one_the_same_things(a: Any) -> None:
    reference = FrameTable(columns={"a": a, "b": np.arange(len(a))})
    empty = made(Trial.EMPTY, TABLE, reference)
    assert (set(empty.columns["a"]), set(empty.columns["b"])) == ({-1}, {0})
    shuffled = made(Trial.SHUFFLED, TABLE, reference)
    assert sorted(zip(a, range(len(a)), strict=True)) == sorted(
        zip(shuffled.columns["a"], shuffled.columns["b"], strict=True)
    )


def test_scores_at_the_other_end_none_and_in_disorder() -> None:
    reference = FrameScores(scores=np.array([[1.0, 0.0, 0.2], [0.0, 1.0, 0.8], [0.0, 0.0, 1.0]]))
    assert made(Trial.WORST, SCORES, reference).scores.tolist() == [[0, 1, 1], [1, 0, 0], [1, 1, 0]]
    assert made(Trial.EMPTY, SCORES, reference).scores.tolist() == [[0, 0, 0]] * 3
    shuffled = made(Trial.SHUFFLED, SCORES, reference).scores
    assert sorted(shuffled.tolist()) == sorted(reference.scores.tolist())


def test_label_images_are_made_one_after_the_other_each_time_anew() -> None:
    images = [np.array([[0, 3, 7, 0]] * 3, dtype=np.uint8), np.full((3, 4), 7, dtype=np.uint8)]
    asked = []

    def read() -> Any:
        for number, image in enumerate(images):
            asked.append(number)
            yield image

    reference = LabelImages(frames=2, read=read)
    worst = made(Trial.WORST, IMAGES, reference)
    assert asked == []
    assert [image.tolist() for image in worst] == [[[3, 7, 0, 3]] * 3, [[0, 0, 0, 0]] * 3]
    assert {value for image in made(Trial.EMPTY, IMAGES, reference) for value in image.ravel()} == {0}
    shuffled = made(Trial.SHUFFLED, IMAGES, reference)
    first, again = list(shuffled), list(shuffled)
    assert all((one == other).all() for one, other in zip(first, again, strict=True))
    assert [sorted(image.ravel()) for image in first] == [sorted(image.ravel()) for image in images]


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "uint64", "float32"])
def test_arrays_keep_their_type_and_shape(dtype: str) -> None:
    rule = ArraysFormat.model_validate({
        "kind": "arrays", "file": "{case}.npz",
        "arrays": {"x": {"type": dtype, "shape": ["any"]}, "y": {"type": dtype, "shape": [], "range": [0, 1]}},
    })  # fmt: skip
    reference = Arrays(arrays={"x": np.array([0, 1, 1, 0], dtype=dtype), "y": np.array(1, dtype=dtype)})
    for trial in Trial:
        found = made(trial, rule, reference).arrays
        assert {name: (one.dtype, one.shape) for name, one in found.items()} == {
            "x": (np.dtype(dtype), (4,)),
            "y": (np.dtype(dtype), ()),
        }
    worst = made(Trial.WORST, rule, reference).arrays
    assert (worst["x"].tolist(), worst["y"].item()) == ([1, 0, 0, 1], 0)


def test_answers_are_answered_as_badly_as_can_be() -> None:
    reference = Answer(fields={"n": 3, "x": -2.0, "yes": True, "word": "c", "list": [0.5, -1.0]})
    another = Answer(fields={"n": 4})
    assert made(Trial.WORST, ANSWER, reference, another).fields == {
        "n": 10, "x": 5.0, "yes": False, "word": "a", "list": [-1.0, 1.0],
    }  # fmt: skip
    empty = made(Trial.EMPTY, ANSWER, reference, another).fields
    assert empty == {"n": 0, "x": 0, "yes": False, "word": "a", "list": [0, 0]}
    assert type(empty["n"]) is int
    assert made(Trial.SHUFFLED, ANSWER, reference, another) is another
