"""Which devices a host has for a job: cards, slices in place of cards, none; and what the real library says here."""

from runner.gpu.discovery import Gpu, find_gpus
from runner.gpu.nvml import NvmlFault
from tests.gpu.stand_in import GIB, StandIn, card


def test_a_card_with_all_its_facts() -> None:
    nvml = StandIn(card(0), card(1))
    search = find_gpus(nvml)
    assert search.gpus[1] == Gpu(
        uuid="GPU-1", index=1, name="Stand-in 16 GB", memory=16 * GIB, driver="550.54", cuda="12.4", capability="8.0",
        minor=1, card="GPU-1",
    )  # fmt: skip
    assert str(search.gpus[1]) == "Stand-in 16 GB, 16 GiB, compute capability 8.0, driver 550.54, CUDA 12.4"
    assert [gpu.uuid for gpu in search.gpus] == ["GPU-0", "GPU-1"]
    assert (search.reason, search.unusable, nvml.opened) == ("", (), 0)


def test_a_partitioned_card_is_given_by_its_slices_only() -> None:
    search = find_gpus(StandIn(card(0, 1, 2), card(1)))
    assert [(gpu.uuid, gpu.card, gpu.is_slice, gpu.memory) for gpu in search.gpus] == [
        ("MIG-01", "GPU-0", True, 5 * GIB), ("MIG-02", "GPU-0", True, 5 * GIB), ("GPU-1", "GPU-1", False, 16 * GIB),
    ]  # fmt: skip
    assert search.gpus[0].name == "Stand-in MIG 1g.5gb"


def test_jobs_of_several_devices_cannot_use_slices() -> None:
    search = find_gpus(StandIn(card(0, 1, 2), card(1)))
    assert [gpu.uuid for gpu in search.usable_for(1)] == ["MIG-01", "MIG-02", "GPU-1"]
    assert [gpu.uuid for gpu in search.usable_for(2)] == ["GPU-1"]


def test_a_partitioned_card_without_slices_cannot_be_given() -> None:
    nvml = StandIn(card(0, mig=True))
    search = find_gpus(nvml)
    assert search.gpus == ()
    assert search.reason == "Stand-in 16 GB (GPU-0) is in MIG mode and has no instance"
    beside = find_gpus(StandIn(card(0, mig=True), card(1)))
    assert [gpu.uuid for gpu in beside.gpus] == ["GPU-1"]
    assert (beside.reason, beside.unusable) == ("", (search.reason,))


def test_no_driver_no_device_and_a_driver_with_an_error_are_told_apart() -> None:
    absent = find_gpus(StandIn(absent=True))
    assert absent.reason == "there is no NVIDIA driver: NVML Shared Library Not Found"
    assert find_gpus(StandIn()).reason == "the NVIDIA driver lists no device"
    broken = StandIn(card(0))
    broken.fails = NvmlFault("Unknown Error")
    search = find_gpus(broken)
    assert (search.gpus, search.reason) == ((), "the NVIDIA driver answers with an error: Unknown Error")
    assert broken.opened == 0
