"""What cutting and copying a video have in common: its packets and their times, a new file, and why it cannot be."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from runner.errors import UsageError

if TYPE_CHECKING:
    import av.container
    import av.packet
    import av.video

_PLAIN = {"avoid_negative_ts": "disabled", "fflags": "+bitexact"}
"""Times are kept as they are, and there is no mark of the writing program, and no random name."""

_ANEW = "write it anew, as in: ffmpeg -i OLD -an -c:v libx264 NEW.mp4"


def timed_packets(
    container: "av.container.InputContainer", path: Path
) -> Iterator["av.packet.Packet[av.video.VideoStream]"]:
    """Packets of the video, in the order of the file.

    Raises:
        UsageError: One has no time.
    """
    for packet in container.demux(container.streams.video[0]):
        if packet.size:
            if packet.pts is None:
                raise uncuttable(path, "some of its packets have no time")
            yield packet


def time_of(packet: "av.packet.Packet[av.video.VideoStream]") -> int:
    """When its frame is shown, in ticks; of one of ``timed_packets``."""
    assert packet.pts is not None
    return packet.pts


def tick_of(stream: "av.video.VideoStream") -> Fraction:
    """Seconds a tick of its clock."""
    return Fraction(stream.time_base or Fraction(1, 1000))


def steady_rate(stream: "av.video.VideoStream", shown: Sequence[int]) -> Fraction | None:
    """Frames a second of the whole file where these frames keep it: else it is a mean, and tells of frames to come.

    Args:
        stream: The video.
        shown: When its frames are shown, in ticks, ascending.
    """
    rate = stream.average_rate
    if not rate:
        return None
    tick = tick_of(stream)
    return rate if all(abs((b - a) * tick - 1 / rate) <= tick for a, b in pairwise(shown)) else None


@contextmanager
def writing(source: Path, target: Path) -> Iterator["av.container.OutputContainer"]:
    """A new file that says nothing of when, by whom and how it was made.

    Args:
        source: What errors are about.
        target: The file; its suffix says what kind of file it becomes.

    Raises:
        UsageError: A file of that kind cannot hold what is put into it.
        OSError: It cannot be written.
    """
    import av  # noqa: PLC0415  it loads FFmpeg

    try:
        with av.open(str(target.absolute()), "w", options=dict(_PLAIN)) as sink:
            yield sink
    except (av.error.FFmpegError, ValueError) as error:
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror, str(target)) from error
        raise uncuttable(source, f"a {target.suffix or 'nameless'} file cannot hold it") from error


def too_short(path: Path, frames: int, count: int) -> UsageError:
    """The error of a video that has fewer frames than are asked for."""
    return UsageError(
        f"the video has {count} frames, {frames} were asked for", where=str(path), remedy="cut it within its length"
    )


def uncuttable(path: Path, reason: str) -> UsageError:
    """The error of a video that can be read, and yet neither cut nor copied."""
    return UsageError(f"the video cannot be cut: {reason}", where=str(path), remedy=_ANEW)
