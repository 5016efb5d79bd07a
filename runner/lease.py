"""Leases on things of this host that only one job may hold: a user id, a GPU.

A lease is a lock on a file, so every runner on the host respects it and the kernel frees it when its holder dies,
however it dies. Taking one and giving it back touch the file, which is how a job can tell that another ran beside it.
"""

import contextlib
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from runner.errors import HostUnfit

try:
    import fcntl
except ImportError:  # a host without it has no other runner to respect
    fcntl = None  # type: ignore[assignment]


@dataclass(frozen=True, kw_only=True)
class Leases:
    """A folder of lock files shared by all runners of this host."""

    folder: Path

    def _try(self, name: str) -> int | None:
        descriptor = os.open(self.folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if fcntl is None:
            return descriptor
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        os.utime(self.folder / name)
        return descriptor

    @contextlib.contextmanager
    def first_free(self, names: Iterator[str]) -> Iterator[str]:
        """Hold the first of the names that nobody holds.

        Raises:
            HostUnfit: All are held.
        """
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name in names:
            descriptor = self._try(name)
            if descriptor is not None:
                try:
                    yield name
                finally:
                    # Touched again: a job that began later must see that this one was still there.
                    with contextlib.suppress(OSError):
                        os.utime(self.folder / name)
                    os.close(descriptor)
                return
        raise HostUnfit(
            f"everything in {str(self.folder)!r} is held by other jobs",
            remedy="wait for them to end, or see: proctor doctor",
        )

    def taken_since(self, moment_ns: int, *, but: Collection[str]) -> bool:
        """True where a lease not in ``but`` is held now, or was taken or given back since a wall-clock moment."""
        if not self.folder.is_dir():
            return False
        for path in self.folder.iterdir():
            if path.name in but:
                continue
            if path.stat().st_mtime_ns >= moment_ns:
                return True
            descriptor = self._probe(path)
            if descriptor is None:
                return True
            os.close(descriptor)
        return False

    def _probe(self, path: Path) -> int | None:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        if fcntl is None:
            return descriptor
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return descriptor
