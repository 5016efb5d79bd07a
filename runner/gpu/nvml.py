"""What we ask of NVIDIA's management library (NVML), in our words.

Devices are named by UUID: ``GPU-…`` for a card, ``MIG-…`` for a slice of one. An answer of None means that the device
does not offer it. Every method may raise ``NvmlFault``; those that name a device may raise ``GpuLost``.
"""

from dataclasses import dataclass
from typing import Protocol


class NvmlFault(Exception):
    """The library answered with an error; its text is the driver's own."""


class NvmlAbsent(NvmlFault):
    """There is no such library here, or no driver behind it."""


class GpuLost(NvmlFault):
    """A device that was there does not answer any more, or only after a reset."""


@dataclass(frozen=True, kw_only=True)
class Slice:
    """A MIG instance as the driver lists it; memory in bytes."""

    uuid: str
    name: str
    memory: int


@dataclass(frozen=True, kw_only=True)
class Card:
    """A card as the driver lists it.

    Attributes:
        index: The driver's own, from 0; changes from boot to boot.
        uuid: Stays.
        name: As sold: ``NVIDIA A100-SXM4-40GB``.
        memory: Bytes.
        minor: N of ``/dev/nvidiaN``; None where the driver names none.
        capability: CUDA compute capability such as (8, 0).
        mig: It is partitioned, and can only be used by its slices.
        slices: Its MIG instances.
    """

    index: int
    uuid: str
    name: str
    memory: int
    minor: int | None = None
    capability: tuple[int, int] | None = None
    mig: bool = False
    slices: tuple[Slice, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Versions:
    """Of the driver, and the newest CUDA it serves, such as (12, 4)."""

    driver: str
    cuda: tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class DeviceMemory:
    """Bytes of a device: in all, and used by anybody; what the driver keeps for itself counts as neither."""

    total: int
    used: int


class CriticalErrors(Protocol):
    """The critical errors (XIDs) of a card since this was opened."""

    def poll(self) -> tuple[int, ...]:
        """The numbers of those that came since the last call, without waiting."""

    def close(self) -> None:
        """Stop listening."""


class Nvml(Protocol):
    """The library, for the time between ``open`` and ``close``; can be used by several threads."""

    def open(self) -> None:
        """Load it; may be called again, and then needs as many ``close``. Raises ``NvmlAbsent``."""

    def close(self) -> None:
        """Let go of it; silent where it is gone."""

    def versions(self) -> Versions:
        """Of driver and CUDA."""

    def cards(self) -> tuple[Card, ...]:
        """All cards, by index."""

    def memory(self, uuid: str) -> DeviceMemory:
        """How much memory is used."""

    def processes(self, uuid: str) -> tuple[int, ...] | None:
        """Ids of the processes that compute on it."""

    def utilisation(self, uuid: str) -> int | None:
        """Percent of the driver's last sampling period in which something ran on it."""

    def energy(self, uuid: str) -> float | None:
        """Joules since the driver was loaded."""

    def power(self, uuid: str) -> float | None:
        """Watts at the moment."""

    def memory_errors(self, uuid: str) -> int | None:
        """Uncorrected memory errors of its card since the driver was loaded."""

    def critical_errors(self, uuid: str) -> CriticalErrors | None:
        """Listen for critical errors of its card from now on."""
