"""Watches what a container writes to its own tree, where the policy lets it: no engine here bounds that by itself.

The engine is asked for the size again and again, so a program can have written more than it may when it is stopped, by
as much as it writes in a quarter of a second and the time of one answer.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

from runner.engine import Engine, EngineRefusal, EngineUnreachable

LOOK_EVERY = 0.25
"""Seconds from one answer of the engine to the next question."""


class OwnTree:
    """The writable layer of one container.

    Args:
        engine: Who knows its size.
        container: Whose it is.
        most: Bytes it may hold.
    """

    def __init__(self, engine: Engine, container: str, *, most: int) -> None:
        self._engine, self._container, self._most = engine, container, most
        self._found = 0

    @contextlib.contextmanager
    def watching(self, kill: Callable[[], None]) -> Iterator[None]:
        """While the container lives: ``kill`` is called, again and again, when it holds more than it may."""
        over = threading.Event()
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="own-tree") as pool:
            watch = pool.submit(self._watch, over, kill)
            try:
                yield
            finally:
                over.set()
            watch.result()

    def _watch(self, over: threading.Event, kill: Callable[[], None]) -> None:
        while not over.wait(LOOK_EVERY):
            # Whoever follows the container sees that the engine does not answer, and what that means.
            with contextlib.suppress(EngineUnreachable, EngineRefusal):
                self._look()
            if self.exceeded():
                kill()

    def _look(self) -> None:
        self._found = max(self._found, self._engine.written_bytes(self._container))

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
