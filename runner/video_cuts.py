"""Cuts videos bit for bit, at the places where no byte of a later frame is left.

A coded video stores frames in the order in which they are decoded, and a frame may stand before others that are shown
earlier, since those are made from it. After k packets a file can end only where these k are the first k frames shown;
elsewhere the prefix would lack frames, or hold one of the future. Which packet shows which frame is seen by decoding
the file once: not every container tells it. VP8, VP9 and AV1 store frames that are never shown inside the packets of
others, so with them, and with any coding not known here, only the places before a key frame are taken.

What a cut cannot take back is what the encoder knew when it chose how to code a frame: it may have looked ahead. A
lossless copy (``video_copies``) is coded by us, from the frames that are shown and nothing else.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from runner.video import broken_video, opened_video
from runner.video_packets import steady_rate, tick_of, time_of, timed_packets, too_short, uncuttable, writing

if TYPE_CHECKING:
    import av.container
    import av.packet
    import av.stream
    import av.video

_SHOWS_ALL = ("h264", "hevc", "mpeg4", "mpeg2video", "mpeg1video")
"""Codings that keep each frame in a packet of its own and hide none; one of key frames only needs no place here."""

_VOP = b"\x00\x00\x01\xb6"
"""Begins a frame of MPEG-4; "packed" files put two into a packet."""

_INTERLEAVED = 1
"""Seconds by which sound may come later in a file than the frames it belongs to; what comes later is left out."""


def cut_points(path: Path) -> tuple[int, ...]:
    """Lengths at which a video can be cut bit for bit, ascending, its whole length left out; decodes it once.

    Raises:
        UsageError: It is no video that can be read, or a packet of it shows no frame, or more than one.
    """
    keys, shown = _decoded(path)
    points = []
    latest = -1
    for k, packet in enumerate(shown[:-1], start=1):
        latest = max(latest, packet)
        if latest == k - 1 and (keys is None or k in keys):
            points.append(k)
    return tuple(points)


def cut(source: Path, target: Path, frames: int) -> None:
    """Write a file with the first packets of a video, bit for bit, and their times.

    Sound is kept as far as it ends with the last frame, but not in AVI, where its clock is its mean rate; subtitles,
    data, tags and chapters are left out. The same frames give the same bytes.

    Args:
        source: The video.
        target: A file that is not there; its suffix is the source's.
        frames: One of ``cut_points``.

    Raises:
        UsageError: The video cannot be read, is too short, or its container cannot hold the packets as they are.
        OSError: The file cannot be written.
    """
    beginning = _beginning(source, frames)
    with opened_video(source) as given, writing(source, target) as sink:
        video = given.streams.video[0]
        sound = given.streams.audio if sink.format.name != "avi" else ()
        places = {stream.index: _copied_stream(sink, stream) for stream in (video, *sound)}
        if beginning.rate is not None:
            places[video.index].codec_context.framerate = beginning.rate  # type: ignore[attr-defined]
        for packet in _until(given.demux(video, *sound), video, frames, beginning.end):
            packet.stream = places[packet.stream.index]
            sink.mux(packet)
    for kept, original in zip_longest(_packets(target), islice(_packets(source), frames)):
        if kept != original:
            raise uncuttable(source, f"a {target.suffix or 'nameless'} file does not keep its packets as they are")


def _decoded(path: Path) -> tuple[frozenset[int] | None, list[int]]:
    """Packets before which alone a cut is safe (None: all), and the number of the packet that shows each frame."""
    with opened_video(path) as container:
        stream = container.streams.video[0]
        stream.thread_type = "AUTO"
        name = stream.codec_context.codec.canonical_name
        keys: set[int] = set()
        shown: list[int] = []
        count = 0
        for packet in container.demux(stream):
            if not packet.size:
                continue
            _check_packet(path, packet, count, name)
            if packet.is_keyframe:
                keys.add(count)
            packet.pts = packet.dts = count  # what the decoder hands through, whatever the container told
            shown.extend(_number(path, frame) for frame in packet.decode())
            count += 1
        shown.extend(_number(path, frame) for frame in stream.decode(None))
    if sorted(shown) != list(range(count)):
        raise uncuttable(path, f"its {count} packets show {len(shown)} frames")
    return None if name in _SHOWS_ALL else frozenset(keys), shown


def _number(path: Path, frame: "av.VideoFrame") -> int:
    if frame.pts is None or frame.is_corrupt:
        raise broken_video(path, "a frame is damaged")
    return frame.pts


def _check_packet(path: Path, packet: "av.packet.Packet[av.video.VideoStream]", number: int, coding: str) -> None:
    if packet.is_corrupt:
        raise broken_video(path, f"packet {number} is damaged")
    if packet.is_discard:
        raise uncuttable(path, "its edit list hides frames")
    if number == 0 and not packet.is_keyframe:
        raise uncuttable(path, "its first frame is made from others that are not in the file")
    if coding == "mpeg4" and bytes(packet).count(_VOP) != 1:
        raise uncuttable(path, f"packet {number} holds several frames, or none")


@dataclass(frozen=True, kw_only=True)
class _Beginning:
    """When the last of a video's first packets ends, in seconds of its clock, and their frames a second, if steady."""

    end: Fraction
    rate: Fraction | None


def _beginning(path: Path, frames: int) -> _Beginning:
    own: list[int] = []
    end = 0
    with opened_video(path) as container:
        stream = container.streams.video[0]
        for packet in timed_packets(container, path):
            if len(own) == frames:
                break
            own.append(time_of(packet))
            end = max(end, own[-1] + (packet.duration or 0))
        tick = tick_of(stream)
        rate = steady_rate(stream, sorted(own))
    if len(own) < frames:
        raise too_short(path, frames, len(own))
    return _Beginning(end=end * tick, rate=rate)


def _until(
    packets: "Iterator[av.packet.Packet[av.stream.Stream]]", video: "av.video.VideoStream", frames: int, end: Fraction
) -> Iterator["av.packet.Packet[av.stream.Stream]"]:
    """The first packets of the video, and the sound that ends with them, in the order of the file."""
    count = 0
    undated: list[av.packet.Packet[av.stream.Stream]] = []
    for packet in packets:
        if not packet.size:
            continue
        if packet.stream.index != video.index:
            if packet.pts is not None and (packet.pts + (packet.duration or 0)) * packet.time_base <= end:
                yield packet
        elif count < frames:
            count += 1
            undated.append(packet)
            if packet.dts is not None or count == frames:
                yield from _dated(undated)
                undated = []
        elif packet.dts is not None and packet.dts * packet.time_base > end + _INTERLEAVED:
            return


def _dated(packets: "list[av.packet.Packet[av.stream.Stream]]") -> "list[av.packet.Packet[av.stream.Stream]]":
    """Give a decoding time to those that have none: Matroska stores none, and it shows at the beginning."""
    after: int | None = None
    for packet in reversed(packets):
        if packet.dts is None:
            assert packet.pts is not None
            step = packet.duration or 1
            packet.dts = packet.pts if after is None else min(packet.pts, after - step)
        after = packet.dts
    return packets


def _packets(path: Path) -> Iterator[tuple[Fraction | None, bytes]]:
    """Time in seconds and bytes of each packet of the video."""
    with opened_video(path) as container:
        for packet in container.demux(container.streams.video[0]):
            if packet.size:
                yield None if packet.pts is None else packet.pts * packet.time_base, bytes(packet)


def _copied_stream(sink: "av.container.OutputContainer", stream: "av.stream.Stream") -> "av.stream.Stream":
    copied = sink.add_stream_from_template(stream, opaque=True)
    copied.codec_context.bit_rate = 0  # the mean over the whole file, which some headers tell
    if stream.codec_context.codec_tag.strip("\0"):
        copied.codec_context.codec_tag = stream.codec_context.codec_tag  # by it some decoders choose how to decode
    return copied
