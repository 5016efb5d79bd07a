"""Pins every submission's image before anything runs; one that cannot be had gets its verdict, or stays pending."""

from collections.abc import Callable, Mapping

from runner.challenge import Challenge
from runner.engine import Engine, EngineFacts
from runner.errors import HostFault, UsageError
from runner.execute import Bench
from runner.images import (
    RISK,
    Build,
    BuildNetwork,
    PinnedImage,
    RefusedImage,
    Room,
    SourceKind,
    Terms,
    free_below,
    pin,
    pin_again,
    source_kind,
)
from runner.judge import CaseOutcome
from runner.pipeline.context import Context, Entry
from runner.pipeline.events import Notice, Observer, Step
from runner.pipeline.preflights import findings_of
from runner.pipeline.record import RunRecord
from runner.plan import budget_for, entered_tasks, shared_runs
from runner.settings import Settings
from runner.store import read_value, write_value
from runner.submissions import Status, Submission
from runner.verdict import Hint, Verdict, VerdictWord

_NO_JOB = "no image, so no job"
"""Stands for the digest of a job: no job has it, so a case with it is never taken for done."""


def image_room(engine: Engine, facts: EngineFacts, settings: Settings, observe: Observer) -> Room:
    """The engine's disk, for the length of a run."""
    return Room(
        engine,
        settings.workspace / "images",
        keep_free=settings.keep_free,
        free=lambda: free_below(facts.data_root, kernel=facts.kernel),
        tell=lambda text: observe(Notice(text=text)),
    )


def build_of(
    settings: Settings,
    *,
    reference: str,
    network: BuildNetwork,
    arguments: Mapping[str, str] | None = None,
    beside_data: bool = False,
) -> Build:
    """How a folder is built on this host; beside hidden data a build must keep to its memory."""
    return Build(
        reference=reference, deadline=settings.build_deadline, memory=settings.build_memory, network=network,
        arguments=arguments or {}, memory_must_hold=beside_data, engine_address=settings.engine,
    )  # fmt: skip


def terms_of(settings: Settings, challenge: Challenge, bench: Bench, room: Room, build: Build | None) -> Terms:
    """What an image may cost on this host."""
    return Terms(
        deadline=settings.pull_deadline, limit=settings.ceiling.image_size, platform=challenge.platform.value,
        build=build, room=room, clock=bench.clock, stop=bench.stop,
    )  # fmt: skip


def pinned_entries(context: Context, record: RunRecord, room: Room) -> tuple[Entry, ...]:
    """Pin every image before anything runs; a moved tag cannot change a run under way.

    Returns:
        The entries that can be run. The others' cases have their outcomes on disk: ``bad-image`` where it is the
        image's maker's doing, pending where it is the host's or the registry's.

    Raises:
        UsageError: What the organisers must mend; all of it.
    """
    count = sum(bool(submission.image) for submission in record.submissions)
    context.observe(Step(text=f"pinning {count} images"))
    _say_risk(context, record)
    entries: list[Entry] = []
    problems: list[UsageError] = []
    for submission in record.submissions:
        if submission.status is Status.WITHDRAWN or submission.predictions:
            continue
        try:
            found = _pinned(context, record, submission, room)
            if isinstance(found, RefusedImage):
                _settle(context, submission, refused_verdict(found))
            else:
                entries += _entries(context, submission, found)
        except UsageError as problem:
            problems.append(problem)
        except HostFault as fault:
            _settle(context, submission, _pending(fault))
    _require_none(problems)
    return tuple(entries)


def _require_none(problems: list[UsageError]) -> None:
    if len(problems) == 1:
        raise problems[0]
    if problems:
        raise UsageError(
            f"{len(problems)} images cannot be had: " + "; ".join(f"{p.where}: {p.what}" for p in problems),
            remedy="mend the submissions file, or the images",
        )


def _entries(context: Context, submission: Submission, image: PinnedImage) -> list[Entry]:
    findings = findings_of(context, submission.slug, submission.submission, image)
    entered = entered_tasks(context.challenge, submission)
    shared = shared_runs(context.challenge, entered, profile=submission.profile)
    return [Entry(submission=submission, shared=one, image=image, findings=findings) for one in shared]


def _say_risk(context: Context, record: RunRecord) -> None:
    engine = context.bench.engine
    images = [s.image for s in record.submissions if s.image and s.status is not Status.WITHDRAWN]
    folders = sum(source_kind(engine, image, base=record.base) is SourceKind.FOLDER for image in images)
    if folders and record.build_untrusted:
        context.observe(Notice(text=f"--build-untrusted, for {folders} folders: {RISK}"))


def _pinned(context: Context, record: RunRecord, submission: Submission, room: Room) -> PinnedImage | RefusedImage:
    """The image a run began with, also where the engine has lost it meanwhile; else a new pin."""
    path = context.run.image(submission.slug)
    name = submission.submission
    build = build_of(
        context.settings, reference=f"proctor-build:{submission.slug}", network=record.build_network, beside_data=True
    )
    terms = terms_of(
        context.settings, context.challenge, context.bench, room, build if record.build_untrusted else None
    )
    progress = _told(context, name)
    engine, where = context.bench.engine, f"submission {name!r}"
    before = read_value(path, PinnedImage) if path.is_file() else None
    if before is not None and before.source == submission.image:
        return pin_again(engine, before, base=record.base, terms=terms, progress=progress, where=where)
    found = pin(engine, submission.image, base=record.base, terms=terms, progress=progress, where=where)
    if isinstance(found, PinnedImage):
        write_value(path, found)
    else:
        # Of an image that this submission had before.
        path.unlink(missing_ok=True)
    return found


def _told(context: Context, name: str) -> Callable[[str], None]:
    return lambda text: context.observe(Step(text=f"{name}: {text}"))


def refused_verdict(refused: RefusedImage) -> Verdict:
    """The verdict on an image that cannot be run by its maker's doing."""
    return Verdict(
        word=VerdictWord.BAD_IMAGE,
        sentence=refused.sentence,
        hints=(Hint(cause=refused.sentence, fix=refused.remedy),),
    )


def _pending(fault: HostFault) -> Verdict:
    return Verdict(word=VerdictWord.HOST_FAULT, sentence=f"the host failed, not the submission: {fault.what}")


def _settle(context: Context, submission: Submission, verdict: Verdict) -> None:
    """Write one verdict for all cases of a submission. No attempt is lost: a later resume finds it, and judges anew."""
    context.observe(Notice(text=f"{submission.submission}: {verdict.word.value}: {verdict.sentence}"))
    for task in entered_tasks(context.challenge, submission):
        # What an earlier image of this submission may have left says nothing of this one.
        context.run.causality(submission.slug, task).unlink(missing_ok=True)
        for case in context.cases.values():
            budget = budget_for(
                context.challenge.limits, context.settings.ceiling, context.host.size,
                media_seconds=case.media_seconds, policy=context.bench.policy,
            )  # fmt: skip
            outcome = CaseOutcome(
                submission=submission.slug, task=task, case=case.name, verdict=verdict, digest=_NO_JOB, attempt=0,
                seconds=None, limit=budget.run_time,
            )  # fmt: skip
            write_value(context.run.outcome(submission.slug, task, case.name), outcome)
