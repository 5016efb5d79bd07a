"""Checks an entry for causality: asks ``causality`` what to run next, runs it, until it asks for nothing.

Every run is kept like any other, so a check that was cut short goes on from the disk.
"""

import hashlib
from dataclasses import dataclass, replace

import numpy as np

from runner.causality.evidence import Answers, Evidence, FullRun, Observation, Request
from runner.causality.plan import estimate, next_cuts
from runner.causality.verdict import CausalityOutcome, CausalityVerdict, conclude
from runner.challenge import CausalityRule, LeakPolicy
from runner.dataset import Case
from runner.diagnosis import Facts, diagnose
from runner.errors import HostFault
from runner.formats.contract import FrameTable
from runner.job import Cut
from runner.judge import CaseOutcome
from runner.pipeline.attempts import Judged, job_of, past_attempts, run_attempt
from runner.pipeline.context import Context, Entry
from runner.pipeline.events import CausalityBegan, CausalityEnded, CutEnded
from runner.store import write_value
from runner.verdict import Hint, Verdict, VerdictWord


@dataclass(frozen=True, kw_only=True)
class CausalityFinding:
    """What was found of an entry on one case.

    Attributes:
        case: Real name.
        frames: Length of the case.
        verdict: What was tested and what it proves.
        pending: The host failed; the check is to be taken up again.
    """

    case: str
    frames: int
    verdict: CausalityVerdict
    pending: bool = False


@dataclass(frozen=True, kw_only=True)
class CausalityRecord:
    """What was found of an entry; the file ``causality.json``."""

    findings: tuple[CausalityFinding, ...]


def drawn_cases(context: Context) -> tuple[str, ...]:
    """The cases that are checked: the same for everybody, drawn with the organisers' seed."""
    names = sorted(context.cases)
    rng = np.random.default_rng(_seed(context.seed, "cases"))
    wanted = context.challenge.causality.on
    count = len(names) if wanted == "all" else min(wanted, len(names))
    return tuple(sorted(str(name) for name in rng.choice(names, size=count, replace=False)))


def _seed(seed: int, *parts: str) -> int:
    text = "\0".join([str(seed), *parts])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def relative_cost(context: Context) -> float:
    """What the check of a clean method adds, as a multiple of the container runs of the plain evaluation."""
    rule = context.challenge.causality
    frames = [len(context.cases[name].frames) for name in drawn_cases(context)]
    added = sum(estimate(rule, n, can_alter=len(context.cases) > 1).clean for n in frames)
    return added / len(context.cases)


def check_entry(context: Context, entry: Entry, task: str, outcomes: dict[str, CaseOutcome]) -> CausalityRecord:
    """Check an entry in one of its tasks on the drawn cases, where it was accepted.

    Tasks that share runs share those of the check as well: what another task has run is found on disk.

    Args:
        context: The run.
        entry: Whose method.
        task: Name of the task.
        outcomes: Its verdicts by case.
    """
    findings = [
        _check_case(context, entry, task, context.cases[name])
        for name in drawn_cases(context)
        if outcomes[name].verdict.accepted
    ]
    record = CausalityRecord(findings=tuple(findings))
    write_value(context.run.causality(entry.submission.slug, task), record)
    return record


def _check_case(context: Context, entry: Entry, task: str, case: Case) -> CausalityFinding:
    rule = context.challenge.causality
    can_alter = len(context.cases) > 1
    cost = estimate(rule, len(case.frames), can_alter=can_alter)
    name = entry.submission.submission
    context.observe(CausalityBegan(submission=name, case=case.name, expected=cost.clean, most=cost.most))
    evidence = Evidence(frames=len(case.frames), can_alter=can_alter)
    seed = _seed(context.seed, entry.submission.slug, entry.task, case.name)
    try:
        evidence = _gather(context, entry, task, case, rule=rule, evidence=evidence, seed=seed)
    except HostFault as fault:
        context.observe(
            CausalityEnded(submission=name, case=case.name, sentence=f"pending, the host failed: {fault.what}")
        )
        return CausalityFinding(
            case=case.name, frames=evidence.frames, verdict=conclude(rule, evidence, seed), pending=True
        )
    verdict = conclude(rule, evidence, seed)
    context.observe(CausalityEnded(submission=name, case=case.name, sentence=verdict.sentence))
    return CausalityFinding(case=case.name, frames=evidence.frames, verdict=verdict)


def _gather(
    context: Context, entry: Entry, task: str, case: Case, *, rule: CausalityRule, evidence: Evidence, seed: int
) -> Evidence:
    evidence = evidence.plus(_observe(context, entry, task, case, FullRun(repeat=0)))
    while requests := next_cuts(rule, evidence, seed):
        for request in requests:
            evidence = evidence.plus(_observe(context, entry, task, case, request))
    return evidence


def _observe(context: Context, entry: Entry, task: str, case: Case, request: Request) -> Observation:
    """Run a request, or find it on disk; a failure of the method is an answer too."""
    cut = request if isinstance(request, Cut) else None
    repeat = request.repeat if isinstance(request, FullRun) else 0
    job = job_of(context, entry, case, cut=cut, repeat=repeat)
    judged = _counted([attempt.of(task, case.name) for attempt in past_attempts(context, entry, job)])
    if judged is None:
        with context.turnstile.together():
            judged = run_attempt(context, entry, job).of(task, case.name)
        context.observe(CutEnded(submission=entry.submission.submission, case=case.name, run=job.name))
    if judged.verdict.accepted and judged.reading is not None and isinstance(judged.reading.prediction, FrameTable):
        return Observation(request=request, answers=Answers.of(judged.reading.prediction))
    return Observation(request=request, failure=judged.verdict.word.value or job.name)


def _counted(judged: list[Judged]) -> Judged | None:
    """The attempt that counts: an accepted one, else the last."""
    good = [one for one in judged if one.verdict.accepted]
    return good[0] if good else (judged[-1] if judged else None)


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
