"""What makes a device unfit for a job, and which critical errors are the card's own."""

import pytest

from runner.gpu.discovery import Gpu, find_gpus
from runner.gpu.health import Condition, Fitness, before_a_job, of_the_card
from runner.gpu.nvml import NvmlFault
from tests.gpu.stand_in import GIB, StandIn, card


def device(nvml: StandIn) -> Gpu:
    (gpu,) = find_gpus(nvml).gpus
    nvml.open()
    return gpu


@pytest.fixture
def nvml() -> StandIn:
    return StandIn(card(0))


@pytest.mark.parametrize("used", [0, int(1.6 * GIB)])
def test_a_quiet_device_is_fit_with_a_tenth_of_its_memory_in_use(nvml: StandIn, used: int) -> None:
    nvml.used["GPU-0"] = [used]
    nvml.errors["GPU-0"] = [0]
    assert before_a_job(nvml, device(nvml)) == Condition(fitness=Fitness.FIT)


def test_more_memory_in_use_makes_it_busy(nvml: StandIn) -> None:
    nvml.used["GPU-0"] = [2 * GIB]
    assert before_a_job(nvml, device(nvml)) == Condition(
        fitness=Fitness.BUSY, sentence="GPU-0 is used by others: 2 GiB of 16 GiB taken, at most 10% may be"
    )


def test_somebody_elses_program_makes_it_busy(nvml: StandIn) -> None:
    nvml.running["GPU-0"] = [(12, 34)]
    assert before_a_job(nvml, device(nvml)) == Condition(
        fitness=Fitness.BUSY, sentence="GPU-0 is used by others: process 12, 34"
    )


def test_memory_errors_a_loss_and_silence_break_it(nvml: StandIn) -> None:
    gpu = device(nvml)
    nvml.errors["GPU-0"] = [3]
    assert before_a_job(nvml, gpu) == Condition(
        fitness=Fitness.BROKEN,
        sentence="GPU-0 had 3 uncorrected memory errors since the driver was loaded; "
        "nvidia-smi --gpu-reset clears them",
    )
    nvml.fails = NvmlFault("Unknown Error")
    assert before_a_job(nvml, gpu) == Condition(fitness=Fitness.BROKEN, sentence="GPU-0 does not answer: Unknown Error")
    nvml.lost.add("GPU-0")
    assert before_a_job(nvml, gpu) == Condition(fitness=Fitness.BROKEN, sentence="GPU-0 is lost: GPU is lost")


@pytest.mark.parametrize("xid", [13, 31, 43, 45, 63, 69])
def test_what_a_program_can_bring_about_says_nothing_of_the_card(xid: int) -> None:
    assert of_the_card((xid,)) == ""


def test_the_cards_own_errors_are_named() -> None:
    assert of_the_card(()) == ""
    assert of_the_card((31, 79, 48)) == (
        "XID 79: it fell off the bus; XID 48: a memory error that could not be corrected"
    )
