"""What every blend keeps: one member alone, the order of members, equal weights, the members' own range."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as some
from numpy.typing import NDArray

from runner.challenge import FrameScoresFormat, FrameTableFormat, LabelImagesFormat
from runner.ensembles import Blend, Method, combined, methods_for
from runner.ensembles.blending import mean, soft_vote, voted_images, weighted_mean
from runner.formats.contract import FrameScores, FrameTable, LabelImages

Values = NDArray[np.float64]
SCORES = FrameScoresFormat.model_validate({"kind": "frame_scores", "file": "{case}.json", "classes": 3})
TABLE = FrameTableFormat.model_validate({
    "kind": "frame_table", "file": "{case}.csv", "index": {"column": "t"},
    "columns": {"step": {"labels": [-1, 4, 2]}, "hand": {"labels": [0, 1], "missing": "allow"}},
})  # fmt: skip
IMAGES = LabelImagesFormat.model_validate({
    "kind": "label_images", "file": "{case}/{frame}.png", "coding": "index", "width": 2, "height": 1,
    "classes": {0: {"name": "a"}, 1: {"name": "b"}, 9: {"name": "c"}},
})  # fmt: skip
PLAIN = (Method.MEAN, Method.SOFT_VOTE, Method.WEIGHTED)

unit = st.floats(0, 1, width=32)
stacks = st.integers(1, 5).flatmap(lambda members: some.arrays(np.float64, (members, 4, 3), elements=unit))
votes = st.integers(1, 6).flatmap(
    lambda members: some.arrays(np.int64, (members, 5), elements=st.sampled_from([-1, 2, 4]))
)


def scores(*rows: list[list[float]]) -> list[FrameScores]:
    return [FrameScores(scores=np.array(one)) for one in rows]


def steps(*rows: list[int]) -> list[FrameTable]:
    return [FrameTable(columns={"step": np.array(one)}) for one in rows]


def step_of(predictions: list[FrameTable], blend: Blend) -> list[int]:
    found = combined(predictions, blend, TABLE)
    assert isinstance(found, FrameTable)
    return list(found.columns["step"].tolist())


def images(*frames: list[int]) -> LabelImages:
    def read() -> Iterator[NDArray[np.uint8]]:
        yield from (np.array([one], dtype=np.uint8) for one in frames)

    return LabelImages(frames=len(frames), read=read)


def pixels(found: LabelImages) -> list[list[int]]:
    return [one[0].tolist() for one in found]


class TestScores:
    @pytest.mark.parametrize("method", PLAIN)
    @given(stack=stacks)
    def test_an_ensemble_of_one_is_that_one(self, method: Method, stack: Values) -> None:
        found = combined([FrameScores(scores=stack[0])], Blend(method=method), SCORES)
        assert isinstance(found, FrameScores)
        assert (found.scores == stack[0]).all()

    @pytest.mark.parametrize("method", [Method.MEAN, Method.WEIGHTED])
    @given(stack=stacks, data=st.data())
    def test_the_order_of_members_changes_nothing(self, method: Method, stack: Values, data: st.DataObject) -> None:
        order = data.draw(st.permutations(range(len(stack))))
        weights = np.arange(1.0, len(stack) + 1)
        weights /= weights.sum()
        before = combined(scores(*stack.tolist()), Blend(method=method, weights={"": weights}), SCORES)
        after = combined(scores(*stack[order].tolist()), Blend(method=method, weights={"": weights[order]}), SCORES)
        assert isinstance(before, FrameScores)
        assert isinstance(after, FrameScores)
        assert np.abs(before.scores - after.scores).max() < 1e-12

    @given(stack=stacks, data=st.data())
    def test_the_order_of_members_changes_no_soft_vote(self, stack: Values, data: st.DataObject) -> None:
        order = data.draw(st.permutations(range(len(stack))))
        certain = np.abs(mean(stack) - 0.5) > 1e-9  # in between, the order of adding decides on which side a mean is
        assert (soft_vote(stack) == soft_vote(stack[order]))[certain].all()

    @given(stack=stacks)
    def test_equal_weights_are_the_mean(self, stack: Values) -> None:
        members, _, classes = stack.shape
        for weights in (np.full(members, 1 / members), np.full((members, classes), 1 / members)):
            assert np.abs(weighted_mean(stack, weights) - mean(stack)).max() < 1e-12

    @given(stack=stacks)
    def test_no_blend_leaves_the_range_of_its_members(self, stack: Values) -> None:
        weights = np.linspace(0, 1, len(stack) + 1)[1:]
        found = weighted_mean(stack, weights / weights.sum())
        assert ((found >= stack.min(axis=0)) & (found <= stack.max(axis=0))).all()

    def test_values_by_hand(self) -> None:
        stack = np.array([[[0.2, 0.9, 0.5]], [[0.4, 0.3, 0.5]]])
        assert mean(stack).tolist() == [[pytest.approx(0.3), pytest.approx(0.6), 0.5]]
        assert soft_vote(stack).tolist() == [[0.2, 0.9, 0.5]]
        assert weighted_mean(stack, np.array([0.25, 0.75])).tolist() == [pytest.approx([0.35, 0.45, 0.5])]
        per_class = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]])
        assert weighted_mean(stack, per_class).tolist() == [[0.2, 0.3, 0.5]]

    def test_the_middle_is_that_of_the_range_of_the_format(self) -> None:
        rule = SCORES.model_copy(update={"range": (-10.0, 10.0)})
        found = combined(scores([[1, -1, 0.4]], [[2, -2, -0.2]]), Blend(method=Method.SOFT_VOTE), rule)
        assert isinstance(found, FrameScores)
        assert found.scores.tolist() == [[2, -2, 0.4]]


class TestLabels:
    @given(labels=votes)
    def test_an_ensemble_of_one_is_that_one(self, labels: NDArray[np.int64]) -> None:
        assert step_of(steps(labels[0].tolist()), Blend(method=Method.MAJORITY)) == labels[0].tolist()

    @given(labels=votes, data=st.data())
    def test_the_order_of_members_changes_nothing(self, labels: NDArray[np.int64], data: st.DataObject) -> None:
        order = data.draw(st.permutations(range(len(labels))))
        before = step_of(steps(*labels.tolist()), Blend(method=Method.MAJORITY))
        assert step_of(steps(*labels[order].tolist()), Blend(method=Method.MAJORITY)) == before

    @given(labels=votes)
    def test_the_majority_is_the_most_frequent_label_and_of_several_the_smallest(
        self, labels: NDArray[np.int64]
    ) -> None:
        frames = labels.T.tolist()
        expected = [min(frame, key=lambda label: (-frame.count(label), label)) for frame in frames]
        assert step_of(steps(*labels.tolist()), Blend(method=Method.MAJORITY)) == expected

    def test_a_weight_of_more_than_half_decides(self) -> None:
        blend = Blend(method=Method.WEIGHTED, weights={"": np.array([0.6, 0.2, 0.2])})
        assert step_of(steps([4, 2], [2, 2], [2, -1]), blend) == [4, 2]

    def test_sums_that_differ_by_their_rounding_are_a_tie(self) -> None:
        weights = np.array([1.0, 12.0, 13.0]) * 0.1
        weights /= weights.sum()
        assert weights[0] + weights[1] > weights[2]
        assert step_of(steps([4], [4], [2]), Blend(method=Method.WEIGHTED, weights={"": weights})) == [2]

    def test_who_left_a_column_out_has_no_vote_in_it(self) -> None:
        whole = FrameTable(columns={"step": np.array([2]), "hand": np.array([1])})
        lacking = FrameTable(columns={"step": np.array([4])})
        found = combined([lacking, whole, lacking], Blend(method=Method.MAJORITY), TABLE)
        assert isinstance(found, FrameTable)
        assert {name: column.tolist() for name, column in found.columns.items()} == {"step": [4], "hand": [1]}

    def test_a_column_that_nobody_gave_is_not_made_up(self) -> None:
        found = combined(steps([2], [2]), Blend(method=Method.MAJORITY), TABLE)
        assert isinstance(found, FrameTable)
        assert list(found.columns) == ["step"]

    def test_members_of_other_frames_are_refused(self) -> None:
        with pytest.raises(ValueError, match="frames"):
            combined(steps([2], [2, 4]), Blend(method=Method.MAJORITY), TABLE)


class TestImages:
    def test_the_majority_of_each_pixel_and_of_several_the_smallest_class(self) -> None:
        found = combined(
            [images([0, 1], [9, 9]), images([1, 9], [9, 0]), images([1, 0], [0, 1])],
            Blend(method=Method.MAJORITY), IMAGES,
        )  # fmt: skip
        assert isinstance(found, LabelImages)
        assert (found.frames, pixels(found)) == (2, [[1, 0], [9, 0]])
        assert pixels(found) == [[1, 0], [9, 0]]  # it can be read again

    def test_one_member_is_that_one_and_weights_count(self) -> None:
        assert pixels(voted_images([images([9, 1])], np.array([1.0]))) == [[9, 1]]
        assert pixels(voted_images([images([9, 1]), images([0, 0])], np.array([0.7, 0.3]))) == [[9, 1]]

    def test_no_image_is_read_before_it_is_due(self) -> None:
        def read() -> Iterator[NDArray[np.uint8]]:
            yield np.array([[1, 1]], dtype=np.uint8)
            raise AssertionError("read too early")

        found = voted_images([LabelImages(frames=2, read=read)], np.array([1.0]))
        assert next(iter(found)).tolist() == [[1, 1]]

    def test_members_of_other_frames_are_refused(self) -> None:
        with pytest.raises(ValueError, match="frames"):
            voted_images([images([0, 0]), images([0, 0], [1, 1])], np.array([0.5, 0.5]))


@pytest.mark.parametrize(
    ("rule", "allowed"),
    [
        (SCORES, {"mean", "soft-vote", "weighted", "learned", "learned-per-class", "network"}),
        (TABLE, {"majority", "weighted", "learned", "learned-per-class", "network"}),
        (IMAGES, {"majority", "weighted"}),
    ],
)
def test_each_kind_of_prediction_has_its_methods(
    rule: FrameScoresFormat | FrameTableFormat | LabelImagesFormat, allowed: set[str]
) -> None:
    assert {method.value for method in methods_for(rule)} == allowed
