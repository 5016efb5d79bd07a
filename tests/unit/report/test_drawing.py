"""Where things are drawn."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.report import Label, Ribbon, Segment, segments_of
from runner.report.drawing import (
    MOST_BLOCKS,
    MOST_TOOLTIPS,
    clock,
    columns,
    differences_of,
    draw_ribbon,
    place,
    style_of,
    ticks,
)

LABELS = (Label(number=-1, name="outside"), Label(number=4, name="sphenoid sinus clearance"))


def a_ribbon(
    reference: list[int] | None, prediction: list[int] | None, *, labels: tuple[Label, ...] = LABELS, fps: float = 1.0
) -> Ribbon:
    return Ribbon(
        title="step",
        frames=len(reference or prediction or []),
        fps=fps,
        labels=labels,
        reference=None if reference is None else segments_of(reference),
        prediction=None if prediction is None else segments_of(prediction),
    )


@pytest.mark.parametrize(
    ("labels", "segments"),
    [
        ([], []),
        ([3], [(3, 0, 1)]),
        ([1, 1, 2, 2, 2, 1], [(1, 0, 2), (2, 2, 5), (1, 5, 6)]),
    ],
)
def test_run_lengths(labels: list[int], segments: list[tuple[int, int, int]]) -> None:
    expected = tuple(Segment(label=label, start=start, stop=stop) for label, start, stop in segments)
    assert segments_of(labels) == segments_of(np.array(labels, dtype=np.int64)) == expected


@given(st.lists(st.integers(-2, 3), min_size=1, max_size=80))
def test_blocks_cover_the_axis_without_gap(labels: list[int]) -> None:
    blocks = draw_ribbon(a_ribbon(None, labels)).bands[0].blocks
    assert blocks[0].x == 0
    for left, right in pairwise(blocks):
        assert left.x + left.width == pytest.approx(right.x, abs=0.002)
    assert blocks[-1].x + blocks[-1].width == pytest.approx(100, abs=0.002)


def test_reference_stands_above_prediction_and_differences_between() -> None:
    picture = draw_ribbon(a_ribbon([4] * 10, [4] * 6 + [-1] * 2 + [4] * 2))
    reference, prediction = picture.bands
    assert (reference.name, prediction.name) == ("Reference", "Prediction")
    assert reference.y < picture.difference_y < prediction.y < picture.axis_y < picture.height
    assert [(b.x, b.width) for b in picture.differences] == [(60.0, 20.0)]
    assert picture.description == (
        "The reference has 1 segment, the prediction 3 segments; they agree on 80.0 % of frames."
    )


def test_a_prediction_that_is_missing_is_said_to_be() -> None:
    picture = draw_ribbon(a_ribbon([4, 4], None))
    assert [band.name for band in picture.bands] == ["Reference"]
    assert picture.description == "There is no valid prediction."
    assert picture.differences == ()


def test_tooltips_say_label_frames_and_times() -> None:
    blocks = draw_ribbon(a_ribbon(None, [-1] * 90 + [4], fps=0.5)).bands[0].blocks
    assert blocks[0].tooltip == "outside: frames 0–89, 0:00–3:00"
    assert blocks[1].tooltip == "sphenoid sinus clearance: frame 90, 3:00–3:02"


def test_text_is_written_only_where_it_fits() -> None:
    first, second, third = draw_ribbon(a_ribbon(None, [4] * 70 + [-1] * 28 + [4] * 2)).bands[0].blocks
    assert (first.wide, first.narrow) == ("sphenoid sinus clearance", "sphenoid sinus clearance")
    assert (second.wide, second.narrow) == ("outside", "outside")
    assert (third.wide, third.narrow) == ("4", "")


def test_a_crowded_band_carries_no_text() -> None:
    many = [n % 2 * 5 - 1 for n in range(MOST_TOOLTIPS + 1)]
    blocks = draw_ribbon(a_ribbon(None, many)).bands[0].blocks
    assert len(blocks) == MOST_TOOLTIPS + 1
    assert {(b.tooltip, b.wide, b.narrow) for b in blocks} == {("", "", "")}


def test_a_band_has_no_more_blocks_than_a_desk_has_pixels() -> None:
    """A method that flips with every other frame makes no larger page, and still looks like what it is."""
    flipping = [4, 4, -1, -1] * MOST_BLOCKS
    band = draw_ribbon(a_ribbon(None, flipping)).bands[0]
    assert MOST_BLOCKS / 2 < len(band.blocks) <= MOST_BLOCKS
    assert {block.style for block in band.blocks} == {"k0", "k1"}
    share = sum(block.width for block in band.blocks if block.style == "k0")
    assert share == pytest.approx(50, abs=0.5)


def test_a_band_of_many_segments_keeps_their_places() -> None:
    labels = [-1, 4] * MOST_BLOCKS + [7] * 2 * MOST_BLOCKS
    *flicker, last = draw_ribbon(a_ribbon(None, labels)).bands[0].blocks
    assert (last.x, last.width, last.style) == (50.0, 50.0, style_of(7))
    assert flicker[0].x == 0.0
    assert {block.style for block in flicker} == {"k0", "k1"}


def test_differences_that_are_many_grow_together_and_none_is_lost() -> None:
    frames = 10 * MOST_BLOCKS
    one, other = np.zeros(frames, dtype=np.int64), np.zeros(frames, dtype=np.int64)
    other[: frames // 2 : 2] = 1
    other[-1] = 1
    blocks = differences_of(segments_of(one), segments_of(other), frames)
    assert [(b.x, b.width) for b in blocks] == [(0.0, 50.0), (round(100 - 100 / MOST_BLOCKS, 3), 0.083)]


def test_differences_are_looked_for_only_before_the_cut() -> None:
    one, other = segments_of([1] * 10), segments_of([1, 2, 1, 1, 1, 2, 2])
    assert [(b.x, b.width) for b in differences_of(one, other, 10, until=6)] == [(10.0, 10.0), (50.0, 10.0)]


@pytest.mark.parametrize(
    ("frames", "most", "bounds"),
    [(0, 4, [0]), (3, 4, [0, 1, 2, 3]), (4, 4, [0, 1, 2, 3, 4]), (10, 4, [0, 2, 5, 7, 10])],
)
def test_columns(frames: int, most: int, bounds: list[int]) -> None:
    assert columns(frames, most).tolist() == bounds


def test_thirty_two_labels_look_different() -> None:
    assert len({style_of(n) for n in range(32)}) == 32
    assert style_of(32) == style_of(0)


def test_colours_follow_the_legend_and_unknown_labels_are_named_by_number() -> None:
    picture = draw_ribbon(a_ribbon([4, 4, 4], [4, -1, 77]))
    assert [(key.style, key.name) for key in picture.legend] == [
        ("k0", "-1 outside"),
        ("k1", "4 sphenoid sinus clearance"),
        ("k13", "77"),
    ]
    plain = draw_ribbon(a_ribbon(None, [2], labels=(Label(number=2, name="2"),)))
    assert [key.name for key in plain.legend] == ["2"]


@pytest.mark.parametrize(
    ("frames", "most", "texts"),
    [
        (300, 10, ["0", "50", "100", "150", "200", "250"]),
        (300, 4, ["0", "100", "200"]),
        (7, 10, ["0", "1", "2", "3", "4", "5", "6"]),
        (1, 10, ["0"]),
        (0, 10, []),
        (100_000, 4, ["0", "25000", "50000", "75000"]),
    ],
)
def test_ticks(frames: int, most: int, texts: list[str]) -> None:
    assert [tick.text for tick in ticks(frames, most)] == texts


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (59.9, "0:59"), (61, "1:01"), (3723, "1:02:03")])
def test_clock(seconds: float, text: str) -> None:
    assert clock(seconds) == text


@pytest.mark.parametrize(
    ("value", "low", "high", "percent"), [(0.25, 0, 1, 25.0), (2, 0, 1, 100.0), (-1, 0, 1, 0.0), (3, 3, 3, 50.0)]
)
def test_place(value: float, low: float, high: float, percent: float) -> None:
    assert place(value, low, high) == percent
