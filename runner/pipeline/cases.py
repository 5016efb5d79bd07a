"""Gives every case of every entry its verdict."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from runner.budget import judged_seconds
from runner.challenge import InvocationMode
from runner.dataset import Case
from runner.errors import HostFault
from runner.job import Job
from runner.judge import CaseOutcome, better
from runner.pipeline.attempts import Attempt, job_of, settled_attempts
from runner.pipeline.context import Context, Entry
from runner.pipeline.events import CaseEnded
from runner.pipeline.preflights import refusal_of
from runner.store import read_value, write_value
from runner.verdict import Verdict, VerdictWord


@dataclass(frozen=True, kw_only=True)
class CaseRun:
    """One run of an entry whose tasks and cases are to be given their verdicts.

    Attributes:
        entry: Who, and which tasks.
        cases: One case; or all, where one container has them all.
    """

    entry: Entry
    cases: tuple[Case, ...]

    def parts(self) -> Iterator[tuple[str, Case]]:
        """Each task and case it answers."""
        for case in self.cases:
            for task in self.entry.shared.names:
                yield task, case


def runs_of(context: Context, entry: Entry) -> tuple[CaseRun, ...]:
    """The runs that give an entry its verdicts."""
    cases = tuple(context.cases.values())
    if context.challenge.invocation.mode is InvocationMode.DATASET and entry.shared.stream is None:
        return (CaseRun(entry=entry, cases=cases),)
    return tuple(CaseRun(entry=entry, cases=(case,)) for case in cases)


def done_parts(context: Context, run: CaseRun) -> int:
    """How many of a run's tasks and cases have a verdict for exactly this job."""
    if _lacking(context, run):
        return 0
    job = job_of(context, run.entry, *run.cases)
    return sum(_known(context, job, task, case) is not None for task, case in run.parts())


def _known(context: Context, job: Job, task: str, case: Case) -> CaseOutcome | None:
    path = context.run.outcome(job.submission, task, case.name)
    if not path.is_file():
        return None
    outcome = read_value(path, CaseOutcome)
    return outcome if outcome.digest == job.digest and not outcome.verdict.pending else None


def settle_run(context: Context, run: CaseRun) -> list[CaseOutcome]:
    """Give each task and case of a run its verdict: the one it has, or that of a run.

    A near miss is repeated once, alone.
    """
    began = time.monotonic()
    outcomes = _lacking(context, run) or _settled(context, run)
    for outcome in outcomes:
        submission = run.entry.submission
        context.observe(
            CaseEnded(
                submission=submission.submission,
                team=submission.team,
                task=outcome.task,
                case=outcome.case,
                verdict=outcome.verdict,
                seconds=time.monotonic() - began,
            )
        )
    return outcomes


def _settled(context: Context, run: CaseRun) -> list[CaseOutcome]:
    job = job_of(context, run.entry, *run.cases)
    known = [_known(context, job, task, case) for task, case in run.parts()]
    if all(known):
        return [outcome for outcome in known if outcome is not None]
    outcomes = _refused_image(context, run, job) or _run(context, run, job)
    for outcome in outcomes:
        write_value(context.run.outcome(job.submission, outcome.task, outcome.case), outcome)
    return outcomes


def _lacking(context: Context, run: CaseRun) -> list[CaseOutcome]:
    """The outcomes of a run that cannot be, since an earlier task gave no valid prediction to show it; else none."""
    slug = run.entry.submission.slug
    for task in run.entry.shared.inputs_from:
        for case in run.cases:
            path = context.run.outcome(slug, task, case.name)
            if not path.is_file():
                sentence = f"task {task} was not entered, whose prediction it is given"
                return _not_run(context, run, Verdict(word=VerdictWord.MISSING_OUTPUT, sentence=f"not run: {sentence}"))
            before = read_value(path, CaseOutcome).verdict
            if not before.accepted:
                sentence = f"not run: its input is the prediction of task {task}, which ended: {before.sentence}"
                return _not_run(context, run, Verdict(word=before.word, sentence=sentence, hints=before.hints))
    return []


def _not_run(context: Context, run: CaseRun, verdict: Verdict) -> list[CaseOutcome]:
    outcomes = [
        CaseOutcome(
            submission=run.entry.submission.slug, task=task, case=case.name, verdict=verdict, digest="", attempt=0,
            seconds=None, limit=0.0,
        )
        for task, case in run.parts()
    ]  # fmt: skip
    for outcome in outcomes:
        write_value(context.run.outcome(outcome.submission, outcome.task, outcome.case), outcome)
    return outcomes


def _refused_image(context: Context, run: CaseRun, job: Job) -> list[CaseOutcome]:
    refusal = refusal_of(run.entry.findings, public=context.public)
    return _everywhere(run, job, refusal) if refusal else []


def _everywhere(run: CaseRun, job: Job, verdict: Verdict) -> list[CaseOutcome]:
    return [_outcome(job, task, case, verdict, attempt=0, seconds=None) for task, case in run.parts()]


def _outcome(
    job: Job,
    task: str,
    case: Case,
    verdict: Verdict,
    *,
    attempt: int,
    seconds: float | None,
    all_seconds: tuple[float, ...] = (),
) -> CaseOutcome:
    ran_as = None if (task, case.name) == (job.task, job.case) else (job.task, job.case)
    return CaseOutcome(
        submission=job.submission, task=task, case=case.name, verdict=verdict, digest=job.digest, attempt=attempt,
        seconds=seconds, limit=job.budget.run_time, all_seconds=all_seconds, ran_as=ran_as,
    )  # fmt: skip


def _run(context: Context, run: CaseRun, job: Job) -> list[CaseOutcome]:
    try:
        attempts = settled_attempts(context, run.entry, job)
    except HostFault as fault:
        sentence = f"the host failed, not the submission: {fault.what}"
        return _everywhere(run, job, Verdict(word=VerdictWord.HOST_FAULT, sentence=sentence))
    return [_judged_outcome(job, task, case, attempts) for task, case in run.parts()]


def _judged_outcome(job: Job, task: str, case: Case, attempts: list[Attempt]) -> CaseOutcome:
    counted = attempts[0]
    for other in attempts[1:]:
        verdicts = [attempt.of(task, case.name).verdict for attempt in (counted, other)]
        if better((verdicts[0], counted.result), (verdicts[1], other.result)):
            counted = other
    seconds = tuple(judged_seconds(a.result.usage) for a in attempts)
    verdict = counted.of(task, case.name).verdict
    if len(attempts) > 1:
        runs = " and ".join(f"{s:.2f} s" for s in seconds)
        verdict = Verdict(
            word=verdict.word, sentence=verdict.sentence, hints=verdict.hints, evidence=verdict.evidence,
            notes=(*verdict.notes, f"a near miss was repeated once alone; the runs took {runs}, the better one counts"),
        )  # fmt: skip
    return _outcome(
        job, task, case, verdict, attempt=counted.number, seconds=judged_seconds(counted.result.usage),
        all_seconds=seconds,
    )  # fmt: skip
