"""Makes room on the engine's disk by removing images that we brought there, the least recently used first.

A ledger in the workspace says which images those are. One is removed only where its source still gives the same digest,
so that it can be had again; where nobody has named it since; and where no runner uses it, which a lock says that the
kernel frees when its runner dies.
"""

import contextlib
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from runner.engine import Engine, EngineRefusal, ImageFacts, ImageMissing
from runner.errors import HostFault
from runner.images.archive import archive_sha256
from runner.quantities import show_bytes
from runner.store import read_value, write_value

try:
    import fcntl
except ImportError:  # without locks nobody knows what is in use, and nothing is removed
    fcntl = None  # type: ignore[assignment]

_ID = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class Brought:
    """An image we brought to the engine.

    Attributes:
        id: Its ID.
        size: Bytes, as the engine says.
        origin: What gives it again: ``NAME@sha256:…`` or ``sha256:…`` of ``archive``.
        archive: The archive's file; None for a registry's image.
        tags: Its names just after we brought it; another one means that somebody wants it.
        used: When it was last used, in seconds since 1970.
    """

    id: str
    size: int
    origin: str
    archive: Path | None
    tags: tuple[str, ...]
    used: float


class Fate(StrEnum):
    """What became of an image that was to be removed for good."""

    DELETED = "deleted"
    GONE = "gone before"
    IN_USE = "kept: it is in use, or has a second name"
    NOT_OURS = "kept: it was on the engine before, or somebody has named it since"


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """All images we brought to the engines of this host, by ID."""

    images: tuple[Brought, ...] = ()


class Room:
    """The engine's disk, as far as it is ours to tidy; use it as a context manager.

    Args:
        engine: Whose disk it is.
        folder: Where the ledger and the locks lie; shared by all runners of this host.
        keep_free: Bytes that should stay free.
        free: Says how many bytes are free on the engine's disk; None where this host cannot see it.
        tell: Is told what was removed.
        now: The time of day, in seconds since 1970.
    """

    def __init__(
        self,
        engine: Engine,
        folder: Path,
        *,
        keep_free: int,
        free: Callable[[], int | None],
        tell: Callable[[str], None],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._engine = engine
        self._folder = folder
        self._keep_free = keep_free
        self._free = free
        self._tell = tell
        self._now = now
        self._held: dict[str, int] = {}

    def __enter__(self) -> "Room":
        return self

    def __exit__(self, *_: object) -> None:
        """Use no image any longer."""
        for descriptor in self._held.values():
            os.close(descriptor)
        self._held.clear()

    def use(self, image_id: str) -> None:
        """Keep an image from being removed, by any runner, until this room is left."""
        if image_id in self._held or _ID.fullmatch(image_id) is None:
            return
        descriptor = self._lock_file(image_id)
        if fcntl is not None:
            # Whoever holds it alone is about to remove the image; then it is pulled again.
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        self._held[image_id] = descriptor
        with self._ledger() as images:
            if image_id in images:
                images[image_id] = replace(images[image_id], used=self._now())

    def brought(self, facts: ImageFacts, origin: str, *, archive: Path | None = None) -> None:
        """Remember an image that the engine did not hold before we brought it."""
        if _ID.fullmatch(facts.id) is None or not origin:
            return
        with self._ledger() as images:
            images[facts.id] = Brought(
                id=facts.id, size=facts.size, origin=origin, archive=archive.resolve() if archive else None,
                tags=facts.repo_tags, used=self._now(),
            )  # fmt: skip

    def make(self, need: int) -> None:
        """Make room for ``need`` bytes beside those that should stay free.

        Raises:
            HostFault: There is no room even for ``need`` alone.
        """
        free = self._free()
        if free is None or free >= need + self._keep_free:
            return
        for image in self._oldest_first():
            if free >= need + self._keep_free:
                return
            if self._remove(image):
                self._tell(f"removed image {image.id[:19]}, unused and to be had again, to make room")
            free = self._free() or 0
        if free < need:
            raise HostFault(
                f"the engine's disk has {show_bytes(free)} free, an image needs about {show_bytes(need)}",
                remedy="make room where it keeps images (docker info: Docker Root Dir), then: proctor resume RUN",
            )

    def discard(self, image_id: str, *, built: bool = False) -> Fate:
        """Remove an image for good, on demand: whether it can be had again does not matter.

        Args:
            image_id: Which.
            built: We built it, so it stands in no ledger, and is ours all the same.

        Raises:
            HostFault: The engine did not answer.
        """
        try:
            facts = self._engine.image(image_id)
        except ImageMissing:
            return Fate.GONE
        with self._ledger() as images:
            brought = images.get(image_id)
        if not built and (brought is None or set(facts.repo_tags) - set(brought.tags)):
            return Fate.NOT_OURS
        descriptor = self._lock_file(image_id)
        try:
            if fcntl is not None:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._engine.remove_image(image_id)
            self._engine.image(image_id)
        except ImageMissing:
            with self._ledger() as images:
                images.pop(image_id, None)
            return Fate.DELETED
        except BlockingIOError:
            return Fate.IN_USE
        finally:
            os.close(descriptor)
        return Fate.IN_USE

    def _oldest_first(self) -> list[Brought]:
        with self._ledger() as images:
            return sorted(images.values(), key=lambda image: (image.used, image.id))

    def _remove(self, image: Brought) -> bool:
        """Remove an image where that harms nobody; True where it is gone by our doing."""
        if fcntl is None:
            return False
        descriptor = self._lock_file(image.id)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        else:
            return self._remove_unused(image)
        finally:
            os.close(descriptor)

    def _remove_unused(self, image: Brought) -> bool:
        try:
            facts = self._engine.image(image.id)
        except ImageMissing:
            self._forget(image)
            return False
        if set(facts.repo_tags) - set(image.tags) or not self._can_be_had_again(image):
            return False
        self._engine.remove_image(image.id)
        try:
            self._engine.image(image.id)
        except ImageMissing:
            self._forget(image)
            return True
        return False

    def _can_be_had_again(self, image: Brought) -> bool:
        name, _, digest = image.origin.rpartition("@")
        if image.archive is not None:
            return f"sha256:{archive_sha256(image.archive)}" == image.origin
        try:
            return bool(name) and self._engine.registry_digest(image.origin) == digest
        except (EngineRefusal, HostFault):
            return False

    def _forget(self, image: Brought) -> None:
        with self._ledger() as images:
            images.pop(image.id, None)

    def _lock_file(self, image_id: str) -> int:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self._folder / f"{image_id.removeprefix('sha256:')}.lock"
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    @contextlib.contextmanager
    def _ledger(self) -> Iterator[dict[str, Brought]]:
        """The ledger, to be changed in place; written whole at the end where it was, and nobody else's meanwhile."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(self._folder / "ledger.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        path = self._folder / "ledger.json"
        try:
            if fcntl is not None:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            before = read_value(path, Ledger) if path.is_file() else Ledger()
            images = {image.id: image for image in before.images}
            yield images
            after = Ledger(images=tuple(images.values()))
            if after != before:
                write_value(path, after)
        finally:
            os.close(descriptor)


def free_below(folder: str, *, kernel: str) -> int | None:
    """Bytes free where an engine keeps its images; None where that is not on this host.

    Args:
        folder: The engine's data folder on its own host.
        kernel: The kernel the engine sees.
    """
    # An engine in a virtual machine, or elsewhere, has another kernel; its folder's name means nothing here.
    if os.name != "posix" or kernel != os.uname().release or not Path(folder).is_dir():
        return None
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None
