"""Watches what a container writes to its own tree, where the policy lets it: no engine here bounds that by itself.

The engine is asked for the size again and again, so a program can have written more than it may when it is stopped, by
as much as it writes in a quarter of a second and the time of one answer. What it deleted and still holds open is in no
size: only the free room of the engine's disk shows it, and that is the host's, so the container is stopped and nobody
is charged.
"""

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator

from runner.beside import beside
from runner.engine import Engine, EngineRefusal, EngineUnreachable
from runner.errors import HostFault
from runner.quantities import show_bytes

LOOK_EVERY = 0.25
"""Seconds from one answer of the engine to the next question."""

SPARE_ROOM = 256 << 20
"""Bytes of the engine's disk that a container may never take."""


class OwnTree:
    """The writable layer of one container.

    Args:
        engine: Who knows its size.
        container: Whose it is.
        most: Bytes it may hold.
        free: Says how many bytes are free on the engine's disk; None where this host cannot see it.
    """

    def __init__(self, engine: Engine, container: str, *, most: int, free: Callable[[], int | None]) -> None:
        self._engine, self._container, self._most, self._free = engine, container, most, free
        self._found = 0

    @contextlib.contextmanager
    def watching(self, kill: Callable[[], None]) -> Iterator[None]:
        """While the container lives: ``kill`` is called, again and again, when it holds more than it may.

        Raises:
            HostFault: The engine's disk has no room to spare; the container was killed for it.
        """
        with beside(functools.partial(self._watch, kill), name="own-tree"):
            yield

    def _watch(self, kill: Callable[[], None], over: threading.Event) -> None:
        while not over.wait(LOOK_EVERY):
            # Whoever follows the container sees that the engine does not answer, and what that means.
            with contextlib.suppress(EngineUnreachable, EngineRefusal):
                self._look()
            if self.exceeded():
                kill()
                continue
            try:
                self._require_room()
            except HostFault:
                kill()
                raise

    def _look(self) -> None:
        self._found = max(self._found, self._engine.written_bytes(self._container))

    def _require_room(self) -> None:
        free = self._free()
        if free is not None and free < SPARE_ROOM:
            raise HostFault(
                f"the engine's disk has {show_bytes(free)} free while a container may write to its own tree",
                remedy="make room where it keeps images (docker info: Docker Root Dir), then: proctor resume RUN",
            )

    def exceeded(self) -> int:
        """The most it was seen to hold where that is more than it may; 0 where it is not."""
        return self._found if self._found > self._most else 0

    def settle(self) -> int:
        """Look a last time, when the container has ended; as ``exceeded``.

        Raises:
            EngineUnreachable: The engine did not answer.
        """
        self._look()
        return self.exceeded()
