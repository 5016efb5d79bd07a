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
        self._owed: list[Callable[[], None]] = []

    def later(self, action: Callable[[], None]) -> None:
        """Have something done."""
        with self._lock:
            self._pending.append(self._pool.submit(action))

    def owe(self, action: Callable[[], None]) -> None:
        """Have something done as soon as it can be: tried at every settling, and at the end."""
        with self._lock:
            self._owed.append(action)

    def settle(self) -> None:
        """Wait until all is done.

        Raises:
            RunnerError: What an action raised; each is raised once, but what is owed until it can be done.
        """
        self._finish()
        self._pay()

    def _finish(self) -> None:
        with self._lock:
            pending, self._pending = self._pending, []
        for future in pending:
            future.result()

    def _pay(self) -> None:
        with self._lock:
            owed, self._owed = self._owed, []
        for number, action in enumerate(owed):
            try:
                action()
            except BaseException:
                with self._lock:
                    self._owed += owed[number:]
                raise

    def close(self) -> str:
        """Wait until all is done, and end; says what could not be put away, empty where all was."""
        told = ""
        for act in (self._finish, self._pay):
            try:
                act()
            except (RunnerError, OSError) as error:
                told = str(error)
        self._pool.shutdown()
        return told
