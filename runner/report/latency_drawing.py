"""Geometry of the pictures of latency, and its numbers in words: how often how long, and when.

Latencies of one method spread over decades, from the usual answer to a first frame that loads a network, so both
pictures have logarithmic axes. The time line is a single outline in a box of one unit a column, which the browser
stretches: a page with many of them stays small.
"""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from runner.report.drawing import Tick, columns, ticks
from runner.report.view import Fact, Histogram, LatencySection

MOST_BARS = 60
MOST_COLUMNS = 400

_PLOT = 110
"""Height of both plots, pixels."""

_LOWEST_BAR = 4
"""Pixels of a single frame among thousands, so that it is seen."""

_LEVELS = tuple(float(f"{figure}e{power}") for power in range(-6, 6) for figure in (1, 2, 5))
_MOST_LEVELS = 6


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A bin of the histogram: per cent across, pixels down; ``late`` where all of it is beyond the frame period."""

    x: float
    width: float
    y: int
    height: int
    late: bool
    tooltip: str


@dataclass(frozen=True, kw_only=True)
class Level:
    """A line across or down a picture with its text: per cent or pixels from its start."""

    at: float
    text: str


@dataclass(frozen=True, kw_only=True)
class HistogramPicture:
    """How many answers took how long.

    Attributes:
        description: The same in words.
        caption: What the highest bar stands for.
        bars: From the fastest; none for an empty bin.
        period: The frame period; None where it is unknown.
        period_anchor: Side of the line on which its text has room.
        wide_ticks: Edges of bins, for a desk.
        narrow_ticks: For a phone.
        axis_y: Row of the axis.
        height: Pixels.
    """

    description: str
    caption: str
    bars: tuple[Bar, ...]
    period: Level | None
    period_anchor: Literal["start", "end"]
    wide_ticks: tuple[Tick, ...]
    narrow_ticks: tuple[Tick, ...]
    axis_y: int = 18 + _PLOT
    height: int = 18 + _PLOT + 20


@dataclass(frozen=True, kw_only=True)
class TimeLinePicture:
    """Latency frame by frame.

    Attributes:
        description: The same in words.
        columns: Width of the box of both outlines; its height is that of the plot.
        outline: From the fastest to the slowest answer of each column, as path data.
        late: Columns with a frame that was missed or too slow, as path data; empty for none.
        levels: Round latencies across the plot.
        period: The frame period; None where it is unknown.
        wide_ticks: Frames, for a desk.
        narrow_ticks: For a phone.
        plot_y: Top of the plot.
        plot_height: Of the plot.
        axis_y: Row of the axis.
        height: Pixels.
    """

    description: str
    columns: int
    outline: str
    late: str
    levels: tuple[Level, ...]
    period: Level | None
    wide_ticks: tuple[Tick, ...]
    narrow_ticks: tuple[Tick, ...]
    plot_y: int = 20
    plot_height: int = _PLOT
    axis_y: int = 20 + _PLOT
    height: int = 20 + _PLOT + 20


def duration(seconds: float | None) -> str:
    """Three figures with their unit, ``3.21 ms`` or ``1.24 s``; a dash where there is none."""
    if seconds is None or not math.isfinite(seconds):
        return "–"
    if abs(seconds) < 0.9995:
        return f"{1000 * seconds:.3g} ms"
    return f"{seconds:.3g} s" if abs(seconds) < 999.5 else f"{seconds:.0f} s"


def latency_facts(section: LatencySection) -> tuple[Fact, ...]:
    """The numbers of a case, in the order in which they are asked for."""
    times = {
        "start-up": section.start_up,
        "first frame": section.first_frame,
        "mean": section.mean,
        "p50": section.p50,
        "p95": section.p95,
        "p99": section.p99,
        "max": section.longest,
        "frame period": section.period,
    }
    counts = {"slower than the frame period": section.over_period}
    if section.missed is not None:
        counts["missed"] = len(section.missed)
    return (
        *(Fact(name=name, value=duration(value)) for name, value in times.items()),
        *(
            Fact(name=name, value=f"{count} of {section.frames} frames")
            for name, count in counts.items()
            if count is not None
        ),
    )


def draw_histogram(histogram: Histogram, period: float | None) -> HistogramPicture:
    """Bins from the fastest to the slowest answer, and the frame period in seconds where it falls."""
    period = _known(period)
    edges, counts = _bins(histogram, period)
    highest, total = max(counts, default=0), sum(counts)
    width = 100 / max(1, len(counts))
    bars = []
    for at, ((low, high), count) in enumerate(zip(pairwise(edges), counts, strict=True)):
        if not count:
            continue
        height = max(_LOWEST_BAR, round(_PLOT * count / highest))
        bars.append(
            Bar(
                x=round(width * at, 3),
                width=round(width, 3),
                y=18 + _PLOT - height,
                height=height,
                late=period is not None and low >= 1000 * period,
                tooltip=f"{_range(low, high)}: {_frames(count)}",
            )
        )
    line = None if period is None else _mark_of(edges, period)
    late = sum(bar.late for bar in bars)
    beyond = f" The frame period is {duration(period)}; {late} of {len(bars)} bars lie beyond it." if line else ""
    return HistogramPicture(
        description=f"{_frames(total)} by latency, in {len(counts)} bins.{beyond}",
        caption=f"The highest bar stands for {_frames(highest)} of {total}.",
        bars=tuple(bars),
        period=line,
        period_anchor="start" if line is None or line.at <= 50 else "end",
        wide_ticks=_edge_ticks(edges, 9),
        narrow_ticks=_edge_ticks(edges, 4),
    )


def draw_time_line(section: LatencySection) -> TimeLinePicture:
    """At most ``MOST_COLUMNS`` columns, each from its fastest to its slowest answer."""
    seconds = np.array([_nan(value) for value in section.over_time], dtype=np.float64)
    period = _known(section.period)
    late = _late(section, seconds, period)
    bounds = columns(seconds.size, MOST_COLUMNS)
    low, high = _ends(seconds, period)
    answered = seconds[np.isfinite(seconds)]
    return TimeLinePicture(
        description=_describe(section, answered, late),
        columns=bounds.size - 1,
        outline=_outline(seconds, bounds, low, high),
        late="".join(f"M{c}.5 0v6" for c in np.flatnonzero(_any(late, bounds))),
        levels=tuple(Level(at=_row(value, low, high), text=duration(value)) for value in _levels(low, high)),
        period=None if period is None else Level(at=_row(period, low, high), text=f"frame period {duration(period)}"),
        wide_ticks=ticks(seconds.size, 10),
        narrow_ticks=ticks(seconds.size, 4),
    )


def _known(period: float | None) -> float | None:
    return period if period is not None and math.isfinite(period) and period > 0 else None


def _nan(value: float | None) -> float:
    return math.nan if value is None or not math.isfinite(value) else value


def _frames(count: int) -> str:
    return "1 frame" if count == 1 else f"{count} frames"


def _bins(histogram: Histogram, period: float | None) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Those from the first to the last that is not empty or holds the period, neighbours together where they are many.

    Raises:
        ValueError: There is not one edge more than there are bins.
    """
    edges, counts = histogram.edges_ms, histogram.counts
    if len(edges) != len(counts) + 1:
        raise ValueError(f"{len(counts)} bins have {len(counts) + 1} edges, not {len(edges)}")
    met = [at for at, count in enumerate(counts) if count]
    if period is not None:
        met += [at for at, (low, high) in enumerate(pairwise(edges)) if low <= 1000 * period < high]
    first, stop = min(met, default=0), max(met, default=-1) + 1
    group = max(1, -(-(stop - first) // MOST_BARS))
    starts = range(first, stop, group)
    return (
        (*(edges[at] for at in starts), edges[stop]),
        tuple(sum(counts[at : min(at + group, stop)]) for at in starts),
    )


def _range(low: float, high: float) -> str:
    if math.isinf(high):
        return f"{duration(low / 1000)} or more"
    return f"{duration(low / 1000)} to {duration(high / 1000)}"


def _mark_of(edges: tuple[float, ...], period: float) -> Level:
    """Where the period lies: between the edges of its bin by its logarithm, where both have one."""
    value, bins = 1000 * period, len(edges) - 1
    at = next((at for at, (low, high) in enumerate(pairwise(edges)) if low <= value < high), None)
    text = f"frame period {duration(period)}"
    if at is None:
        return Level(at=0.0 if value < edges[0] else 100.0, text=text)
    low, high = edges[at], edges[at + 1]
    if math.isinf(high):
        share = 0.5
    elif low > 0:
        share = math.log(value / low) / math.log(high / low)
    else:
        share = value / high
    return Level(at=round(100 * (at + share) / bins, 3), text=text)


def _edge_ticks(edges: tuple[float, ...], most: int) -> tuple[Tick, ...]:
    """At most ``most`` of the edges, round ones where there are enough."""
    known = [at for at, edge in enumerate(edges) if math.isfinite(edge)]
    rounded = [at for at in known if _is_round(edges[at])]
    shown = rounded if len(rounded) >= 3 else known
    step = max(1, -(-len(shown) // most))
    last = len(edges) - 1
    return tuple(
        Tick(
            x=round(100 * at / max(1, last), 3),
            text="0" if edges[at] == 0 else duration(edges[at] / 1000),
            anchor="start" if at == 0 else "end" if at == last else "middle",
        )
        for at in shown[::step]
        if at in (0, last) or 4 <= 100 * at / last <= 96
    )


def _is_round(edge: float) -> bool:
    """1, 2 or 5 times a power of ten, or as near as the tenth of a decade is."""
    near = f"{edge:.0e}"
    return near[0] in "125" and abs(edge / float(near) - 1) < 0.005


def _late(section: LatencySection, seconds: NDArray[np.float64], period: float | None) -> NDArray[np.bool_]:
    late = np.isnan(seconds)
    if period is not None:
        late |= seconds > period
    late[[at for at in section.missed or () if 0 <= at < late.size]] = True
    return late


def _any(flags: NDArray[np.bool_], bounds: NDArray[np.int64]) -> NDArray[np.bool_]:
    return np.logical_or.reduceat(flags, bounds[:-1]) if flags.size else flags


def _ends(seconds: NDArray[np.float64], period: float | None) -> tuple[float, float]:
    """Levels around all values and the period, two different ones; what lies beyond all levels is drawn at the end."""
    values = [*seconds[np.isfinite(seconds)].tolist(), *([] if period is None else [period])] or [0.001]
    low = max((level for level in _LEVELS if level <= min(values)), default=_LEVELS[0])
    high = min((level for level in _LEVELS if level >= max(values) and level > low), default=_LEVELS[-1])
    return min(low, _LEVELS[-2]), high


def _levels(low: float, high: float) -> tuple[float, ...]:
    """1, 2 and 5 of each decade where there is room, else the decades, or some of them."""
    within = [level for level in _LEVELS if low <= level <= high]
    if len(within) <= _MOST_LEVELS:
        return tuple(within)
    decades = [level for level in within if f"{level:.0e}"[0] == "1"]
    return tuple(decades[:: -(-len(decades) // _MOST_LEVELS)])


def _row(value: float, low: float, high: float) -> int:
    """Pixels below the top of the plot."""
    share = math.log(high / value) / math.log(high / low) if value > 0 else 1.0
    return round(_PLOT * min(1.0, max(0.0, share)))


def _outline(seconds: NDArray[np.float64], bounds: NDArray[np.int64], low: float, high: float) -> str:
    if not seconds.size:
        return ""
    fastest, slowest = np.fmin.reduceat(seconds, bounds[:-1]), np.fmax.reduceat(seconds, bounds[:-1])
    parts = []
    for at, (least, most) in enumerate(zip(fastest.tolist(), slowest.tolist(), strict=True)):
        if math.isfinite(least):
            top = min(_row(most, low, high), _PLOT - 2)
            parts.append(f"M{at} {top}h1v{max(2, _row(least, low, high) - top)}h-1z")
    return "".join(parts)


def _describe(section: LatencySection, answered: NDArray[np.float64], late: NDArray[np.bool_]) -> str:
    span = f", from {duration(float(answered.min()))} to {duration(float(answered.max()))}" if answered.size else ""
    period = _known(section.period)
    against = "" if period is None else f" The frame period is {duration(period)}."
    where = np.flatnonzero(late)
    too = "missed, unanswered or slower than that" if period is not None else "missed or unanswered"
    missed = f" {_frames(where.size)} {too}, the first of them {where[0]}." if where.size else ""
    return f"Latency of {answered.size} answers to {_frames(late.size)}{span}.{against}{missed}"
