"""Lossless copies of a video's beginning, made from the frames that are shown and nothing else."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from runner.video import broken_video, opened_video, video_length
from runner.video_packets import steady_rate, tick_of, time_of, timed_packets, too_short, uncuttable, writing

if TYPE_CHECKING:
    import av.container
    import av.packet
    import av.stream
    import av.video

_ENCODERS = {
    "libx264": {"qp": "0", "preset": "ultrafast", "threads": "1", "a53cc": "0"},
    "libvpx-vp9": {"lossless": "1", "threads": "1", "auto-alt-ref": "0", "lag-in-frames": "0", "cpu-used": "8"},
    "ffv1": {"threads": "1"},
}
"""Lossless coders, the best liked first; one thread, and nothing read ahead: a prefix is coded like the whole."""

_ANY_RATE = Fraction(25)
"""Frames a second that a copy's header tells where there is no steady rate; its times are right all the same."""


def copy_without_loss(source: Path, target: Path, frames: int, *, then: tuple[Path, int] | None = None) -> None:
    """Write a lossless copy of a video's first frames, made from nothing else; the same pixels, format and times.

    A shorter copy is coded as the beginning of a longer one. The last frame is shown as long as the one before it, and
    there is no sound. The same frames give the same bytes.

    Args:
        source: The video.
        target: A file that is not there; what its suffix stands for holds the copy.
        frames: How many.
        then: Another video, and how many of its frames follow: each is the one half a sequence away from its place, as
            with folders of frames, brought to the source's size and format, at the source's times.

    Raises:
        UsageError: A video cannot be read or is too short, or no lossless coding fits its format and the container.
        OSError: The file cannot be written.
    """
    total = frames + (then[1] if then is not None else 0)
    times = _times(source, frames, total)
    with opened_video(source) as given:
        look = _Look.of(given.streams.video[0])
    pictures = _frames(source, 0, frames)
    if then is not None:
        donor, count = then
        pictures = chain(pictures, (look.fitted(frame) for frame in _frames_around(donor, frames, count)))
    with writing(source, target) as sink:
        if sink.format.name == "avi":
            times = times.from_zero()  # it has no times, only numbers, and fills what is missing before the first
        stream = _lossless_stream(source, sink, look, times)
        ready = _dressed(pictures, look, times, source)
        coded = (packet for frame in chain(ready, (None,)) for packet in stream.encode(frame))
        for packet, (shown, after) in zip(coded, pairwise(times.shown), strict=False):
            packet.duration = after - shown
            sink.mux(packet)
    _check(source, target, look, times)


@dataclass(frozen=True, kw_only=True)
class _Times:
    """When frames are shown, in ticks; one time more than frames, at which the last ends."""

    tick: Fraction
    shown: tuple[int, ...]
    rate: Fraction

    def from_zero(self) -> "_Times":
        return replace(self, shown=tuple(time - self.shown[0] for time in self.shown))


def _times(path: Path, frames: int, total: int) -> _Times:
    """Times of as many frames as asked for: the file's, and beyond its end steps like the last."""
    own: list[int] = []
    duration = 1
    with opened_video(path) as container:
        stream = container.streams.video[0]
        for packet in timed_packets(container, path):
            own.append(time_of(packet))
            duration = packet.duration or duration
        if len(own) < frames:
            raise too_short(path, frames, len(own))
        own = sorted(own)[:total]
        rate, tick = steady_rate(stream, own) or _ANY_RATE, tick_of(stream)
    step = own[-1] - own[-2] if len(own) > 1 else duration
    beyond = (own[-1] + step * n for n in range(1, total + 2 - len(own)))
    return _Times(tick=tick, shown=(*own, *beyond), rate=rate)


@dataclass(frozen=True, kw_only=True)
class _Look:
    """What frames of a video have in common."""

    width: int
    height: int
    pixels: str
    colours: tuple[int, int, int, int]
    aspect: Fraction | None

    @classmethod
    def of(cls, stream: "av.video.VideoStream") -> "_Look":
        context = stream.codec_context
        return cls(
            width=context.width, height=context.height, pixels=str(context.pix_fmt),
            colours=(context.color_range, context.color_primaries, context.color_trc, context.colorspace),
            aspect=context.sample_aspect_ratio,
        )  # fmt: skip

    @property
    def odd(self) -> bool:
        return bool(self.width % 2 or self.height % 2)

    def check(self, path: Path, frame: "av.VideoFrame") -> None:
        if (frame.width, frame.height, frame.format.name) != (self.width, self.height, self.pixels):
            raise uncuttable(path, "its frames change their size or their format")
        if frame.rotation:
            raise uncuttable(path, "it is marked to be shown turned")

    def fitted(self, frame: "av.VideoFrame") -> "av.VideoFrame":
        return frame.reformat(width=self.width, height=self.height, format=self.pixels)


def _frames(path: Path, first: int, count: int) -> Iterator["av.VideoFrame"]:
    """Frames of a video by their number, decoded from its beginning."""
    number = 0
    with opened_video(path) as container:
        container.streams.video[0].thread_type = "AUTO"
        for frame in container.decode(video=0):
            if number == first + count:
                break
            if frame.is_corrupt:
                raise broken_video(path, f"frame {number} is damaged")
            if number >= first:
                yield frame
            number += 1
    if number < first + count:
        raise too_short(path, first + count, number)


def _frames_around(path: Path, place: int, count: int) -> Iterator["av.VideoFrame"]:
    """Frames for the places from ``place`` on: each the one half a sequence away, and the first behind the last."""
    length = video_length(path)
    while count:
        first = (place + length // 2) % length
        some = min(count, length - first)
        yield from _frames(path, first, some)
        place, count = place + some, count - some


def _lossless_stream(
    path: Path, sink: "av.container.OutputContainer", look: _Look, times: _Times
) -> "av.video.VideoStream":
    import av  # noqa: PLC0415  it loads FFmpeg

    for name, options in _ENCODERS.items():
        if name not in av.codecs_available or not _gives_back(name, look):
            continue
        try:
            stream = sink.add_stream(name, rate=times.rate, options=dict(options))
            break
        except ValueError:
            continue  # not in such a file
    else:
        raise uncuttable(path, f"no lossless coding holds {look.pixels} in a {Path(sink.name).suffix} file")
    assert isinstance(stream, av.VideoStream)
    context = stream.codec_context
    context.width, context.height, context.pix_fmt = look.width, look.height, look.pixels
    context.color_range, context.color_primaries, context.color_trc, context.colorspace = look.colours
    if look.aspect is not None:
        context.sample_aspect_ratio = look.aspect
    context.flags |= av.codec.context.Flags.bitexact
    context.max_b_frames = 0
    stream.time_base = context.time_base = times.tick
    return stream


def _gives_back(coder: str, look: _Look) -> bool:
    """Whether a coder gives back what it takes: x264 does not so with grey, mixed planes, and halved odd sizes."""
    import av  # noqa: PLC0415  it loads FFmpeg

    if coder == "libx264" and (not look.pixels.startswith("yuv") or (look.odd and "444" not in look.pixels)):
        return False
    return look.pixels in [one.name for one in av.Codec(coder, "w").video_formats or ()]


def _dressed(
    pictures: Iterator["av.VideoFrame"], look: _Look, times: _Times, source: Path
) -> Iterator["av.VideoFrame"]:
    """The frames as the encoder is to take them."""
    for frame, shown in zip(pictures, times.shown, strict=False):
        look.check(source, frame)
        frame.pts, frame.time_base = shown, times.tick
        frame.pict_type = 0  # the type it had would be forced on the copy
        yield frame


def _check(source: Path, target: Path, look: _Look, times: _Times) -> None:
    """See that the copy came out as it was meant: a packet for each frame, at its time from the first on."""
    with opened_video(target) as container:
        stream = container.streams.video[0]
        tick, pixels = tick_of(stream), stream.codec_context.pix_fmt
        found = sorted(time_of(packet) for packet in timed_packets(container, source))
    meant = times.shown[:-1]
    if (
        len(found) != len(meant)
        or pixels != look.pixels
        or any(
            abs((is_now - found[0]) * tick - (was - meant[0]) * times.tick) > tick
            for is_now, was in zip(found, meant, strict=True)
        )
    ):
        raise uncuttable(source, f"a {target.suffix} file does not keep its times or its format")
