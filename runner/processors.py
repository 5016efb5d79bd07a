"""Lets one job hold whole processors of this host, in turn with every runner on it."""

import contextlib
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass

from runner.errors import Interrupted
from runner.lease import Lease, Leases

_PREFIX = "processor-"
_LOOK_EVERY = 0.2


def processors_of(count: int) -> tuple[int, ...]:
    """The numbers of an engine's ``count`` processors, as a cpuset names them.

    Where this process runs on as many, they are taken for the same: numbers can have gaps.
    """
    if hasattr(os, "sched_getaffinity"):
        mine = sorted(os.sched_getaffinity(0))
        if len(mine) == count:
            return tuple(mine)
    return tuple(range(count))


@dataclass(frozen=True, kw_only=True)
class ProcessorPool:
    """The processors of a host.

    Attributes:
        numbers: As a cpuset names them.
        leases: What all runners of the host respect.
        stop: Set when the user asks us to stop.
    """

    numbers: tuple[int, ...]
    leases: Leases
    stop: threading.Event

    @contextlib.contextmanager
    def held(self, cpus: float) -> Iterator[tuple[str | None, tuple[str, ...]]]:
        """Hold as many whole processors as fit into ``cpus``; waits until so many are free.

        Yields:
            The cpuset, such as ``0,3``, and the names of the leases; None and nothing where less than one would be held
            or more than there are: a quota must do then.

        Raises:
            Interrupted: The user asked us to stop meanwhile.
        """
        wanted = int(cpus)
        if not 1 <= wanted <= len(self.numbers):
            yield None, ()
            return
        with contextlib.ExitStack() as stack:
            held = self._wait(wanted)
            for lease in held.values():
                stack.callback(lease.release)
            yield ",".join(map(str, held)), tuple(f"{_PREFIX}{number}" for number in held)

    def _wait(self, wanted: int) -> dict[int, Lease]:
        while not (held := self._try(wanted)):
            if self.stop.wait(_LOOK_EVERY):
                raise Interrupted("stopped while waiting for processors", remedy="go on with: proctor resume RUN")
        return held

    def _try(self, wanted: int) -> dict[int, Lease]:
        """So many or none: two runners that each hold half would wait for each other for ever."""
        held: dict[int, Lease] = {}
        for number in self.numbers:
            if (lease := self.leases.hold(f"{_PREFIX}{number}")) is not None:
                held[number] = lease
            if len(held) == wanted:
                return held
        for lease in held.values():
            lease.release()
        return {}
