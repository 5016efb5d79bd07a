"""What the report shows of a causality check and of a streamed case: records in, sections of the page out."""

import csv
import math
from collections.abc import Iterable, Mapping, Sequence

from runner.causality import CausalityOutcome, CausalityVerdict
from runner.causality.findings import Leak, Standing
from runner.challenge import FrameTableFormat, Task
from runner.job import Cut, CutKind, StreamFacts
from runner.judge import CaseOutcome
from runner.pipeline.looking_ahead import BY_CONSTRUCTION, CausalityFinding, CausalityRecord
from runner.pipeline.ribbons import Ribbon as KeptRibbon
from runner.pipeline.ribbons import Ribbons
from runner.pipeline.streams import streams_of
from runner.report import segments_of
from runner.report.view import (
    CausalityPicture,
    CausalitySection,
    Chip,
    CutMark,
    CutState,
    Fact,
    Histogram,
    Label,
    LatencySection,
    Ribbon,
    Segment,
    Tone,
    ViewRibbon,
)
from runner.store import RunFolder
from runner.streaming.timing import EDGES

_OUTCOME_TONES = {
    CausalityOutcome.PASSED: Tone.GOOD,
    CausalityOutcome.LEAKING: Tone.BAD,
    CausalityOutcome.NOT_RUN: Tone.NEUTRAL,
}
_CUT_STATES = {
    Standing.CLEAN: CutState.CLEAN,
    Standing.LEAKING: CutState.CHANGED,
    Standing.LENGTH_DEPENDENT: CutState.CHANGED,
}


def labels_of(task: Task, column: str) -> tuple[Label, ...]:
    """The labels of a column of a frame table; none where the column is no such column."""
    rule = task.format
    if not isinstance(rule, FrameTableFormat) or column not in rule.columns:
        return ()
    found = rule.columns[column]
    numbers = dict.fromkeys((*found.ids, *found.reference_only))
    return tuple(Label(number=number, name=found.names[number] if found.names else str(number)) for number in numbers)


def causality_sections(record: CausalityRecord, task: Task, *, fps: float) -> tuple[CausalitySection, ...]:
    """The check of an entry: a section a case, the first with what they say together.

    Args:
        record: What was found.
        task: Names the labels.
        fps: Frames a second.
    """
    if record.by_construction:
        chip = Chip(word="passed", tone=Tone.GOOD)
        text = f"{BY_CONSTRUCTION[0].upper()}{BY_CONSTRUCTION[1:]}."
        return (CausalitySection(case="all cases", outcome=chip, text=text),)
    sections = []
    for number, finding in enumerate(record.findings):
        first = number == 0
        verdict = finding.verdict
        sections.append(
            CausalitySection(
                case=finding.case,
                outcome=Chip(word=verdict.outcome.value, tone=_OUTCOME_TONES.get(verdict.outcome, Tone.WARNING)),
                text=verdict.detail,
                facts=_facts(verdict),
                pictures=(_picture(finding.ribbons, finding, task, fps),) if finding.ribbons is not None else (),
                summary=record.summary.detail if first and record.summary and len(record.findings) > 1 else "",
                pace=_pace(record) if first else "",
                online=online_chip(keeps_up=record.online_compatible) if first else None,
            )
        )
    return tuple(sections)


def online_chip(*, keeps_up: bool | None) -> Chip | None:
    """Whether a method is online-compatible, as a chip; None where that is not known."""
    if keeps_up is None:
        return None
    return (
        Chip(word="online-compatible", tone=Tone.GOOD) if keeps_up
        else Chip(word="not online-compatible", tone=Tone.WARNING)
    )  # fmt: skip


def _facts(verdict: CausalityVerdict) -> tuple[Fact, ...]:
    facts = [
        Fact(
            name="cuts",
            value=f"{verdict.cuts_tested} of {verdict.cuts_possible} possible, {verdict.random_cuts} drawn at random",
        ),
        Fact(name="noise", value=f"{verdict.noise:.2%} of frames differ between two runs of the whole sequence"),
    ]
    if verdict.bound is not None:
        facts.append(Fact(name="at 95 %", value=f"at most {verdict.bound:.1%} of the cut points can leak"))
    return tuple(facts)


def _pace(record: CausalityRecord) -> str:
    pace = record.pace
    if pace is None:
        return ""
    return (
        f"Start-up about {pace.start_up_seconds:.1f} s, then {pace.seconds_per_frame:.3g} s a frame (slope over "
        f"{pace.runs} runs); reported, never judged."
    )


def _picture(ribbons: Ribbons, finding: CausalityFinding, task: Task, fps: float) -> CausalityPicture:
    verdict, leak = finding.verdict, finding.verdict.first_leak
    labels = labels_of(task, ribbons.column)
    standings = {cut.frames: cut.standing for cut in verdict.cuts}
    return CausalityPicture(
        full=Ribbon(
            title=ribbons.column or "class of the highest score",
            frames=ribbons.whole.frames,
            fps=fps,
            labels=labels,
            reference=None,
            prediction=_segments(ribbons.whole),
        ),
        cuts=tuple(
            CutMark(frames=cut.frames, random=cut.random, state=_CUT_STATES.get(cut.standing, CutState.UNDECIDED))
            for cut in verdict.cuts
        ),
        leak_frame=leak.frame if leak else None,
        views=tuple(
            _view(view, view.cut, standings.get(view.cut.frames), ribbons.whole)
            for view in ribbons.views
            if view.cut is not None
        ),
        full_answer=_answer(leak, leak.full_answer, labels) if leak else "",
        view_answer=_answer(leak, leak.cut_answer, labels) if leak else "",
        future_frames=leak.future_frames if leak else None,
    )  # fmt: skip


def _answer(leak: Leak, answer: float | None, labels: Sequence[Label]) -> str:
    if answer is None:
        return "no answer"
    named = {label.number: label.name for label in labels}
    text = named.get(int(answer), f"{answer:g}") if answer == int(answer) else f"{answer:g}"
    return text if labels else f"{leak.column} {text}"


def _view(ribbon: KeptRibbon, cut: Cut, standing: Standing | None, whole: KeptRibbon) -> ViewRibbon:
    altered = cut.kind is CutKind.ALTERED_FUTURE
    if standing is None:  # a step of the search for how many later frames it took
        state = CutState.CHANGED if _differs(ribbon, whole, cut.frames) else CutState.CLEAN
    elif altered and standing is Standing.LENGTH_DEPENDENT:
        state = CutState.CLEAN  # it was the length alone
    else:
        state = _CUT_STATES.get(standing, CutState.UNDECIDED)
    return ViewRibbon(
        kind=f"Other frames from {cut.frames} on" if altered else f"First {cut.frames} frames",
        cut=cut.frames,
        frames=ribbon.frames,
        answers=_segments(ribbon),
        state=state,
    )


def _differs(ribbon: KeptRibbon, whole: KeptRibbon, frames: int) -> bool:
    """Whether an answer kept of both, for one of the first frames, is not the same."""
    kept, other = (
        {place * one.step: answer for place, answer in enumerate(one.answers) if place * one.step < frames}
        for one in (ribbon, whole)
    )
    return any(kept[frame] != other[frame] for frame in kept.keys() & other.keys())


def _segments(ribbon: KeptRibbon) -> tuple[Segment, ...]:
    return tuple(
        Segment(
            label=one.label, start=one.start * ribbon.step, stop=min(one.stop * ribbon.step, ribbon.frames)
        )
        for one in segments_of(ribbon.answers)
    )  # fmt: skip


def latency_sections(run: RunFolder, outcomes: Sequence[CaseOutcome], *, realtime: bool) -> tuple[LatencySection, ...]:
    """The streamed cases behind some outcomes, each once.

    Args:
        run: Where the attempts lie.
        outcomes: Of one submission.
        realtime: Frames came at the camera's rate, so that they could be missed.
    """
    return tuple(
        _latency(home[1], facts, _timing(run, outcomes, home), realtime=realtime)
        for home, facts in streams_of(run, outcomes).items()
    )


def _timing(run: RunFolder, outcomes: Iterable[CaseOutcome], home: tuple[str, str]) -> Sequence[Mapping[str, str]]:
    """The rows of ``timing.csv`` of the attempt that counts."""
    outcome = next(one for one in outcomes if (one.ran_as or (one.task, one.case)) == home)
    path = run.attempt(outcome.submission, *home, "full", outcome.attempt) / "timing.csv"
    if not path.is_file():
        return ()
    with path.open(encoding="ascii", newline="") as source:
        return tuple(csv.DictReader(source))


def _latency(case: str, facts: StreamFacts, rows: Sequence[Mapping[str, str]], *, realtime: bool) -> LatencySection:
    return LatencySection(
        case=case,
        online=online_chip(keeps_up=facts.online_compatible) if facts.p50 is not None else None,
        text=facts.sentence,
        frames=facts.released,
        start_up=facts.start_up,
        first_frame=facts.first_frame,
        mean=facts.mean,
        p50=facts.p50,
        p95=facts.p95,
        p99=facts.p99,
        longest=facts.longest,
        period=facts.period or None,
        over_period=facts.over_period,
        missed=tuple(int(row["index"]) for row in rows if int(row["missed"])) if realtime else None,
        over_time=tuple(float(row["seconds"]) if row["seconds"] else None for row in rows),
        histogram=(
            Histogram(edges_ms=(0.0, *(1000 * edge for edge in EDGES), math.inf), counts=facts.counts)
            if facts.counts else None
        ),
    )  # fmt: skip
