"""Reads the organisers' own videos: how long they are, and their frames.

The frame at a time is the last one that is shown at or before it. Times count from the first frame of the file. A
file's clock has ticks, and a time written in it may be rounded: half a tick, but never more than half a millisecond,
is forgiven, so that a video of 24 frames a second with a clock of milliseconds gives each of them once.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from runner.errors import UsageError

if TYPE_CHECKING:
    import av.container
    from PIL.Image import Image

_MOST_ROUNDING = Fraction(1, 2000)
_MOST_MISSING = 1
"""Seconds that may be missing at the end of a video, against what its header says."""

_LONGEST_GAP = 3600
"""Seconds between two frames; more is a broken clock, which would make frames without end."""

_LONGEST_REASON = 200


@dataclass(frozen=True, kw_only=True)
class VideoFacts:
    """What the header of a video says.

    Attributes:
        seconds: How long it is; 0 where it does not say.
        width: Pixels a row.
        height: Rows.
    """

    seconds: float
    width: int
    height: int


def video_length(path: Path) -> int:
    """Number of frames of a video file, counted by its packets; nothing is decoded.

    Raises:
        UsageError: It is no video that can be read.
    """
    with opened_video(path) as container:
        return sum(1 for packet in container.demux(container.streams.video[0]) if packet.size)


def video_facts(path: Path) -> VideoFacts:
    """Read the header of a video file.

    Raises:
        UsageError: It is no video that can be read.
    """
    with opened_video(path) as container:
        stream = container.streams.video[0]
        return VideoFacts(
            seconds=float(_stated_seconds(container) or 0), width=stream.codec_context.width,
            height=stream.codec_context.height,
        )  # fmt: skip


def frames_at(path: Path, fps: Fraction) -> Iterator["Image"]:
    """The frames at the times 0, 1/fps, 2/fps, … until the video ends, decoded one after the other.

    Args:
        path: The video; marks that it is to be shown turned are not followed.
        fps: Frames a second; where it is more than the video has, frames come again.

    Yields:
        RGB images.

    Raises:
        UsageError: It is no video, it is damaged, or it ends before its header says so.
    """
    with opened_video(path) as container:
        stream = container.streams.video[0]
        stream.thread_type = "AUTO"
        tick = Fraction(stream.time_base or Fraction(1, 1000))
        rounding = min(tick / 2, _MOST_ROUNDING)
        frame_seconds = 1 / Fraction(stream.average_rate or stream.base_rate or 25)
        count, shown, last = 0, None, Fraction(0)
        for time, frame in _timed(container, path):
            while shown is not None and time > count / fps + rounding:
                yield _rgb(shown)
                count += 1
            shown, last = frame, time
        if shown is None:
            raise broken_video(path, "it holds no frame")
        end = last + frame_seconds
        stated = _stated_seconds(container)
        if stated is not None and end + _MOST_MISSING < stated:
            raise broken_video(path, f"it ends after {float(end):.1f} s, its header says {float(stated):.1f} s")
        while count / fps + 2 * rounding < end:
            yield _rgb(shown)
            count += 1


def every_frame(path: Path) -> Iterator["Image"]:
    """Every frame of a video, in the order in which they are shown, decoded one after the other.

    Args:
        path: The video; marks that it is to be shown turned are not followed.

    Yields:
        RGB images.

    Raises:
        UsageError: It is no video that can be read whole.
    """
    with opened_video(path) as container:
        container.streams.video[0].thread_type = "AUTO"
        for _, frame in _timed(container, path):
            yield _rgb(frame)


def _rgb(frame: "av.VideoFrame") -> "Image":
    image: Image = frame.to_image()  # type: ignore[no-untyped-call]
    return image


def _timed(container: "av.container.InputContainer", path: Path) -> Iterator[tuple[Fraction, "av.VideoFrame"]]:
    """Decoded frames with their time in seconds since the first."""
    start: Fraction | None = None
    before = Fraction(0)
    for frame in container.decode(video=0):
        if frame.pts is None or frame.time_base is None:
            raise broken_video(path, "a frame has no time")
        time = frame.pts * Fraction(frame.time_base)
        start = time if start is None else start
        time -= start
        if frame.is_corrupt:
            raise broken_video(path, f"the frame at {float(time):.2f} s is damaged")
        if not 0 <= time - before <= _LONGEST_GAP:
            raise broken_video(path, f"its clock jumps from {float(before):.2f} s to {float(time):.2f} s")
        yield time, frame
        before = time


def _stated_seconds(container: "av.container.InputContainer") -> Fraction | None:
    """What the header says of the length; of the whole file only where it holds nothing but the video.

    Some containers count the length of the whole from 0 and not from the first frame.
    """
    stream = container.streams.video[0]
    if stream.duration is not None and stream.time_base is not None:
        return stream.duration * Fraction(stream.time_base)
    if container.duration is not None and len(container.streams) == 1:
        return Fraction(container.duration - max(container.start_time, 0), 1_000_000)
    return None


@contextmanager
def opened_video(path: Path) -> Iterator["av.container.InputContainer"]:
    """A video, open for reading.

    Raises:
        UsageError: It is none that can be read, or reading it failed meanwhile.
    """
    import av  # noqa: PLC0415  it loads FFmpeg

    try:
        with av.open(str(path.absolute())) as container:
            if not container.streams.video:
                raise broken_video(path, "it holds no video")
            yield container
    except av.error.FFmpegError as error:
        raise broken_video(path, (error.strerror or type(error).__name__)[:_LONGEST_REASON]) from error


def broken_video(path: Path, reason: str) -> UsageError:
    """The error of a video that cannot be read."""
    return UsageError(
        f"the video cannot be read: {reason}", where=str(path), remedy="give a video that FFmpeg can read whole"
    )
