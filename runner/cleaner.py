"""Puts a job's things away while its files are read, and is waited for before the next container starts.

Removing a container takes the engine as long as reading and judging takes us. Nothing of it may fall into the next run:
whoever starts a container settles first.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from runner.errors import RunnerError


class Cleaner:
    """Does what is to be done later, in order, on one thread."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="cleaner")
        self._lock = threading.Lock()
        self._pending: list[Future[None]] = []

    def later(self, action: Callable[[], None]) -> None:
        """Have something done."""
        with self._lock:
            self._pending.append(self._pool.submit(action))

    def settle(self) -> None:
        """Wait until all is done.

        Raises:
            RunnerError: What an action raised; each is raised once.
        """
        with self._lock:
            pending, self._pending = self._pending, []
        for future in pending:
            future.result()

    def close(self) -> str:
        """Wait until all is done, and end; says what could not be put away, empty where all was."""
        try:
            self.settle()
        except (RunnerError, OSError) as error:
            return str(error)
        finally:
            self._pool.shutdown()
        return ""
