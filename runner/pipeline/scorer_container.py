"""Scores in containers: an organisers' image is shown a submission's predictions with their references.

It is held to the same sandbox as a participant's: no network, no GPU, limits, a user id of its own, inputs read-only.
Its failure is the organisers'. What was run before stays on disk, so that a mended scorer takes it up where it failed.
"""

import shutil
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from runner.catalog import LoadedChallenge
from runner.confine import Confine
from runner.dataset import Case
from runner.engine import Engine
from runner.errors import HostFault, HostUnfit, ScorerFault, UsageError
from runner.execute import run_job
from runner.images import PinnedImage, RefusedImage, Room, SourceKind, Terms, pin, source_kind
from runner.inputs import CaseView
from runner.job import Job, Output
from runner.judge import CaseOutcome, judge_run
from runner.pipeline.attempts import kept_prediction
from runner.pipeline.container_scores import ContainerScores, ToScore, all_to_score, scores_on_disk, to_score
from runner.pipeline.context import Context
from runner.pipeline.events import HostFailed, Notice, Observer, Step
from runner.pipeline.host import open_bench
from runner.pipeline.pinning import image_room
from runner.pipeline.record import RunRecord
from runner.pipeline.references import reference_of
from runner.plan import DATA_SET, budget_for
from runner.provenance import DataHashes
from runner.scoring.container import SCORES_FILE, read_scores, scores_of
from runner.scoring.contract import CaseScore
from runner.settings import Settings
from runner.store import RunFolder, write_value
from runner.submissions import Submission

INPUT = "/data/inputs"
OUTPUT = "/data/outputs"

_REMEDY = "mend the scorer's image, then: proctor score RUN; nothing else has to run anew"
_LOG_LINES = 10
_BACK_OFF = 2.0


@dataclass(frozen=True, kw_only=True)
class EngineDoor:
    """How steps that need an engine only sometimes come by one.

    Attributes:
        connect: Connects to the engine at an address; empty: the usual places.
        stopping: An event that is set when the user asks us to stop, for as long as containers run.
    """

    connect: Callable[[str], Engine]
    stopping: Callable[[], AbstractContextManager[threading.Event]]


def pinned_scorers(
    engine: Engine,
    loaded: LoadedChallenge,
    settings: Settings,
    room: Room,
    *,
    observe: Observer,
    stop: threading.Event | None = None,
) -> Mapping[str, PinnedImage]:
    """Pin the image of each task that a container scores: one for all submissions, and anew for each command.

    Raises:
        UsageError: An image cannot be had, or not be run.
        HostFault: The engine or the registry did not answer, or there is no room.
    """
    terms = Terms(
        deadline=settings.pull_deadline, limit=settings.ceiling.image_size, room=room, stop=stop,
        platform=loaded.challenge.platform.value,
    )  # fmt: skip
    return {
        name: _pinned(engine, task.scorer_image.image, loaded, terms, where=_where(loaded, name), observe=observe)
        for name, task in loaded.challenge.tasks.items()
        if task.scorer_image is not None
    }


def _where(loaded: LoadedChallenge, task: str) -> str:
    return f"{loaded.folder / 'challenge.yaml'}: tasks.{task}.scorer_image"


def _pinned(
    engine: Engine, source: str, loaded: LoadedChallenge, terms: Terms, *, where: str, observe: Observer
) -> PinnedImage:
    if source_kind(engine, source, base=loaded.folder) is SourceKind.FOLDER:
        raise UsageError(
            f"the scorer's image {source!r} is a folder", where=where,
            remedy=f"build it: docker build -t NAME {source}, and name it by that NAME",
        )  # fmt: skip

    def progress(text: str) -> None:
        observe(Step(text=f"scorer: {text}"))

    found = pin(engine, source, base=loaded.folder, terms=terms, progress=progress, where=where)
    if isinstance(found, RefusedImage):
        raise UsageError(f"the scorer's image cannot be run: {found.sentence}", where=where, remedy=found.remedy)
    return found


def scorers_at_hand(
    engine: Engine, loaded: LoadedChallenge, settings: Settings, room: Room, *, observe: Observer
) -> Mapping[str, PinnedImage]:
    """As ``pinned_scorers``, but only those that are here: participants are not made to fetch organisers' images."""
    here = {
        name: task
        for name, task in loaded.challenge.tasks.items()
        if task.scorer_image is not None and _is_here(engine, task.scorer_image.image, loaded.folder)
    }
    challenge = loaded.challenge.model_copy(update={"tasks": here})
    return pinned_scorers(engine, replace(loaded, challenge=challenge), settings, room, observe=observe)


def _is_here(engine: Engine, source: str, folder: Path) -> bool:
    kind = source_kind(engine, source, base=folder)
    return kind is SourceKind.LOCAL or (kind is SourceKind.ARCHIVE and (folder / Path(source).expanduser()).is_file())


def settle_scores(
    context: Context, record: RunRecord, images: Mapping[str, PinnedImage], *, due: Iterable[ToScore] | None = None
) -> None:
    """Have the scores of every submission on disk; where those fit that are there, nothing is run.

    Args:
        context: The run, its verdicts settled.
        record: Says who takes part.
        images: By task, as ``pinned_scorers`` gives them.
        due: What is to be scored, where that is known.

    Raises:
        ScorerFault: A scorer failed; its log is kept.
        UsageError: A reference has problems.
        HostFault: The host failed every time.
    """
    sound: set[str] = set()
    for one in all_to_score(context.run, record, context.loaded, context.cases) if due is None else due:
        image = images[one.task]
        if one.stored(context.run, image.id) is None:
            if one.task not in sound:
                _require_references(context, one.task)
                sound.add(one.task)
            scores = run_scorer(context, one, image)
            write_value(context.run.container_scores(one.submission.slug, one.task), scores)


def _require_references(context: Context, task: str) -> None:
    """Read each reference once: what is wrong with one is told by its place, and not by a scorer that fails on it."""
    told = context.challenge.tasks[task]
    for case in context.cases.values():
        reference_of(context.confine, told, task, case)


def settle_scores_apart(
    run: RunFolder,
    record: RunRecord,
    *,
    loaded: LoadedChallenge,
    cases: Mapping[str, Case],
    confine: Confine,
    observe: Observer,
    door: EngineDoor,
) -> None:
    """The same outside an evaluation: an engine is needed only where scores on disk do not fit.

    Raises:
        ScorerFault: A scorer failed; its log is kept.
        RunnerError: An engine is needed, and this host cannot be used.
    """
    due = all_to_score(run, record, loaded, cases)
    if not due:
        return
    settings = record.settings
    with door.stopping() as stop, ExitStack() as stack:
        try:
            engine = door.connect(settings.engine)
            room = stack.enter_context(image_room(engine, engine.facts(), settings, observe))
            images = pinned_scorers(engine, loaded, settings, room, observe=observe, stop=stop)
        except (HostUnfit, HostFault, UsageError) as error:
            try:
                scores_on_disk(run, record, loaded, cases)
            except UsageError:
                raise error from None
            observe(Notice(text=f"no scorer's image was looked at: {error.what}; the scores it gave before count"))
            return
        missing = [one for one in due if one.stored(run, images[one.task].id) is None]
        if not missing:
            return
        opened = open_bench(engine, settings, stop=stop, observe=observe, policy=loaded.challenge.policy)
        bench, host = stack.enter_context(opened)
        context = Context(
            run=run, loaded=loaded, cases=cases, input_hashes={}, settings=settings, seed=0, bench=bench, host=host,
            confine=confine, observe=observe, hashes=DataHashes(cache=run.private / "hashes.json"),
        )  # fmt: skip
        settle_scores(context, record, images, due=missing)


def score_one(
    context: Context, submission: Submission, task: str, outcomes: Mapping[str, CaseOutcome], image: PinnedImage
) -> list[CaseScore]:
    """Score one submission of no run, whose outcomes are given; nothing is kept.

    Raises:
        ScorerFault: The scorer failed.
        UsageError: A reference has problems.
        HostFault: The host failed every time.
    """
    due = to_score(
        context.run, context.loaded, context.cases, context.hashes, submission=submission, task=task, outcomes=outcomes
    )
    assert due is not None, "every case was accepted"
    _require_references(context, task)
    scores = run_scorer(context, due, image).scores
    return [CaseScore(values=scores[case], frames=len(context.cases[case].frames)) for case in outcomes]


def run_scorer(context: Context, due: ToScore, image: PinnedImage) -> ContainerScores:
    """Run a scorer once, again after host faults as often as the settings allow.

    Raises:
        ScorerFault: It failed.
        HostFault: The host failed every time.
    """
    context.observe(Step(text=f"scoring {due.submission.submission}, task {due.task}, in a container"))
    tries = context.settings.host_retries + 1
    for left in reversed(range(tries)):
        try:
            return _run(context, due, image)
        except HostFault as fault:
            submission = due.submission.slug
            context.observe(HostFailed(submission=submission, case=DATA_SET, text=str(fault), again=left > 0))
            if not left:
                raise
            context.bench.clock.sleep(_BACK_OFF * (tries - left))
    raise AssertionError("unreachable: the last try raises")


def _run(context: Context, due: ToScore, image: PinnedImage) -> ContainerScores:
    # No case's folder has this name: what is no slug of its own gets a mark.
    folder = context.run.case(due.submission.slug, due.task, "the scorer's container")
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    job = _job(context, due, image)
    everything = Case(name=DATA_SET, inputs=(), frames=(), media_seconds=0.0, references={})
    views = {DATA_SET: CaseView(case=everything, earlier=_shown(context, due))}
    result = run_job(context.bench, job, views, image=image.facts, attempt=1, folder=folder)
    reading = None
    if result.intake is not None and result.intake.refusal is None:
        primary = context.challenge.tasks[due.task].primary.metric
        path = folder / "predictions" / SCORES_FILE
        reading = read_scores(context.confine, path, rule=due.rule, primary=primary, cases=due.outcomes)
    verdict = judge_run(job, result, reading, public=True)
    if not verdict.accepted or reading is None:
        # An engine that goes down asks programs to end first: then it was not the scorer's doing.
        context.bench.engine.ping()
        raise _fault(context, due, f"{verdict.word.value}: {verdict.sentence}", folder / "log.txt")
    scores = {case: score.values for case, score in scores_of(reading).items()}
    return ContainerScores(digest=job.digest, image=image.id, scores=scores)


def _job(context: Context, due: ToScore, image: PinnedImage) -> Job:
    budget = budget_for(
        due.rule.limits, context.settings.ceiling, context.host.size, media_seconds=0.0, policy=context.bench.policy
    )
    return Job(
        submission=due.submission.slug, task=due.task, case=DATA_SET, name="score", frames=0,
        image_id=image.id, arguments=due.rule.args, told=due.task, places={}, whole=True, input_mount=INPUT,
        output_mount=OUTPUT, outputs=(Output(case=DATA_SET, file=SCORES_FILE),), budget=budget,
        digest=due.digest(image.id),
    )  # fmt: skip


def _shown(context: Context, due: ToScore) -> Mapping[str, Path]:
    """What lies where in the input folder: files by their side's name and own ending, folders with what is in them."""
    rule = context.challenge.tasks[due.task].format
    places: dict[str, Path] = {}
    for case, outcome in due.outcomes.items():
        sides = (
            ("prediction", kept_prediction(context.run, outcome, rule)),
            ("reference", context.cases[case].references[due.task]),
        )
        for side, path in sides:
            place = f"{side}s/{case}"
            places[place if path.is_dir() else f"{place}/{side}{path.suffix}"] = path
    return places


def _fault(context: Context, due: ToScore, what: str, log: Path) -> ScorerFault:
    """To be raised; the end of what it printed is told before."""
    printed = log.read_bytes().decode("utf-8", "replace").splitlines() if log.is_file() else []
    for line in [line for line in printed if line.strip()][-_LOG_LINES:]:
        context.observe(Notice(text=f"the scorer printed: {line}"))
    return ScorerFault(
        f"the scorer's container failed on {due.submission.submission!r} in task {due.task!r}: {what}",
        where=str(log), remedy=_REMEDY,
    )  # fmt: skip
