"""Gives a job a fresh, sized place to write and takes its file out safely once the container is dead.

Nothing in that place is trusted: it is walked by directory handles, no link is followed, only a regular file with one
link and the expected name is taken, by handle, up to its cap.
"""

import contextlib
import functools
import os
import stat
import tarfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from runner import mounts
from runner.budget import Budget
from runner.engine import ContainerSpec, Engine, FileKind, VolumeMount, VolumeSpec
from runner.errors import HostFault
from runner.job import Intake, IntakeRefusal, NameKind
from runner.streams import IterableReader
from runner.tally import Tally

_BLOCK = 1 << 20
_MAX_ENTRIES = 10_000
_LARGE_WRITE = 1 << 20
"""Bytes programs write at a time; a file system can refuse such a write with less than that left."""

_UNFINISHED = (".tmp", ".temp", ".part", ".partial", ".swp")
_PAGE = 4096
"""What a file system in memory gives out at a time."""

_KINDS = (
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_TAR_KINDS = {
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.DIRTYPE: "a folder",
    tarfile.FIFOTYPE: "a named pipe",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
}
_SEVERAL = "a file with several links"


class OutputPlace(Protocol):
    """A place one container writes to."""

    @property
    def mounted(self) -> Path | str:
        """Folder of the host, or name of a volume."""

    def watching(self, kill: Callable[[], None]) -> contextlib.AbstractContextManager[None]:
        """While the container lives: ``kill`` is called, again and again, when the place holds more than it may."""

    def overshoot(self) -> Tally | None:
        """The most it was seen to hold where that is more than it may; None where it is not, or cannot be."""

    def take(self, name: str, target: Path) -> Intake:
        """Take the expected file out; only after the container is dead."""


def _kind(mode: int) -> str:
    return next((word for test, word in _KINDS if test(mode)), "not a regular file")


class _Others:
    """The other entries of an output: how many, and what kinds of names they have."""

    def __init__(self, expected: str) -> None:
        self._expected = expected
        self._kinds: set[NameKind] = set()
        self.count = 0

    @property
    def kinds(self) -> tuple[NameKind, ...]:
        return tuple(sorted(self._kinds))

    def add(self, name: str, *, folder: bool) -> None:
        if name != self._expected:
            self.count += 1
            self._kinds.add(NameKind.FOLDER if folder else kind_of_name(name, self._expected))


def kind_of_name(name: str, expected: str) -> NameKind:
    """How the name of a file differs from the one that was due."""
    stem, extension = Path(expected).stem, Path(expected).suffix
    if name.lower() == expected.lower():
        return NameKind.LETTER_CASE
    if name.startswith((f"{expected}.", f".{expected}")) and name.endswith(_UNFINISHED):
        return NameKind.UNFINISHED
    if name == stem or name.startswith((f"{stem}.", f"{expected}.")):
        return NameKind.EXTENSION
    return NameKind.STEM if extension and name.endswith(extension) else NameKind.OTHER


def _look_around(descriptor: int, expected: str) -> _Others:
    others = _Others(expected)
    with os.scandir(descriptor) as entries:
        for _, entry in zip(range(_MAX_ENTRIES), entries, strict=False):
            others.add(entry.name, folder=entry.is_dir(follow_symlinks=False))
    return others


def _copy(source: int, target: Path, cap: int) -> int:
    """Copy at most ``cap`` bytes to a fresh file; the number copied, ``cap + 1`` where there was more."""
    copied = 0
    with target.open("xb") as sink:
        while chunk := os.read(source, min(_BLOCK, cap + 1 - copied)):
            copied += len(chunk)
            if copied > cap:
                return copied
            sink.write(chunk)
    return copied


def take_file(folder: Path, name: str, target: Path, *, cap: int, full: bool) -> Intake:
    """Take ``folder/name`` out.

    Args:
        folder: The output folder; the container is dead.
        name: The expected file.
        target: A fresh file to copy to; not made where the file is refused.
        cap: Bytes it may have.
        full: The folder's file system is full.
    """
    root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        others = _look_around(root, name)
        refuse = _Refusing(name, others=others, full=full)
        try:
            handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=root)
        except FileNotFoundError:
            return refuse(IntakeRefusal.MISSING)
        try:
            return _take_handle(handle, target, cap=cap, device=os.fstat(root).st_dev, refuse=refuse)
        finally:
            os.close(handle)
    finally:
        os.close(root)


class _Refusing:
    """Makes the intake of a file that is refused, or taken."""

    def __init__(self, file: str, *, others: _Others, full: bool) -> None:
        self._intake = Intake(file=file, other_entries=others.count, other_names=others.kinds, full=full)

    def __call__(self, refusal: IntakeRefusal, detail: str = "") -> Intake:
        return replace(self._intake, refusal=refusal, detail=detail)

    def taken(self, size: int) -> Intake:
        return replace(self._intake, size=size)


def _take_handle(handle: int, target: Path, *, cap: int, device: int, refuse: _Refusing) -> Intake:
    facts = os.fstat(handle)
    if not stat.S_ISREG(facts.st_mode):
        return refuse(IntakeRefusal.NOT_REGULAR, _kind(facts.st_mode))
    if facts.st_dev != device:
        return refuse(IntakeRefusal.NOT_REGULAR, "a file of another file system")
    if facts.st_nlink != 1:
        return refuse(IntakeRefusal.SEVERAL_LINKS, f"a file with {facts.st_nlink} links")
    if facts.st_size > cap:
        return refuse(IntakeRefusal.TOO_LARGE, f"{facts.st_size} bytes of {cap} allowed")
    source = _open_to_read(handle)
    try:
        size = _copy(source, target, cap)
    finally:
        os.close(source)
    if size > cap:  # it grew, or its size is not what stat says
        target.unlink()
        return refuse(IntakeRefusal.TOO_LARGE, f"more than the {cap} bytes allowed")
    return refuse.taken(size)


def _open_to_read(handle: int) -> int:
    path, flags = f"/proc/self/fd/{handle}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return os.open(path, flags)
    except PermissionError:  # without root its rights bind us; it is our own user's
        Path(path).chmod(0o600)
        return os.open(path, flags)


class _HeldPlace:
    """A place that cannot hold more than it may."""

    def watching(self, kill: Callable[[], None]) -> contextlib.AbstractContextManager[None]:  # noqa: ARG002
        """Nothing has to be watched."""
        return contextlib.nullcontext()

    def overshoot(self) -> Tally | None:
        """There is none."""
        return None


class LoopPlace(_HeldPlace):
    """A file system of the budget's size in a file, mounted on the host; needs root on Linux."""

    def __init__(self, image: Path, folder: Path, budget: Budget) -> None:
        self._image, self._folder = image, folder
        self._cap = budget.output_bytes

    @property
    def mounted(self) -> Path:
        """The mount point."""
        return self._folder

    def take(self, name: str, target: Path) -> Intake:
        """Take the expected file out; only after the container is dead."""
        self.require_room()
        room = os.statvfs(self._folder)
        # A large write that does not fit takes only a part of what was left, or nothing of it.
        left = max(room.f_blocks // 64, min(_LARGE_WRITE // room.f_frsize, room.f_blocks // 8))
        full = room.f_bavail <= left or room.f_ffree == 0
        return take_file(self._folder, name, target, cap=self._cap, full=full)

    def require_room(self) -> None:
        """Require that the host's own disk can hold all that may be written here.

        The file grows as it is filled. Where the disk under it is full, a program's writes fail, or seem to succeed.

        Raises:
            HostFault: It cannot.
        """
        room, grown = os.statvfs(self._image.parent), self._image.stat()
        missing = grown.st_size - grown.st_blocks * 512 - room.f_bavail * room.f_frsize
        if missing > 0:
            raise HostFault(
                f"the workspace's disk has no room for an output of {self._cap} bytes: {missing} are missing",
                where=str(self._image.parent),
                remedy="make room, or name another workspace: in the settings, then: proctor resume RUN",
            )


@contextlib.contextmanager
def loop_place(desk: Path, *, name: str, budget: Budget, uid: int, gid: int, mode: int = 0o755) -> Iterator[LoopPlace]:
    """Make and mount an output; unmounted at the end, its file deleted with the desk.

    Args:
        desk: The job's folder.
        name: A neutral name: containers can see it.
        budget: Says how much it holds.
        uid: Who may write there.
        gid: As uid.
        mode: Of the folder; 0o777 where it is not known who will write.
    """
    folder = desk / name
    mounts.mount_new(
        desk / f"{name}.img",
        folder,
        blanks=desk.parent,
        size=budget.output_bytes,
        inodes=budget.output_files,
        uid=uid,
        gid=gid,
        mode=mode,
    )
    try:
        place = LoopPlace(desk / f"{name}.img", folder, budget)
        place.require_room()
        yield place
    finally:
        mounts.unmount(folder)


class VolumePlace(_HeldPlace):
    """A volume of the budget's size in memory, kept alive by a holder container of ours."""

    def __init__(self, engine: Engine, volume: str, holder: str, budget: Budget) -> None:
        self._engine, self._volume, self._holder = engine, volume, holder
        self._cap, self._files = budget.output_bytes, budget.output_files

    @property
    def mounted(self) -> str:
        """The volume's name."""
        return self._volume

    def take(self, name: str, target: Path) -> Intake:
        """Take the expected file out; only after the container is dead."""
        chunks = self._engine.read_tree(self._holder, HOLDER_MOUNT)
        try:
            return self._take_from(chunks, name, target)
        except tarfile.TarError as error:
            raise HostFault(f"what the engine read of the output is damaged: {error}", where=self._volume) from error

    def _take_from(self, chunks: Iterable[bytes], name: str, target: Path) -> Intake:
        found: Intake | None = None
        others = _Others(name)
        count, used, linked, cut = 0, 0, False, False
        with tarfile.open(fileobj=IterableReader(chunks), mode="r|", bufsize=_BLOCK) as tar:
            for member in tar:
                # The stream begins with the folder itself.
                inside = _inside(member.name)
                if not inside:
                    continue
                if member.size < 0:
                    raise tarfile.ReadError("a size below zero")
                count += 1
                used += -(-member.size // _PAGE) * _PAGE
                if "/" not in inside:
                    others.add(inside, folder=member.isdir())
                if inside == name and found is None:
                    found = self._take_member(tar, member, name, target)
                elif member.islnk() and _inside(member.linkname) == name:
                    linked = True  # the stream holds a file once, under the first of its names
                if used > self._cap or count > self._files:
                    cut = True
                    break
        full = used > self._cap - _PAGE or count >= self._files - 1
        others_count = count - (found is not None)
        found = found or self._unseen(name, cut=cut)
        if found.refusal is None and (linked or cut):
            target.unlink()
            several = Intake(file=name, refusal=IntakeRefusal.SEVERAL_LINKS, detail=_SEVERAL)
            found = several if linked else self._beside_too_much(name)
        return Intake(
            file=name, size=found.size, refusal=found.refusal, detail=found.detail,
            other_entries=others_count, full=full, other_names=others.kinds,
        )  # fmt: skip

    def _beside_too_much(self, name: str) -> Intake:
        """More than can be written, so files with holes; what would have come after them was not looked at."""
        detail = f"more than the {self._cap} bytes or {self._files} files allowed beside it"
        return Intake(file=name, refusal=IntakeRefusal.TOO_LARGE, detail=detail)

    def _unseen(self, name: str, *, cut: bool) -> Intake:
        """What is not in the stream is not there, or is a socket: engines leave those out."""
        facts = self._engine.read_file(self._holder, f"{HOLDER_MOUNT}/{name}", max_bytes=0)
        if facts is None:
            return Intake(file=name, refusal=IntakeRefusal.MISSING)
        if cut:
            return self._beside_too_much(name)
        if facts.kind is not FileKind.OTHER:
            raise HostFault("what the engine read of the output is not whole", where=f"{self._volume}: {name}")
        return Intake(file=name, refusal=IntakeRefusal.NOT_REGULAR, detail="a socket")

    def _take_member(self, tar: tarfile.TarFile, member: tarfile.TarInfo, name: str, target: Path) -> Intake:
        if not member.isreg():
            kind = _SEVERAL if member.islnk() else _TAR_KINDS.get(member.type, "not a regular file")
            refusal = IntakeRefusal.SEVERAL_LINKS if member.islnk() else IntakeRefusal.NOT_REGULAR
            return Intake(file=name, refusal=refusal, detail=kind)
        if member.size > self._cap:
            detail = f"{member.size} bytes of {self._cap} allowed"
            return Intake(file=name, refusal=IntakeRefusal.TOO_LARGE, detail=detail)
        source = tar.extractfile(member)
        assert source is not None
        with target.open("xb") as sink:
            while chunk := source.read(_BLOCK):
                sink.write(chunk)
        return Intake(file=name, size=member.size)


def _inside(name: str) -> str:
    """A name of the stream without the folder that all of it is in."""
    return name.partition("/")[2]


HOLDER_MOUNT = "/hold"
_HOLD = ("python3", "-c", "import signal; signal.pause()")


def holder_spec(*, image: str, name: str, volume: str, labels: dict[str, str], uid: int, gid: int) -> ContainerSpec:
    """Our own container that keeps a volume in memory alive while the participant's comes and goes."""
    return ContainerSpec(
        image_id=image, name=name, labels=labels, entrypoint=_HOLD, user=f"{uid}:{gid}",
        volumes=(VolumeMount(volume=volume, target=HOLDER_MOUNT, read_only=True),),
        memory=64 << 20, shm=1 << 20, pids=16,
    )  # fmt: skip


@contextlib.contextmanager
def volume_place(
    engine: Engine,
    *,
    helper: str,
    name: str,
    labels: dict[str, str],
    budget: Budget,
    uid: int,
    gid: int,
    mode: int = 0o700,
    put_away: Callable[[Callable[[], None]], None] = lambda action: action(),
) -> Iterator[VolumePlace]:
    """Make a volume and its holder; both gone at the end.

    Args:
        engine: Where.
        helper: ID of our helper image.
        name: A neutral name: containers can see it.
        labels: Ours, so that a sweep finds both.
        budget: Says how much it holds.
        uid: Who may write there.
        gid: As uid.
        mode: Of the folder; 0o777 where it is not known who will write.
        put_away: Does what removes them, now or later.
    """
    spec = holder_spec(image=helper, name=f"{name}-hold", volume=name, labels=labels, uid=uid, gid=gid)
    volume = VolumeSpec(
        name=name, labels=labels, size=budget.output_bytes, inodes=budget.output_files, uid=uid, gid=gid, mode=mode
    )  # fmt: skip
    holder = ""
    try:
        engine.create_volume(volume)  # its answer may be lost, and the volume be there all the same
        holder = engine.create(spec)
        engine.start(holder)
        yield VolumePlace(engine, name, holder, budget)
    finally:
        try:
            put_away(functools.partial(engine.remove, holder or spec.name))
        finally:
            put_away(functools.partial(engine.remove_volume, name))
