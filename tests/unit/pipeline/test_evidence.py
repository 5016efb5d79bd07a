"""What the report shows of a check and of a stream: states of views, names of labels, times of the attempt."""

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from runner.causality import CausalityOutcome, CausalityVerdict, Leak, TriedCut
from runner.causality.findings import Standing
from runner.challenge import Challenge
from runner.job import Cut, CutKind
from runner.pipeline.evidence import causality_sections, labels_of, latency_sections, online_chip
from runner.pipeline.looking_ahead import CausalityFinding, CausalityRecord
from runner.pipeline.pace import Pace
from runner.pipeline.publish import write_latency
from runner.pipeline.ribbons import Ribbon, Ribbons
from runner.pipeline.standings import Board, Row, ScoredCase, Standings
from runner.report.view import CutState, Segment, Tone
from runner.store import RunFolder, write_value
from runner.submissions import Submission
from tests.unit.conftest import CHALLENGE
from tests.unit.pipeline.test_streams import FACTS, OUTCOME, RESULT

TASK = next(iter(Challenge.model_validate(CHALLENGE).tasks.values()))
(COLUMN,) = TASK.format.columns  # type: ignore[attr-defined]
ALTERED = CutKind.ALTERED_FUTURE
WHOLE = Ribbon(cut=None, frames=6, step=1, answers=(0, 0, 1, 1, 1, 1))


def a_view(answers: tuple[int, ...], frames: int, kind: CutKind = CutKind.PREFIX) -> Ribbon:
    return Ribbon(cut=Cut(frames=frames, kind=kind), frames=len(answers), step=1, answers=answers)


def a_finding(standing: Standing, *views: Ribbon, leak: Leak | None = None) -> CausalityFinding:
    verdict = CausalityVerdict(
        outcome=CausalityOutcome.LEAKING if leak else CausalityOutcome.PASSED, sentence="s", detail="told",
        cuts=(TriedCut(frames=3, random=True, standing=standing),), cuts_tested=1, cuts_possible=5, random_cuts=1,
        first_leak=leak,
    )  # fmt: skip
    return CausalityFinding(
        case="c", frames=6, verdict=verdict, ribbons=Ribbons(column=COLUMN, whole=WHOLE, views=views)
    )


@pytest.mark.parametrize(
    ("standing", "kind", "state"),
    [
        (Standing.CLEAN, CutKind.PREFIX, CutState.CLEAN),
        (Standing.LEAKING, CutKind.PREFIX, CutState.CHANGED),
        (Standing.LENGTH_DEPENDENT, CutKind.PREFIX, CutState.CHANGED),
        (Standing.LENGTH_DEPENDENT, ALTERED, CutState.CLEAN),
        (Standing.UNCONFIRMED, CutKind.PREFIX, CutState.UNDECIDED),
    ],
)
def test_a_view_has_the_state_of_its_cut(standing: Standing, kind: CutKind, state: CutState) -> None:
    finding = a_finding(standing, a_view((0, 0, 0), 3, kind))
    (section,) = causality_sections(CausalityRecord(findings=(finding,)), TASK, fps=1.0)
    (picture,) = section.pictures
    (view,) = picture.views
    assert (view.state, view.cut) == (state, 3)
    assert view.kind == ("Other frames from 3 on" if kind is ALTERED else "First 3 frames")
    assert picture.full.prediction == (Segment(label=0, start=0, stop=2), Segment(label=1, start=2, stop=6))


def test_a_step_of_the_search_is_compared_with_the_whole() -> None:
    views = a_view((0, 0, 0, 1, 5, 5), 4, ALTERED), a_view((0, 0, 1, 1, 5, 5), 5, ALTERED), a_view((0, 0), 2)
    leak = Leak(frame=2, cut=Cut(frames=3), column=COLUMN, full_answer=1, cut_answer=0, future_frames=2)
    (section,) = causality_sections(
        CausalityRecord(findings=(a_finding(Standing.LEAKING, *views, leak=leak),)), TASK, fps=1.0
    )
    (picture,) = section.pictures
    assert [view.state for view in picture.views] == [CutState.CHANGED, CutState.CHANGED, CutState.CLEAN]
    assert (picture.leak_frame, picture.future_frames) == (2, 2)
    names = {label.number: label.name for label in labels_of(TASK, COLUMN)}
    assert (picture.full_answer, picture.view_answer) == (names[1], names.get(0, "0"))


def test_what_is_kept_of_every_second_frame_keeps_its_place() -> None:
    whole = Ribbon(cut=None, frames=5, step=2, answers=(0, 1, 1))
    finding = replace(a_finding(Standing.CLEAN), ribbons=Ribbons(column="", whole=whole, views=()))
    (section,) = causality_sections(CausalityRecord(findings=(finding,)), TASK, fps=1.0)
    assert section.pictures[0].full.title == "class of the highest score"
    assert section.pictures[0].full.prediction == (Segment(label=0, start=0, stop=2), Segment(label=1, start=2, stop=5))


def test_the_first_section_says_what_all_say() -> None:
    finding = a_finding(Standing.CLEAN)
    record = CausalityRecord(
        findings=(finding, replace(finding, case="d")), summary=replace(finding.verdict, detail="together"),
        pace=Pace(start_up_seconds=1.25, seconds_per_frame=0.03125, runs=7), online_compatible=False,
    )  # fmt: skip
    first, second = causality_sections(record, TASK, fps=1.0)
    assert first.summary == "together"
    assert first.pace == "Start-up about 1.2 s, then 0.0312 s a frame (slope over 7 runs); reported, never judged."
    assert (first.online, second.online) == (online_chip(keeps_up=False), None)
    assert (second.summary, second.pace) == ("", "")
    (alone,) = causality_sections(replace(record, findings=(finding,)), TASK, fps=1.0)
    assert alone.summary == ""


def test_a_streamed_method_was_not_cut() -> None:
    (section,) = causality_sections(CausalityRecord(findings=(), by_construction=True), TASK, fps=1.0)
    assert (section.outcome.word, section.outcome.tone) == ("passed", Tone.GOOD)
    assert section.text == "Passed by construction: no frame was there before its turn; no cut was run."


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    run = RunFolder(root=tmp_path)
    attempt = run.attempt("s", "steps", "c", "full", 2)
    write_value(attempt / "result.json", replace(RESULT, stream=replace(FACTS, missed=1)))
    (attempt / "timing.csv").write_text(
        "index,released,answered,seconds,missed\n0,0.0,0.25,0.25,0\n1,0.04,,,1\n2,0.08,0.1,0.02,0\n"
    )
    return run


def test_a_stream_is_read_from_the_attempt_that_counts(run: RunFolder) -> None:
    (section,) = latency_sections(run, [OUTCOME], realtime=True)
    assert (section.case, section.frames, section.missed) == ("c", 40, (1,))
    assert section.over_time == (0.25, None, 0.02)
    assert (section.start_up, section.p95, section.period) == (1.5, 0.03, 0.04)
    assert section.histogram is None
    (lockstep,) = latency_sections(run, [OUTCOME], realtime=False)
    assert lockstep.missed is None


def test_latencies_are_a_table(run: RunFolder) -> None:
    submission = Submission(submission="s", team="t", image="x:1")
    row = Row(
        submission=submission, rank=None, reason="", values={}, cases=(ScoredCase(outcome=OUTCOME, score=None),),
        causality=None,
    )  # fmt: skip
    standings = Standings(boards=(Board(task="steps", metrics=(), rows=(row,), excluded=()),), pending=())
    write_latency(run, standings)
    (line,) = csv.DictReader(run.latency.read_text().splitlines())
    assert (line["submission"], line["case"], line["start_up"], line["p50"]) == ("s", "c", "1.500000", "0.012346")
    assert (line["released"], line["missed"], line["over_period"], line["online"]) == ("40", "1", "2", "yes")
    write_latency(run, replace(standings, boards=()))
    assert not run.latency.exists()
