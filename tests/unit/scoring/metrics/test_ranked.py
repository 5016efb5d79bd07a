"""Scores of many classes: by hand, and properties by random scores with ties."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from runner.scoring.metrics import (
    Sets,
    Undefined,
    average_precision,
    component_groups,
    mean_precision,
    top_k_recall,
    video_precision,
)

SEED = st.integers(0, 2**32 - 1)


def video(seed: int, classes: int = 6) -> tuple[Sets, NDArray[np.float64]]:
    """One to 40 frames; scores of few values, so that many are equal; some classes never occur."""
    rng = np.random.default_rng(seed)
    frames = int(rng.integers(1, 41))
    positive = rng.random((frames, classes)) < rng.choice([0.0, 0.2, 1.0], classes)
    return positive, rng.integers(0, 5, (frames, classes)) / 4


def test_equal_scores_enter_together() -> None:
    positive = np.array([True, False, True, False])
    # one step of two frames, one of them positive; then one of two frames
    assert (
        average_precision(positive, np.array([2.0, 2.0, 1.0, 1.0]), undefined=Undefined.FAIL) == 0.5 * 0.5 + 0.5 * 0.5
    )
    assert average_precision(positive, np.array([4.0, 3.0, 2.0, 1.0]), undefined=Undefined.FAIL) == 0.5 + 0.5 * 2 / 3
    assert average_precision(positive, np.array([0.0, -0.0, 1.0, -1.0]), undefined=Undefined.FAIL) == 0.5 + 0.5 * 2 / 3


def test_single_precision_is_not_widened() -> None:
    """Two scores that differ in double precision only are equal in single precision."""
    positive, score = np.array([True, False]), np.array([0.1 + 1e-12, 0.1])
    assert average_precision(positive, score, undefined=Undefined.FAIL) == 1.0
    assert average_precision(positive, score.astype(np.float32), undefined=Undefined.FAIL) == 0.5


def test_components_are_in_order_of_their_ids() -> None:
    assert [group.tolist() for group in component_groups((7, 2, 7), classes=3)] == [[1], [0, 2]]
    with pytest.raises(ValueError, match="2 components are given for 3 classes"):
        component_groups((7, 2), classes=3)


def test_videos_come_first_then_classes() -> None:
    by_video = np.array([[1.0, np.nan, np.nan], [0.5, 0.25, np.nan]])
    found = mean_precision(by_video, classes=None, undefined=Undefined.LEFT_OUT)
    assert found.by_class[:2].tolist() == [0.75, 0.25]
    assert np.isnan(found.by_class[2])
    assert found.mean == 0.5
    assert mean_precision(by_video, classes=None, undefined=Undefined.ZERO).mean == pytest.approx(1 / 3, abs=1e-15)
    assert mean_precision(by_video, classes=None, undefined=Undefined.ONE).mean == pytest.approx(2 / 3, abs=1e-15)
    assert mean_precision(by_video, classes=(1,), undefined=Undefined.FAIL).mean == 0.25
    with pytest.raises(ValueError, match="1 classes without a positive frame"):
        mean_precision(by_video, classes=None, undefined=Undefined.FAIL)
    with pytest.raises(ValueError, match="no class has a positive frame"):
        mean_precision(by_video, classes=(2,), undefined=Undefined.LEFT_OUT)
    with pytest.raises(ValueError, match="by video and class"):
        mean_precision(by_video[0], classes=None, undefined=Undefined.ZERO)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_must_be_finite(bad: float) -> None:
    positive, scores = np.ones((3, 2), dtype=np.bool_), np.zeros((3, 2))
    scores[1, 1] = scores[2, 0] = bad
    place = "2 scores are not finite; the first is .* at frame 1, class 1"
    with pytest.raises(ValueError, match=place):
        video_precision(positive, scores, levels={"all": range(2)})
    with pytest.raises(ValueError, match=place):
        top_k_recall(positive, scores, ks=(1,), undefined=Undefined.FAIL)


def test_shapes_must_fit() -> None:
    positive, scores = np.ones((3, 2), dtype=np.bool_), np.zeros((2, 2))
    with pytest.raises(ValueError, match="shapes differ"):
        video_precision(positive, scores, levels={"all": range(2)})
    with pytest.raises(ValueError, match="shapes differ"):
        top_k_recall(positive, scores, ks=(1,), undefined=Undefined.FAIL)
    with pytest.raises(ValueError, match="shapes differ"):
        average_precision(positive[0], scores[:, :1], undefined=Undefined.FAIL)


def test_top_k_without_positives_is_decided_by_the_policy() -> None:
    nothing, scores = np.zeros((3, 2), dtype=np.bool_), np.zeros((3, 2))
    assert top_k_recall(nothing, scores, ks=(1, 2), undefined=Undefined.ZERO) == {1: 0.0, 2: 0.0}
    assert top_k_recall(nothing, scores, ks=(1,), undefined=Undefined.ONE) == {1: 1.0}
    with pytest.raises(ValueError, match="top-K recall without a positive frame is undefined"):
        top_k_recall(nothing, scores, ks=(1,), undefined=Undefined.FAIL)


def test_top_k_over_more_positives_than_fit_a_chunk() -> None:
    rng = np.random.default_rng(0)
    positive, scores = rng.random((5000, 5)) < 0.5, rng.integers(0, 4, (5000, 5)) / 4
    order = np.lexsort((np.broadcast_to(np.arange(5), scores.shape), -scores), axis=1)
    ours = top_k_recall(positive, scores, ks=(1, 2, 3, 4, 5), undefined=Undefined.FAIL)
    for k, value in ours.items():
        best = np.take_along_axis(positive, order[:, :k], axis=1)
        assert value == pytest.approx(best.sum() / positive.sum(), abs=1e-15)
    assert ours[5] == 1.0


@settings(deadline=None)
@given(SEED)
def test_perfect_scores_give_1_and_all_lie_between_0_and_1(seed: int) -> None:
    positive, scores = video(seed)
    occurs = positive.any(axis=0)
    found = video_precision(positive, scores, levels={"all": range(6)})["all"]
    assert np.isnan(found).tolist() == (~occurs).tolist()
    share = positive.mean(axis=0)
    assert ((found[occurs] > 0) & (found[occurs] <= 1 + 1e-12)).all()
    perfect = video_precision(positive, positive.astype(np.float64), levels={"all": range(6)})["all"]
    assert (perfect[occurs] == 1.0).all()
    constant = video_precision(positive, np.zeros_like(scores), levels={"all": range(6)})["all"]
    assert constant[occurs].tolist() == pytest.approx(share[occurs].tolist(), abs=1e-12)


@settings(deadline=None)
@given(SEED, st.permutations(range(6)))
def test_order_of_classes_and_frames_and_scale_of_scores_do_not_matter(seed: int, names: list[int]) -> None:
    positive, scores = video(seed)
    levels = {"all": range(6), "three": (0, 0, 1, 1, 2, 2)}
    found = video_precision(positive, scores, levels=levels)
    renamed = {"all": range(6), "three": [levels["three"][name] for name in names]}
    order = np.random.default_rng(seed).permutation(len(scores))
    again = video_precision(positive[order][:, names], np.exp(scores[order][:, names]), levels=renamed)
    np.testing.assert_allclose(again["all"], found["all"][names], rtol=0, atol=1e-12)
    np.testing.assert_allclose(again["three"], found["three"], rtol=0, atol=1e-12)


@settings(deadline=None)
@given(SEED)
def test_top_k_recall_rises_to_1(seed: int) -> None:
    positive, scores = video(seed)
    if not positive.any():
        return
    found = list(top_k_recall(positive, scores, ks=range(1, 7), undefined=Undefined.FAIL).values())
    assert found == sorted(found)
    assert found[0] >= 0.0
    assert found[-1] == 1.0
