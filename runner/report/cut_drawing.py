"""Geometry of the picture of a causality check: the full run, below it what was answered on views, then the cuts."""

from dataclasses import replace

from runner.report.drawing import (
    AXIS_HEIGHT,
    BAND_HEIGHT,
    NAME_HEIGHT,
    Band,
    Mark,
    Picture,
    blocks_of,
    differences_of,
    legend_of,
    percent,
    plain_band,
    span,
    ticks,
)
from runner.report.view import CausalityPicture, CutMark, CutState, Ribbon, ViewRibbon

MOST_VIEWS = 8
"""Views drawn below a full run; of more, those that changed an answer come first."""

MOST_VIEW_BLOCKS, MOST_VIEW_TOOLTIPS = 400, 100
"""Blocks of a view's band, and those up to which they carry tooltips: fewer than above, since there are more bands."""

_VIEW_NAME, _VIEW_DIFFERENCES, _VIEW_BAND, _VIEW_ROW = 14, 16, 12, 36
"""Pixels: height of a view's name; top of its differences; height of its band; from one view to the next."""

_VIEW_TOP = _VIEW_DIFFERENCES + 6
_MARK_ROWS = 32

_WORDS = {
    CutState.CLEAN: "no answer changed",
    CutState.CHANGED: "an answer changed",
    CutState.UNDECIDED: "no result",
}


def draw_causality(picture: CausalityPicture) -> Picture:
    """The full run, under it the views, and the cuts: aimed ones in a row, random ones in the next."""
    ribbon = picture.full
    views = _drawn(picture.views)
    below = NAME_HEIGHT + BAND_HEIGHT
    rows = below + _VIEW_ROW * len(views)
    caption = _caption(picture, len(views))
    return Picture(
        title=f"{ribbon.title}: cuts tested",
        description=_describe(picture, views),
        bands=(
            plain_band("Full run", 0, ribbon, ribbon.prediction or ()),
            *(_view_band(view, below + _VIEW_ROW * row, ribbon) for row, view in enumerate(views)),
        ),
        marks=tuple(_mark(cut, ribbon.frames, rows) for cut in picture.cuts),
        leak_x=None if picture.leak_frame is None else percent(picture.leak_frame + 0.5, ribbon.frames),
        wide_ticks=ticks(ribbon.frames, 10),
        narrow_ticks=ticks(ribbon.frames, 4),
        legend=legend_of(ribbon, *(view.answers for view in views)),
        axis_y=rows + _MARK_ROWS,
        height=rows + _MARK_ROWS + AXIS_HEIGHT - 2,
        caption=caption,
    )


def _drawn(views: tuple[ViewRibbon, ...]) -> tuple[ViewRibbon, ...]:
    """At most ``MOST_VIEWS``, in the order given."""
    by_weight = sorted(range(len(views)), key=lambda at: views[at].state is not CutState.CHANGED)
    return tuple(views[at] for at in sorted(by_weight[:MOST_VIEWS]))


def _view_band(view: ViewRibbon, y: int, ribbon: Ribbon) -> Band:
    frames = ribbon.frames
    blocks = blocks_of(view.answers, ribbon, most=MOST_VIEW_BLOCKS, most_tooltips=MOST_VIEW_TOOLTIPS)
    differences = (
        differences_of(ribbon.prediction, view.answers, frames, until=view.cut, most=MOST_VIEW_BLOCKS)
        if view.answers and ribbon.prediction is not None
        else ()
    )
    return Band(
        name=f"{view.kind}: {_WORDS[view.state]}",
        y=y + _VIEW_DIFFERENCES - _VIEW_NAME,
        top=y + _VIEW_TOP,
        height=_VIEW_BAND,
        blocks=tuple(replace(block, wide="", narrow="") for block in blocks),
        end=percent(view.frames, frames),
        difference_y=y + _VIEW_DIFFERENCES,
        differences=differences,
        cut_x=percent(view.cut, frames),
        veil=span(view.cut, view.frames, frames, "veil") if view.frames > view.cut else None,
    )


def _caption(picture: CausalityPicture, drawn: int) -> str:
    """What is to be read off the views, or cannot be seen of them."""
    sentences = []
    if picture.leak_frame is not None and picture.full_answer and picture.view_answer:
        sentences.append(
            f"Frame {picture.leak_frame} is the first that changed: {picture.full_answer} on the full run, "
            f"{picture.view_answer} where later frames were withheld or replaced."
        )
    if picture.leak_frame is not None and picture.future_frames is not None:
        count = picture.future_frames
        after = "the frame" if count == 1 else f"the {count} frames"
        sentences.append(f"The answer for frame {picture.leak_frame} needed {after} after it.")
    if drawn < len(picture.views):
        sentences.append(f"{drawn} of {len(picture.views)} views are drawn, those that changed an answer first.")
    return " ".join(sentences)


def _describe(picture: CausalityPicture, views: tuple[ViewRibbon, ...]) -> str:
    changed = sum(cut.state is CutState.CHANGED for cut in picture.cuts)
    leak = "" if picture.leak_frame is None else f" The first changed frame is {picture.leak_frame}."
    below = "; ".join(f"{view.kind}, {_WORDS[view.state]}" for view in views)
    shown = f" Below the full run: {below}." if views else ""
    return f"{len(picture.cuts)} cuts of {picture.full.frames} frames tested, {changed} changed an answer.{leak}{shown}"


def _mark(cut: CutMark, frames: int, top: int) -> Mark:
    aim = "random" if cut.random else "aimed"
    return Mark(
        x=percent(cut.frames, frames),
        y=top + (23 if cut.random else 9),
        style=cut.state.value,
        random=cut.random,
        tooltip=f"{aim} cut after {cut.frames} frames: {_WORDS[cut.state]}",
    )
