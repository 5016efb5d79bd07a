"""Forgiven transitions: by hand, by properties, and by a plain reading of the definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.scoring.metrics import (
    Between,
    Forgiving,
    Labels,
    TransitionType,
    Undefined,
    adjusted,
    delay_scores,
    frame_scores,
)

PAIR = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=60)
RUNS = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 8)), min_size=1, max_size=12)
HOW = st.builds(
    Forgiving,
    delay=st.sampled_from([0.0, 0.1, 0.25]),
    fps=st.just(30),
    type=st.sampled_from(TransitionType),
    between=st.sampled_from(Between),
)


def within(frames: int, type_: TransitionType = TransitionType.PAIR, between: Between = Between.ANY) -> Forgiving:
    return Forgiving(delay=frames, fps=1, type=type_, between=between)


def frames(text: str) -> Labels:
    return np.array([ord(label) for label in text], dtype=np.int64)


def text(labels: Labels) -> str:
    return "".join(map(chr, labels))


def mend(reference: str, prediction: str, how: Forgiving) -> str:
    return text(adjusted(frames(reference), frames(prediction), how))


@pytest.mark.parametrize(
    ("delay", "fps", "largest"),
    [(0.25, 30, 7), (0.25, 25, 6), (0.1, 30, 3), (0.29, 100, 29), (0.0, 30, 0), (1, 29.97, 29)],
)
def test_the_delay_in_frames_is_a_real_number(delay: float, fps: float, largest: int) -> None:
    """And a product that misses a whole number by a rounding error is that number: 0.29 * 100 < 29."""
    how = Forgiving(delay=delay, fps=fps, type=TransitionType.PAIR, between=Between.ANY)
    assert how.frames == largest


@pytest.mark.parametrize(
    ("delay", "fps"), [(-0.1, 30), (0.25, 0), (float("nan"), 30), (0.25, float("nan")), (1e400, 1)]
)
def test_a_delay_must_be_possible(delay: float, fps: float) -> None:
    with pytest.raises(ValueError, match="not possible"):
        Forgiving(delay=delay, fps=fps, type=TransitionType.PAIR, between=Between.ANY)


def test_late_and_early_transitions_are_mended_up_to_the_delay() -> None:
    assert mend("AAAABBBB", "AAAAAABB", within(2)) == "AAAABBBB"
    assert mend("AAAABBBB", "AABBBBBB", within(2)) == "AAAABBBB"
    assert mend("AAAABBBB", "AAAAAABB", within(1)) == "AAAAAABB"


def test_only_the_frames_between_the_two_are_mended() -> None:
    assert mend("AAAABBBBBB", "AAAAAABBCB", within(2)) == "AAAABBBBCB"


def test_a_pair_needs_both_labels_and_incoming_the_second_only() -> None:
    assert mend("AAAABBBB", "CCCCCCBB", within(2)) == "CCCCCCBB"
    assert mend("AAAABBBB", "CCCCCCBB", within(2, TransitionType.INCOMING)) == "CCCCBBBB"


def test_the_nearest_transition_is_accepted_first_and_each_once() -> None:
    # the reference turns to B at 4; the prediction at 2 and at 5: 5 is nearer, and 2 stays as it is
    assert mend("AAAABBBB", "AABAABBB", within(3)) == "AABABBBB"
    # two transitions of the reference, one of the prediction: only one of them takes it
    assert mend("ABAABB", "AAABBB", within(4)) == "AAAABB"


def test_of_equal_distances_the_earlier_reference_goes_first() -> None:
    # reference to B at 1 and 5, prediction at 3: both two frames away, 1 is first
    assert mend("ABAAABBB", "AAABBBBB", within(2)) == "ABABBBBB"


def test_of_equal_distances_the_earlier_prediction_goes_first() -> None:
    # reference to B at 4; prediction at 2 and at 6
    assert mend("AAAABBBBB", "AABAAABBB", within(2)) == "AAAAAABBB"


def test_clean_refuses_where_another_transition_lies_between() -> None:
    reference, prediction = "AAAABBBBBB", "AAACAAABBB"
    # the prediction turns from A to B at 7; between 4 and 7 it does nothing, at 3 and 4 it visits C
    assert mend(reference, prediction, within(3)) == "AAACBBBBBB"
    assert mend(reference, prediction, within(3, between=Between.CLEAN)) == "AAACBBBBBB"
    inside = "AAAAACABBB"
    assert mend(reference, inside, within(3)) == "AAAABBBBBB"
    assert mend(reference, inside, within(3, between=Between.CLEAN)) == inside
    visited = "AAAABCBBBB"
    assert mend(visited, "AAAAAAABBB", within(3)) == "AAAABCBBBB"
    assert mend(visited, "AAAAAAABBB", within(3, between=Between.CLEAN)) == "AAAAAAABBB"


def test_the_first_frame_is_no_transition_and_one_frame_is_fine() -> None:
    assert mend("AB", "BB", within(5)) == "BB"
    assert mend("A", "B", within(5)) == "B"
    assert adjusted(frames(""), frames(""), within(5)).size == 0


def test_the_prediction_is_left_as_it_was() -> None:
    prediction = frames("AAAAAABB")
    adjusted(frames("AAAABBBB"), prediction, within(2))
    assert text(prediction) == "AAAAAABB"
    with pytest.raises(ValueError, match="shapes differ"):
        adjusted(frames("AB"), frames("ABB"), within(1))


def by_definition(reference: list[int], prediction: list[int], how: Forgiving) -> list[int]:
    def turns(ids: list[int]) -> list[int]:
        return [i for i in range(1, len(ids)) if ids[i] != ids[i - 1]]

    def kind(ids: list[int], i: int) -> tuple[int, ...]:
        return (ids[i - 1], ids[i]) if how.type is TransitionType.PAIR else (ids[i],)

    def clean(i: int, j: int) -> bool:
        low, high = min(i, j), max(i, j)
        return not any(low < k < high for k in turns(reference) + turns(prediction))

    candidates = sorted(
        (abs(i - j), i, j)
        for i in turns(reference)
        for j in turns(prediction)
        if kind(reference, i) == kind(prediction, j)
        and abs(i - j) <= how.delay * how.fps + 1e-9
        and (how.between is Between.ANY or clean(i, j))
    )
    mended, used = list(prediction), set[tuple[str, int]]()
    for _, i, j in candidates:
        if ("g", i) in used or ("p", j) in used:
            continue
        used |= {("g", i), ("p", j)}
        mended[min(i, j) : max(i, j)] = reference[min(i, j) : max(i, j)]
    return mended


def stretched(runs: list[tuple[int, int]], length: int) -> list[int]:
    whole = [label for label, count in runs for _ in range(count)]
    return (whole * length)[:length]


@settings(deadline=None, max_examples=400)
@given(RUNS, RUNS, st.integers(1, 60), HOW)
def test_it_is_the_definition(
    one: list[tuple[int, int]], other: list[tuple[int, int]], length: int, how: Forgiving
) -> None:
    reference, prediction = stretched(one, length), stretched(other, length)
    ours = adjusted(np.array(reference, dtype=np.int64), np.array(prediction, dtype=np.int64), how)
    assert ours.tolist() == by_definition(reference, prediction, how)


@settings(deadline=None, max_examples=300)
@given(PAIR, HOW, st.permutations(range(4)))
def test_never_below_frame_by_frame_and_names_do_not_matter(
    pairs: list[tuple[int, ...]], how: Forgiving, names: list[int]
) -> None:
    table = np.array(pairs, dtype=np.int64)
    reference, prediction = table[:, 0], table[:, 1]
    plain = frame_scores(reference, prediction, labels=range(4), undefined=Undefined.ZERO)
    ours = delay_scores(reference, prediction, labels=range(4), forgiving=how, undefined=Undefined.ZERO)
    for name, value in vars(ours).items():
        assert getattr(plain, name) - 1e-12 <= value <= 1.0 + 1e-12, name
    renamed = np.array(names, dtype=np.int64)[table]
    again = delay_scores(renamed[:, 0], renamed[:, 1], labels=range(4), forgiving=how, undefined=Undefined.ZERO)
    assert list(vars(again).values()) == pytest.approx(list(vars(ours).values()), abs=1e-12)
    assert adjusted(reference, reference, how).tolist() == reference.tolist()
