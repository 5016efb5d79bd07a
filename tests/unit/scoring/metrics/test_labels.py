"""Labels of frames: values by hand, properties by random sequences."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.scoring.metrics import (
    AveragedOver,
    Labels,
    Sets,
    Undefined,
    accuracy,
    balanced_accuracy,
    confusion,
    count_sets,
    frame_scores,
    macro_f1,
    published_instrument_f1,
    published_step_f1,
    sets_of,
)

LABELS = (3, 1, 7, 5)
PAIR = st.lists(st.tuples(*[st.sampled_from([*LABELS, -1, -2])] * 2), min_size=1, max_size=30)


def ids(*numbers: int) -> Labels:
    return np.array(numbers, dtype=np.int64)


def both(pairs: list[tuple[int, ...]]) -> tuple[Labels, Labels]:
    table = np.array(pairs, dtype=np.int64)
    return table[:, 0], table[:, 1]


def test_confusion_counts_pairs_and_keeps_strangers_apart() -> None:
    counts = confusion(ids(3, 3, 1, 9, 9), ids(3, 1, 8, 1, 8), labels=(3, 1))
    assert counts.tolist() == [[1, 1, 0], [0, 0, 1], [0, 1, 1]]


@pytest.mark.parametrize(
    ("averaged_over", "value"),
    [
        (AveragedOver.REFERENCE, (2 / 3 + 0) / 2),
        (AveragedOver.REFERENCE_OR_PREDICTION, (2 / 3 + 0 + 0) / 3),
        (AveragedOver.ALL, (2 / 3 + 0 + 0 + 0) / 4),
    ],
)
def test_who_enters_the_mean_is_an_argument(averaged_over: AveragedOver, value: float) -> None:
    # class 3: one hit, one false positive; class 1: missed; class 7: only predicted; class 5: nowhere
    f1 = macro_f1(ids(3, 1, 1), ids(3, 3, 7), labels=LABELS, averaged_over=averaged_over, undefined=Undefined.ZERO)
    assert f1 == pytest.approx(value, abs=1e-15)


def test_a_stranger_is_wrong_for_the_reference_class_only() -> None:
    with_stranger = macro_f1(ids(3, 3, 1), ids(3, -1, 1), labels=LABELS, averaged_over=AveragedOver.REFERENCE)
    assert with_stranger == pytest.approx((2 / 3 + 1) / 2, abs=1e-15)


@pytest.mark.parametrize("averaged_over", [AveragedOver.REFERENCE, AveragedOver.REFERENCE_OR_PREDICTION])
def test_no_class_at_all_is_undefined(averaged_over: AveragedOver) -> None:
    with pytest.raises(ValueError, match="none of the classes occurs"):
        macro_f1(ids(-1), ids(-1), labels=LABELS, averaged_over=averaged_over)


@pytest.mark.parametrize(
    ("reference", "prediction", "labels", "message"),
    [
        (ids(1, 2), ids(1), (1, 2), "shapes differ"),
        (ids(1, 2).reshape(1, 2), ids(1, 2).reshape(1, 2), (1, 2), "shapes differ"),
        (ids(1), ids(1), (1, 1), "doubled"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    reference: Labels, prediction: Labels, labels: tuple[int, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        macro_f1(reference, prediction, labels=labels, averaged_over=AveragedOver.ALL, undefined=Undefined.ZERO)


def test_averaged_over_all_needs_a_policy() -> None:
    with pytest.raises(ValueError, match="`undefined` is needed"):
        macro_f1(ids(1), ids(1), labels=LABELS, averaged_over=AveragedOver.ALL)
    with pytest.raises(ValueError, match="there is no class"):
        macro_f1(ids(1), ids(1), labels=(), averaged_over=AveragedOver.REFERENCE)


def test_a_class_nowhere_counts_as_the_policy_says() -> None:
    how = {"labels": LABELS, "averaged_over": AveragedOver.ALL}
    for undefined, absent in ((Undefined.ZERO, 0), (Undefined.ONE, 3)):
        f1 = macro_f1(ids(1, 1), ids(1, 1), undefined=undefined, **how)  # type: ignore[arg-type]
        assert f1 == (1 + absent) / 4
    assert macro_f1(ids(1, 1), ids(1, 1), undefined=Undefined.LEFT_OUT, **how) == 1.0  # type: ignore[arg-type]


def test_the_four_scores_of_a_sequence() -> None:
    # class 1: recall 2/3, precision 1; class 3: recall 1, precision 1/2; class 5 occurs and is never predicted
    scores = frame_scores(ids(1, 1, 1, 3, 5), ids(1, 1, 3, 3, 7), labels=(1, 3, 5, 7), undefined=Undefined.ZERO)
    assert scores.accuracy == pytest.approx((2 / 3 + 1 + 0) / 3, abs=1e-15)
    assert scores.precision == pytest.approx((3 * 1 + 1 / 2 + 0) / 5, abs=1e-15)
    assert scores.recall == pytest.approx(3 / 5, abs=1e-15)
    assert scores.f1 == pytest.approx((3 * 0.8 + 2 / 3) / 5, abs=1e-15)
    with_one = frame_scores(ids(1, 1, 1, 3, 5), ids(1, 1, 3, 3, 7), labels=(1, 3, 5, 7), undefined=Undefined.ONE)
    assert with_one.precision == pytest.approx((3 * 1 + 1 / 2 + 1) / 5, abs=1e-15)
    assert with_one.recall == scores.recall


def test_accuracy_is_the_share_of_right_frames() -> None:
    assert accuracy(ids(1, 2, 3, 4), ids(1, 2, 3, 5)) == 0.75
    with pytest.raises(ValueError, match="there is no frame"):
        accuracy(ids(), ids())
    with pytest.raises(ValueError, match="shapes differ"):
        accuracy(ids(1), ids(1, 1))


def test_balanced_accuracy_forgets_how_often_a_class_occurs() -> None:
    assert balanced_accuracy(ids(1, 1, 1, 3), ids(1, 1, 1, 1), labels=LABELS) == 0.5
    with pytest.raises(ValueError, match="none of the classes occurs"):
        balanced_accuracy(ids(9, 9), ids(1, 1), labels=LABELS)


def test_columns_of_ids_become_sets() -> None:
    sets = sets_of(np.array([[7, 7], [1, -2], [-1, -1], [3, 7]]), labels=(3, 1, 7), none=(-1, -2))
    assert sets.tolist() == [[False, False, True], [False, True, False], [False] * 3, [True, False, True]]
    with pytest.raises(ValueError, match="frame 1 holds 9, which is no known id; 2 like it"):
        sets_of(np.array([[1, -2], [3, 9], [8, -2]]), labels=(3, 1, 7), none=(-1, -2))


def test_sets_are_counted_by_class() -> None:
    one, other = np.array([[1, 1], [1, 0]], dtype=np.bool_), np.array([[1, 0], [0, 1]], dtype=np.bool_)
    found = count_sets(one, other)
    assert found.hits.tolist() == [1, 0]
    assert found.in_reference.tolist() == [2, 1]
    assert found.in_prediction.tolist() == [1, 1]
    with pytest.raises(ValueError, match="shapes differ"):
        count_sets(one, other[:1])


def test_published_variants() -> None:
    # the union of labels met is 1, 2 and -1: F1 of 2/3, 0 and 0
    assert published_step_f1(ids(1, 2), ids(1, 1)) == pytest.approx((2 / 3) / 2, abs=1e-15)
    assert published_step_f1(ids(1, 2), ids(1, -1)) == pytest.approx(1 / 3, abs=1e-15)
    nothing: Sets = np.zeros((3, 4), dtype=np.bool_)
    assert published_instrument_f1(nothing, nothing) == 1.0
    assert published_instrument_f1(nothing, ~nothing) == 1.0


@settings(deadline=None)
@given(PAIR)
def test_identity_gives_1_and_everything_lies_between_0_and_1(pairs: list[tuple[int, ...]]) -> None:
    reference, prediction = both(pairs)
    known = [*LABELS, -1, -2]
    for undefined in (Undefined.ZERO, Undefined.ONE):
        for score in vars(frame_scores(reference, prediction, labels=known, undefined=undefined)).values():
            assert 0.0 <= score <= 1.0
        f1 = macro_f1(reference, prediction, labels=known, averaged_over=AveragedOver.ALL, undefined=undefined)
        assert 0.0 <= f1 <= 1.0
    same = frame_scores(reference, reference, labels=known, undefined=Undefined.FAIL)
    assert list(vars(same).values()) == pytest.approx([1.0] * 4, abs=1e-15)
    over_both = AveragedOver.REFERENCE_OR_PREDICTION
    assert macro_f1(reference, reference, labels=known, averaged_over=over_both) == 1.0


@settings(deadline=None)
@given(PAIR, st.permutations([*LABELS, -1, -2]))
def test_names_of_labels_do_not_matter(pairs: list[tuple[int, ...]], renamed: list[int]) -> None:
    known = [*LABELS, -1, -2]
    names = dict(zip(known, renamed, strict=True))
    before = both(pairs)
    after = both([tuple(names[label] for label in pair) for pair in pairs])
    for undefined in (Undefined.ZERO, Undefined.ONE):
        one = frame_scores(*before, labels=known, undefined=undefined)
        other = frame_scores(*after, labels=renamed, undefined=undefined)
        assert list(vars(one).values()) == pytest.approx(list(vars(other).values()), abs=1e-12)
        how = {"averaged_over": AveragedOver.ALL, "undefined": undefined}
        f1 = macro_f1(*before, labels=LABELS, **how)  # type: ignore[arg-type]
        renamed_labels = [names[label] for label in LABELS]
        assert macro_f1(*after, labels=renamed_labels, **how) == pytest.approx(f1, abs=1e-12)  # type: ignore[arg-type]


@settings(deadline=None)
@given(PAIR)
def test_f1_is_symmetric(pairs: list[tuple[int, ...]]) -> None:
    one, other = both(pairs)
    how = {"labels": LABELS, "averaged_over": AveragedOver.ALL, "undefined": Undefined.ZERO}
    assert macro_f1(one, other, **how) == macro_f1(other, one, **how)  # type: ignore[arg-type]


@settings(deadline=None)
@given(PAIR)
def test_more_classes_in_the_mean_never_raise_it(pairs: list[tuple[int, ...]]) -> None:
    reference, prediction = both(pairs)
    if not set(reference.tolist()) & set(LABELS):
        return
    values = [
        macro_f1(reference, prediction, labels=LABELS, averaged_over=policy, undefined=Undefined.ZERO)
        for policy in AveragedOver
    ]
    assert values[0] >= values[1] - 1e-12
    assert values[1] >= values[2] - 1e-12
