"""Gives every case of every entry its verdict."""

import time
from dataclasses import dataclass

from runner.budget import deserves_repeat, judged_seconds
from runner.dataset import Case
from runner.errors import HostFault
from runner.job import Job
from runner.judge import CaseOutcome, better
from runner.pipeline.attempts import Attempt, job_of, past_attempts, run_attempt
from runner.pipeline.context import Context, Entry
from runner.pipeline.events import CaseEnded
from runner.pipeline.preflights import refusal_of
from runner.store import read_value, write_value
from runner.verdict import Verdict, VerdictWord


@dataclass(frozen=True, kw_only=True)
class CaseRun:
    """A case of an entry that is to be given its verdict."""

    entry: Entry
    case: Case


def is_done(context: Context, run: CaseRun) -> bool:
    """True where the case has a verdict for exactly this job."""
    return _known(context, job_of(context, run.entry, run.case)) is not None


def _known(context: Context, job: Job) -> CaseOutcome | None:
    path = context.run.outcome(job.submission, job.task, job.case)
    if not path.is_file():
        return None
    outcome = read_value(path, CaseOutcome)
    return outcome if outcome.digest == job.digest and not outcome.verdict.pending else None


def settle_case(context: Context, run: CaseRun) -> CaseOutcome:
    """Give a case its verdict: the one it has, or that of a run, repeated alone where it was a near miss."""
    job = job_of(context, run.entry, run.case)
    outcome = _known(context, job)
    began = time.monotonic()
    if outcome is None:
        outcome = _refused_image(context, run.entry, job) or _run(context, run, job)
        write_value(context.run.outcome(job.submission, job.task, job.case), outcome)
    submission = run.entry.submission
    context.observe(
        CaseEnded(
            submission=submission.submission,
            team=submission.team,
            task=job.task,
            case=job.case,
            verdict=outcome.verdict,
            seconds=time.monotonic() - began,
        )
    )
    return outcome


def _refused_image(context: Context, entry: Entry, job: Job) -> CaseOutcome | None:
    refusal = refusal_of(entry.findings, public=context.public)
    return _outcome(job, refusal, attempt=0, seconds=None) if refusal else None


def _outcome(
    job: Job, verdict: Verdict, *, attempt: int, seconds: float | None, all_seconds: tuple[float, ...] = ()
) -> CaseOutcome:
    return CaseOutcome(
        submission=job.submission, task=job.task, case=job.case, verdict=verdict, digest=job.digest, attempt=attempt,
        seconds=seconds, limit=job.budget.run_time, all_seconds=all_seconds,
    )  # fmt: skip


def _run(context: Context, run: CaseRun, job: Job) -> CaseOutcome:
    attempts = list(past_attempts(context, job))
    try:
        if not attempts:
            with context.turnstile.together():
                attempts.append(run_attempt(context, run.entry, job))
        if len(attempts) == 1 and _near_miss(attempts[0], job):
            with context.turnstile.alone():
                attempts.append(run_attempt(context, run.entry, job))
    except HostFault as fault:
        verdict = Verdict(word=VerdictWord.HOST_FAULT, sentence=f"the host failed, not the submission: {fault.what}")
        return _outcome(job, verdict, attempt=0, seconds=None)
    return _judged_outcome(job, attempts)


def _near_miss(attempt: Attempt, job: Job) -> bool:
    usage = attempt.result.usage
    return attempt.verdict.word is VerdictWord.TIMED_OUT and deserves_repeat(
        seconds=judged_seconds(usage), limit=job.budget.run_time, alone=usage.alone
    )


def _judged_outcome(job: Job, attempts: list[Attempt]) -> CaseOutcome:
    counted = attempts[0]
    for other in attempts[1:]:
        if better((counted.verdict, counted.result), (other.verdict, other.result)):
            counted = other
    seconds = tuple(judged_seconds(a.result.usage) for a in attempts)
    verdict = counted.verdict
    if len(attempts) > 1:
        runs = " and ".join(f"{s:.2f} s" for s in seconds)
        verdict = Verdict(
            word=verdict.word, sentence=verdict.sentence, hints=verdict.hints, evidence=verdict.evidence,
            notes=(*verdict.notes, f"a near miss was repeated once alone; the runs took {runs}, the better one counts"),
        )  # fmt: skip
    return _outcome(
        job, verdict, attempt=counted.number, seconds=judged_seconds(counted.result.usage), all_seconds=seconds
    )
