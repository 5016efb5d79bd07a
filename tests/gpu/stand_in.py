"""A driver library without a driver: answers what a test tells it to."""

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from runner.gpu.nvml import Card, DeviceMemory, GpuLost, NvmlAbsent, NvmlFault, Slice, Versions
from runner.gpu.pool import GpuHost
from runner.lease import Leases

GIB = 1 << 30
T = TypeVar("T")


def card(number: int, *slices: int, mig: bool = False, minor: int | None = -1) -> Card:
    """Card ``GPU-<number>`` with 16 GiB; its slices are called ``MIG-<number><slice>`` and have 5 GiB."""
    return Card(
        index=number, uuid=f"GPU-{number}", name="Stand-in 16 GB", memory=16 * GIB,
        minor=number if minor == -1 else minor, capability=(8, 0), mig=mig or bool(slices),
        slices=tuple(Slice(uuid=f"MIG-{number}{s}", name="Stand-in MIG 1g.5gb", memory=5 * GIB) for s in slices),
    )  # fmt: skip


@dataclass
class Events:
    """What ``critical_errors`` gives."""

    coming: list[int]
    closed: bool = False

    def poll(self) -> tuple[int, ...]:
        came = tuple(self.coming)
        self.coming.clear()
        return came

    def close(self) -> None:
        self.closed = True


class StandIn:
    """A list of answers is given one by one, the last one for ever; what is not told is quiet and healthy."""

    def __init__(self, *cards: Card, absent: bool = False) -> None:
        self.listed = cards
        self.absent = absent
        self.opened = 0
        self.fails: NvmlFault | None = None
        self.lost: set[str] = set()
        self.used: dict[str, list[int]] = {}
        self.running: dict[str, list[tuple[int, ...]]] = {}
        self.percent: dict[str, list[int | None]] = {}
        self.joules: dict[str, list[float | None]] = {}
        self.watts: dict[str, list[float | None]] = {}
        self.errors: dict[str, list[int | None]] = {}
        self.xids: defaultdict[str, list[int]] = defaultdict(list)
        self.listening: list[Events] = []

    def _answer(self, told: dict[str, list[T]], uuid: str, otherwise: T) -> T:
        assert self.opened > 0, "it is not open"
        if uuid in self.lost:
            raise GpuLost("GPU is lost")
        if self.fails is not None:
            raise self.fails
        answers = told.get(uuid)
        if not answers:
            return otherwise
        return answers.pop(0) if len(answers) > 1 else answers[0]

    def open(self) -> None:
        if self.absent:
            raise NvmlAbsent("NVML Shared Library Not Found")
        self.opened += 1

    def close(self) -> None:
        self.opened -= 1

    def versions(self) -> Versions:
        if self.fails is not None:
            raise self.fails
        return Versions(driver="550.54", cuda=(12, 4))

    def cards(self) -> tuple[Card, ...]:
        assert self.opened > 0, "it is not open"
        return self.listed

    def memory(self, uuid: str) -> DeviceMemory:
        return DeviceMemory(total=16 * GIB, used=self._answer(self.used, uuid, 0))

    def processes(self, uuid: str) -> tuple[int, ...] | None:
        return self._answer(self.running, uuid, ())

    def utilisation(self, uuid: str) -> int | None:
        return self._answer(self.percent, uuid, None)

    def energy(self, uuid: str) -> float | None:
        return self._answer(self.joules, uuid, None)

    def power(self, uuid: str) -> float | None:
        return self._answer(self.watts, uuid, None)

    def memory_errors(self, uuid: str) -> int | None:
        return self._answer(self.errors, uuid, None)

    def critical_errors(self, uuid: str) -> Events | None:
        self._answer({}, uuid, None)
        self.listening.append(Events(self.xids[uuid]))
        return self.listening[-1]


def host_of(nvml: StandIn, folder: Path) -> GpuHost:
    """A host whose devices are these, leased in a folder."""
    return GpuHost(nvml=nvml, leases=Leases(folder=folder, shared=True))
