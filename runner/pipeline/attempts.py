"""Runs one job until the host lets it, keeps every attempt, and judges it.

An attempt that has no ``result.json`` was cut short by the end of its runner; it says nothing and is deleted when the
job is taken up again.
"""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from runner.budget import deserves_repeat, judged_seconds
from runner.challenge import FormatSection
from runner.dataset import Case
from runner.diagnosis import diagnose, facts_of
from runner.engine import EngineUnreachable
from runner.errors import HostFault
from runner.execute import run_job
from runner.formats.contract import Due, Reading, Role
from runner.formats.reading import beside, read_output
from runner.formats.signs import Sign, confined_signs
from runner.formats.signs import due_of as signs_due
from runner.inputs import CaseView
from runner.job import Job, JobResult, Output
from runner.judge import CaseOutcome, judge_run
from runner.pipeline.context import Context, Entry
from runner.pipeline.events import HostFailed
from runner.plan import DATA_SET, Shown, budget_for, plan_job
from runner.preflight import start_fault
from runner.store import RunFolder, read_value, write_value
from runner.submissions import slug_of
from runner.verdict import Hint, Verdict, VerdictWord, replace_hints

_BACK_OFF = 2.0
_UNEXPLAINED = (VerdictWord.ACCEPTED, VerdictWord.HOST_FAULT, VerdictWord.SCORER_FAULT)
"""Not the participant's doing, or nobody's: there is nothing to mend."""

_BELIEVED = (VerdictWord.ACCEPTED, VerdictWord.TIMED_OUT)
"""What an exit code 0 can amount to that an engine which was away cannot have brought about."""


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What an attempt amounts to for one task and one case.

    Attributes:
        task: Name.
        case: Real name.
        verdict: The verdict.
        reading: What was read of its file; None where none was taken.
    """

    task: str
    case: str
    verdict: Verdict
    reading: Reading | None


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One judged attempt at a job.

    Attributes:
        number: 1, 2, …
        result: The facts.
        judged: What they amount to, for each of its tasks and cases.
    """

    number: int
    result: JobResult
    judged: tuple[Judged, ...]

    def of(self, task: str, case: str) -> Judged:
        """What it amounts to for a task and a case."""
        return next(one for one in self.judged if (one.task, one.case) == (task, case))

    @property
    def timed_out(self) -> bool:
        """It took longer than it may: then it did for every task and case."""
        return all(one.verdict.word is VerdictWord.TIMED_OUT for one in self.judged)


def views_of(context: Context, entry: Entry, *cases: Case) -> tuple[CaseView, ...]:
    """What the run that is judged is shown: each case whole."""
    return tuple(CaseView(case=case, earlier=earlier_of(context, entry, case)) for case in cases)


def job_of(context: Context, entry: Entry, *cases: Case) -> Job:
    """Describe the run of an entry on a case that is judged; or on all cases, where one container has them all."""
    return job_on(context, entry, views_of(context, entry, *cases))


def job_on(context: Context, entry: Entry, views: Sequence[CaseView], *, repeat: int = 0, below: str = "") -> Job:
    """Describe a run of an entry on some views.

    Args:
        context: The run.
        entry: Whose method.
        views: What it is shown; of several cases only where one container has them all.
        repeat: 0 for the run that is judged, 1, 2, … for its repetitions.
        below: As ``plan_job`` has it. Such a run has the whole data set's budget.
    """
    challenge, hashes = context.challenge, context.input_hashes
    shown = [
        Shown(
            case=view.case, inputs=hashes[view.case.name], cut=view.cut, length=view.length,
            donor=hashes[view.donor.name] if view.donor is not None else "",
            earlier=",".join(context.hashes.tree(path) for path in (view.earlier or {}).values()),
        )
        for view in views
    ]  # fmt: skip
    media = context.cases.values() if below else [view.case for view in views]
    return plan_job(
        submission=entry.submission.slug, shared=entry.shared, challenge=challenge, shown=shown,
        image_id=entry.image.id,
        budget=budget_for(
            challenge.limits, context.settings.ceiling, context.host.size,
            media_seconds=sum(case.media_seconds for case in media), policy=context.bench.policy,
            stream=entry.shared.stream,
        ),
        policy=context.bench.policy, repeat=repeat, below=below,
    )  # fmt: skip


def earlier_of(context: Context, entry: Entry, case: Case) -> Mapping[str, Path]:
    """The predictions of earlier tasks that a run is shown, by their place below the input folder.

    Only those that were accepted: without one, the case is not run (see ``cases``).
    """
    found = {}
    for task in entry.shared.inputs_from:
        outcome = read_value(context.run.outcome(entry.submission.slug, task, case.name), CaseOutcome)
        rule = context.challenge.tasks[task].format
        if outcome.verdict.accepted:
            found[earlier_place(task, rule)] = kept_prediction(context.run, outcome, rule)
    return found


def earlier_place(task: str, rule: FormatSection) -> str:
    """Where below the input folder the prediction of an earlier task is shown, with ``{case}``."""
    place = Output(case="", file=rule.file.replace("{task}", task)).path
    return f"predictions/{task}/{place.removeprefix(f'{task}/')}"


def kept_prediction(run: RunFolder, outcome: CaseOutcome, rule: FormatSection) -> Path:
    """Where the prediction lies that an outcome was judged by: a file, or a folder with a file a frame."""
    home_task, home_case, apart = outcome.task, outcome.case, ""
    if outcome.ran_as is not None:
        home_task, home_case = outcome.ran_as
        apart = slug_of(outcome.case) if home_case == DATA_SET else ""
    output = Output(case=outcome.case, file=rule.file.replace("{task}", outcome.task), apart=apart)
    folder = run.attempt(outcome.submission, home_task, home_case, "full", outcome.attempt)
    return folder / "predictions" / output.kept


def due_of(case: Case, frames: int | None = None) -> Due:
    """What a prediction for a case, or for its first frames, must answer."""
    if not case.frames:
        return Due()
    count = len(case.frames) if frames is None else frames
    return Due(frames=case.frames[:count], count=count)


def donor_of(context: Context, case: Case) -> Case:
    """The case whose frames an altered future shows: the next one."""
    names = list(context.cases)
    return context.cases[names[(names.index(case.name) + 1) % len(names)]]


def job_folder(context: Context, job: Job) -> Path:
    """Folder of all attempts at a job."""
    return context.run.case(job.submission, job.task, job.case) / job.name


def past_attempts(context: Context, entry: Entry, job: Job) -> tuple[Attempt, ...]:
    """The finished attempts at exactly this job, judged again from their files."""
    attempts = []
    for folder in sorted(job_folder(context, job).glob("attempt-*"), key=_number):
        if not (folder / "result.json").is_file():
            continue
        result = read_value(folder / "result.json", JobResult)
        if result.digest == job.digest:
            attempts.append(_judged(context, entry, job, result, folder))
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


def run_attempt(context: Context, entry: Entry, job: Job, views: Sequence[CaseView] = ()) -> Attempt:
    """Run a job, again after host faults as often as the settings allow, and judge it.

    Args:
        context: The run.
        entry: Whose method.
        job: What is run.
        views: What it was planned for; none: its cases whole.

    Raises:
        HostFault: The host failed every time.
    """
    views = views or views_of(context, entry, *(context.cases[name] for name in job.cases))
    shown = {view.case.name: view for view in views}
    tries = context.settings.host_retries + 1
    for left in reversed(range(tries)):
        try:
            number, folder = _fresh_folder(context, job)
            result = run_job(context.bench, job, shown, image=entry.image.facts, attempt=number, folder=folder)
            result = replace(result, start_fault=start_fault(entry.findings))
            attempt = _judged(context, entry, job, result, folder)
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


def settled_attempts(context: Context, entry: Entry, job: Job, views: Sequence[CaseView] = ()) -> list[Attempt]:
    """The attempts at a job that are on disk, or else one; a near miss is repeated once, alone.

    Raises:
        HostFault: The host failed every time.
    """
    attempts = list(past_attempts(context, entry, job))
    if not attempts:
        with context.turnstile.together():
            attempts.append(run_attempt(context, entry, job, views))
    if len(attempts) == 1 and _near_miss(attempts[0], job):
        with context.turnstile.alone():
            attempts.append(run_attempt(context, entry, job, views))
    return attempts


def _near_miss(attempt: Attempt, job: Job) -> bool:
    usage = attempt.result.usage
    return attempt.timed_out and deserves_repeat(
        seconds=judged_seconds(usage), limit=job.budget.run_time, alone=usage.alone
    )


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
    doubted = [one for one in attempt.judged if one.verdict.word not in _BELIEVED]
    if result.notes and result.exit.code == 0 and doubted:
        raise HostFault(f"{result.notes[0]}, its output is not whole, and {ended}", remedy="see: proctor doctor")


def _judged(context: Context, entry: Entry, job: Job, result: JobResult, folder: Path) -> Attempt:
    judged = [
        _judge_one(context, task, job.of(place), result.of(place), folder)
        for place, output in enumerate(job.outputs)
        for task, file in entry.shared.files.items()
        if file == output.file
    ]
    return Attempt(number=result.attempt, result=result, judged=tuple(judged))


def _judge_one(context: Context, task: str, job: Job, result: JobResult, folder: Path) -> Judged:
    """Judge one task and case by the job's one output for them."""
    (output,) = job.outputs
    rule = context.challenge.tasks[task].format
    due = due_of(context.cases[output.case], output.frames)
    path = folder / "predictions" / output.kept
    reading: Reading | None = None
    if result.intake is not None and result.intake.refusal is None:
        reading = read_output(context.confine, rule, path, due=due, role=Role.PREDICTION)
        reading = beside(rule, reading, stray=result.intake.stray)
    verdict = judge_run(job, result, reading, public=context.public)
    if verdict.word not in _UNEXPLAINED:
        sought = signs_due(rule, due) if verdict.word is VerdictWord.BAD_OUTPUT else None
        signs = confined_signs(context.confine, sought, path) if sought is not None else frozenset[Sign]()
        hints = _hints(context, job, result, reading, signs=signs, word=verdict.word, folder=folder)
        verdict = replace_hints(verdict, hints)
    return Judged(task=task, case=output.case, verdict=verdict, reading=reading)


def _hints(
    context: Context,
    job: Job,
    result: JobResult,
    reading: Reading | None,
    *,
    signs: frozenset[Sign],
    word: VerdictWord,
    folder: Path,
) -> tuple[Hint, ...]:
    log = folder / "log.txt"
    facts = facts_of(
        word, job, result, log=log.read_bytes() if log.is_file() else b"", reading=reading, signs=signs,
        has_gpu=context.bench.gpus is not None,
    )  # fmt: skip
    return diagnose(facts)
