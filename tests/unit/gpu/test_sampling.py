"""What is said of a job's devices and processors, and which of a device's troubles are the host's fault."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from runner.budget import GpuUsage
from runner.gpu.discovery import Gpu, find_gpus
from runner.gpu.energy import EnergyZone
from runner.gpu.nvml import NvmlFault
from runner.gpu.sampling import Consumption, DeviceFault, Watch
from tests.gpu.stand_in import GIB, StandIn, card

EVERY = 0.002


def opened(nvml: StandIn) -> tuple[Gpu, ...]:
    gpus = find_gpus(nvml).gpus
    nvml.open()
    return gpus


def until(condition: Any) -> None:
    ends = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.001)


def looked_at(nvml: StandIn, *, until_told: bool = True) -> Consumption:
    """Watch until every answer a test has told was given."""
    with Watch(nvml, opened(nvml), every=EVERY) as watch:
        told = [answers for part in (nvml.used, nvml.percent, nvml.joules, nvml.watts) for answers in part.values()]
        until(lambda: all(len(answers) == 1 for answers in told))
        return watch.consumption()


def test_peaks_mean_and_counted_energy() -> None:
    nvml = StandIn(card(0))
    nvml.used["GPU-0"] = [1 * GIB, 3 * GIB, 2 * GIB]
    nvml.percent["GPU-0"] = [50]
    nvml.joules["GPU-0"] = [1000.0, 1010.0, 1060.5]
    used = looked_at(nvml)
    (usage,) = used.gpus
    assert usage == GpuUsage(
        device="GPU-0", name="Stand-in 16 GB", peak_memory=3 * GIB, peak_utilisation=50, mean_utilisation=50.0,
        joules=60.5, counted=True, samples=usage.samples, every=EVERY,
    )  # fmt: skip
    assert usage.samples >= 3
    assert (used.faults, used.processor_joules) == ((), None)


def test_utilisation_is_the_mean_and_the_highest_of_all_looks() -> None:
    nvml = StandIn(card(0))
    nvml.percent["GPU-0"] = [100, 0]
    (usage,) = looked_at(nvml).gpus
    assert usage.peak_utilisation == 100
    assert usage.mean_utilisation == pytest.approx(100 / usage.samples)


def test_energy_of_a_device_without_a_counter_is_that_of_its_power(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter(range(100_000))
    monkeypatch.setattr("runner.gpu.sampling.time.monotonic", lambda: float(next(moments)))
    nvml = StandIn(card(0))
    nvml.watts["GPU-0"] = [200.0]
    with Watch(nvml, opened(nvml), every=EVERY) as watch:
        (usage,) = watch.consumption().gpus
    assert usage.joules == 200.0 * (usage.samples - 1)
    assert usage.counted is False


def test_a_slice_that_tells_little_is_not_guessed_at() -> None:
    nvml = StandIn(card(0, 1))
    nvml.used["MIG-01"] = [7]
    (usage,) = looked_at(nvml).gpus
    assert (usage.device, usage.peak_memory) == ("MIG-01", 7)
    assert (usage.peak_utilisation, usage.mean_utilisation, usage.joules) == (None, None, None)


def test_several_devices_are_told_apart() -> None:
    nvml = StandIn(card(0), card(1))
    nvml.used = {"GPU-0": [5], "GPU-1": [9]}
    nvml.joules = {"GPU-0": [0.0, 4.0], "GPU-1": [0.0, 8.0]}
    assert [(u.device, u.peak_memory, u.joules) for u in looked_at(nvml).gpus] == [("GPU-0", 5, 4.0), ("GPU-1", 9, 8.0)]


def faults_after(change: Any, nvml: StandIn | None = None) -> tuple[DeviceFault, ...]:
    """What is found where something happens while a job runs."""
    nvml = nvml or StandIn(card(0), card(1))
    failed = threading.Event()
    with Watch(nvml, opened(nvml), every=EVERY, failed=failed.set) as watch:
        change(nvml)
        if not failed.wait(0.2):
            assert not any(fault for fault in nvml.lost)
        return watch.consumption().faults


class TestFaults:
    def test_a_lost_device_is_told_at_once(self) -> None:
        told: list[int] = []
        nvml = StandIn(card(0), card(1))
        with Watch(nvml, opened(nvml), every=EVERY, failed=lambda: told.append(1)) as watch:
            nvml.lost.add("GPU-1")
            until(lambda: told)
            time.sleep(10 * EVERY)
            used = watch.consumption()
        assert told == [1]
        assert used.faults == (DeviceFault(uuid="GPU-1", sentence="GPU-1 was lost while a job held it: GPU is lost"),)
        assert [usage.device for usage in used.gpus] == ["GPU-0", "GPU-1"]
        assert all(events.closed for events in nvml.listening)

    def test_a_device_lost_before_the_first_look_is_a_fault_too(self) -> None:
        nvml = StandIn(card(0))
        gpus = opened(nvml)
        nvml.lost.add("GPU-0")
        with Watch(nvml, gpus, every=EVERY) as watch:
            used = watch.consumption()
        assert [fault.uuid for fault in used.faults] == ["GPU-0"]
        assert (used.gpus[0].peak_memory, used.gpus[0].samples) == (None, 0)

    def test_an_error_of_the_card_is_the_hosts(self) -> None:
        faults = faults_after(lambda nvml: nvml.xids["GPU-0"].append(79))
        assert faults == (
            DeviceFault(uuid="GPU-0", sentence="GPU-0 failed while a job held it: XID 79: it fell off the bus"),
        )

    def test_an_error_a_program_can_bring_about_is_not(self) -> None:
        assert faults_after(lambda nvml: nvml.xids["GPU-0"].extend([13, 31, 43])) == ()

    def test_new_memory_errors_are(self) -> None:
        nvml = StandIn(card(0))
        nvml.errors["GPU-0"] = [2, 5]
        assert faults_after(lambda _: None, nvml) == (
            DeviceFault(uuid="GPU-0", sentence="GPU-0 had 3 uncorrected memory errors while a job held it"),
        )

    def test_old_ones_are_not(self) -> None:
        nvml = StandIn(card(0))
        nvml.errors["GPU-0"] = [5, 5]
        assert faults_after(lambda _: None, nvml) == ()

    def test_an_answer_that_fails_in_between_is_a_look_less_and_at_the_end_a_fault(self) -> None:
        nvml = StandIn(card(0))
        nvml.used["GPU-0"] = [4]
        with Watch(nvml, opened(nvml), every=EVERY) as watch:
            nvml.fails = NvmlFault("Unknown Error")
            time.sleep(10 * EVERY)
            nvml.fails = None
            assert watch.consumption().faults == ()
        with Watch(nvml, opened(nvml), every=EVERY) as watch:
            nvml.fails = NvmlFault("Unknown Error")
            assert watch.consumption().faults == (
                DeviceFault(uuid="GPU-0", sentence="GPU-0 does not answer while a job held it: Unknown Error"),
            )

    def test_a_driver_that_never_answers_is_given_up(self, monkeypatch: pytest.MonkeyPatch) -> None:
        nvml, asked, never = StandIn(card(0)), threading.Event(), threading.Event()
        with Watch(nvml, opened(nvml), every=EVERY, patience=0.05) as watch:

            def blocks(_: str) -> int | None:
                asked.set()
                never.wait(20)
                return None

            monkeypatch.setattr(nvml, "utilisation", blocks)
            assert asked.wait(20)
            faults = watch.consumption().faults
            never.set()
        assert faults == (DeviceFault(uuid="GPU-0", sentence="GPU-0: the driver has not answered for 0.05 s"),)


def zones(root: Path, *values: int) -> tuple[EnergyZone, ...]:
    found = []
    for number, value in enumerate(values):
        counter = root / f"zone-{number}"
        counter.write_text(str(value))
        found.append(EnergyZone(counter=counter, wraps_at=10_000_000))
    return tuple(found)


class TestProcessors:
    def test_the_energy_of_all_packages_across_a_wrap(self, tmp_path: Path) -> None:
        both = zones(tmp_path, 9_000_000, 1_000_000)
        with Watch(None, (), both, every=EVERY) as watch:
            both[0].counter.write_text("500000")
            both[1].counter.write_text("1250000")
            used = watch.consumption()
        assert used == Consumption(processor_joules=1.75)

    def test_a_package_that_cannot_be_read_any_more_spoils_the_sum(self, tmp_path: Path) -> None:
        both = zones(tmp_path, 1, 1)
        both[1].counter.unlink()
        with Watch(None, (), both, every=60) as watch:
            assert watch.consumption().processor_joules is None


def test_with_nothing_to_look_at_no_thread_is_started() -> None:
    before = threading.active_count()
    with Watch(None, (), (), every=EVERY) as watch:
        assert threading.active_count() == before
        assert watch.consumption() == Consumption()


def test_no_thread_is_left_where_its_block_raises() -> None:
    nvml = StandIn(card(0))

    def watches() -> int:
        return sum(thread.name == "gpu-watch" for thread in threading.enumerate())

    seen: list[int] = []

    def fail() -> None:
        seen.append(watches())
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), Watch(nvml, opened(nvml), every=EVERY):
        fail()
    assert (seen, watches()) == ([1], 0)
    assert nvml.listening[0].closed
