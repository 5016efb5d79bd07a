"""Segments: values by hand, properties by random sequences, and a plain loop as a second opinion."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.scoring.metrics import Labels, Reaches, Undefined, edit_score, segmental_f1, segments

LABELS = (3, 1, 7, 5)
SEQUENCE = st.lists(st.sampled_from([*LABELS, -1, -2]), min_size=1, max_size=30)
PAIR = st.lists(st.tuples(*[st.sampled_from([*LABELS, -1, -2])] * 2), min_size=1, max_size=30)


def ids(*numbers: int) -> Labels:
    return np.array(numbers, dtype=np.int64)


def both(pairs: list[tuple[int, ...]]) -> tuple[Labels, Labels]:
    table = np.array(pairs, dtype=np.int64)
    return table[:, 0], table[:, 1]


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


def f1_at(
    reference: Labels,
    prediction: Labels,
    overlap: float,
    reaches: Reaches = Reaches.AT_LEAST,
    background: tuple[int, ...] = (),
) -> float:
    return segmental_f1(
        reference, prediction, overlap=overlap, reaches=reaches, background=background, undefined=Undefined.FAIL
    )


def test_a_segment_counts_if_its_overlap_reaches_k() -> None:
    # 1: 2 of 4 frames shared, IoU 1/2; 2: IoU 4/6
    reference, prediction = ids(1, 1, 1, 1, 2, 2, 2, 2), ids(1, 1, 2, 2, 2, 2, 2, 2)
    assert f1_at(reference, prediction, 0.5) == 1.0
    assert f1_at(reference, prediction, 0.5, Reaches.ABOVE) == 0.5
    assert f1_at(reference, prediction, 0.6) == 0.5
    assert f1_at(reference, prediction, 0.9) == 0.0


def test_a_reference_segment_is_taken_once() -> None:
    """Two halves of one segment: one true and one false positive; the 2 between them is false, too."""
    reference, prediction = ids(1, 1, 1, 1, 1), ids(1, 1, 2, 1, 1)
    assert f1_at(reference, prediction, 0.4) == 2 * 1 / (1 + 3)


def test_a_prediction_takes_its_best_segment_only() -> None:
    reference, prediction = ids(1, 2, 1, 1), ids(1, 1, 1, 1)
    assert f1_at(reference, prediction, 0.5) == 2 * 1 / (3 + 1)
    assert f1_at(reference, prediction, 0.51) == 0.0


def test_of_equal_overlaps_the_earlier_segment_is_meant() -> None:
    """The second prediction of 1 overlaps both reference segments alike, and the first of them is taken."""
    reference = ids(1, 1, 1, 1, 2, 1, 1, 1, 1)
    prediction = ids(1, 1, 2, 1, 1, 1, 1, 2, 2)
    # the last 1 shares one frame with the first segment and two with the second
    assert f1_at(reference, prediction, 0.1) == pytest.approx(2 * 2 / (3 + 4))
    even = ids(2, 2, 2, 1, 1, 1, 2, 2, 2)
    assert f1_at(reference, even, 0.1) == pytest.approx(2 * 1 / (3 + 3))


def test_background_counts_in_neither_sequence() -> None:
    reference, prediction = ids(0, 0, 1, 1, 0), ids(1, 1, 1, 1, 0)
    assert f1_at(reference, prediction, 0.5) == 2 * 2 / (3 + 2)
    assert f1_at(reference, prediction, 0.5, background=(0,)) == 1.0


def test_nothing_but_background_is_decided_by_the_policy() -> None:
    empty = ids(0, 0)
    values = [
        segmental_f1(empty, empty, overlap=0.5, reaches=Reaches.AT_LEAST, background=(0,), undefined=undefined)
        for undefined in (Undefined.ZERO, Undefined.ONE, Undefined.LEFT_OUT)
    ]
    assert values[:2] == [0.0, 1.0]
    assert np.isnan(values[2])
    with pytest.raises(ValueError, match="without a segment is undefined"):
        f1_at(empty, empty, 0.5, background=(0,))


@pytest.mark.parametrize("overlap", [0.0, -0.1, 1.1, float("nan")])
def test_an_overlap_out_of_range_is_refused(overlap: float) -> None:
    with pytest.raises(ValueError, match="overlap"):
        f1_at(ids(1), ids(1), overlap)
    with pytest.raises(ValueError, match="shapes differ"):
        f1_at(ids(1), ids(1, 1), 0.5)


def runs_of(sequence: Labels, background: tuple[int, ...]) -> list[tuple[int, int, int]]:
    cuts = [0, *(k for k in range(1, len(sequence)) if sequence[k] != sequence[k - 1]), len(sequence)]
    found = [(int(sequence[a]), a, b) for a, b in itertools.pairwise(cuts)]
    return [run for run in found if run[0] not in background]


def by_loops(reference: Labels, prediction: Labels, overlap: float, background: tuple[int, ...]) -> float:
    """The published procedure, segment by segment."""
    wanted, offered = runs_of(reference, background), runs_of(prediction, background)
    used = [False] * len(wanted)
    hits = 0
    for label, begin, end in offered:
        overlaps = [
            (label == other) * (min(end, stop) - max(begin, start)) / (max(end, stop) - min(begin, start))
            for other, start, stop in wanted
        ]
        best = int(np.argmax(overlaps)) if overlaps else -1
        if best >= 0 and overlaps[best] >= overlap and not used[best]:
            hits += 1
            used[best] = True
    return 2 * hits / (2 * hits + (len(offered) - hits) + (len(wanted) - sum(used)))


@settings(deadline=None, max_examples=300)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=40),
    st.sampled_from([0.1, 0.25, 1 / 3, 0.5, 1.0]),
    st.sampled_from([(), (0,)]),
)
def test_segmental_f1_agrees_with_the_published_procedure(
    pairs: list[tuple[int, ...]], overlap: float, background: tuple[int, ...]
) -> None:
    reference, prediction = both(pairs)
    if not runs_of(reference, background) and not runs_of(prediction, background):
        return
    ours = f1_at(reference, prediction, overlap, background=background)
    assert ours == pytest.approx(by_loops(reference, prediction, overlap, background), abs=1e-12)


@settings(deadline=None)
@given(PAIR)
def test_scores_lie_between_0_and_1_and_a_sequence_is_perfect_against_itself(pairs: list[tuple[int, ...]]) -> None:
    one, other = both(pairs)
    assert 0.0 <= edit_score(one, other) <= 1.0
    assert 0.0 <= f1_at(one, other, 0.5) <= 1.0
    assert edit_score(one, one) == f1_at(one, one, 1.0) == 1.0


@settings(deadline=None)
@given(PAIR)
def test_the_edit_score_is_symmetric(pairs: list[tuple[int, ...]]) -> None:
    one, other = both(pairs)
    assert edit_score(one, other) == edit_score(other, one)


@settings(deadline=None)
@given(PAIR, st.permutations([*LABELS, -1, -2]))
def test_names_of_labels_do_not_matter(pairs: list[tuple[int, ...]], renamed: list[int]) -> None:
    names = dict(zip([*LABELS, -1, -2], renamed, strict=True))
    before = both(pairs)
    after = both([tuple(names[label] for label in pair) for pair in pairs])
    assert edit_score(*before) == edit_score(*after)
    assert f1_at(*before, 0.25) == f1_at(*after, 0.25)


@settings(deadline=None)
@given(SEQUENCE, st.integers(1, 4))
def test_stretching_time_changes_no_segment(sequence: list[int], factor: int) -> None:
    labels = ids(*sequence)
    assert segments(labels.repeat(factor)).tolist() == segments(labels).tolist()
