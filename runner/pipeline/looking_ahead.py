"""Checks an entry for causality: asks ``causality`` what to run next, runs it, until it asks for nothing.

Every run is kept like any other, so a check that was cut short goes on from the disk. Where several containers may run
at once, the runs that several cases ask for, or one case asks for ahead, are made side by side.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from runner.causality import (
    CausalityOutcome,
    CausalityVerdict,
    Cost,
    Request,
    conclude,
    estimate,
    next_cuts,
    summary,
)
from runner.challenge import CausalityMethod, CausalityRule, InvocationMode, LeakPolicy
from runner.diagnosis import Facts, diagnose
from runner.errors import HostFault
from runner.executors.local import spread
from runner.job import Cut
from runner.judge import CaseOutcome
from runner.pipeline.context import Context, Entry
from runner.pipeline.events import CausalityBegan, CausalityEnded
from runner.pipeline.looks import Look, Looked, looks_for, run_look
from runner.pipeline.pace import Pace, pace_of
from runner.pipeline.ribbons import Ribbons, ribbons_of
from runner.pipeline.sequences import Examined, drawn_cases, runs_together, seed_of, sequence_of, with_copies
from runner.pipeline.streams import streams_of
from runner.plan import Shared
from runner.store import write_value
from runner.verdict import Hint, Verdict, VerdictWord


@dataclass(frozen=True, kw_only=True)
class CausalityFinding:
    """What was found of an entry on one case.

    Attributes:
        case: Real name.
        frames: Length of the sequence that was tested.
        verdict: What was tested and what it proves.
        pending: The host failed; the check is to be taken up again.
        ribbons: What is drawn of it; None where the whole sequence has no answers.
    """

    case: str
    frames: int
    verdict: CausalityVerdict
    pending: bool = False
    ribbons: Ribbons | None = None


@dataclass(frozen=True, kw_only=True)
class CausalityRecord:
    """What was found of an entry; the file ``causality.json``.

    Attributes:
        findings: By case.
        summary: What they say together; None where no case was tested.
        pace: How long a frame takes; None where the runs do not tell.
        online_compatible: It is causal, and faster than the frame rate; None where one of both is not known.
        by_construction: It was given its frames one by one, so that it cannot have looked ahead; nothing was tested.
    """

    findings: tuple[CausalityFinding, ...]
    summary: CausalityVerdict | None = None
    pace: Pace | None = None
    online_compatible: bool | None = None
    by_construction: bool = False


BY_CONSTRUCTION = "passed by construction: no frame was there before its turn; no cut was run"
"""What is said of a streamed method."""


def is_checked(context: Context, entry: Entry) -> bool:
    """Whether cuts are asked for, and mean anything: who is given frames one by one cannot look ahead."""
    return context.challenge.causality.method is not CausalityMethod.OFF and entry.shared.stream is None


def cost_of(context: Context, tested: Examined) -> Cost:
    """What the check of one case costs; where a case is shown alone, its whole is not that of the evaluation."""
    cost = estimate(
        context.challenge.causality, tested.frames, can_alter=tested.can_alter, possible=tested.possible,
        clip=tested.clip, copied=tested.copied, of=len(tested.case.frames),
    )  # fmt: skip
    alone = context.challenge.invocation.mode is InvocationMode.DATASET and not runs_together(context)
    if cost.most == 0 or tested.clip or not alone:
        return cost
    return replace(cost, clean=cost.clean + 1, most=cost.most + 1, relative=cost.relative + 1)


def relative_cost(context: Context, runs: Sequence[Shared]) -> float:
    """What the check of a clean method adds, as a multiple of the container time of its plain evaluation.

    A case weighs as many frames as it has. Runs that tasks share, since they ask for the same, are counted for each.

    Args:
        context: The run.
        runs: Those of a submission that enters as many tasks as possible.

    Raises:
        UsageError: A case cannot be cut.
    """
    plain, added = 0.0, 0.0
    for shared in runs:
        plain += sum(len(case.frames) for case in context.cases.values())
        tested = [sequence_of(context, shared, context.cases[name]) for name in drawn_cases(context)]
        for one in tested:
            runs_each = len(shared.names) * (1 + len(shared.inputs_from))
            added += runs_each * cost_of(context, one).relative * len(one.case.frames)
    return added / plain


def check_entry(context: Context, entry: Entry, task: str, outcomes: Mapping[str, CaseOutcome]) -> CausalityRecord:
    """Check an entry in one of its tasks on the drawn cases, where it was accepted.

    Tasks that share runs share those of the check as well: what another task has run is found on disk.

    Args:
        context: The run.
        entry: Whose method.
        task: Name of the task.
        outcomes: Its verdicts by case.

    Raises:
        UsageError: A case cannot be cut.
    """
    names = [name for name in drawn_cases(context) if outcomes[name].verdict.accepted]
    return check_cases(context, entry, task, names)


def check_cases(context: Context, entry: Entry, task: str, names: Sequence[str]) -> CausalityRecord:
    """Check an entry in one of its tasks on some cases.

    Raises:
        UsageError: A case cannot be cut.
    """
    checked = _Check(context, entry, task, [sequence_of(context, entry.shared, context.cases[name]) for name in names])
    record = checked.record()
    write_value(context.run.causality(entry.submission.slug, task), record)
    return record


def pass_by_construction(
    context: Context, entry: Entry, task: str, outcomes: Mapping[str, CaseOutcome]
) -> CausalityRecord:
    """Keep that an entry was given its frames one by one; whether it keeps up with the camera was measured."""
    accepted = [outcome for outcome in outcomes.values() if outcome.verdict.accepted]
    streams = streams_of(context.run, accepted).values()
    online = all(facts.online_compatible for facts in streams) if streams else None
    record = CausalityRecord(findings=(), online_compatible=online, by_construction=True)
    write_value(context.run.causality(entry.submission.slug, task), record)
    return record


class _Check:
    """The check of an entry in one task, over its cases."""

    def __init__(self, context: Context, entry: Entry, task: str, cases: Sequence[Examined]) -> None:
        self._context, self._entry, self._task = context, entry, task
        self._rule = context.challenge.causality
        self._cases = {one.case.name: one for one in cases}
        self._evidence = {name: one.evidence for name, one in self._cases.items()}
        self._seeds = {name: seed_of(context, entry.submission.slug, entry.task, name) for name in self._cases}
        self._pending: dict[str, HostFault] = {}
        self._places: dict[str, int] | None = None
        self._points: list[tuple[int, float]] = []

    def record(self) -> CausalityRecord:
        """Run the check to its end."""
        name = self._entry.submission.submission
        for case, tested in self._cases.items():
            cost = cost_of(self._context, tested)
            self._context.observe(CausalityBegan(submission=name, case=case, expected=cost.clean, most=cost.most))
        with self._context.bench.workspace.desk() as desk:
            self._cases = {name: with_copies(one, desk) for name, one in self._cases.items()}
            while asked := self._asked():
                self._run(asked)
        findings = tuple(self._finding(case) for case in self._cases)
        for finding in findings:
            fault = self._pending.get(finding.case)
            sentence = f"pending, the host failed: {fault.what}" if fault else finding.verdict.sentence
            self._context.observe(CausalityEnded(submission=name, case=finding.case, sentence=sentence))
        whole = summary(self._rule, {one.case: one.verdict for one in findings}) if findings else None
        pace = pace_of(self._points)
        return CausalityRecord(findings=findings, summary=whole, pace=pace, online_compatible=self._online(whole, pace))

    def _asked(self) -> list[tuple[Examined, Request]]:
        """What the cases ask for next: one thing each, and more ahead where there is room for it."""
        asked = self._asked_of([name for name in self._cases if name not in self._pending], width=1)
        together = runs_together(self._context)
        if asked and not together and self._context.settings.jobs > len(asked):
            width = self._context.settings.jobs // len(asked)
            asked = self._asked_of([one.case.name for one, _ in asked], width=width)
        cuts = {one.case.name: request.frames for one, request in asked if isinstance(request, Cut)}
        if together and self._places is None and cuts:
            self._places = cuts
        return asked

    def _asked_of(self, names: Sequence[str], *, width: int) -> list[tuple[Examined, Request]]:
        return [
            (self._cases[name], request)
            for name in names
            for request in next_cuts(self._rule, self._evidence[name], self._seeds[name], width=width)
        ]

    def _run(self, asked: Sequence[tuple[Examined, Request]]) -> None:
        places = (self._places or {}) if runs_together(self._context) else None
        looks = looks_for(self._context, asked, places)
        for look, looked in zip(looks, spread(self._look, looks, workers=self._context.settings.jobs), strict=True):
            if isinstance(looked, HostFault):
                self._pending.update({name: looked for name, _ in look.asked})
                continue
            for name, observation in looked.observations.items():
                self._evidence[name] = self._evidence[name].plus(observation)
            if looked.seconds is not None:
                self._points.append((looked.frames, looked.seconds))

    def _look(self, look: Look) -> Looked | HostFault:
        try:
            return run_look(self._context, self._entry, self._task, look)
        except HostFault as fault:
            return fault

    def _finding(self, case: str) -> CausalityFinding:
        evidence = self._evidence[case]
        verdict = conclude(self._rule, evidence, self._seeds[case])
        return CausalityFinding(
            case=case, frames=evidence.frames, verdict=verdict, pending=case in self._pending,
            ribbons=ribbons_of(evidence, verdict),
        )  # fmt: skip

    def _online(self, whole: CausalityVerdict | None, pace: Pace | None) -> bool | None:
        fps = self._context.challenge.cases.fps
        if whole is None or fps is None:
            return None
        if whole.outcome is CausalityOutcome.LEAKING:
            return False
        if whole.outcome is not CausalityOutcome.PASSED or pace is None:
            return None
        return pace.seconds_per_frame < 1 / fps


def policy_for(rule: CausalityRule, record: CausalityRecord) -> LeakPolicy | None:
    """What the challenge says of what was found; None where nothing was."""
    found = {finding.verdict.outcome for finding in record.findings}
    policies = []
    if CausalityOutcome.LEAKING in found:
        policies.append(rule.on_leak)
    if CausalityOutcome.LENGTH_DEPENDENT in found:
        policies.append(rule.length_dependence)
    order = list(LeakPolicy)
    return min(policies, key=order.index, default=None)


def leak_hints(outcome: CausalityOutcome) -> tuple[Hint, ...]:
    """What is likely behind a finding that is refused."""
    dependent = outcome is CausalityOutcome.LENGTH_DEPENDENT
    return diagnose(Facts(word=VerdictWord.NOT_CAUSAL, length_dependent=dependent))


def with_leaks(
    rule: CausalityRule, record: CausalityRecord, outcomes: dict[str, CaseOutcome]
) -> dict[str, CaseOutcome]:
    """The outcomes with ``not-causal`` on the cases that prove it, where the challenge refuses leaks."""
    judged = dict(outcomes)
    for finding in record.findings:
        refused = (
            finding.verdict.outcome is CausalityOutcome.LEAKING and rule.on_leak is LeakPolicy.REFUSE
        ) or (
            finding.verdict.outcome is CausalityOutcome.LENGTH_DEPENDENT and rule.length_dependence is LeakPolicy.REFUSE
        )  # fmt: skip
        if refused:
            before = judged[finding.case]
            verdict = Verdict(
                word=VerdictWord.NOT_CAUSAL,
                sentence=finding.verdict.sentence,
                hints=leak_hints(finding.verdict.outcome),
                notes=(before.verdict.sentence,),
            )
            judged[finding.case] = replace(before, verdict=verdict)
    return judged
