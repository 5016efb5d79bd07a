"""What is learned: the better member is found, class by class where asked; the same seed gives the same network."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as some
from numpy.typing import NDArray
from scipy.optimize import check_grad, minimize

from runner.challenge import FrameScoresFormat, FrameTableFormat, LabelImagesFormat
from runner.ensembles import Blend, Example, Method, can_be_fitted, combined, fitted, score_weights
from runner.ensembles.network import Network, _joined, _loss, _split, train
from runner.ensembles.weights import Errors
from runner.formats.contract import FrameScores, FrameTable

Values = NDArray[np.float64]
SCORES = FrameScoresFormat.model_validate({"kind": "frame_scores", "file": "{case}.json", "classes": 3})
TABLE = FrameTableFormat.model_validate({
    "kind": "frame_table", "file": "{case}.csv", "index": {"column": "t"},
    "columns": {"step": {"labels": [0, 1, 2], "reference_only": [7]}},
})  # fmt: skip
LEARNED = (Method.LEARNED, Method.LEARNED_PER_CLASS)


def truth_of(rng: np.random.Generator, frames: int = 200) -> Values:
    return (rng.random((frames, 3)) < 0.4).astype(np.float64)


def noisy(truth: Values, rng: np.random.Generator, *noise: float) -> Values:
    """Members that err by so much."""
    return np.stack([np.clip(truth + rng.normal(scale=one, size=truth.shape), 0, 1) for one in noise])


def example(stack: Values, truth: Values) -> Example:
    return Example(predictions=[FrameScores(scores=one) for one in stack], reference=FrameScores(scores=truth))


def weights_of(method: Method, *pairs: tuple[Values, Values]) -> Values:
    return fitted(method, [example(*pair) for pair in pairs], SCORES, SCORES).weights["scores"]


class TestScoreWeights:
    def test_a_member_weighs_as_its_score(self) -> None:
        assert score_weights([0.2, 0.6], worst=0.0, higher_is_better=True).tolist() == pytest.approx([0.25, 0.75])

    def test_where_lower_is_better_the_distance_from_the_worst_counts(self) -> None:
        assert score_weights([1.0, 4.0, 6.0], worst=5.0, higher_is_better=False).tolist() == [0.8, 0.2, 0.0]

    def test_where_nobody_is_better_than_the_worst_all_weigh_the_same(self) -> None:
        assert score_weights([0.0, 0.0], worst=0.0, higher_is_better=True).tolist() == [0.5, 0.5]


class TestLearnedWeights:
    def test_the_better_member_is_found(self) -> None:
        rng = np.random.default_rng(1)
        truth = truth_of(rng)
        weights = weights_of(Method.LEARNED, (noisy(truth, rng, 0.6, 0.05, 0.6), truth))
        assert weights.argmax() == 1
        assert weights[1] > 0.9

    def test_each_class_finds_its_own_better_member(self) -> None:
        rng = np.random.default_rng(2)
        truth = truth_of(rng)
        stack = noisy(truth, rng, 0.05, 0.05)
        stack[0, :, 2], stack[1, :, 0] = rng.random(200), rng.random(200)
        weights = weights_of(Method.LEARNED_PER_CLASS, (stack, truth))
        assert weights.shape == (2, 3)
        assert weights[:, 0].argmax() == 0
        assert weights[:, 2].argmax() == 1
        assert weights.sum(axis=0).tolist() == pytest.approx([1, 1, 1])

    def test_a_class_that_is_never_there_has_the_weights_over_all_classes(self) -> None:
        rng = np.random.default_rng(3)
        truth = truth_of(rng)
        truth[:, 1] = 0
        stack = noisy(truth, rng, 0.05, 0.5)
        stack[1, :, 1] = 0  # it seems the best there, because it never says anything
        per_class = weights_of(Method.LEARNED_PER_CLASS, (stack, truth))
        assert per_class[:, 1].tolist() == weights_of(Method.LEARNED, (stack, truth)).tolist()

    @pytest.mark.parametrize("method", LEARNED)
    def test_one_member_has_the_weight_one(self, method: Method) -> None:
        rng = np.random.default_rng(4)
        truth = truth_of(rng)
        assert (weights_of(method, (noisy(truth, rng, 0.3), truth)) == 1).all()

    @pytest.mark.parametrize("method", LEARNED)
    def test_equal_members_weigh_the_same(self, method: Method) -> None:
        rng = np.random.default_rng(5)
        truth = truth_of(rng)
        stack = noisy(truth, rng, 0.3).repeat(3, axis=0)
        assert np.abs(weights_of(method, (stack, truth)) - 1 / 3).max() < 1e-9

    def test_members_without_an_error_weigh_the_same(self) -> None:
        truth = truth_of(np.random.default_rng(6))
        assert weights_of(Method.LEARNED, (np.stack([truth, truth]), truth)).tolist() == [0.5, 0.5]

    @given(stack=some.arrays(np.float64, (3, 8, 3), elements=st.floats(0, 1, width=16)), data=st.data())
    def test_the_order_of_members_changes_nothing(self, stack: Values, data: st.DataObject) -> None:
        order = data.draw(st.permutations(range(3)))
        truth = np.eye(3)[[0, 1, 2, 0, 1, 2, 0, 1]]
        before, after = weights_of(Method.LEARNED, (stack, truth)), weights_of(Method.LEARNED, (stack[order], truth))
        assert np.abs(before[order] - after).max() < 1e-6

    @given(stack=some.arrays(np.float64, (3, 8, 3), elements=st.floats(0, 1, width=16)))
    def test_no_other_weights_of_sum_one_err_less(self, stack: Values) -> None:
        truth = np.eye(3)[[0, 1, 2, 0, 1, 2, 0, 1]]
        errors = Errors.of(stack, truth, lowest=0.0)
        products = errors.products.sum(axis=0)
        ridged = products + 1e-3 * np.trace(products) / 3 * np.eye(3)
        weights = errors.member_weights()
        other = minimize(
            lambda w: float(w @ ridged @ w), np.full(3, 1 / 3), bounds=[(0, 1)] * 3, method="SLSQP",
            constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        )  # fmt: skip
        assert (weights >= 0).all()
        assert weights.sum() == pytest.approx(1)
        assert weights @ ridged @ weights <= other.fun + 1e-9

    def test_cases_are_learned_from_together(self) -> None:
        rng = np.random.default_rng(7)
        truth = truth_of(rng)
        stack = noisy(truth, rng, 0.2, 0.4)
        apart = weights_of(Method.LEARNED, (stack[:, :90], truth[:90]), (stack[:, 90:], truth[90:]))
        assert np.abs(apart - weights_of(Method.LEARNED, (stack, truth))).max() < 1e-9


class TestLabels:
    def tables(self, *rows: list[int]) -> list[FrameTable]:
        return [FrameTable(columns={"step": np.array(one)}) for one in rows]

    @pytest.mark.parametrize("method", [*LEARNED, Method.NETWORK])
    def test_the_better_member_wins_against_two(self, method: Method) -> None:
        rng = np.random.default_rng(8)
        truth = rng.integers(0, 3, 120)
        members = self.tables(truth.tolist(), *(rng.integers(0, 3, 120).tolist() for _ in range(2)))
        blend = fitted(method, [Example(predictions=members, reference=self.tables(truth.tolist())[0])], TABLE, TABLE)
        found = combined(self.tables([0, 1, 2], [1, 2, 0], [1, 2, 0]), blend, TABLE)
        assert isinstance(found, FrameTable)
        assert found.columns["step"].tolist() == [0, 1, 2]

    def test_frames_with_a_label_that_nobody_may_give_teach_nothing(self) -> None:
        members = self.tables([0, 1, 2, 0], [0, 0, 0, 1])
        whole = Example(predictions=members, reference=self.tables([0, 1, 2, 7])[0])
        short = Example(predictions=self.tables([0, 1, 2], [0, 0, 0]), reference=self.tables([0, 1, 2])[0])
        found = [fitted(Method.LEARNED, [one], TABLE, TABLE).weights["step"].tolist() for one in (whole, short)]
        assert found[0] == found[1]

    def test_where_no_frame_teaches_anything_nothing_is_fitted(self) -> None:
        nothing = Example(predictions=self.tables([0], [1]), reference=self.tables([7])[0])
        for method in (*LEARNED, Method.NETWORK):
            with pytest.raises(ValueError, match="no frame to learn from"):
                fitted(method, [nothing], TABLE, TABLE)


class TestNetwork:
    def test_the_same_seed_gives_the_same_network_and_another_one_another(self) -> None:
        rng = np.random.default_rng(9)
        truth = truth_of(rng, 60)
        given_ = [example(noisy(truth, rng, 0.3, 0.5), truth)]
        one, again, other = (
            fitted(Method.NETWORK, given_, SCORES, SCORES, seed=seed).networks["scores"] for seed in (3, 3, 4)
        )
        assert all((getattr(one, part.name) == getattr(again, part.name)).all() for part in fields(Network))
        assert (one.first != other.first).any()

    def test_it_learns_what_no_mean_can_say(self) -> None:
        rng = np.random.default_rng(10)
        inputs = rng.random((2, 400, 1))
        truth = ((inputs[0] > 0.5) != (inputs[1] > 0.5)).astype(np.float64)
        network = train(inputs[:, :300], truth[:300], np.random.default_rng(0))
        right = (network.answer(inputs[:, 300:]) > 0.5) == (truth[300:] == 1)
        assert right.mean() > 0.9

    def test_its_answers_are_in_the_range_of_the_format(self) -> None:
        rule = SCORES.model_copy(update={"range": (-4.0, 4.0)})
        rng = np.random.default_rng(11)
        truth = truth_of(rng, 80)
        stack = noisy(truth, rng, 0.1, 0.1) * 8 - 4
        blend = fitted(Method.NETWORK, [example(stack, truth)], rule, SCORES)
        found = combined([FrameScores(scores=one) for one in stack], blend, rule)
        assert isinstance(found, FrameScores)
        assert ((found.scores > 0) == (truth == 1)).mean() > 0.95
        assert np.abs(found.scores).max() <= 4

    def test_its_gradient_is_that_of_its_loss(self) -> None:
        rng = np.random.default_rng(12)
        shapes = ((4, 3), (3,), (3, 2), (2,))
        inputs, truth = rng.normal(size=(7, 4)), (rng.random((7, 2)) < 0.5).astype(np.float64)
        at = _joined([rng.normal(size=shape) for shape in shapes])
        difference = check_grad(
            lambda flat: _loss(_split(flat, shapes), inputs, truth, 0.1)[0],
            lambda flat: _loss(_split(flat, shapes), inputs, truth, 0.1)[1],
            at,
        )
        assert difference < 1e-5

    def test_without_a_frame_nothing_is_trained(self) -> None:
        with pytest.raises(ValueError, match="shape"):
            train(np.zeros((1, 0, 2)), np.zeros((0, 2)), np.random.default_rng(0))


def test_a_column_that_was_not_fitted_weighs_all_members_the_same() -> None:
    blend = Blend(method=Method.LEARNED, weights={"step": np.array([1.0, 0.0])})
    assert blend.weights_for("hand", 2).tolist() == [0.5, 0.5]


def test_references_of_another_kind_or_size_teach_nothing() -> None:
    images = LabelImagesFormat.model_validate({
        "kind": "label_images", "file": "{case}/{frame}.png", "coding": "index", "width": 2, "height": 1,
        "classes": {0: {"name": "a"}},
    })  # fmt: skip
    fewer = SCORES.model_copy(update={"classes": 2})
    pairs = ((SCORES, SCORES), (TABLE, TABLE), (SCORES, fewer), (SCORES, TABLE), (images, images))
    assert [can_be_fitted(*pair) for pair in pairs] == [True, True, False, False, False]
