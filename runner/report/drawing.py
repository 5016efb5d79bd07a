"""Geometry of the ribbons: views in, positions out; what the template then only writes down.

Positions along the time axis are percentages of the picture's width, so that a picture fits any screen while its text
keeps its size. Colour is never alone: the legend's position gives one of eight hues that stay apart under the common
colour-vision deficiencies (P. Tol, "Colour schemes", SRON/EPS/TN/09-002, scheme *muted*), and from the ninth label on
a texture; wide segments carry their label as text, all others as a tooltip.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from runner.report.view import Label, Ribbon, Segment

HUES = 8
TEXTURES = 4
"""Plain, two hatchings, dots."""

MOST_TOOLTIPS = 400
"""Segments of a band beyond which they carry neither tooltip nor text: the page would grow, nobody could hit them."""

MOST_BLOCKS = 1200
"""Blocks of a band, about one a pixel of a desk; of more segments only those are drawn that stand at so many places."""

_WIDE_PIXELS, _NARROW_PIXELS, _CHARACTER, _PADDING = 9.0, 3.0, 6.6, 8.0
"""Pixels for a per cent of the width on a desk and on a phone; of a character of segment text; around it."""

_GOLDEN = (5**0.5 - 1) / 2

_NICE = (1, 2, 5, 10, 15, 20, 30, 50, 60, 100, 120, 200, 300, 500, 600, 900, 1000, 1200, 1800, 2000, 3000, 3600, 5000)


@dataclass(frozen=True, kw_only=True)
class Block:
    """A drawn segment.

    Attributes:
        x: Left edge, per cent.
        width: Per cent.
        style: Class of hue and texture.
        tooltip: Label and frames; empty in crowded bands.
        wide: Text that fits on a desk.
        narrow: Text that fits on a phone.
    """

    x: float
    width: float
    style: str
    tooltip: str = ""
    wide: str = ""
    narrow: str = ""


@dataclass(frozen=True, kw_only=True)
class Band:
    """A row of blocks under its name.

    Attributes:
        name: Written above it.
        y: Top of the name.
        top: Top of the blocks.
        height: Of the blocks.
        blocks: From the left; none for a run without answers.
        end: Where what it shows ends, per cent.
        difference_y: Row of the differences.
        differences: Where it differs from the band it is compared with.
        cut_x: Where that comparison ends; None where it is not compared.
        veil: What of it lies behind the cut.
    """

    name: str
    y: int
    top: int
    height: int
    blocks: tuple[Block, ...]
    end: float = 100.0
    difference_y: int = 0
    differences: tuple[Block, ...] = ()
    cut_x: float | None = None
    veil: Block | None = None


@dataclass(frozen=True, kw_only=True)
class Tick:
    """A mark on the frame axis."""

    x: float
    text: str
    anchor: Literal["start", "middle", "end"]


@dataclass(frozen=True, kw_only=True)
class Key:
    """An entry of the legend."""

    style: str
    name: str


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A tested cut: its place, its shape and what it says."""

    x: float
    y: int
    style: str
    random: bool
    tooltip: str


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A ribbon, ready to be written down.

    Attributes:
        title: Name of the picture.
        description: The same in words, for those who cannot see it.
        bands: Rows of blocks, from the top.
        differences: Where reference and prediction differ, between the bands.
        difference_y: Their row.
        marks: Tested cuts.
        leak_x: Where the first changed frame lies, None for none.
        wide_ticks: For a desk.
        narrow_ticks: For a phone.
        legend: Labels that occur.
        axis_y: Row of the axis.
        height: Pixels.
        caption: What the picture shows, in a sentence; empty for none.
    """

    title: str
    description: str
    bands: tuple[Band, ...]
    differences: tuple[Block, ...] = ()
    difference_y: int = 0
    marks: tuple[Mark, ...] = ()
    leak_x: float | None = None
    wide_ticks: tuple[Tick, ...]
    narrow_ticks: tuple[Tick, ...]
    legend: tuple[Key, ...]
    axis_y: int
    height: int
    caption: str = ""


BAND_HEIGHT = 24
NAME_HEIGHT = 16
AXIS_HEIGHT = 22


def segments_of(labels: Iterable[int] | NDArray[np.int64]) -> tuple[Segment, ...]:
    """Run lengths of labels, one a frame."""
    row = np.asarray(labels if isinstance(labels, np.ndarray) else list(labels), dtype=np.int64)
    if row.size == 0:
        return ()
    bounds = [0, *(1 + np.flatnonzero(np.diff(row))).tolist(), row.size]
    return tuple(Segment(label=int(row[start]), start=start, stop=stop) for start, stop in pairwise(bounds))


def style_of(position: int) -> str:
    """Class of the label at a position of the legend; the same again after 32."""
    return f"k{position % (HUES * TEXTURES)}"


def draw_ribbon(ribbon: Ribbon) -> Picture:
    """Reference above prediction, differences between them, one axis."""
    bands: list[Band] = []
    y = 0
    differences: tuple[Block, ...] = ()
    difference_y = 0
    if ribbon.reference is not None:
        bands.append(plain_band("Reference", y, ribbon, ribbon.reference))
        y += NAME_HEIGHT + BAND_HEIGHT
    if ribbon.reference is not None and ribbon.prediction is not None:
        differences = differences_of(ribbon.reference, ribbon.prediction, ribbon.frames)
        difference_y = y + 3
        y += 10
    if ribbon.prediction is not None:
        bands.append(plain_band("Prediction", y, ribbon, ribbon.prediction))
        y += NAME_HEIGHT + BAND_HEIGHT
    return Picture(
        title=f"{ribbon.title} over {ribbon.frames} frames",
        description=_describe(ribbon),
        bands=tuple(bands),
        differences=differences,
        difference_y=difference_y,
        wide_ticks=ticks(ribbon.frames, 10),
        narrow_ticks=ticks(ribbon.frames, 4),
        legend=legend_of(ribbon),
        axis_y=y + 2,
        height=y + AXIS_HEIGHT,
    )


def place(value: float, low: float, high: float) -> float:
    """Where a value lies between two ends, per cent, kept inside."""
    return round(100 * min(1.0, max(0.0, (value - low) / (high - low))), 2) if high > low else 50.0


def percent(frame: float, frames: int) -> float:
    """Where a frame begins along the axis."""
    return round(100 * frame / frames, 3) if frames else 0.0


def span(start: int, stop: int, frames: int, style: str) -> Block:
    """Frames ``start`` … ``stop − 1``, without text."""
    left = percent(start, frames)
    return Block(x=left, width=round(percent(stop, frames) - left, 3), style=style)


def plain_band(name: str, y: int, ribbon: Ribbon, segments: tuple[Segment, ...]) -> Band:
    """A band of its own: it is compared with none."""
    blocks = blocks_of(segments, ribbon, most=MOST_BLOCKS, most_tooltips=MOST_TOOLTIPS)
    return Band(name=name, y=y, top=y + NAME_HEIGHT, height=BAND_HEIGHT, blocks=blocks)


def blocks_of(segments: tuple[Segment, ...], ribbon: Ribbon, *, most: int, most_tooltips: int) -> tuple[Block, ...]:
    """Segments in the colours of the ribbon's legend; without text where they are many."""
    positions = {label.number: position for position, label in enumerate(ribbon.labels)}
    names = {label.number: label.name for label in ribbon.labels}
    crowded = len(segments) > most_tooltips
    blocks = []
    for segment in _coarse(segments, ribbon.frames, most):
        number = segment.label
        bare = span(segment.start, segment.stop, ribbon.frames, style_of(positions.get(number, number)))
        blocks.append(bare if crowded else _with_text(bare, segment, names.get(number, str(number)), ribbon.fps))
    return tuple(blocks)


def _coarse(segments: tuple[Segment, ...], frames: int, most: int) -> tuple[Segment, ...]:
    """The same where they are few, else one label a column.

    Each is taken from another place within its column, by the golden ratio, so that a regular flicker looks like one.
    """
    if len(segments) <= most:
        return segments
    bounds = columns(frames, most)
    places = bounds[:-1] + (np.arange(bounds.size - 1) * _GOLDEN % 1 * np.diff(bounds)).astype(np.int64)
    drawn = segments_of(_per_frame(segments, frames)[places])
    return tuple(
        Segment(label=s.label, start=int(bounds[s.start]), stop=int(bounds[s.stop]))
        for s in drawn
        if s.label != _NO_LABEL
    )


def columns(frames: int, most: int) -> NDArray[np.int64]:
    """Bounds of at most ``most`` columns of frames, one more than there are columns, from 0 to ``frames``."""
    count = min(frames, most)
    return np.arange(count + 1, dtype=np.int64) * frames // max(1, count)


def _with_text(block: Block, segment: Segment, name: str, fps: float) -> Block:
    last = segment.stop - 1
    where = f"frame {segment.start}" if last == segment.start else f"frames {segment.start}–{last}"
    when = f"{clock(segment.start / fps)}–{clock(segment.stop / fps)}" if fps > 0 else ""
    return Block(
        x=block.x,
        width=block.width,
        style=block.style,
        tooltip=f"{name}: {where}" + (f", {when}" if when else ""),
        wide=_fitting(block.width * _WIDE_PIXELS, name, str(segment.label)),
        narrow=_fitting(block.width * _NARROW_PIXELS, name, str(segment.label)),
    )


def _fitting(pixels: float, *texts: str) -> str:
    """The first text that fits, else none."""
    return next((text for text in texts if len(text) * _CHARACTER + _PADDING <= pixels), "")


def clock(seconds: float) -> str:
    """``1:02:03`` or ``2:03``; whole seconds."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


_NO_LABEL = int(np.iinfo(np.int64).min)


def _per_frame(segments: tuple[Segment, ...], frames: int) -> NDArray[np.int64]:
    row = np.full(frames, _NO_LABEL)
    for segment in segments:
        row[segment.start : segment.stop] = segment.label
    return row


def differences_of(
    one: tuple[Segment, ...],
    other: tuple[Segment, ...],
    frames: int,
    *,
    until: int | None = None,
    most: int = MOST_BLOCKS,
) -> tuple[Block, ...]:
    """Where two rows of segments differ, before frame ``until``; neighbours grow together where they are many."""
    differ = _per_frame(one, frames)[:until] != _per_frame(other, frames)[:until]
    bounds = np.arange(differ.size + 1)
    if np.count_nonzero(np.diff(differ)) > 2 * most:
        bounds = columns(differ.size, most)
        differ = np.logical_or.reduceat(differ, bounds[:-1])
    return tuple(
        span(int(bounds[s.start]), int(bounds[s.stop]), frames, "x")
        for s in segments_of(differ.astype(np.int64))
        if s.label
    )


def _describe(ribbon: Ribbon) -> str:
    if ribbon.prediction is None:
        return "There is no valid prediction."
    if ribbon.reference is None:
        return f"The prediction has {_segments(ribbon.prediction)}."
    same = _per_frame(ribbon.reference, ribbon.frames) == _per_frame(ribbon.prediction, ribbon.frames)
    share = 100 * float(same.mean()) if ribbon.frames else 0.0
    return (
        f"The reference has {_segments(ribbon.reference)}, the prediction {_segments(ribbon.prediction)}; "
        f"they agree on {share:.1f} % of frames."
    )


def _segments(segments: tuple[Segment, ...]) -> str:
    return "1 segment" if len(segments) == 1 else f"{len(segments)} segments"


def legend_of(ribbon: Ribbon, *others: tuple[Segment, ...]) -> tuple[Key, ...]:
    """The labels that occur in a ribbon and in further rows of segments, in the legend's order, strange ones last."""
    met = {s.label for row in (ribbon.reference or (), ribbon.prediction or (), *others) for s in row}
    known = [(style_of(i), label) for i, label in enumerate(ribbon.labels) if label.number in met]
    strange = sorted(met - {label.number for label in ribbon.labels})
    known += [(style_of(number), Label(number=number, name=str(number))) for number in strange]
    return tuple(Key(style=style, name=_key_name(label)) for style, label in known)


def _key_name(label: Label) -> str:
    return label.name if label.name == str(label.number) else f"{label.number} {label.name}"


def ticks(frames: int, most: int) -> tuple[Tick, ...]:
    """At most ``most`` round frame numbers along the axis, from 0; the last is left out where it would stick out."""
    if frames <= 0:
        return ()
    step = next((n for n in _NICE if frames / n < most), None) or -(-frames // most)
    marks = [Tick(x=percent(f, frames), text=str(f), anchor="middle") for f in range(step, frames, step)]
    return (Tick(x=0.0, text="0", anchor="start"), *(mark for mark in marks if mark.x <= 96))
