"""Label images on their way to a scorer: through a pipe, one after the other, so that few are in memory.

A thread of the parent feeds the pipe while the child reads it. Each side of a case, reference and prediction, has a
pipe and a thread of its own: a scorer may read them in step, or one to its end before the other, and the other's thread
waits meanwhile. A scorer may also stop early. Then the pipe is closed at our end once the child is gone, writing fails,
and the thread ends.

The child's reader knows which frame comes next. Where another one comes, or none, it is not the scorer's fault: a child
that is started a second time, say, finds the pipe half empty.
"""

import os
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from runner.errors import HostFault, ScorerFault
from runner.formats.contract import LabelImages

_HEAD = struct.Struct("<8sIII")
_MARK = b"\x91labels\n"


class BrokenStreamError(Exception):
    """Images did not arrive as they were sent; not the scorer's fault."""


class ReadTwiceError(Exception):
    """A scorer asks for images a second time."""


@contextmanager
def fed(images: LabelImages) -> Iterator[int]:
    """Feed images into a pipe for as long as the block runs; for the parent.

    Yields:
        The pipe's end for ``arriving``; it stays open until the block ends.

    Raises:
        RunnerError: An image could not be read: whatever reading it raised, in place of what came of that in the block.
    """
    feeder = _Feeder(images)
    try:
        yield feeder.reader
    except (ScorerFault, HostFault) as failure:
        feeder.end()
        if feeder.error is not None:
            raise feeder.error from failure
        raise
    finally:
        feeder.end()
    if feeder.error is not None:
        raise feeder.error


class _Feeder:
    def __init__(self, images: LabelImages) -> None:
        self.error: Exception | None = None
        self._images = images
        self.reader, self._writer = os.pipe2(os.O_CLOEXEC)
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="label images", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Close the pipe and wait for the thread, which may be reading a few last images."""
        if not self._ended:
            self._ended = True
            os.close(self.reader)
            self._thread.join()

    def _run(self) -> None:
        try:
            for number, image in enumerate(self._images):
                _write(self._writer, _HEAD.pack(_MARK, number, *image.shape))
                _write(self._writer, np.ascontiguousarray(image).data.cast("B"))
        except BrokenPipeError:
            pass  # whoever reads has enough, or is gone
        except Exception as error:  # noqa: BLE001  raised where the block ends
            self.error = error
        finally:
            os.close(self._writer)


def _write(descriptor: int, data: bytes | memoryview) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def arriving(descriptor: int, *, frames: int, side: str) -> LabelImages:
    """The images that arrive in a pipe; for the child.

    Args:
        descriptor: What ``fed`` yields.
        frames: How many there are.
        side: Whose they are, for sentences.

    Returns:
        Images that can be read once.
    """
    begun = False

    def read() -> Iterator[NDArray[np.uint8]]:
        nonlocal begun
        if begun:
            raise ReadTwiceError(f"the images of the {side} can be read once; keep what is needed of them")
        begun = True
        return (_next(descriptor, number) for number in range(frames))

    return LabelImages(frames=frames, read=read)


def _next(descriptor: int, due: int) -> NDArray[np.uint8]:
    head = bytearray(_HEAD.size)
    _fill(descriptor, memoryview(head))
    mark, number, height, width = _HEAD.unpack(head)
    if (mark, number) != (_MARK, due):
        raise BrokenStreamError
    image = np.empty((height, width), np.uint8)
    _fill(descriptor, image.data.cast("B"))
    return image


def _fill(descriptor: int, room: memoryview) -> None:
    while room:
        count = os.readv(descriptor, [room])
        if not count:
            raise BrokenStreamError
        room = room[count:]
