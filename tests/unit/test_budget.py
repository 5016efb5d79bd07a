"""What a job may use, which clock is believed, and which time-out is repeated."""

from collections.abc import Callable

import pytest

from runner.budget import Budget, Usage, clocks_disagree, deserves_repeat, judged_seconds


def usage(engine: float, monotonic: float) -> Usage:
    return Usage(engine_seconds=engine, monotonic_seconds=monotonic, output_bytes=0, alone=True)


def test_a_container_is_killed_two_seconds_after_its_limit(make_budget: Callable[..., Budget]) -> None:
    assert make_budget(run_time=60.0).kill_at == 62.0


@pytest.mark.parametrize(
    ("engine", "monotonic", "disagree", "judged"),
    [
        (60.0, 60.2, False, 60.0),
        (0.0, 0.0, False, 0.0),
        (0.0, 1.0, False, 0.0),  # within 1 s + 1 %: 1.01 s
        (0.0, 1.0102, True, 1.0102),
        (98.0, 100.0, False, 98.0),  # exactly 1 s + 1 %
        (97.99, 100.0, True, 100.0),
        (102.0, 100.0, False, 102.0),
        (102.01, 100.0, True, 100.0),
        (-3600.0, 60.0, True, 60.0),  # the engine's clock was set back while the job ran
        (3660.0, 60.0, True, 60.0),
    ],
)
def test_the_engines_clock_counts_unless_it_was_set(
    engine: float, monotonic: float, disagree: bool, judged: float
) -> None:
    assert clocks_disagree(usage(engine, monotonic)) is disagree
    assert judged_seconds(usage(engine, monotonic)) == judged


@pytest.mark.parametrize(
    ("seconds", "alone", "repeated"),
    [
        (100.0, True, False),  # not a time-out
        (100.0, False, False),
        (100.1, True, True),
        (120.0, True, True),  # 20 % is still near
        (120.1, True, False),
        (120.1, False, True),  # in company, any time-out is repeated
        (900.0, False, True),
    ],
)
def test_a_near_or_accompanied_time_out_is_repeated(seconds: float, alone: bool, repeated: bool) -> None:
    assert deserves_repeat(seconds=seconds, limit=100.0, alone=alone) is repeated
