"""Run time is parted into a start-up and so many seconds a frame; what cannot be told is not said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.pipeline.pace import Pace, pace_of


def test_a_straight_line_is_found_through_noise() -> None:
    assert pace_of([(10, 6.0), (20, 8.0), (30, 10.0), (20, 8.0)]) == Pace(
        start_up_seconds=4.0, seconds_per_frame=0.2, runs=4
    )


def test_a_line_that_would_begin_below_nothing_begins_at_nothing() -> None:
    """Its slope is then Σxy / Σxx = 520 / 1400."""
    found = pace_of([(10, 2.0), (20, 7.0), (30, 12.0)])
    assert found == Pace(start_up_seconds=0.0, seconds_per_frame=520 / 1400, runs=3)


@pytest.mark.parametrize("points", [[], [(10, 1.0)], [(10, 1.0), (10, 2.0), (10, 3.0)]])
def test_one_length_says_nothing(points: list[tuple[int, float]]) -> None:
    assert pace_of(points) is None


def test_a_line_that_falls_is_level() -> None:
    assert pace_of([(10, 5.0), (20, 3.0)]) == Pace(start_up_seconds=4.0, seconds_per_frame=0.0, runs=2)


@given(
    start=st.floats(0, 1e4), slope=st.floats(0, 1e3), frames=st.lists(st.integers(1, 10_000), min_size=2, unique=True)
)
def test_exact_runs_give_their_line_back(start: float, slope: float, frames: list[int]) -> None:
    found = pace_of([(count, start + slope * count) for count in frames])
    assert found is not None
    assert found.seconds_per_frame == pytest.approx(slope, rel=1e-6, abs=1e-6 * (1 + start))
    assert found.runs == len(frames)


@given(st.lists(st.tuples(st.integers(1, 5000), st.floats(0, 1e5)), min_size=2))
def test_neither_is_ever_negative(points: list[tuple[int, float]]) -> None:
    found = pace_of(points)
    assert found is None or min(found.start_up_seconds, found.seconds_per_frame) >= 0
