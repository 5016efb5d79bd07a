"""Where latencies are drawn, and how they are written."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.report import Histogram, LatencySection
from runner.report.latency_drawing import (
    MOST_BARS,
    MOST_COLUMNS,
    draw_histogram,
    draw_time_line,
    duration,
    latency_facts,
)


def over_time(*seconds: float | None, period: float | None = 0.04) -> LatencySection:
    return LatencySection(case="video_01", frames=len(seconds), over_time=seconds, period=period)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "–"),
        (math.nan, "–"),
        (math.inf, "–"),
        (0.0, "0 ms"),
        (0.00042, "0.42 ms"),
        (0.0032149, "3.21 ms"),
        (0.04, "40 ms"),
        (0.9994, "999 ms"),
        (0.9996, "1 s"),
        (1.2449, "1.24 s"),
        (999.4, "999 s"),
        (1234.5, "1234 s"),
    ],
)
def test_duration(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


def test_the_numbers_come_in_the_order_in_which_they_are_asked_for() -> None:
    section = LatencySection(
        case="video_01", start_up=2.5, first_frame=1.3, mean=0.0131, p50=0.012, p95=0.0185, p99=0.0257, longest=1.3,
        period=0.04, over_period=42, missed=(0, 7), frames=4500,
    )  # fmt: skip
    assert [(fact.name, fact.value) for fact in latency_facts(section)] == [
        ("start-up", "2.5 s"),
        ("first frame", "1.3 s"),
        ("mean", "13.1 ms"),
        ("p50", "12 ms"),
        ("p95", "18.5 ms"),
        ("p99", "25.7 ms"),
        ("max", "1.3 s"),
        ("frame period", "40 ms"),
        ("slower than the frame period", "42 of 4500 frames"),
        ("missed", "2 of 4500 frames"),
    ]


def test_where_nothing_can_be_missed_nothing_is_said_of_it() -> None:
    names = [fact.name for fact in latency_facts(LatencySection(case="video_01", frames=5, missed=None))]
    assert "missed" not in names
    assert "slower than the frame period" not in names
    assert latency_facts(LatencySection(case="video_01", frames=5, missed=()))[-1].value == "0 of 5 frames"


def test_bins_are_equally_wide_and_the_period_lies_by_its_logarithm() -> None:
    picture = draw_histogram(Histogram(edges_ms=(1, 10, 100, 1000, 10_000), counts=(40, 10, 0, 1)), 10**-1.5)
    assert [(b.x, b.width, b.y, b.height, b.late) for b in picture.bars] == [
        (0.0, 25.0, 18, 110, False),
        (25.0, 25.0, 100, 28, False),
        (75.0, 25.0, 124, 4, True),
    ]
    assert [b.tooltip for b in picture.bars] == [
        "1 ms to 10 ms: 40 frames",
        "10 ms to 100 ms: 10 frames",
        "1 s to 10 s: 1 frame",
    ]
    assert picture.period is not None
    assert (picture.period.at, picture.period.text, picture.period_anchor) == (37.5, "frame period 31.6 ms", "start")
    assert (picture.axis_y, picture.height) == (128, 148)
    assert [(t.x, t.text, t.anchor) for t in picture.wide_ticks] == [
        (0.0, "1 ms", "start"),
        (25.0, "10 ms", "middle"),
        (50.0, "100 ms", "middle"),
        (75.0, "1 s", "middle"),
        (100.0, "10 s", "end"),
    ]
    assert [t.text for t in picture.narrow_ticks] == ["1 ms", "100 ms", "10 s"]
    assert picture.description == (
        "51 frames by latency, in 4 bins. The frame period is 31.6 ms; 1 of 3 bars lie beyond it."
    )
    assert picture.caption == "The highest bar stands for 40 frames of 51."


def test_the_ends_may_be_open() -> None:
    picture = draw_histogram(Histogram(edges_ms=(0, 1, 10, math.inf), counts=(1, 1, 2)), 0.0005)
    assert [b.tooltip for b in picture.bars] == [
        "0 ms to 1 ms: 1 frame",
        "1 ms to 10 ms: 1 frame",
        "10 ms or more: 2 frames",
    ]
    assert picture.period is not None
    assert picture.period.at == pytest.approx(100 / 6, abs=0.001)
    assert [(t.x, t.text) for t in picture.wide_ticks] == [(0.0, "0"), (33.333, "1 ms"), (66.667, "10 ms")]
    beyond = draw_histogram(Histogram(edges_ms=(0, 1, 10, math.inf), counts=(1, 1, 2)), 3.0)
    assert beyond.period is not None
    assert (round(beyond.period.at, 1), beyond.period_anchor) == (83.3, "end")


def test_empty_ends_are_left_out_but_for_the_bin_of_the_period() -> None:
    histogram = Histogram(edges_ms=(1, 2, 5, 10, 20, 50, 100), counts=(0, 3, 0, 0, 0, 0))
    assert [t.text for t in draw_histogram(histogram, None).wide_ticks] == ["2 ms", "5 ms"]
    picture = draw_histogram(histogram, 0.03)
    assert [t.text for t in picture.wide_ticks] == ["2 ms", "5 ms", "10 ms", "20 ms", "50 ms"]
    assert [(b.x, b.width) for b in picture.bars] == [(0.0, 25.0)]


@pytest.mark.parametrize(("period", "at"), [(0.0001, 0.0), (7.0, 100.0)])
def test_a_period_outside_of_all_bins_is_drawn_at_the_end(period: float, at: float) -> None:
    line = draw_histogram(Histogram(edges_ms=(1, 10, 100), counts=(2, 1)), period).period
    assert line is not None
    assert line.at == at


@pytest.mark.parametrize("period", [None, 0.0, -1.0, math.nan, math.inf])
def test_without_a_period_nothing_is_late(period: float | None) -> None:
    picture = draw_histogram(Histogram(edges_ms=(1, 10, 100), counts=(2, 1)), period)
    assert picture.period is None
    assert [b.late for b in picture.bars] == [False, False]
    assert picture.description == "3 frames by latency, in 2 bins."


def test_of_tenths_of_a_decade_the_round_ones_are_named() -> None:
    edges = tuple(float(f"{10 ** (step / 10):.3g}") for step in range(-10, 21))
    ticks = draw_histogram(Histogram(edges_ms=edges, counts=(1,) * 30), None).wide_ticks
    names = ["0.1 ms", "0.501 ms", "2 ms", "10 ms", "50.1 ms"]
    assert [t.text for t in ticks] == names
    assert [t.x for t in ticks] == [0.0, 23.333, 43.333, 66.667, 90.0]


def test_many_bins_are_drawn_together() -> None:
    edges = tuple(float(edge) for edge in range(1, 152))
    picture = draw_histogram(Histogram(edges_ms=edges, counts=(1,) * 149 + (2,)), None)
    assert len(picture.bars) == 50 <= MOST_BARS
    assert picture.bars[-1].tooltip == "148 ms to 151 ms: 4 frames"
    assert sum(int(b.tooltip.split(": ")[1].split()[0]) for b in picture.bars) == 151


def test_a_histogram_of_nothing_is_drawn() -> None:
    picture = draw_histogram(Histogram(edges_ms=(1, 10, 100), counts=(0, 0)), None)
    assert picture.bars == ()
    assert picture.description == "0 frames by latency, in 0 bins."


def test_edges_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match=re.escape("2 bins have 3 edges, not 2")):
        draw_histogram(Histogram(edges_ms=(1, 10), counts=(1, 2)), None)


def test_a_column_reaches_from_its_fastest_to_its_slowest_answer() -> None:
    picture = draw_time_line(over_time(0.001, 0.01, 0.1, period=0.01))
    assert picture.columns == 3
    assert picture.outline == "M0 108h1v2h-1zM1 55h1v2h-1zM2 0h1v2h-1z"
    assert [(level.at, level.text) for level in picture.levels] == [(110, "1 ms"), (55, "10 ms"), (0, "100 ms")]
    assert picture.period is not None
    assert (picture.period.at, picture.period.text) == (55, "frame period 10 ms")
    assert picture.late == "M2.5 0v6"
    assert (picture.plot_y, picture.axis_y, picture.height) == (20, 130, 150)


def test_many_frames_share_columns_and_no_extreme_is_lost() -> None:
    seconds = [0.01] * (10 * MOST_COLUMNS)
    seconds[2005], seconds[2006] = 0.1, 0.001
    picture = draw_time_line(over_time(*seconds))
    assert picture.columns == picture.outline.count("M") == MOST_COLUMNS
    assert "M199 55h1v2h-1zM200 0h1v110h-1zM201 55h1v2h-1z" in picture.outline
    assert picture.late == "M200.5 0v6"


def test_missed_frames_are_marked_and_unanswered_ones_leave_a_gap() -> None:
    section = replace(over_time(0.02, None, 0.05, 0.03, 0.02), missed=(3,))
    picture = draw_time_line(section)
    assert picture.late == "M1.5 0v6M2.5 0v6M3.5 0v6"
    assert re.findall(r"M(\d+) ", picture.outline) == ["0", "2", "3", "4"]
    assert picture.description == (
        "Latency of 4 answers to 5 frames, from 20 ms to 50 ms. The frame period is 40 ms. "
        "3 frames missed, unanswered or slower than that, the first of them 1."
    )


def test_without_a_period_only_missed_and_unanswered_frames_are_marked() -> None:
    picture = draw_time_line(replace(over_time(5.0, None, 0.5, period=None), missed=(2, 99)))
    assert (picture.late, picture.period) == ("M1.5 0v6M2.5 0v6", None)
    assert picture.description.endswith(" 2 frames missed or unanswered, the first of them 1.")


@pytest.mark.parametrize(
    ("low", "high", "levels"),
    [
        (0.011, 0.04, ["10 ms", "20 ms", "50 ms"]),
        (0.01, 0.01, ["10 ms", "20 ms"]),
        (0.003, 0.3, ["10 ms", "100 ms"]),
        (0.0000001, 100.0, ["0.001 ms", "0.1 ms", "10 ms", "1 s", "100 s"]),
    ],
)
def test_levels_are_round(low: float, high: float, levels: list[str]) -> None:
    assert [level.text for level in draw_time_line(over_time(low, high, period=None)).levels] == levels


def test_a_case_without_any_answer_is_drawn_with_its_misses_alone() -> None:
    picture = draw_time_line(over_time(None, None))
    assert (picture.outline, picture.late) == ("", "M0.5 0v6M1.5 0v6")
    assert picture.description.startswith("Latency of 0 answers to 2 frames. The frame period is 40 ms.")


def test_a_case_without_frames_is_drawn() -> None:
    picture = draw_time_line(over_time())
    assert (picture.outline, picture.late, picture.wide_ticks) == ("", "", ())


@given(
    st.lists(st.none() | st.floats(allow_nan=True, allow_infinity=True), max_size=900),
    st.none() | st.floats(allow_nan=True, allow_infinity=True),
)
def test_whatever_was_measured_stays_within_the_picture(seconds: list[float | None], period: float | None) -> None:
    picture = draw_time_line(over_time(*seconds, period=period))
    boxes = [tuple(map(int, box)) for box in re.findall(r"M(\d+) (\d+)h1v(\d+)h-1z", picture.outline)]
    assert picture.outline == "".join(f"M{x} {y}h1v{h}h-1z" for x, y, h in boxes)
    assert all(y >= 0 and h >= 2 and y + h <= picture.plot_height for _, y, h in boxes)
    columns = [x for x, _, _ in boxes]
    assert columns == sorted(set(columns))
    assert picture.columns == min(len(seconds), MOST_COLUMNS)
    assert all(0 <= level.at <= picture.plot_height for level in picture.levels)
    assert np.all(np.array([x for x, _, _ in boxes], dtype=int) < max(1, picture.columns))
