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
class Lease:
    """One that is held; ``release`` gives it back, and so does the end of this process."""

    path: Path
    descriptor: int

    def release(self) -> None:
        """Give it back."""
        # Touched again: a job that began later must see that this one was still there.
        with contextlib.suppress(OSError):
            os.utime(self.path)
        os.close(self.descriptor)


@dataclass(frozen=True, kw_only=True)
class Leases:
    """A folder of lock files.

    Attributes:
        folder: Where they are; made where it is missing.
        shared: The runners of all users of the host use it, not only those with the same workspace.
    """

    folder: Path
    shared: bool = False

    def hold(self, name: str) -> Lease | None:
        """Hold it, or None where somebody else does."""
        descriptor = self._open(name)
        try:
            if fcntl is not None:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        with contextlib.suppress(PermissionError):  # another user's file
            os.utime(self.folder / name)
        return Lease(path=self.folder / name, descriptor=descriptor)

    def _open(self, name: str) -> int:
        path, flags = self.folder / name, os.O_RDWR | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
        self._make_folder()
        # Never O_CREAT on what may be there: in a shared folder Linux refuses that for another user's file.
        with contextlib.suppress(FileNotFoundError):
            return os.open(path, flags)
        with contextlib.suppress(FileExistsError):
            descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o600)
            if self.shared:
                os.fchmod(descriptor, 0o666)
            return descriptor
        return os.open(path, flags)

    def _make_folder(self) -> None:
        with contextlib.suppress(FileExistsError):
            self.folder.mkdir(parents=True, mode=0o700)
            if self.shared:
                self.folder.chmod(0o1777)
        if self.shared and self.folder.is_symlink():
            raise HostUnfit(f"{str(self.folder)!r} is a link, and not the folder all runners share", remedy="remove it")

    @contextlib.contextmanager
    def first_free(self, names: Iterator[str]) -> Iterator[str]:
        """Hold the first of the names that nobody holds.

        Raises:
            HostUnfit: All are held.
        """
        for name in names:
            lease = self.hold(name)
            if lease is not None:
                try:
                    yield name
                finally:
                    lease.release()
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
