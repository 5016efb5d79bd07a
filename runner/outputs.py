"""Gives a job a fresh, sized place to write and takes its file out safely once the container is dead.

Nothing in that place is trusted: it is walked by directory handles, no link is followed, only a regular file with one
link and the expected name is taken, by handle, up to its cap.
"""

import contextlib
import functools
import itertools
import os
import shutil
import stat
import tarfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from runner import mounts
from runner.budget import Budget
from runner.due_tree import DueTree
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
    (stat.S_ISREG, "a file"),
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

    def take(self, wanted: "Wanted", target: Path) -> Intake:
        """Take what is expected out; only after the container is dead."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is taken out of an output.

    Attributes:
        path: Path below the output folder: of a file, or of the folder that ``files`` lie in.
        files: Names of the files of that folder; empty where ``path`` is a file. What is not there is not taken: the
            format says what is missing.
        siblings: What else is expected at the top of the output, or beside the file; it counts for nothing.
        most: Bytes that may be taken; None: as many as the output may hold.
        due: All that is due in the output, for whichever task and case: what else is there is counted. None: it is not.
    """

    path: str
    files: tuple[str, ...] = ()
    siblings: frozenset[str] = frozenset()
    most: int | None = None
    due: DueTree | None = None

    @property
    def parent(self) -> str:
        """The folder that is looked around in: the file's own, or the one above the folder."""
        return self.path.rpartition("/")[0]

    @property
    def name(self) -> str:
        """The file's own name, or the folder's."""
        return self.path.rpartition("/")[2]


def _kind(mode: int) -> str:
    return next((word for test, word in _KINDS if test(mode)), "not a regular file")


class _Others:
    """The other entries of an output: how many, and what kinds of names they have."""

    def __init__(self, expected: str, siblings: frozenset[str] = frozenset()) -> None:
        self._expected, self._siblings = expected, siblings
        self._kinds: set[NameKind] = set()
        self.count = 0

    @property
    def kinds(self) -> tuple[NameKind, ...]:
        return tuple(sorted(self._kinds))

    def add(self, name: str, *, folder: bool) -> None:
        if name != self._expected and name not in self._siblings:
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


def _look_around(descriptor: int, wanted: Wanted) -> _Others:
    others = _Others(wanted.name, wanted.siblings)
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


def take_file(folder: Path, wanted: Wanted, target: Path, *, cap: int, full: bool) -> Intake:
    """Take a file, or a folder's expected files, out.

    Args:
        folder: The output folder; the container is dead.
        wanted: What is expected.
        target: A fresh file to copy to, or a fresh folder; not made where it is refused.
        cap: Bytes it may have in all.
        full: The folder's file system is full.
    """
    cap = cap if wanted.most is None else min(cap, wanted.most)
    root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        device = os.fstat(root).st_dev
        stray = _count_stray(root, wanted.due, device=device) if wanted.due is not None else 0
        with contextlib.ExitStack() as stack:
            try:
                above = _descend(root, wanted.parent, device=device, stack=stack)
            except _NoFolderError as error:
                others = _look_around(root, replace(wanted, path=error.name))
                refuse = _Refusing(wanted.path, others=others, stray=stray, full=full)
                return refuse(error.refusal, error.detail)
            refuse = _Refusing(wanted.path, others=_look_around(above, wanted), stray=stray, full=full)
            if wanted.files:
                return _take_files(above, wanted, target, cap=cap, device=device, refuse=refuse)
            return _take_one(above, wanted.name, target, cap=cap, device=device, refuse=refuse)
    finally:
        os.close(root)


class _NoFolderError(Exception):
    """A folder on the way to what is expected is none."""

    def __init__(self, name: str, refusal: IntakeRefusal, detail: str = "") -> None:
        super().__init__(name)
        self.name, self.refusal, self.detail = name, refusal, detail


def _count_stray(root: int, due: DueTree, *, device: int) -> int:
    """How many entries are not due; folders that are not are not looked into."""
    count = 0
    for folder in ("", *due.folders):
        with contextlib.ExitStack() as stack, contextlib.suppress(_NoFolderError):
            here = _descend(root, folder, device=device, stack=stack)
            start = f"{folder}/" if folder else ""
            with os.scandir(here) as entries:
                strays = (entry for entry in entries if due.is_stray(f"{start}{entry.name}"))
                count += sum(1 for _ in itertools.islice(strays, _MAX_ENTRIES - count))
    return count


def _descend(root: int, path: str, *, device: int, stack: contextlib.ExitStack) -> int:
    """Go down to a folder, name by name; no link is followed, and no other file system entered."""
    here = root
    for name in filter(None, path.split("/")):
        try:
            handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
        except FileNotFoundError:
            raise _NoFolderError(name, IntakeRefusal.MISSING) from None
        stack.callback(os.close, handle)
        facts = os.fstat(handle)
        if not stat.S_ISDIR(facts.st_mode):
            detail = f"in {name}, which is {_kind(facts.st_mode)}"
            raise _NoFolderError(name, IntakeRefusal.NOT_REGULAR, detail)
        if facts.st_dev != device:
            raise _NoFolderError(name, IntakeRefusal.NOT_REGULAR, f"in {name}, which is on another file system")
        here = _reopened(handle, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, mode=0o700)
        stack.callback(os.close, here)
    return here


def _take_one(above: int, name: str, target: Path, *, cap: int, device: int, refuse: "_Refusing") -> Intake:
    try:
        handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
    except FileNotFoundError:
        return refuse(IntakeRefusal.MISSING)
    try:
        return _take_handle(handle, target, cap=cap, device=device, refuse=refuse)
    finally:
        os.close(handle)


def _take_files(above: int, wanted: Wanted, target: Path, *, cap: int, device: int, refuse: "_Refusing") -> Intake:
    """Take the expected files of a folder; one that is refused is named, and refuses all."""
    with contextlib.ExitStack() as stack:
        try:
            folder = _descend(above, wanted.name, device=device, stack=stack)
        except _NoFolderError as error:
            return refuse(error.refusal, error.detail.replace(f"in {error.name}, which is ", ""))
        target.mkdir()
        size = 0
        for name in wanted.files:
            taken = _take_one(folder, name, target / name, cap=cap - size, device=device, refuse=refuse)
            if taken.refusal is IntakeRefusal.MISSING:
                continue
            if taken.refusal is not None:
                shutil.rmtree(target)
                return replace(taken, file=f"{wanted.path}/{name}")
            size += taken.size
    return refuse.taken(size)


class _Refusing:
    """Makes the intake of a file that is refused, or taken."""

    def __init__(self, file: str, *, others: _Others, stray: int, full: bool) -> None:
        self._intake = Intake(file=file, other_entries=others.count, other_names=others.kinds, full=full, stray=stray)

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
    source = _reopened(handle, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC, mode=0o600)
    try:
        size = _copy(source, target, cap)
    finally:
        os.close(source)
    if size > cap:  # it grew, or its size is not what stat says
        target.unlink()
        return refuse(IntakeRefusal.TOO_LARGE, f"more than the {cap} bytes allowed")
    return refuse.taken(size)


def _reopened(handle: int, flags: int, *, mode: int) -> int:
    """Open what a handle names, and not what may stand under its name by now."""
    path = f"/proc/self/fd/{handle}"
    try:
        return os.open(path, flags)
    except PermissionError:  # without root its rights bind us; it is our own user's
        Path(path).chmod(mode)
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

    def take(self, wanted: Wanted, target: Path) -> Intake:
        """Take what is expected out; only after the container is dead."""
        self.require_room()
        room = os.statvfs(self._folder)
        # A large write that does not fit takes only a part of what was left, or nothing of it.
        left = max(room.f_blocks // 64, min(_LARGE_WRITE // room.f_frsize, room.f_blocks // 8))
        full = room.f_bavail <= left or room.f_ffree == 0
        return take_file(self._folder, wanted, target, cap=self._cap, full=full)

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

    def take(self, wanted: Wanted, target: Path) -> Intake:
        """Take what is expected out; only after the container is dead."""
        chunks = self._engine.read_tree(self._holder, HOLDER_MOUNT)
        taking = _TakingFromTar(self._engine, self._holder, wanted, target, cap=self._cap, most_files=self._files)
        try:
            return taking.take(chunks)
        except tarfile.TarError as error:
            raise HostFault(f"what the engine read of the output is damaged: {error}", where=self._volume) from error


class _TakingFromTar:
    """Takes one output out of the stream in which an engine tells a volume's whole content."""

    def __init__(self, engine: Engine, holder: str, wanted: Wanted, target: Path, *, cap: int, most_files: int) -> None:
        self._engine, self._holder, self._wanted, self._target = engine, holder, wanted, target
        self._cap, self._files = cap, most_files
        self._most = cap if wanted.most is None else min(cap, wanted.most)
        names = [f"{wanted.path}/{name}" for name in wanted.files] or [wanted.path]
        self._targets = {name: target / name.rpartition("/")[2] if wanted.files else target for name in names}
        self._ways = {wanted.path[:place] for place, letter in enumerate(wanted.path) if letter == "/"}
        if wanted.files:
            self._ways.add(wanted.path)
        self._others = _Others(wanted.name, wanted.siblings)
        self._stray = 0
        self._size = 0
        self._seen: set[str] = set()
        self._refused: Intake | None = None
        self._folder_seen = False
        self._on_the_way = 0

    def take(self, chunks: Iterable[bytes]) -> Intake:
        count, used, cut = 0, 0, False
        if self._wanted.files:
            self._target.mkdir()
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
                self._meet(tar, member, inside)
                if used > self._cap or count > self._files:
                    cut = True
                    break
        full = used > self._cap - _PAGE or count >= self._files - 1
        found = self._found(cut=cut)
        if found.refusal is not None:
            self._forget()
        # The stream tells of every entry, at whatever depth; those on the way to what is expected are no others.
        others = count - len(self._seen) - self._on_the_way
        stray = min(self._stray, _MAX_ENTRIES)
        return replace(found, other_entries=others, full=full, other_names=self._others.kinds, stray=stray)

    def _meet(self, tar: tarfile.TarFile, member: tarfile.TarInfo, inside: str) -> None:
        above, _, name = inside.rpartition("/")
        self._stray += self._wanted.due is not None and self._wanted.due.is_stray(inside)
        if above == self._wanted.parent or (above == "" and name not in self._ways):
            self._others.add(name, folder=member.isdir())
            self._on_the_way += name in self._wanted.siblings
        if inside in self._ways:
            self._on_the_way += 1
            self._folder_seen |= inside == self._wanted.path
            if not member.isdir():
                which = "" if inside == self._wanted.path else f"in {name}, which is "
                self._refuse(self._wanted.path, IntakeRefusal.NOT_REGULAR, which + _member_kind(member))
        elif inside in self._targets and inside not in self._seen:
            self._seen.add(inside)
            self._take_member(tar, member, inside)
        elif member.islnk() and _inside(member.linkname) in self._targets:
            # The stream holds a file once, under the first of its names.
            self._refuse(_inside(member.linkname), IntakeRefusal.SEVERAL_LINKS, _SEVERAL)

    def _refuse(self, name: str, refusal: IntakeRefusal, detail: str) -> None:
        if self._refused is None:
            self._refused = Intake(file=name, refusal=refusal, detail=detail)

    def _take_member(self, tar: tarfile.TarFile, member: tarfile.TarInfo, name: str) -> None:
        if not member.isreg():
            refusal = IntakeRefusal.SEVERAL_LINKS if member.islnk() else IntakeRefusal.NOT_REGULAR
            self._refuse(name, refusal, _member_kind(member))
        elif self._size + member.size > self._most:
            self._refuse(name, IntakeRefusal.TOO_LARGE, f"{member.size} bytes of {self._most - self._size} allowed")
        elif self._refused is None:
            source = tar.extractfile(member)
            assert source is not None
            with self._targets[name].open("xb") as sink:
                while chunk := source.read(_BLOCK):
                    sink.write(chunk)
            self._size += member.size

    def _found(self, *, cut: bool) -> Intake:
        if self._refused is not None:
            return self._refused
        if self._wanted.files:
            if cut:
                return self._beside_too_much()
            for name in self._targets:
                if name not in self._seen and self._is_a_socket(name):
                    return Intake(file=name, refusal=IntakeRefusal.NOT_REGULAR, detail="a socket")
            if self._folder_seen:
                return Intake(file=self._wanted.path, size=self._size)
        elif self._seen:
            return self._beside_too_much() if cut else Intake(file=self._wanted.path, size=self._size)
        return self._unseen(cut=cut)

    def _forget(self) -> None:
        if self._wanted.files:
            shutil.rmtree(self._target)
        else:
            self._target.unlink(missing_ok=True)

    def _beside_too_much(self) -> Intake:
        """More than can be written, so files with holes; what would have come after them was not looked at."""
        detail = f"more than the {self._cap} bytes or {self._files} files allowed beside it"
        return Intake(file=self._wanted.path, refusal=IntakeRefusal.TOO_LARGE, detail=detail)

    def _is_a_socket(self, name: str) -> bool:
        """Whether what is not in the stream is there all the same: engines leave sockets out of it."""
        facts = self._engine.read_file(self._holder, f"{HOLDER_MOUNT}/{name}", max_bytes=0)
        if facts is not None and facts.kind is not FileKind.OTHER:
            raise HostFault("what the engine read of the output is not whole", where=f"{self._holder}: {name}")
        return facts is not None

    def _unseen(self, *, cut: bool) -> Intake:
        """What is not in the stream is not there, or is a socket, or comes after the point where it was left."""
        name = self._wanted.path
        if cut and self._engine.read_file(self._holder, f"{HOLDER_MOUNT}/{name}", max_bytes=0) is not None:
            return self._beside_too_much()
        if not cut and self._is_a_socket(name):
            return Intake(file=name, refusal=IntakeRefusal.NOT_REGULAR, detail="a socket")
        return Intake(file=name, refusal=IntakeRefusal.MISSING)


def _member_kind(member: tarfile.TarInfo) -> str:
    if member.isreg():
        return "a file"
    return _SEVERAL if member.islnk() else _TAR_KINDS.get(member.type, "not a regular file")


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
