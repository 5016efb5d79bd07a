"""Lays a frame out for a container when it is its turn, and takes it away once it is answered.

Its images are copied, or written, beside the container's view while earlier frames are at work: an inode of its own,
with a constant time and a name that says nothing. To place it is then to rename it, within one file system, into the
folder that is mounted. Before that there is nothing of it in the container to be found, watched or waited for.
"""

import base64
import os
import shutil
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from runner.challenge import FrameWay
from runner.streaming.frame import FrameInput, ImageBytes, ImageFile, StreamedFrame, TableRow
from runner.streaming.protocol import frame_message

_CONSTANT_TIME = (1_000_000_000, 1_000_000_000)


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A frame that waits for its turn: its message, and names of its images, the same in both folders."""

    message: bytes
    names: tuple[str, ...]


class Placing:
    """Where frames wait, and where a container finds them.

    Args:
        view: The folder that is mounted; on one file system with ``staging``.
        staging: The folder that is not.
        mount: Where ``view`` lies in the container.
    """

    def __init__(self, *, view: Path, staging: Path, mount: str) -> None:
        self._view = view
        self._staging = staging
        self._mount = mount.rstrip("/")
        self._placed: deque[tuple[int, Prepared]] = deque()

    def prepare(self, frame: StreamedFrame, *, way: FrameWay) -> Prepared:
        """Copy a frame's images beside the view, or into its message."""
        names: list[str] = []
        told: dict[str, object] = {}
        for number, (name, given) in enumerate(frame.inputs.items()):
            if isinstance(given, TableRow):
                told[name] = {"header": given.header, "row": given.row}
            elif way is FrameWay.INLINE:
                told[name] = {"image": base64.b64encode(_content(given)).decode()}
            else:
                names.append(f"{number}-{frame.index:08d}{_suffix(given)}")
                self._stage(given, self._staging / names[-1])
                told[name] = {"path": f"{self._mount}/{names[-1]}"}
        message = frame_message(index=frame.index, time=frame.time, inputs=told)
        return Prepared(message=message, names=tuple(names))

    def place(self, index: int, prepared: Prepared) -> None:
        """Let the container find a frame."""
        for name in prepared.names:
            (self._staging / name).rename(self._view / name)
        self._placed.append((index, prepared))

    def remove_to(self, index: int) -> None:
        """Take away a frame and those before it, once it is answered."""
        while self._placed and self._placed[0][0] <= index:
            for name in self._placed.popleft()[1].names:
                (self._view / name).unlink()

    def discard(self, prepared: Prepared) -> None:
        """Forget a frame that was never placed."""
        for name in prepared.names:
            (self._staging / name).unlink()

    @staticmethod
    def _stage(given: FrameInput, target: Path) -> None:
        if isinstance(given, ImageFile):
            shutil.copyfile(given.path, target)
        else:
            target.write_bytes(_content(given))
        target.chmod(0o444)
        os.utime(target, _CONSTANT_TIME)


def _content(given: FrameInput) -> bytes:
    assert isinstance(given, ImageFile | ImageBytes)
    return given.path.read_bytes() if isinstance(given, ImageFile) else given.content


def _suffix(given: FrameInput) -> str:
    assert isinstance(given, ImageFile | ImageBytes)
    return (given.path.suffix if isinstance(given, ImageFile) else given.suffix).lower()


class Ahead:
    """Prepares the frames of a source in a thread of its own, so many ahead.

    Args:
        source: The frames, in order.
        prepare: Makes one ready.
        depth: How many are ready, or being made so, while one is at work.
    """

    def __init__(
        self, source: Iterator[StreamedFrame], prepare: Callable[[StreamedFrame], Prepared], *, depth: int
    ) -> None:
        self._source = source
        self._prepare = prepare
        self._depth = depth
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="frames ahead")
        self._due: list[Future[Prepared | None]] = []

    def __enter__(self) -> "Ahead":
        self.go_on()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(cancel_futures=True)

    def go_on(self) -> None:
        """Begin with frames until ``depth`` are due: once one was released, so as not to hold it up."""
        while len(self._due) < self._depth:
            self._due.append(self._pool.submit(self._next))

    def ready(self, *, seconds: float) -> bool:
        """Whether the next frame, or that there is none, is known, waiting for it ``seconds`` at most."""
        return bool(wait((self._due[0],), timeout=seconds).done)

    def take(self) -> Prepared | None:
        """The next frame, None after the last; raises what reading or copying it raised."""
        return self._due.pop(0).result()

    def _next(self) -> Prepared | None:
        frame = next(self._source, None)
        return None if frame is None else self._prepare(frame)
