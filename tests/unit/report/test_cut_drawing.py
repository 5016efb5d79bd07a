"""Where the views of a causality check are drawn."""

from dataclasses import replace

import pytest

from runner.report import CausalityPicture, CutMark, CutState, Label, Ribbon, ViewRibbon, segments_of
from runner.report.cut_drawing import MOST_VIEW_BLOCKS, MOST_VIEW_TOOLTIPS, MOST_VIEWS, draw_causality
from runner.report.drawing import MOST_BLOCKS

LABELS = (Label(number=1, name="dissection"), Label(number=2, name="suture"), Label(number=3, name="closure"))
CUTS = (
    CutMark(frames=5, random=False, state=CutState.CLEAN),
    CutMark(frames=8, random=True, state=CutState.CHANGED),
)
FULL = [1] * 6 + [2] * 4


def a_picture(*views: ViewRibbon, leak_frame: int | None = None) -> CausalityPicture:
    full = Ribbon(title="step", frames=len(FULL), fps=1.0, labels=LABELS, reference=None, prediction=segments_of(FULL))
    return CausalityPicture(full=full, cuts=CUTS, leak_frame=leak_frame, views=views)


def prefix(answers: list[int], state: CutState = CutState.CLEAN) -> ViewRibbon:
    k = len(answers)
    return ViewRibbon(kind=f"First {k} frames", cut=k, frames=k, answers=segments_of(answers), state=state)


ALTERED = ViewRibbon(
    kind="Other frames from 8 on",
    cut=8,
    frames=10,
    answers=segments_of([1] * 5 + [2] * 3 + [3] * 2),
    state=CutState.CHANGED,
)


def test_cuts_are_marked_under_the_full_run() -> None:
    picture = draw_causality(a_picture(leak_frame=7))
    aimed, random = picture.marks
    assert (aimed.x, aimed.style, aimed.tooltip) == (50.0, "clean", "aimed cut after 5 frames: no answer changed")
    assert (random.x, random.style, random.tooltip) == (80.0, "changed", "random cut after 8 frames: an answer changed")
    assert (aimed.random, random.random) == (False, True)
    assert aimed.y < random.y < picture.axis_y
    assert picture.leak_x == 75.0
    assert picture.description == "2 cuts of 10 frames tested, 1 changed an answer. The first changed frame is 7."
    assert (picture.caption, picture.axis_y, picture.height) == ("", 72, 92)


def test_views_stand_below_the_full_run_above_the_cuts() -> None:
    picture = draw_causality(a_picture(prefix([1, 1, 1]), ALTERED))
    assert [(band.name, band.y, band.top, band.height) for band in picture.bands] == [
        ("Full run", 0, 16, 24),
        ("First 3 frames: no answer changed", 42, 62, 12),
        ("Other frames from 8 on: an answer changed", 78, 98, 12),
    ]
    assert [mark.y for mark in picture.marks] == [121, 135]
    assert (picture.axis_y, picture.height) == (144, 164)
    assert picture.description == (
        "2 cuts of 10 frames tested, 1 changed an answer. Below the full run: First 3 frames, no answer changed; "
        "Other frames from 8 on, an answer changed."
    )


def test_a_prefix_ends_at_its_cut() -> None:
    band = draw_causality(a_picture(prefix([1] * 6 + [2]))).bands[1]
    assert [(b.x, b.width, b.style) for b in band.blocks] == [(0.0, 60.0, "k0"), (60.0, 10.0, "k1")]
    assert (band.cut_x, band.end, band.veil, band.differences) == (70.0, 70.0, None, ())


def test_an_altered_future_is_veiled_behind_its_cut_and_compared_only_before_it() -> None:
    band = draw_causality(a_picture(ALTERED)).bands[1]
    assert [(b.x, b.width, b.style) for b in band.blocks] == [
        (0.0, 50.0, "k0"), (50.0, 30.0, "k1"), (80.0, 20.0, "k2"),
    ]  # fmt: skip
    assert band.veil is not None
    assert (band.veil.x, band.veil.width, band.cut_x, band.end) == (80.0, 20.0, 80.0, 100.0)
    assert [(b.x, b.width) for b in band.differences] == [(50.0, 10.0)]
    assert band.top - band.difference_y == 6


def test_the_full_run_is_compared_with_nothing() -> None:
    full = draw_causality(a_picture(ALTERED)).bands[0]
    assert (full.cut_x, full.veil, full.differences) == (None, None, ())


def test_a_view_without_answers_says_so_and_differs_nowhere() -> None:
    silent = ViewRibbon(kind="First 4 frames", cut=4, frames=4, answers=(), state=CutState.UNDECIDED)
    band = draw_causality(a_picture(silent)).bands[1]
    assert (band.name, band.blocks, band.differences, band.end) == ("First 4 frames: no result", (), (), 40.0)


def test_thin_bands_carry_tooltips_and_no_text() -> None:
    full, view = draw_causality(a_picture(prefix([1] * 6 + [2] * 2))).bands
    assert full.blocks[0].wide == "dissection"
    assert {(b.wide, b.narrow) for b in view.blocks} == {("", "")}
    assert [b.tooltip for b in view.blocks] == [
        "dissection: frames 0–5, 0:00–0:06", "suture: frames 6–7, 0:06–0:08",
    ]  # fmt: skip


def test_a_crowded_view_carries_no_tooltips() -> None:
    flips = [1 + n % 2 for n in range(MOST_VIEW_TOOLTIPS + 1)]
    full = replace(a_picture().full, frames=len(flips), prediction=segments_of(flips))
    band = draw_causality(replace(a_picture(prefix(flips)), full=full)).bands[1]
    assert len(band.blocks) == len(flips)
    assert {b.tooltip for b in band.blocks} == {""}


def test_a_flickering_view_is_drawn_with_fewer_blocks_than_the_full_run() -> None:
    flips = [1 + n // 2 % 2 for n in range(4 * MOST_BLOCKS)]
    full = replace(a_picture().full, frames=len(flips), prediction=segments_of(flips))
    other = prefix([3 - label for label in flips[:-1:2] for _ in range(2)])
    shown, view = draw_causality(replace(a_picture(other), full=full)).bands
    assert MOST_VIEW_BLOCKS < len(shown.blocks) <= MOST_BLOCKS
    assert MOST_VIEW_BLOCKS / 4 < len(view.blocks) <= MOST_VIEW_BLOCKS
    assert [(b.x, b.width) for b in view.differences] == [(0.0, 100.0)]
    every_third = replace(other, answers=segments_of([n // 3 % 2 + 1 for n in range(4 * MOST_BLOCKS)]))
    assert len(draw_causality(replace(a_picture(every_third), full=full)).bands[1].differences) <= MOST_VIEW_BLOCKS


def test_labels_that_only_a_view_answers_are_in_the_legend() -> None:
    assert [key.name for key in draw_causality(a_picture()).legend] == ["1 dissection", "2 suture"]
    assert [key.name for key in draw_causality(a_picture(ALTERED)).legend] == ["1 dissection", "2 suture", "3 closure"]


def test_of_many_views_those_that_changed_answers_are_drawn_in_the_order_given() -> None:
    many = [prefix([1] * k) for k in (1, 2, 3, 4, 5, 6, 7, 8, 9)]
    picture = draw_causality(a_picture(*many, ALTERED))
    drawn = [band.name.split(":")[0] for band in picture.bands[1:]]
    assert drawn == [*(f"First {k} frames" for k in range(1, MOST_VIEWS)), "Other frames from 8 on"]
    assert picture.caption == "8 of 10 views are drawn, those that changed an answer first."


@pytest.mark.parametrize(
    ("answers", "future", "caption"),
    [
        (
            ("dissection", "suture"),
            3,
            (
                "Frame 5 is the first that changed: dissection on the full run, suture where later frames were "
                "withheld or replaced. The answer for frame 5 needed the 3 frames after it."
            ),
        ),
        (("", ""), 1, "The answer for frame 5 needed the frame after it."),
        (("dissection", ""), None, ""),
        (("", "suture"), None, ""),
    ],
)
def test_both_answers_are_told_only_where_both_may_be(
    answers: tuple[str, str], future: int | None, caption: str
) -> None:
    full, view = answers
    picture = replace(a_picture(ALTERED, leak_frame=5), full_answer=full, view_answer=view, future_frames=future)
    assert draw_causality(picture).caption == caption


def test_without_a_leak_no_answer_is_told() -> None:
    picture = replace(a_picture(ALTERED), full_answer="dissection", view_answer="suture", future_frames=2)
    assert draw_causality(picture).caption == ""
