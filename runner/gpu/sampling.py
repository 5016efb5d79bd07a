"""What a job uses of its devices and of the processors' energy, looked at by a thread while it runs.

A look says nothing of the time until the next one, so a peak is "at least". Nothing here decides a verdict; a device
that fails while it is looked at is the host's fault.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Self

from runner.budget import GpuUsage
from runner.gpu.discovery import Gpu
from runner.gpu.energy import EnergyZone, counted, integrated, read_counter
from runner.gpu.health import of_the_card
from runner.gpu.nvml import CriticalErrors, GpuLost, Nvml, NvmlFault

SAMPLE_SECONDS = 0.2

PATIENCE = 30.0
"""Seconds without an answer of the driver after which a device is given up: a card off its bus can block a call."""


@dataclass(frozen=True, kw_only=True)
class DeviceFault:
    """A device that failed while a job held it."""

    uuid: str
    sentence: str


@dataclass(frozen=True, kw_only=True)
class Consumption:
    """What a job used, and which of its devices failed."""

    gpus: tuple[GpuUsage, ...] = ()
    processor_joules: float | None = None
    faults: tuple[DeviceFault, ...] = ()


@dataclass(kw_only=True)
class _Gauge:
    """The looks at one device."""

    nvml: Nvml
    gpu: Gpu
    fault: str = ""
    _events: CriticalErrors | None = None
    _memory_errors: int = 0
    _joules: list[float] = field(default_factory=list)
    _watts: list[tuple[float, float]] = field(default_factory=list)
    _memory: list[int] = field(default_factory=list)
    _percents: list[int] = field(default_factory=list)

    def begin(self) -> None:
        with self._failing():
            self._events = self.nvml.critical_errors(self.gpu.uuid)
            self._memory_errors = self.nvml.memory_errors(self.gpu.uuid) or 0
            self._look()

    def look(self) -> None:
        """Look once; an answer that fails, other than for good, is one look fewer."""
        if not self.fault:
            with contextlib.suppress(NvmlFault), self._failing(GpuLost):
                self._look()

    def end(self) -> None:
        """Look for the last time; now the device must answer, and its memory must have had no new error."""
        with self._failing():
            if not self.fault:
                self._look()
                new = (self.nvml.memory_errors(self.gpu.uuid) or 0) - self._memory_errors
                if new > 0:
                    self.fault = f"{self.gpu.uuid} had {new} uncorrected memory errors while a job held it"
        if self._events is not None:
            self._events.close()

    def _look(self) -> None:
        uuid = self.gpu.uuid
        self._memory.append(self.nvml.memory(uuid).used)
        percent, joules = self.nvml.utilisation(uuid), self.nvml.energy(uuid)
        if percent is not None:
            self._percents.append(percent)
        if joules is not None:
            self._joules.append(joules)
        elif (watts := self.nvml.power(uuid)) is not None:
            self._watts.append((time.monotonic(), watts))
        if self._events is not None and (cause := of_the_card(self._events.poll())):
            self.fault = f"{uuid} failed while a job held it: {cause}"

    @contextlib.contextmanager
    def _failing(self, kind: type[NvmlFault] = NvmlFault) -> Iterator[None]:
        try:
            yield
        except kind as error:
            what = "was lost" if isinstance(error, GpuLost) else "does not answer"
            self.fault = f"{self.gpu.uuid} {what} while a job held it: {error}"

    def usage(self, every: float) -> GpuUsage:
        joules = None
        if len(self._joules) > 1:
            joules = max(0.0, self._joules[-1] - self._joules[0])
        elif len(self._watts) > 1:
            joules = integrated(self._watts)
        return GpuUsage(
            device=self.gpu.uuid, name=self.gpu.name, peak_memory=max(self._memory, default=None),
            peak_utilisation=max(self._percents, default=None),
            mean_utilisation=sum(self._percents) / len(self._percents) if self._percents else None,
            joules=joules, counted=len(self._joules) > 1, samples=len(self._memory), every=every,
        )  # fmt: skip


class Watch:
    """Looks at devices and processors from its beginning to its end; without either it does nothing.

    Args:
        nvml: Open; None where no device is held.
        gpus: The devices a job holds.
        zones: The processors' counters.
        failed: Is called once, by the thread, when a device fails: whatever runs on it is in vain.
        every: Seconds between two looks.
        patience: Seconds without an answer after which the devices are given up.
    """

    def __init__(
        self,
        nvml: Nvml | None,
        gpus: tuple[Gpu, ...],
        zones: tuple[EnergyZone, ...] = (),
        *,
        failed: Callable[[], None] = lambda: None,
        every: float = SAMPLE_SECONDS,
        patience: float = PATIENCE,
    ) -> None:
        self._patience = patience
        self._gauges = [_Gauge(nvml=nvml, gpu=gpu) for gpu in gpus if nvml is not None]
        self._zones: dict[EnergyZone, list[int]] = {zone: [] for zone in zones}
        self._failed = failed
        self._every = every
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self._gauges or self._zones:
            for gauge in self._gauges:
                gauge.begin()
            self._read_zones()
            self._thread = threading.Thread(target=self._run, name="gpu-watch", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def consumption(self) -> Consumption:
        """Stop looking, and say what was seen."""
        self._end()
        return Consumption(
            gpus=tuple(gauge.usage(self._every) for gauge in self._gauges),
            processor_joules=self._processor_joules(),
            faults=tuple(DeviceFault(uuid=g.gpu.uuid, sentence=g.fault) for g in self._gauges if g.fault),
        )

    def _end(self) -> None:
        if self._thread is None:
            return
        self._over.set()
        self._thread.join(self._patience)
        stuck = self._thread.is_alive()
        self._thread = None
        for gauge in self._gauges:
            if stuck:
                gauge.fault = gauge.fault or f"{gauge.gpu.uuid}: the driver has not answered for {self._patience:g} s"
            else:
                gauge.end()
        self._read_zones()

    def _run(self) -> None:
        told = False
        while not self._over.wait(self._every):
            for gauge in self._gauges:
                gauge.look()
            self._read_zones()
            if not told and any(gauge.fault for gauge in self._gauges):
                told = True
                self._failed()

    def _read_zones(self) -> None:
        for zone, readings in self._zones.items():
            # A package that fell silent is no reason to stop; its missing reading spoils the sum, see below.
            with contextlib.suppress(OSError, ValueError):
                readings.append(read_counter(zone))

    def _processor_joules(self) -> float | None:
        if not self._zones or any(len(readings) < 2 for readings in self._zones.values()):
            return None
        return sum(counted(readings, wraps_at=zone.wraps_at) for zone, readings in self._zones.items()) / 1e6
