"""Whole processors, held by one job at a time."""

import os
import threading
from pathlib import Path

import pytest

from runner.errors import Interrupted
from runner.lease import Leases
from runner.processors import ProcessorPool, processors_of


@pytest.fixture
def pool(tmp_path: Path) -> ProcessorPool:
    return ProcessorPool(numbers=(0, 2, 5), leases=Leases(folder=tmp_path), stop=threading.Event())


@pytest.mark.parametrize(("cpus", "cpuset"), [(1, "0"), (2.0, "0,2"), (2.9, "0,2"), (3, "0,2,5")])
def test_as_many_whole_ones_as_fit(pool: ProcessorPool, cpus: float, cpuset: str) -> None:
    with pool.held(cpus) as (text, names):
        assert text == cpuset
        assert names == tuple(f"processor-{number}" for number in cpuset.split(","))


@pytest.mark.parametrize("cpus", [0.5, 0.99, 4])
def test_less_than_one_or_more_than_there_are_is_left_to_a_quota(pool: ProcessorPool, cpus: float) -> None:
    with pool.held(cpus) as held:
        assert held == (None, ())


def test_what_one_holds_another_does_not_get(pool: ProcessorPool) -> None:
    with pool.held(1) as (one, _), pool.held(2) as (two, _):
        assert (one, two) == ("0", "2,5")
    with pool.held(3) as (all_again, _):
        assert all_again == "0,2,5"


def test_who_finds_too_few_free_waits_and_holds_none_meanwhile(pool: ProcessorPool) -> None:
    got: list[str | None] = []
    entered = threading.Event()

    def want() -> None:
        entered.set()
        with pool.held(2) as (text, _):
            got.append(text)

    with pool.held(2):
        waiting = threading.Thread(target=want)
        waiting.start()
        entered.wait()
        with pool.held(1) as (left, _):  # the waiting one gave it back
            assert left == "5"
        assert got == []
    waiting.join(timeout=30)
    assert len(got) == 1


def test_a_stop_ends_the_wait(pool: ProcessorPool) -> None:
    with pool.held(3):
        pool.stop.set()
        with pytest.raises(Interrupted), pool.held(1):
            pass


def test_numbers_are_those_this_process_may_use_where_they_are_as_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {7, 4})
    assert processors_of(2) == (4, 7)
    assert processors_of(3) == (0, 1, 2)
