"""The last way to hold an output, where none that holds is to be had: a plain folder, watched while the container runs.

It bounds nothing; it finds out. A program is killed after it has written more than it may, and how much more depends on
how fast it writes, so what was found is told with the verdict. What a program deleted and still holds open is in no
folder: only the disk's free room shows it, and that is the host's, so the container is stopped and nobody is charged.
"""

import contextlib
import functools
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from runner.beside import beside
from runner.budget import Budget
from runner.errors import HostFault
from runner.job import Intake
from runner.outputs import Wanted, take_file
from runner.tally import Tally, tally

LOOK_EVERY = 0.02
"""Seconds from one look to the next, or three times as long as a look takes, where that is longer."""

SPARE_ROOM = 256 << 20
"""Bytes of the workspace's disk that a watched container may never take."""

_REST = 3.0
_log = logging.getLogger(__name__)


class WatchedPlace:
    """A folder of the host that is looked at."""

    def __init__(self, folder: Path, budget: Budget) -> None:
        self._folder = folder
        self._bytes, self._entries = budget.output_bytes, budget.output_files
        self._most: Tally | None = None
        self._lock = threading.Lock()

    @property
    def mounted(self) -> Path:
        """The folder."""
        return self._folder

    @contextlib.contextmanager
    def watching(self, kill: Callable[[], None]) -> Iterator[None]:
        """While the container lives: ``kill`` is called, again and again, when the place holds more than it may.

        Raises:
            HostFault: The disk has no room to spare; the container was killed for it.
            OSError: The folder could not be looked at; the container was killed for it.
        """
        with beside(functools.partial(self._watch, kill), name="watch"):
            yield

    def _watch(self, kill: Callable[[], None], over: threading.Event) -> None:
        pause = 0.0
        while not over.wait(pause):
            began = time.monotonic()
            try:
                self.require_room(0)
                exceeded = self._look() is not None
            except PermissionError as error:  # shut while it was opened; what stays shut is met by take
                _log.debug("a folder of the output could not be looked into: %s", error)
                exceeded = False
            except BaseException:
                kill()
                while not over.wait(LOOK_EVERY):  # it may have been about to start
                    kill()
                raise
            pause = max(LOOK_EVERY, _REST * (time.monotonic() - began))
            if exceeded:
                kill()

    def _look(self) -> Tally | None:
        """What it holds now where that is more than it may.

        Twice: what is moved or replaced during a look can be counted though it was never there at once.
        """
        with self._lock:
            for _ in range(2):
                found = tally(self._folder, most=self._entries)
                if found.bytes <= self._bytes and found.entries <= self._entries and not found.too_deep:
                    return None
            most = self._most or found
            self._most = Tally(
                bytes=max(found.bytes, most.bytes),
                entries=max(found.entries, most.entries),
                too_deep=found.too_deep or most.too_deep,
            )
            return self._most

    def overshoot(self) -> Tally | None:
        """The most it was seen to hold where that is more than it may; None where it is not."""
        with self._lock:
            return self._most

    def take(self, wanted: Wanted, target: Path) -> Intake:
        """Look a last time and take what is expected out; only after the container is dead."""
        self._folder.chmod(0o700)  # without root, what its owner shut is shut to us
        self._look()
        intake = take_file(self._folder, wanted, target, cap=self._bytes, full=False)
        return replace(intake, full=self.overshoot() is not None)

    def require_room(self, size: int) -> None:
        """Require that the workspace's disk has room for ``size`` bytes, and some to spare.

        Raises:
            HostFault: It has not.
        """
        room = os.statvfs(self._folder)
        missing = size + SPARE_ROOM - room.f_bavail * room.f_frsize
        if missing > 0:
            raise HostFault(
                f"the workspace's disk has no room for an output that is only watched: {missing} bytes are missing",
                where=str(self._folder.parent),
                remedy="make room, or name another workspace: in the settings, then: proctor resume RUN",
            )


@contextlib.contextmanager
def watched_place(
    desk: Path, *, name: str, budget: Budget, uid: int, gid: int, mode: int = 0o755
) -> Iterator[WatchedPlace]:
    """Make an output that is watched; deleted with the desk.

    Args:
        desk: The job's folder.
        name: A neutral name: containers can see it.
        budget: Says how much it may hold.
        uid: Who may write there.
        gid: As uid.
        mode: Of the folder; 0o777 where it is not known who will write.
    """
    # No other user of the host may pass: a program that a container leaves here can be executable, and setuid.
    shut = desk / name
    shut.mkdir(mode=0o700)
    folder = shut / name
    folder.mkdir()
    folder.chmod(mode)
    if os.geteuid() == 0:
        os.chown(folder, uid, gid)
    place = WatchedPlace(folder, budget)
    place.require_room(budget.output_bytes)
    yield place
