"""Runs one job until the host lets it, keeps every attempt, and judges it.

An attempt that has no ``result.json`` was cut short by the end of its runner; it says nothing and is deleted when the
job is taken up again.
"""

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from runner.dataset import Case
from runner.diagnosis import diagnose, facts_of
from runner.engine import EngineUnreachable
from runner.errors import HostFault
from runner.execute import View, run_job
from runner.formats.contract import Reading
from runner.formats.frame_table import Role, confined_read
from runner.formats.signs import Sign, confined_signs, table_due
from runner.job import Cut, CutKind, Job, JobResult
from runner.judge import judge_run
from runner.pipeline.context import Context, Entry
from runner.pipeline.events import HostFailed
from runner.plan import budget_for, plan_job
from runner.preflight import start_fault
from runner.store import read_value, write_value
from runner.verdict import Hint, Verdict, VerdictWord, replace_hints

_BACK_OFF = 2.0
_UNEXPLAINED = (VerdictWord.ACCEPTED, VerdictWord.HOST_FAULT, VerdictWord.SCORER_FAULT)
"""Not the participant's doing, or nobody's: there is nothing to mend."""

_BELIEVED = (VerdictWord.ACCEPTED, VerdictWord.TIMED_OUT)
"""What an exit code 0 can amount to that an engine which was away cannot have brought about."""


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One judged attempt at a job.

    Attributes:
        number: 1, 2, …
        result: The facts.
        verdict: What they amount to.
        reading: What was read of its file; None where none was taken.
    """

    number: int
    result: JobResult
    verdict: Verdict
    reading: Reading | None


def job_of(context: Context, entry: Entry, case: Case, *, cut: Cut | None = None, repeat: int = 0) -> Job:
    """Describe a run of an entry on a case, or on a view of it."""
    challenge = context.challenge
    altered = cut is not None and cut.kind is CutKind.ALTERED_FUTURE
    return plan_job(
        submission=entry.submission.slug, task_name=entry.task, task=challenge.tasks[entry.task],
        invocation=challenge.invocation, case=case, case_hash=context.input_hashes[case.name], image_id=entry.image.id,
        budget=budget_for(
            challenge.limits, context.settings.ceiling, context.host.size, media_seconds=case.media_seconds,
            policy=context.bench.policy,
        ),
        policy=context.bench.policy,
        cut=cut, repeat=repeat, donor_hash=context.input_hashes[donor_of(context, case).name] if altered else "",
    )  # fmt: skip


def donor_of(context: Context, case: Case) -> Case:
    """The case whose frames an altered future shows: the next one."""
    names = list(context.cases)
    return context.cases[names[(names.index(case.name) + 1) % len(names)]]


def job_folder(context: Context, job: Job) -> Path:
    """Folder of all attempts at a job."""
    return context.run.case(job.submission, job.task, job.case) / job.name


def past_attempts(context: Context, job: Job) -> tuple[Attempt, ...]:
    """The finished attempts at exactly this job, judged again from their files."""
    attempts = []
    for folder in sorted(job_folder(context, job).glob("attempt-*"), key=_number):
        if not (folder / "result.json").is_file():
            continue
        result = read_value(folder / "result.json", JobResult)
        if result.digest == job.digest:
            attempts.append(_judged(context, job, result, folder))
    return tuple(attempts)


def _number(folder: Path) -> int:
    return int(folder.name.removeprefix("attempt-"))


def _fresh_folder(context: Context, job: Job) -> tuple[int, Path]:
    try:
        return _make_folder(job_folder(context, job))
    except OSError as error:
        raise HostFault(
            f"no folder could be made for an attempt: {error.strerror}",
            where=str(error.filename or ""),
            remedy="make room, or mend the disk, then: proctor resume RUN",
        ) from error


def _make_folder(root: Path) -> tuple[int, Path]:
    last = 0
    for folder in sorted(root.glob("attempt-*"), key=_number):
        if (folder / "result.json").is_file():
            last = _number(folder)
        else:
            shutil.rmtree(folder)
    folder = root / f"attempt-{last + 1}"
    folder.mkdir(parents=True)
    return last + 1, folder


def run_attempt(context: Context, entry: Entry, job: Job) -> Attempt:
    """Run a job, again after host faults as often as the settings allow, and judge it.

    Raises:
        HostFault: The host failed every time.
    """
    case = context.cases[job.case]
    view = View(case=case, donor=donor_of(context, case))
    tries = context.settings.host_retries + 1
    for left in reversed(range(tries)):
        try:
            number, folder = _fresh_folder(context, job)
            result = run_job(context.bench, job, view, image=entry.image.facts, attempt=number, folder=folder)
            result = replace(result, start_fault=start_fault(entry.findings))
            attempt = _judged(context, job, result, folder)
            _require_engine(context, attempt)
        except HostFault as fault:
            context.observe(HostFailed(submission=job.submission, case=job.case, text=str(fault), again=left > 0))
            if not left:
                raise
            context.bench.clock.sleep(_BACK_OFF * (tries - left))
            continue
        write_value(folder / "job.json", job)
        write_value(folder / "result.json", result)
        return attempt
    raise AssertionError("unreachable: the last try raises")


def _require_engine(context: Context, attempt: Attempt) -> None:
    """An engine that goes down asks programs to end first; what one that obeys leaves says nothing of it.

    Raises:
        HostFault: The engine is away, or it was, and what is left is not whole.
    """
    result = attempt.result
    if result.exit is None or result.killed:
        return
    ended = f"the container ended with {result.exit.code}: it may have been its doing"
    try:
        context.bench.engine.ping()
    except EngineUnreachable as error:
        raise HostFault(f"the engine went away when {ended}", remedy="see: proctor doctor") from error
    if result.notes and result.exit.code == 0 and attempt.verdict.word not in _BELIEVED:
        raise HostFault(f"{result.notes[0]}, its output is not whole, and {ended}", remedy="see: proctor doctor")


def _judged(context: Context, job: Job, result: JobResult, folder: Path) -> Attempt:
    reading: Reading | None = None
    if result.intake is not None and result.intake.refusal is None:
        reading = read_prediction(context, job, folder)
    verdict = judge_run(job, result, reading, public=context.public)
    if verdict.word not in _UNEXPLAINED:
        verdict = replace_hints(verdict, _hints(context, job, result, reading, word=verdict.word, folder=folder))
    return Attempt(number=result.attempt, result=result, reading=reading, verdict=verdict)


def _hints(
    context: Context, job: Job, result: JobResult, reading: Reading | None, *, word: VerdictWord, folder: Path
) -> tuple[Hint, ...]:
    log = folder / "log.txt"
    signs = _signs(context, job, folder) if word is VerdictWord.BAD_OUTPUT else frozenset()
    facts = facts_of(
        word, job, result, log=log.read_bytes() if log.is_file() else b"", reading=reading, signs=signs,
        has_gpu=context.bench.gpus is not None,
    )  # fmt: skip
    return diagnose(facts)


def prediction_file(context: Context, job: Job, number: int) -> Path:
    """Where an attempt's prediction lies."""
    return (
        job_folder(context, job)
        / f"attempt-{number}"
        / "predictions"
        / job.expected_file.replace("{case}", "prediction")
    )


def _signs(context: Context, job: Job, folder: Path) -> frozenset[Sign]:
    """What a confined child sees of a file that was refused."""
    due = table_due(context.challenge.tasks[job.task].format, job.frames)
    return confined_signs(context.confine, due, _taken(job, folder))


def _taken(job: Job, folder: Path) -> Path:
    return folder / "predictions" / job.expected_file.replace("{case}", "prediction")


def read_prediction(context: Context, job: Job, folder: Path) -> Reading:
    """Read what an attempt left, in a confined child."""
    rule = context.challenge.tasks[job.task].format
    path = _taken(job, folder)
    return confined_read(context.confine, rule, path, frames=job.frames, role=Role.PREDICTION)
