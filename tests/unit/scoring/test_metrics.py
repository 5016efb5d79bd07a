"""Metrics: values by hand, properties by random sequences."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.scoring.metrics import AveragedOver, Labels, confusion, edit_score, macro_f1, segments

LABELS = (3, 1, 7, 5)
SEQUENCE = st.lists(st.sampled_from([*LABELS, -1, -2]), min_size=1, max_size=30)
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
    f1 = macro_f1(ids(3, 1, 1), ids(3, 3, 7), labels=LABELS, averaged_over=averaged_over)
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
        macro_f1(reference, prediction, labels=labels, averaged_over=AveragedOver.ALL)


@pytest.mark.parametrize(
    ("frames", "runs"), [((), ()), ((1,), (1,)), ((1, 1, 2, 2, 1), (1, 2, 1)), ((-1, -2, -2), (-1, -2))]
)
def test_segments(frames: tuple[int, ...], runs: tuple[int, ...]) -> None:
    assert segments(ids(*frames)).tolist() == list(runs)


@pytest.mark.parametrize(
    ("reference", "prediction", "score"),
    [
        ((1, 1, 2, 2), (1, 2, 2, 2), 1.0),
        ((1, 1, 1), (2, 2, 2), 0.0),
        ((1, 2, 3, 4), (1, 2, 4), 0.75),
        ((1, 2, 1, 2), (2, 1, 2, 1), 0.5),
        ((-1, 1), (-2, 1), 0.5),
        ((), (1, 2), 0.0),
    ],
)
def test_the_edit_score_compares_the_order_of_segments(
    reference: tuple[int, ...], prediction: tuple[int, ...], score: float
) -> None:
    assert edit_score(ids(*reference), ids(*prediction)) == score


def test_two_empty_sequences_have_no_edit_score() -> None:
    with pytest.raises(ValueError, match="both sequences are empty"):
        edit_score(ids(), ids())


@settings(deadline=None)
@given(SEQUENCE)
def test_a_sequence_is_perfect_against_itself(sequence: list[int]) -> None:
    labels = ids(*sequence)
    assert edit_score(labels, labels) == 1.0
    if set(sequence) & set(LABELS):
        assert macro_f1(labels, labels, labels=LABELS, averaged_over=AveragedOver.REFERENCE_OR_PREDICTION) == 1.0


@settings(deadline=None)
@given(PAIR)
def test_scores_lie_between_0_and_1(pairs: list[tuple[int, ...]]) -> None:
    reference, prediction = both(pairs)
    assert 0.0 <= edit_score(reference, prediction) <= 1.0
    assert 0.0 <= macro_f1(reference, prediction, labels=LABELS, averaged_over=AveragedOver.ALL) <= 1.0


@settings(deadline=None)
@given(PAIR)
def test_both_metrics_are_symmetric(pairs: list[tuple[int, ...]]) -> None:
    one, other = both(pairs)
    assert edit_score(one, other) == edit_score(other, one)
    how = {"labels": LABELS, "averaged_over": AveragedOver.ALL}
    assert macro_f1(one, other, **how) == macro_f1(other, one, **how)  # type: ignore[arg-type]


@settings(deadline=None)
@given(PAIR, st.permutations([*LABELS, -1, -2]))
def test_names_of_labels_do_not_matter(pairs: list[tuple[int, ...]], renamed: list[int]) -> None:
    names = dict(zip([*LABELS, -1, -2], renamed, strict=True))
    before = both(pairs)
    after = both([tuple(names[label] for label in pair) for pair in pairs])
    assert edit_score(*before) == edit_score(*after)
    f1 = macro_f1(*before, labels=LABELS, averaged_over=AveragedOver.ALL)
    renamed_labels = [names[label] for label in LABELS]
    assert macro_f1(*after, labels=renamed_labels, averaged_over=AveragedOver.ALL) == pytest.approx(f1, abs=1e-12)


@settings(deadline=None)
@given(PAIR)
def test_more_classes_in_the_mean_never_raise_it(pairs: list[tuple[int, ...]]) -> None:
    reference, prediction = both(pairs)
    if not set(reference.tolist()) & set(LABELS):
        return
    values = [macro_f1(reference, prediction, labels=LABELS, averaged_over=policy) for policy in AveragedOver]
    assert values[0] >= values[1] - 1e-12
    assert values[1] >= values[2] - 1e-12


@settings(deadline=None)
@given(SEQUENCE, st.integers(1, 4))
def test_stretching_time_changes_no_segment(sequence: list[int], factor: int) -> None:
    labels = ids(*sequence)
    assert segments(labels.repeat(factor)).tolist() == segments(labels).tolist()
