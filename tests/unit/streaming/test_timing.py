"""What is made of the times of frames."""

import pytest

from runner.streaming.timing import EDGES, FrameTiming, Timings, latency, percentile

MS = 1_000_000


def _timings(*milliseconds: float | None, period: float | None = None, every: float = 1.0) -> Timings:
    """Frames released a second apart, each answered after so long, or never."""
    timings = Timings(period)
    for index, took in enumerate(milliseconds):
        timings.release(index * every)
        if took is not None:
            timings.answer(index, index * every + took / 1000)
    return timings


@pytest.mark.parametrize(
    ("values", "percent", "of", "found"),
    [
        ([1.0], 1, 1, 1.0),
        ([1.0], 100, 1, 1.0),
        ([1.0, 2.0], 50, 2, 1.0),
        ([1.0, 2.0], 51, 2, 2.0),
        ([float(n) for n in range(1, 21)], 95, 20, 19.0),
        ([float(n) for n in range(1, 22)], 95, 21, 20.0),
        ([float(n) for n in range(1, 101)], 99, 100, 99.0),
        ([float(n) for n in range(1, 20)], 95, 20, 19.0),
        ([float(n) for n in range(1, 19)], 95, 20, None),
        ([], 50, 1, None),
        ([], 50, 0, None),
    ],
)
def test_percentiles_are_values_that_were_seen(values: list[float], percent: int, of: int, found: float | None) -> None:
    assert percentile(values, percent, of=of) == found


def test_a_case_is_summed_up() -> None:
    summed = latency(_timings(500, 10, 20, 30, 60), period=0.04)
    assert (summed.frames, summed.answered, summed.missed, summed.over_period, summed.period) == (5, 5, 0, 2, 0.04)
    assert summed.first_frame == 0.5
    assert summed.mean == pytest.approx(0.124)
    assert (summed.p50, summed.p95, summed.p99, summed.longest) == (0.03, 0.5, 0.5, 0.5)
    assert not summed.online_compatible


def test_nineteen_of_twenty_frames_in_time_are_online_and_eighteen_are_not() -> None:
    assert latency(_timings(*[40.0] * 19, 5000.0), period=0.04).online_compatible
    assert not latency(_timings(*[40.0] * 18, 5000.0, 41.0), period=0.04).online_compatible


def test_a_mean_within_the_period_is_not_enough() -> None:
    stalls = latency(_timings(*([0.1] * 9 + [300.0]) * 10), period=0.04)
    assert stalls.mean is not None
    assert stalls.mean < 0.04
    assert not stalls.online_compatible


def test_frames_that_were_never_answered_are_slower_than_any() -> None:
    summed = latency(_timings(None, 10, None), period=0.04)
    assert (summed.answered, summed.over_period, summed.first_frame, summed.mean) == (1, 2, None, 0.01)
    assert (summed.p50, summed.longest) == (None, None)
    assert not summed.online_compatible


def test_a_case_without_frames_has_no_latency() -> None:
    summed = latency(Timings(), period=0.04)
    assert (summed.frames, summed.first_frame, summed.mean, summed.p95) == (0, None, None, None)
    assert not summed.online_compatible


def test_a_histogram_holds_every_answer_once() -> None:
    counts = latency(_timings(0.05, 0.1, 1.0, 1.0, 1.2, 2_000_000.0, None), period=1).counts
    assert len(counts) == len(EDGES) + 1 == 62
    assert counts[0] == 1
    assert counts[EDGES.index(0.0001) + 1] == 1
    assert counts[EDGES.index(0.001) + 1] == 3
    assert counts[-1] == 1
    assert sum(counts) == 6


def test_at_the_cameras_rate_an_answer_must_come_before_the_next_frame() -> None:
    timings = Timings(0.04)
    timings.release(1.0)
    timings.answer(0, 1.039)
    timings.release(1.0395)
    timings.release(1.08)
    timings.answer(1, 1.08)
    timings.leave_out(1.12)
    timings.release(1.16)
    timings.answer(4, 1.2)
    assert list(timings) == [
        FrameTiming(index=0, released=1000 * MS, answered=1039 * MS, missed=False),
        FrameTiming(index=1, released=1039_500_000, answered=1080 * MS, missed=True),
        FrameTiming(index=2, released=1080 * MS, answered=None, missed=True),
        FrameTiming(index=3, released=None, answered=None, missed=True),
        FrameTiming(index=4, released=1160 * MS, answered=1200 * MS, missed=True),
    ]
    assert timings.last_shown == 4
    assert timings.released(2) == 1.08
    assert latency(timings, period=0.04).missed == 4


def test_in_lockstep_no_frame_is_missed() -> None:
    assert not any(frame.missed for frame in _timings(5000, None, 10))
