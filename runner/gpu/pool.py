"""Lets one job hold its devices, in turn with every runner of the host, and finds it others where one has failed.

Whoever stands first in the queue waits for devices, and the others wait behind: two jobs that need several devices
each can so neither take half of them each, nor be overtaken for ever by jobs that need one. The place in the queue is a
lease like a device's, and is freed with its holder.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from runner.errors import HostFault, HostUnfit, Interrupted
from runner.gpu.access import GpuAccess
from runner.gpu.discovery import Gpu
from runner.gpu.energy import EnergyZone
from runner.gpu.health import Fitness, before_a_job
from runner.gpu.nvml import Nvml
from runner.gpu.sampling import Consumption, Watch
from runner.lease import Lease, Leases

LEASES = Path("/tmp/proctor-gpus")  # noqa: S108  shared by all users on purpose; what is locked there holds nothing

SETTLING = 5.0
"""Seconds for which a device may still look used after its job has ended."""

_POLL = 0.1
_WORTH_SAYING = 1.0
_QUEUE = "queue"


@dataclass(frozen=True, kw_only=True)
class GpuHost:
    """Where this host's devices are asked for and leased; tests give another."""

    nvml: Nvml
    leases: Leases

    @classmethod
    def real(cls) -> "GpuHost":
        """NVIDIA's own library, and the folder all runners share."""
        from runner.gpu.driver import SystemNvml  # noqa: PLC0415  loads the binding

        return cls(nvml=SystemNvml(), leases=Leases(folder=LEASES, shared=True))


@dataclass(frozen=True, kw_only=True)
class _Attempt:
    """What came of one try: devices that are fit, how many others hold, and why the rest cannot be used now."""

    gpus: tuple[Gpu, ...]
    elsewhere: int
    busy: tuple[str, ...]


class GpuPool:
    """The devices of a run.

    Args:
        host: Where they are asked for; open meanwhile.
        gpus: Those a job can be given.
        access: How the engine is asked for them; not ``auto``.
        stop: Set when the user asks us to stop.
        say: Is told what people should know, once.
        settling: Seconds for which a device may still look used after its job has ended.
    """

    def __init__(
        self,
        host: GpuHost,
        gpus: tuple[Gpu, ...],
        access: GpuAccess,
        *,
        stop: threading.Event,
        say: Callable[[str], None],
        settling: float = SETTLING,
    ) -> None:
        self.gpus = gpus
        self.access = access
        self._host = host
        self._stop = stop
        self._say = say
        self._settling = settling
        self._broken: dict[str, str] = {}
        self._told = False
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def held(self, wanted: int) -> Iterator[tuple[Gpu, ...]]:
        """Hold so many devices; waits for those that others hold.

        Raises:
            HostUnfit: This host has fewer in all.
            HostFault: Those that nobody holds cannot be used, and the others are not enough.
            Interrupted: The user asked us to stop.
        """
        if len(self.gpus) < wanted:
            raise HostUnfit(
                f"a job asks for {wanted} GPUs and this host has {len(self.gpus)} that can be given to it",
                remedy="run on a host that has them",
            )
        with contextlib.ExitStack() as stack:
            turn = self._turn()
            try:
                gpus = self._taken(wanted, stack)
            finally:
                turn.release()
            yield gpus

    def _turn(self) -> Lease:
        began = time.monotonic()
        while (turn := self._host.leases.hold(_QUEUE)) is None:
            self._wait(since=began)
        return turn

    def _taken(self, wanted: int, stack: contextlib.ExitStack) -> tuple[Gpu, ...]:
        began = time.monotonic()
        while True:
            found = self._try(wanted, stack)
            if len(found.gpus) == wanted:
                return found.gpus
            if len(found.gpus) + found.elsewhere < wanted and (
                not found.busy or time.monotonic() - began >= self._settling
            ):
                raise HostFault(
                    f"a job needs {wanted} GPU and {len(found.gpus) + found.elsewhere} of {len(self.gpus)} can be "
                    f"used: {'; '.join((*self._broken.values(), *found.busy))}",
                    remedy="mend or free them, then: proctor resume RUN",
                )
            self._wait(since=began if found.elsewhere else None)

    def _try(self, wanted: int, stack: contextlib.ExitStack) -> "_Attempt":
        """Hold all of them, or none."""
        gpus: list[Gpu] = []
        busy: list[str] = []
        elsewhere = 0
        with contextlib.ExitStack() as leases:
            for gpu in self.gpus:
                if gpu.uuid in self._broken or len(gpus) == wanted:
                    continue
                lease = self._host.leases.hold(gpu.uuid)
                if lease is None:
                    elsewhere += 1
                    continue
                with contextlib.ExitStack() as one:
                    one.callback(lease.release)
                    condition = before_a_job(self._host.nvml, gpu)
                    match condition.fitness:
                        case Fitness.FIT:
                            gpus.append(gpu)
                            leases.push(one.pop_all())
                        case Fitness.BUSY:
                            busy.append(condition.sentence)
                        case Fitness.BROKEN:
                            self.set_aside(gpu.uuid, condition.sentence)
            if len(gpus) == wanted:
                stack.push(leases.pop_all())
        return _Attempt(gpus=tuple(gpus), elsewhere=elsewhere, busy=tuple(busy))

    def _wait(self, *, since: float | None) -> None:
        if since is not None and time.monotonic() - since > _WORTH_SAYING:
            with self._lock:
                told, self._told = self._told, True
            if not told:
                self._say("other jobs hold the GPUs of this host; waiting for them")
        if self._stop.wait(_POLL):
            raise Interrupted("stopped while waiting for a GPU", remedy="go on with: proctor resume RUN")

    def set_aside(self, uuid: str, sentence: str) -> None:
        """Give a device to no job of this run any more."""
        with self._lock:
            new = uuid not in self._broken
            self._broken.setdefault(uuid, sentence)
        if new:
            self._say(f"{sentence}; it is not used for the rest of this run")

    def watch(
        self, gpus: tuple[Gpu, ...], zones: tuple[EnergyZone, ...] = (), *, failed: Callable[[], None] = lambda: None
    ) -> Watch:
        """Look at held devices while a job runs on them; see ``Watch``."""
        return Watch(self._host.nvml, gpus, zones, failed=failed)

    def require(self, consumption: Consumption) -> None:
        """Set failed devices aside.

        Raises:
            HostFault: A device failed while a job held it.
        """
        for fault in consumption.faults:
            self.set_aside(fault.uuid, fault.sentence)
        if consumption.faults:
            raise HostFault("; ".join(fault.sentence for fault in consumption.faults), remedy="see: proctor doctor")
