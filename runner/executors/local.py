"""Runs calls on threads of this process, and lets one of them have the host to itself."""

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class Turnstile:
    """Many may be inside together, or one alone."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside = 0
        self._alone = False

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Be inside with others."""
        with self._changed:
            self._changed.wait_for(lambda: not self._alone)
            self._inside += 1
        try:
            yield
        finally:
            self._leave()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Be inside with nobody else; waits until all have left, and lets nobody in meanwhile."""
        with self._changed:
            self._changed.wait_for(lambda: not self._alone)
            self._alone = True
            self._changed.wait_for(lambda: self._inside == 0)
            self._inside += 1
        try:
            yield
        finally:
            self._leave(alone=True)

    def _leave(self, *, alone: bool = False) -> None:
        with self._changed:
            self._inside -= 1
            if alone:
                self._alone = False
            self._changed.notify_all()


def spread(function: Callable[[Item], Result], items: Iterable[Item], *, workers: int) -> list[Result]:
    """Call a function for every item, ``workers`` at once; results in the items' order.

    The first exception stops what has not begun and is raised once what has begun is done.
    """
    if workers == 1:
        return [function(item) for item in items]
    with ThreadPoolExecutor(max_workers=workers, thread_name_prefix="job") as pool:
        futures: list[Future[Result]] = [pool.submit(function, item) for item in items]
        wait(futures, return_when=FIRST_EXCEPTION)
        for future in futures:
            if future.done() and future.exception() is not None:
                pool.shutdown(cancel_futures=True)
                break
        return [future.result() for future in futures]
