"""What is an answer, and which of them differ."""

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from runner.causality import Answers
from runner.causality.answers import differences, differing
from runner.formats.contract import Arrays, FrameScores, FrameTable, LabelImages


def labels(**columns: list[int]) -> Answers:
    return Answers.of(FrameTable(columns={name: np.array(column) for name, column in columns.items()}))


def scores(rows: list[list[float]]) -> Answers:
    """One row for each frame."""
    return Answers.of(FrameScores(scores=np.array(rows)))


def test_answers_are_a_copy_that_cannot_be_written() -> None:
    source = np.zeros(4, dtype=np.int64)
    copy = Answers.of(FrameTable(columns={"a": source}))
    source[0] = 1
    assert copy.labels.tolist() == [[0, 0, 0, 0]]
    assert not copy.labels.flags.writeable
    seen = np.zeros((2, 3))
    scored = Answers.of(FrameScores(scores=seen))
    seen[0, 0] = 1
    assert scored.scores.tolist() == [[0, 0], [0, 0], [0, 0]]
    assert not scored.scores.flags.writeable


def test_scores_are_compared_with_the_tolerance() -> None:
    one = scores([[0.1, 0.9], [0.2, 0.8], [0.3, 0.7]])
    other = scores([[0.1, 0.9], [0.2, 0.80009], [0.3, 0.7002]])
    assert one.scored == ("class 0", "class 1")
    assert differing(one, other, 3, tolerance=1e-4).tolist() == [False, False, True]
    assert differing(one, other, 3, tolerance=1e-2).tolist() == [False, False, False]
    assert differing(one, other, 2).tolist() == [False, True]
    assert (one.value("class 1", 2), one.value("class 0", 0), one.value("step", 0)) == (0.7, 0.1, None)


def test_scores_that_are_farther_apart_than_any_number_differ() -> None:
    assert differing(scores([[1e308]]), scores([[-1e308]]), 1, tolerance=1.0).tolist() == [True]


def test_scores_change_where_the_top_class_does() -> None:
    assert scores([[0.1, 0.9], [0.4, 0.6], [0.6, 0.4], [0.7, 0.3], [0.2, 0.8]]).changes().tolist() == [2, 4]


def test_labels_and_scores_of_one_run_are_compared_each_in_its_way() -> None:
    table, scored = labels(step=[1, 1, 2]), scores([[0.5], [0.5], [0.5]])
    both = Answers(columns=table.columns, labels=table.labels, scored=scored.scored, scores=scored.scores)
    near = Answers(
        columns=("step",), labels=np.array([[1, 1, 3]]), scored=scored.scored, scores=np.array([[0.5, 0.6, 0.5]])
    )
    assert both.changes().tolist() == [2]
    found = differences((both,), (near,), 3, tolerance=1e-4)
    assert found.columns == ("step", "class 0")
    assert found.changed.tolist() == [[False, False, True], [False, True, False]]


def test_sets_of_runs_differ_only_where_each_agrees_with_itself() -> None:
    some = [labels(a=[1, 1, 1, 1]), labels(a=[1, 2, 1, 1])]
    others = [labels(a=[2, 2, 1, 3]), labels(a=[2, 2, 1, 4])]
    assert differences(some, others, 4).frames.tolist() == [True, False, False, False]
    near = [scores([[0.0], [0.0]]), scores([[0.05], [0.05]])]
    far = [scores([[0.1], [0.2]]), scores([[0.15], [0.25]])]
    assert differences(near, far, 2, tolerance=0.07).frames.tolist() == [False, True]


def test_a_column_that_is_missing_in_one_run_differs_in_every_frame() -> None:
    whole, short = labels(a=[1, 1, 1], b=[2, 2, 2]), labels(a=[1, 1, 1])
    found = differences((whole, whole), (short, short), 3)
    assert found.columns == ("a", "b")
    assert found.changed.tolist() == [[False] * 3, [True] * 3]
    assert not differences((whole, short), (short, short), 3).frames.any()
    assert differing(labels(a=[1]), labels(b=[1]), 1).tolist() == [True]
    assert differing(labels(a=[1]), scores([[1.0]]), 1).tolist() == [True]


def test_images_are_compared_by_a_digest_and_read_one_by_one() -> None:
    alive = 0

    def read() -> Iterator[NDArray[np.uint8]]:
        nonlocal alive
        for number in (0, 0, 7):
            alive += 1
            image = np.zeros((2, 3), dtype=np.uint8)
            image[1, 2] = number
            yield image

    images = Answers.of(LabelImages(frames=3, read=read))
    turned = Answers.of(LabelImages(frames=1, read=lambda: iter([np.zeros((3, 2), dtype=np.uint8)])))
    assert alive == 3
    assert images.columns == ("image digest",)
    assert images.changes().tolist() == [2]
    assert images.labels[0, 0] == images.labels[0, 1]
    assert (images.labels >= 0).all()
    assert differing(images, turned, 1).tolist() == [True]


def test_what_has_no_answers_by_frame_is_refused() -> None:
    with pytest.raises(ValueError, match="Arrays has no answers by frame that could be compared"):
        Answers.of(Arrays(arrays={}))


def test_answers_refuse_what_does_not_fit() -> None:
    one = np.zeros((1, 4), dtype=np.int64)
    with pytest.raises(ValueError, match="labels of shape"):
        Answers(columns=("a", "b"), labels=one)
    with pytest.raises(ValueError, match="scores of shape"):
        Answers(columns=("a",), labels=one, scored=("b",))
    with pytest.raises(ValueError, match="labels of 4 frames, scores of 3"):
        Answers(columns=("a",), labels=one, scored=("b",), scores=np.zeros((1, 3)))
    with pytest.raises(ValueError, match="named twice"):
        Answers(columns=("a",), labels=one, scored=("a",), scores=np.zeros((1, 4)))
    with pytest.raises(ValueError, match="cannot compare 5 frames"):
        differing(labels(a=[1] * 4), labels(a=[1] * 5), 5)
