"""Videos become folders of frames, once: a case's folder is there whole, or not at all."""

import contextlib
import fcntl
import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from runner import __version__
from runner.challenge.cases import one_case
from runner.dataset import case_names
from runner.errors import HostUnfit, UsageError
from runner.quantities import show_bytes
from runner.store import write_whole
from runner.video import frames_at, video_facts

if TYPE_CHECKING:
    from PIL.Image import Image

RECORD = "prepared.json"
"""File beside a case's frames that says what they were made from."""

ImageFormat = Literal["png", "jpg"]
IMAGE_FORMATS: tuple[ImageFormat, ...] = ("png", "jpg")

_DIGITS = 5
_HIGHEST_FPS = 1000
_RESERVE = 256 << 20
_LOOK_EVERY = 25
_HALF = re.compile(r"\..+\.[0-9a-f]{8}\.partial")


class Prepared(BaseModel):
    """What stands in ``prepared.json``.

    Attributes:
        source: The video's file name.
        source_sha256: Hash of its bytes.
        fps: Frames a second, as a fraction.
        format: Of the images.
        frames: How many there are.
        frames_sha256: Hash over ``<name> NUL <hash of the file> LF`` of every frame, in order.
        proctor: Version that made them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str
    source_sha256: str
    fps: str
    format: ImageFormat
    frames: int
    frames_sha256: str
    proctor: str


@dataclass(frozen=True, kw_only=True)
class PrepareRequest:
    """What ``proctor data prepare`` is asked for.

    Attributes:
        videos: Folder of the videos.
        out: Folder that gets a folder a case.
        fps: Frames a second.
        pattern: Path of a case's video below ``videos``, with ``{case}``.
        format: Of the images.
    """

    videos: Path
    out: Path
    fps: Fraction
    pattern: str = "{case}.mp4"
    format: ImageFormat = "png"


@dataclass(frozen=True, kw_only=True)
class Advance:
    """How far it is.

    Attributes:
        case: The case at hand.
        done: Seconds of video that are done, of all cases.
        total: Seconds of video there are.
    """

    case: str
    done: float
    total: float


@dataclass(frozen=True, kw_only=True)
class PreparedCase:
    """What came of one video.

    Attributes:
        case: Its name.
        record: What is there now; None where it failed.
        made: It was made now, and not before.
        problem: What is wrong; empty where nothing is.
    """

    case: str
    record: Prepared | None = None
    made: bool = False
    problem: str = ""


def parse_fps(text: str) -> Fraction:
    """Frames a second: ``1``, ``0.5``, ``29.97``, ``30000/1001``.

    Raises:
        UsageError: It is no such number, or not more than 0 and at most 1000.
    """
    written = re.fullmatch(r"\d{1,9}(?:\.\d{1,9}|/[1-9]\d{0,8})?", text)
    fps = Fraction(text) if written else Fraction(0)
    if not 0 < fps <= _HIGHEST_FPS:
        raise UsageError(
            f"--fps {text!r} is no number of frames a second above 0 and up to {_HIGHEST_FPS}",
            remedy="write it like 1, 0.5, 29.97 or 30000/1001",
        )
    return fps


def prepare(
    request: PrepareRequest, *, advance: Callable[[Advance], None], tell: Callable[[PreparedCase], None]
) -> tuple[PreparedCase, ...]:
    """Write the frames of every video that matches; a broken one does not stop the others.

    Args:
        request: What is asked for.
        advance: Is told how far it is.
        tell: Is told of each case as it ends.

    Raises:
        UsageError: The folder or the pattern is wrong, there is no video, or another process writes there.
        HostUnfit: The disk has no room.
    """
    names = _videos(request)
    request.out.mkdir(parents=True, exist_ok=True)
    with _alone(request.out):
        for entry in request.out.iterdir():
            if _HALF.fullmatch(entry.name):  # what one that was killed left
                shutil.rmtree(entry)
        seconds = {name: _seconds(_video(request, name)) for name in names}
        found: list[PreparedCase] = []
        for name in names:
            before = sum(seconds[one.case] for one in found)
            found.append(_case(request, name, _Meter(name, before, sum(seconds.values()), request.fps, advance)))
            tell(found[-1])
    return tuple(found)


def _videos(request: PrepareRequest) -> tuple[str, ...]:
    if not request.videos.is_dir():
        raise UsageError(f"there is no folder {str(request.videos)!r}", remedy="give the folder that holds the videos")
    try:
        one_case(request.pattern)
    except ValueError as error:
        raise UsageError(f"--pattern: {error}", remedy="write it like {case}.mp4 or {case}/video.mp4") from error
    names = tuple(
        name for name in case_names(request.videos, request.pattern, key="--pattern") if _video(request, name).is_file()
    )
    if not names:
        raise UsageError(
            f"no video matches {request.pattern!r}", where=str(request.videos), remedy="say how they lie with --pattern"
        )
    return names


def _video(request: PrepareRequest, name: str) -> Path:
    return request.videos / request.pattern.replace("{case}", name)


def _seconds(video: Path) -> float:
    """Length as the header says; a video that cannot be opened takes no time, and is told of in its turn."""
    try:
        return video_facts(video).seconds
    except UsageError:
        return 0.0


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the folder; the kernel lets it go when we die."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError(
                f"another process prepares data in {str(folder)!r}", remedy="wait for it, or give another folder"
            ) from error
        yield
    finally:
        os.close(descriptor)


class _Meter:
    """Tells how far it is, from the number of frames written."""

    def __init__(
        self, case: str, before: float, total: float, fps: Fraction, advance: Callable[[Advance], None]
    ) -> None:
        self._case, self._before, self._total, self._fps, self._advance = case, before, total, fps, advance

    def __call__(self, frames: int) -> None:
        done = min(self._before + float(frames / self._fps), self._total)
        self._advance(Advance(case=self._case, done=done, total=self._total))


def _case(request: PrepareRequest, name: str, meter: _Meter) -> PreparedCase:
    video, folder = _video(request, name), request.out / name
    meter(0)
    try:
        digest = _hash_of(video)
        if folder.exists():
            return _there(request, name, folder, digest)
        return PreparedCase(case=name, record=_write(request, video, folder, digest, meter), made=True)
    except UsageError as error:
        return PreparedCase(case=name, problem=f"{error.where}: {error.what}" if error.where else error.what)


def _there(request: PrepareRequest, name: str, folder: Path, digest: str) -> PreparedCase:
    """A folder that is there already: the same is left alone, another is never touched."""
    try:
        record = Prepared.model_validate_json((folder / RECORD).read_bytes())
    except (OSError, ValidationError):
        return PreparedCase(case=name, problem=f"{folder} is there and was not made here; remove it, or give another")
    wanted = {"source_sha256": digest, "fps": str(request.fps), "format": request.format}
    other = [key for key, value in wanted.items() if getattr(record, key) != value]
    if other:
        words = {"source_sha256": "another video", "fps": f"fps {record.fps}", "format": record.format}
        found = " and ".join(words[key] for key in other)
        return PreparedCase(case=name, problem=f"{folder} was made from {found}; remove it, or give another folder")
    frames = sum(entry.suffix == f".{record.format}" for entry in folder.iterdir())
    if frames != record.frames:
        what = f"{folder} has {frames} frames, {RECORD} says {record.frames}; remove it, and it is made anew"
        return PreparedCase(case=name, problem=what)
    return PreparedCase(case=name, record=record)


def _hash_of(path: Path) -> str:
    try:
        with path.open("rb") as source:
            return hashlib.file_digest(source, "sha256").hexdigest()
    except OSError as error:
        raise UsageError(f"it cannot be read: {error.strerror}", where=str(path)) from error


def _write(request: PrepareRequest, video: Path, folder: Path, digest: str, meter: _Meter) -> Prepared:
    half = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.partial")
    half.mkdir()
    try:
        frames = _Frames(half, request.format, video_facts(video).seconds, request.fps)
        for image in frames_at(video, request.fps):
            frames.add(image)
            meter(frames.count)
        record = Prepared(
            source=video.name, source_sha256=digest, fps=str(request.fps), format=request.format,
            frames=frames.count, frames_sha256=frames.digest(), proctor=__version__,
        )  # fmt: skip
        write_whole(half / RECORD, (record.model_dump_json(indent=1) + "\n").encode())
        half.rename(folder)
    except BaseException:
        with contextlib.suppress(OSError):
            shutil.rmtree(half)
        raise
    return record


class _Frames:
    """Writes frames into a folder, hashes them, and looks that the disk keeps some room."""

    def __init__(self, folder: Path, kind: ImageFormat, seconds: float, fps: Fraction) -> None:
        self._folder, self._kind = folder, kind
        self._expected = int(seconds * fps) + 1
        self._digits = max(_DIGITS, len(str(self._expected)))
        self._total, self._bytes = hashlib.sha256(), 0
        self.count = 0

    def add(self, image: "Image") -> None:
        if self.count >= 10**self._digits:
            what = f"it has more than {self.count} frames, and its header said {self._expected}"
            raise UsageError(what, where=self._folder.name)
        path = self._folder / f"{self.count:0{self._digits}d}.{self._kind}"
        if self._kind == "png":
            image.save(path, compress_level=4)
        else:
            image.save(path, quality=95)
        content = path.read_bytes()
        self._total.update(f"{path.name}\0{hashlib.sha256(content).hexdigest()}\n".encode())
        self._bytes += len(content)
        self.count += 1
        if self.count % _LOOK_EVERY == 1:
            self._require_room()

    def _require_room(self) -> None:
        left = max(self._expected - self.count, 0) * self._bytes // self.count
        free = shutil.disk_usage(self._folder).free
        if free < left + _RESERVE:
            raise HostUnfit(
                f"the frames still to be written take about {show_bytes(left)}, and {show_bytes(free)} are free",
                where=str(self._folder.parent),
                remedy="make room, or give a folder on another disk; cases that are done are kept",
            )

    def digest(self) -> str:
        return self._total.hexdigest()
