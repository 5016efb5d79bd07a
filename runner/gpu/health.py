"""Whether a device can be trusted with a job, before it and after it.

A program can bring about many of the critical errors (XIDs) a card reports: an access out of bounds is one. They prove
nothing against the host. Those listed here come from the card, its memory, its bus or its firmware.
"""

from dataclasses import dataclass
from enum import StrEnum

from runner.gpu.discovery import Gpu
from runner.gpu.nvml import GpuLost, Nvml, NvmlFault
from runner.quantities import show_bytes

OTHERS_SHARE = 0.10
"""Share of a device's memory that may be in use before a job begins: a screen, a driver's own."""

_THE_CARDS = {
    48: "a memory error that could not be corrected",
    61: "its firmware stopped",
    62: "its firmware stopped",
    64: "a broken memory row could not be replaced",
    74: "a link between cards failed",
    79: "it fell off the bus",
    94: "a memory error that could not be corrected",
    95: "a memory error that could not be corrected",
    119: "its firmware does not answer",
    120: "its firmware failed",
}


class Fitness(StrEnum):
    """What to do with a device."""

    FIT = "fit"
    BUSY = "busy"
    BROKEN = "broken"


@dataclass(frozen=True, kw_only=True)
class Condition:
    """A device's state before a job.

    Attributes:
        fitness: Busy: somebody else uses it and may stop. Broken: nothing mends it while this run lasts.
        sentence: Why it is not fit; empty where it is.
    """

    fitness: Fitness = Fitness.FIT
    sentence: str = ""


def before_a_job(nvml: Nvml, gpu: Gpu) -> Condition:
    """Look at a device that nobody of ours uses."""
    try:
        memory = nvml.memory(gpu.uuid)
        processes = nvml.processes(gpu.uuid) or ()
        errors = nvml.memory_errors(gpu.uuid) or 0
    except GpuLost as lost:
        return Condition(fitness=Fitness.BROKEN, sentence=f"{gpu.uuid} is lost: {lost}")
    except NvmlFault as fault:
        return Condition(fitness=Fitness.BROKEN, sentence=f"{gpu.uuid} does not answer: {fault}")
    if errors:
        return Condition(
            fitness=Fitness.BROKEN,
            sentence=f"{gpu.uuid} had {errors} uncorrected memory errors since the driver was loaded; "
            "nvidia-smi --gpu-reset clears them",
        )
    if processes:
        return Condition(
            fitness=Fitness.BUSY,
            sentence=f"{gpu.uuid} is used by others: process {', '.join(map(str, processes))}",
        )
    if memory.used > OTHERS_SHARE * memory.total:
        return Condition(
            fitness=Fitness.BUSY,
            sentence=f"{gpu.uuid} is used by others: {show_bytes(memory.used)} of {show_bytes(memory.total)} taken, "
            f"at most {OTHERS_SHARE:.0%} may be",
        )
    return Condition()


def of_the_card(xids: tuple[int, ...]) -> str:
    """What critical errors say of the card itself; empty where a program can have brought them all about."""
    return "; ".join(f"XID {number}: {_THE_CARDS[number]}" for number in xids if number in _THE_CARDS)
