"""Who holds a device when: in turn, all or none, another one where one is broken, and never for ever."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from runner.errors import HostFault, HostUnfit, Interrupted
from runner.gpu.access import GpuAccess
from runner.gpu.discovery import find_gpus
from runner.gpu.pool import GpuPool
from runner.gpu.sampling import Consumption, DeviceFault
from tests.gpu.stand_in import GIB, StandIn, card, host_of


class Run:
    """A runner with a pool of its own; those of one folder respect each other."""

    def __init__(self, folder: Path, nvml: StandIn, **options: Any) -> None:
        self.said: list[str] = []
        self.stop = threading.Event()
        gpus = find_gpus(nvml).gpus
        nvml.open()
        self.pool = GpuPool(
            host_of(nvml, folder / "leases"), gpus, GpuAccess.DEVICE_REQUEST,
            stop=self.stop, say=self.said.append, **{"settling": 0.3, **options},
        )  # fmt: skip

    @contextmanager
    def holding(self, wanted: int = 1) -> Iterator[list[str]]:
        with self.pool.held(wanted) as gpus:
            yield [gpu.uuid for gpu in gpus]


def until_free(name: str, run: Run) -> None:
    """Wait until nobody holds a lease: one who waits for several takes and gives back those that are free."""
    ends = time.monotonic() + 20
    while (lease := run.pool._host.leases.hold(name)) is None:
        assert time.monotonic() < ends
    lease.release()


@pytest.fixture
def nvml() -> StandIn:
    return StandIn(card(0), card(1), card(2))


@pytest.fixture
def run(tmp_path: Path, nvml: StandIn) -> Run:
    return Run(tmp_path, nvml)


def test_jobs_of_two_runners_hold_different_devices(run: Run, nvml: StandIn, tmp_path: Path) -> None:
    other = Run(tmp_path, nvml)
    with run.holding() as first, other.holding() as second, run.holding() as third:
        assert (first, second, third) == (["GPU-0"], ["GPU-1"], ["GPU-2"])
    with other.holding(3) as again:
        assert again == ["GPU-0", "GPU-1", "GPU-2"]


def test_a_job_waits_for_a_device_says_so_once_and_goes_on(tmp_path: Path) -> None:
    run = Run(tmp_path, StandIn(card(0)))
    with ThreadPoolExecutor(3) as threads, ExitStack() as stack:
        stack.enter_context(run.holding())

        def one(_: int) -> list[str]:
            with run.holding() as mine:
                return mine

        waiting = [threads.submit(one, number) for number in range(3)]
        time.sleep(1.4)
        assert not any(job.done() for job in waiting)
        stack.close()
        assert [job.result(timeout=20) for job in waiting] == [["GPU-0"]] * 3
    assert run.said == ["other jobs hold the GPUs of this host; waiting for them"]


def test_a_short_wait_is_not_worth_a_word(tmp_path: Path) -> None:
    run = Run(tmp_path, StandIn(card(0)))
    with ThreadPoolExecutor(1) as threads, ExitStack() as stack:
        stack.enter_context(run.holding())
        waiting = threads.submit(lambda: stack.enter_context(run.holding()))
        time.sleep(0.2)
        stack.pop_all().close()
        waiting.result(timeout=20)
        stack.close()
    assert run.said == []


def test_whoever_waits_can_be_stopped(tmp_path: Path) -> None:
    run = Run(tmp_path, StandIn(card(0)))
    with run.holding(), ThreadPoolExecutor(2) as threads:

        def wait() -> None:
            with run.holding():
                pass

        waiting = [threads.submit(wait) for _ in range(2)]  # one is first in the queue, one behind it
        time.sleep(0.2)
        run.stop.set()
        for job in waiting:
            with pytest.raises(Interrupted):
                job.result(timeout=20)


def test_several_devices_are_held_all_or_none(run: Run, nvml: StandIn, tmp_path: Path) -> None:
    other = Run(tmp_path, nvml)
    with ThreadPoolExecutor(1) as threads, ExitStack() as stack:
        stack.enter_context(run.holding(2))
        held = threading.Event()
        over = threading.Event()

        def two() -> list[str]:
            with other.holding(2) as mine:
                held.set()
                over.wait(20)
                return mine

        waiting = threads.submit(two)
        time.sleep(0.3)
        assert not held.is_set()
        # Nobody overtakes who waits for two, and the one that is free is not kept from anybody meanwhile.
        assert other.pool._host.leases.hold("queue") is None  # its turn
        until_free("GPU-2", other)
        stack.close()
        assert held.wait(20)
        over.set()
        assert waiting.result(timeout=20) == ["GPU-0", "GPU-1"]


def test_two_jobs_that_want_all_devices_take_turns(run: Run, nvml: StandIn, tmp_path: Path) -> None:
    runs = [run, Run(tmp_path, nvml), Run(tmp_path, nvml)]
    inside: list[int] = []
    most: list[int] = []

    def all_three(one: Run) -> None:
        with one.holding(3):
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.05)
            inside.pop()

    with ThreadPoolExecutor(3) as threads:
        for job in [threads.submit(all_three, one) for one in runs]:
            job.result(timeout=20)
    assert most == [1, 1, 1]


def test_fewer_devices_than_a_job_needs_are_no_reason_to_wait(run: Run) -> None:
    with pytest.raises(HostUnfit) as caught, run.holding(4):
        pass
    assert caught.value.what == "a job asks for 4 GPUs and this host has 3 that can be given to it"


class TestUnfit:
    def test_a_device_that_others_use_is_passed_over_and_comes_back(self, run: Run, nvml: StandIn) -> None:
        nvml.used["GPU-0"] = [8 * GIB]
        with run.holding() as mine:
            assert mine == ["GPU-1"]
        nvml.used["GPU-0"] = [0]
        with run.holding() as mine:
            assert mine == ["GPU-0"]
        assert run.said == []

    def test_a_broken_one_is_set_aside_for_the_rest_of_the_run(self, run: Run, nvml: StandIn) -> None:
        nvml.lost.add("GPU-0")
        with run.holding() as mine:
            assert mine == ["GPU-1"]
        nvml.lost.clear()
        with run.holding() as mine:
            assert mine == ["GPU-1"]
        assert run.said == ["GPU-0 is lost: GPU is lost; it is not used for the rest of this run"]

    def test_a_device_is_given_back_where_it_is_not_taken(self, run: Run, nvml: StandIn, tmp_path: Path) -> None:
        nvml.used["GPU-0"] = [8 * GIB]
        nvml.lost.add("GPU-1")
        with run.holding() as mine:
            assert mine == ["GPU-2"]
            nvml.used["GPU-0"] = [0]
            with Run(tmp_path, nvml).holding() as others:
                assert others == ["GPU-0"]

    def test_the_last_traces_of_a_job_are_waited_for(self, tmp_path: Path) -> None:
        nvml = StandIn(card(0))
        nvml.used["GPU-0"] = [8 * GIB, 8 * GIB, 0]
        with Run(tmp_path, nvml, settling=20).holding() as mine:
            assert mine == ["GPU-0"]

    def test_where_none_is_left_it_is_the_hosts_fault_with_every_reason(self, run: Run, nvml: StandIn) -> None:
        nvml.lost.add("GPU-0")
        nvml.running["GPU-1"] = [(77,)]
        nvml.used["GPU-2"] = [8 * GIB]
        with pytest.raises(HostFault) as caught, run.holding():
            pass
        assert not isinstance(caught.value, HostUnfit)
        assert caught.value.what == (
            "a job needs 1 GPU and 0 of 3 can be used: GPU-0 is lost: GPU is lost; GPU-1 is used by others: process "
            "77; GPU-2 is used by others: 8 GiB of 16 GiB taken, at most 10% may be"
        )
        until_free("queue", run)

    def test_while_others_hold_enough_they_are_waited_for(self, run: Run, nvml: StandIn, tmp_path: Path) -> None:
        nvml.lost.update({"GPU-0", "GPU-1"})
        with ThreadPoolExecutor(1) as threads, ExitStack() as stack:
            stack.enter_context(Run(tmp_path, nvml).holding())

            def one() -> list[str]:
                with run.holding() as mine:
                    return mine

            waiting = threads.submit(one)
            time.sleep(0.6)
            assert not waiting.done()
            stack.close()
            assert waiting.result(timeout=20) == ["GPU-2"]

    def test_a_device_that_failed_under_a_job_is_its_hosts_fault_and_set_aside(self, run: Run) -> None:
        run.pool.require(Consumption())
        failed = DeviceFault(uuid="GPU-0", sentence="GPU-0 was lost while a job held it: GPU is lost")
        for _ in range(2):
            with pytest.raises(HostFault) as caught:
                run.pool.require(Consumption(faults=(failed,)))
        assert caught.value.what == failed.sentence
        with run.holding() as mine:
            assert mine == ["GPU-1"]
        assert run.said == [f"{failed.sentence}; it is not used for the rest of this run"]
