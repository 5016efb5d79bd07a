"""Which devices of this host a job can be given: whole cards, and the slices of partitioned ones."""

from dataclasses import dataclass

from runner.gpu.nvml import Card, Nvml, NvmlAbsent, NvmlFault, Versions
from runner.quantities import show_bytes


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """A device a job can hold.

    Attributes:
        uuid: ``GPU-…``, or ``MIG-…`` for a slice.
        index: The driver's number of the card.
        name: As sold, with the slice's profile.
        memory: Bytes.
        driver: Version of the driver.
        cuda: Newest CUDA the driver serves: ``12.4``.
        capability: CUDA compute capability: ``8.0``; empty where the driver names none.
        minor: N of ``/dev/nvidiaN``; None where the driver names none.
        card: UUID of the card; of a slice, its card's.
    """

    uuid: str
    index: int
    name: str
    memory: int
    driver: str
    cuda: str = ""
    capability: str = ""
    minor: int | None = None
    card: str = ""

    @property
    def is_slice(self) -> bool:
        """It is a MIG instance."""
        return self.uuid != self.card

    def __str__(self) -> str:
        capability = f", compute capability {self.capability}" if self.capability else ""
        return f"{self.name}, {show_bytes(self.memory)}{capability}, driver {self.driver}, CUDA {self.cuda}"


@dataclass(frozen=True, kw_only=True)
class GpuSearch:
    """What looking for GPUs gave.

    Attributes:
        gpus: Devices that can be given to a job.
        reason: Why there are none; empty where there are some.
        unusable: Cards that cannot be given to a job, with the reason.
    """

    gpus: tuple[Gpu, ...]
    reason: str = ""
    unusable: tuple[str, ...] = ()

    def usable_for(self, wanted: int) -> tuple[Gpu, ...]:
        """The devices that jobs of ``wanted`` devices can choose from: a program can use only one slice at a time."""
        return tuple(gpu for gpu in self.gpus if wanted == 1 or not gpu.is_slice)


def find_gpus(nvml: Nvml) -> GpuSearch:
    """Ask the driver; a host without one has no GPU for us."""
    try:
        nvml.open()
    except NvmlAbsent as error:
        return GpuSearch(gpus=(), reason=f"there is no NVIDIA driver: {error}")
    except NvmlFault as error:
        return GpuSearch(gpus=(), reason=f"the NVIDIA driver does not answer: {error}")
    try:
        versions, cards = nvml.versions(), nvml.cards()
    except NvmlFault as error:
        return GpuSearch(gpus=(), reason=f"the NVIDIA driver answers with an error: {error}")
    finally:
        nvml.close()
    found = tuple(gpu for card in cards for gpu in _devices(card, versions))
    unusable = tuple(
        f"{card.name} ({card.uuid}) is in MIG mode and has no instance"
        for card in cards
        if card.mig and not card.slices
    )
    reason = "" if found else "; ".join(unusable) or "the NVIDIA driver lists no device"
    return GpuSearch(gpus=found, reason=reason, unusable=unusable)


def _devices(card: Card, versions: Versions) -> tuple[Gpu, ...]:
    parts = ((one.uuid, one.name, one.memory) for one in card.slices)
    whole = ((card.uuid, card.name, card.memory),)
    return tuple(
        Gpu(
            uuid=uuid, index=card.index, name=name, memory=memory, driver=versions.driver,
            cuda=".".join(map(str, versions.cuda)),
            capability=".".join(map(str, card.capability)) if card.capability else "",
            minor=card.minor, card=card.uuid,
        )
        for uuid, name, memory in (parts if card.mig else whole)
    )  # fmt: skip
