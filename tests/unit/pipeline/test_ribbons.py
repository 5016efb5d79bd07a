"""What is kept of a check to be drawn: one column, bounded, the views at the leak first."""

from collections.abc import Sequence

import numpy as np
import pytest

from runner.causality import Answers, CausalityOutcome, CausalityVerdict, Evidence, FullRun, Leak, Observation, Request
from runner.causality.answers import IMAGE_COLUMN
from runner.formats.contract import FrameScores, FrameTable
from runner.job import Cut, CutKind
from runner.pipeline.ribbons import Ribbon, ribbons_of

CLEAN = CausalityVerdict(outcome=CausalityOutcome.PASSED, sentence="", detail="")
ALTERED = CutKind.ALTERED_FUTURE


def labels(**columns: Sequence[int]) -> Answers:
    return Answers.of(FrameTable(columns={name: np.array(values) for name, values in columns.items()}))


def seen(frames: int, answers: dict[Request, Answers], *, clip: bool = False) -> Evidence:
    observations = [Observation(request=request, answers=one) for request, one in answers.items()]
    return Evidence(frames=frames, observations=tuple(observations), clip=clip)


def leaking(cut: Cut, column: str) -> CausalityVerdict:
    leak = Leak(frame=0, cut=cut, column=column, full_answer=0, cut_answer=1)
    return CausalityVerdict(outcome=CausalityOutcome.LEAKING, sentence="", detail="", first_leak=leak)


def test_the_first_column_of_the_whole_and_of_the_views() -> None:
    evidence = seen(3, {
        FullRun(): labels(a=[1, 2, 3], b=[7, 7, 7]), FullRun(repeat=1): labels(a=[1, 2, 3], b=[7, 7, 7]),
        Cut(frames=2): labels(a=[1, 5], b=[7, 7]), Cut(frames=2, repeat=1): labels(a=[1, 6], b=[7, 7]),
    })  # fmt: skip
    found = ribbons_of(evidence, CLEAN)
    assert found is not None
    assert (found.column, found.whole) == ("a", Ribbon(cut=None, frames=3, step=1, answers=(1, 2, 3)))
    assert found.views == (Ribbon(cut=Cut(frames=2), frames=2, step=1, answers=(1, 5)),)


def test_the_views_at_the_leak_come_first_and_in_its_column() -> None:
    answers: dict[Request, Answers] = {FullRun(): labels(a=[0] * 9, b=range(9))}
    answers |= {Cut(frames=k): labels(a=[0] * k, b=range(k)) for k in range(1, 9)}
    answers[Cut(frames=5, kind=ALTERED)] = labels(a=[0] * 9, b=range(9))
    found = ribbons_of(seen(9, answers), leaking(Cut(frames=5, kind=ALTERED), "b"))
    assert found is not None
    assert (found.column, found.whole.answers) == ("b", tuple(range(9)))
    assert [one.cut for one in found.views] == [
        Cut(frames=5), Cut(frames=5, kind=ALTERED), *(Cut(frames=k) for k in (1, 2, 3, 4)),
    ]  # fmt: skip


def test_scores_are_drawn_by_their_best_class() -> None:
    scores = np.array([[0.1, 0.9], [0.8, 0.2]])
    evidence = seen(2, {FullRun(): Answers.of(FrameScores(scores=scores))})
    for verdict in (CLEAN, leaking(Cut(frames=1), "class 1")):
        found = ribbons_of(evidence, verdict)
        assert found is not None
        assert (found.column, found.whole.answers) == ("", (1, 0))


def test_images_are_numbered_over_all_rows() -> None:
    def images(*digests: int) -> Answers:
        return Answers(columns=(IMAGE_COLUMN,), labels=np.array([digests]))

    found = ribbons_of(seen(3, {FullRun(): images(90, 70, 90), Cut(frames=2): images(90, 50)}), CLEAN)
    assert found is not None
    assert (found.whole.answers, found.views[0].answers) == ((0, 1, 0), (0, 2))


def test_a_run_that_leaves_the_column_out_has_none_of_its_labels() -> None:
    found = ribbons_of(seen(2, {FullRun(): labels(a=[1, 1]), Cut(frames=1): labels(b=[3])}), CLEAN)
    assert found is not None
    assert found.views[0].answers == (-1,)


@pytest.mark.parametrize(("frames", "step", "kept"), [(4000, 1, 4000), (4001, 2, 2001), (100_000, 25, 4000)])
def test_long_sequences_are_thinned(frames: int, step: int, kept: int) -> None:
    found = ribbons_of(seen(frames, {FullRun(): labels(a=range(frames))}), CLEAN)
    assert found is not None
    assert (found.whole.frames, found.whole.step, len(found.whole.answers)) == (frames, step, kept)
    assert found.whole.answers[1] == step


def test_the_whole_of_a_clip_is_a_cut() -> None:
    whole = Cut(frames=2, kind=CutKind.CLIP)
    found = ribbons_of(seen(2, {whole: labels(a=[1, 2])}, clip=True), CLEAN)
    assert found is not None
    assert (found.whole.cut, found.views) == (whole, ())


def test_without_the_whole_there_is_nothing_to_draw() -> None:
    failed = Evidence(frames=2, observations=(Observation(request=FullRun(), failure="crashed"),))
    assert ribbons_of(failed, CLEAN) is None
    assert ribbons_of(Evidence(frames=2), CLEAN) is None
