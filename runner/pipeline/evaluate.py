"""The main job: every submission on every case, then scores, ranks and the report."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from runner.catalog import LoadedChallenge, load_challenge
from runner.challenge import CausalityMethod
from runner.confine import Confine
from runner.dataset import Case, find_cases
from runner.engine import Engine
from runner.errors import UsageError
from runner.executors.local import spread
from runner.gpu.pool import GpuHost
from runner.judge import CaseOutcome
from runner.pipeline.cases import done_parts, runs_of, settle_run
from runner.pipeline.context import Context, Entry
from runner.pipeline.events import Notice, Observer, RunsPlanned, Step
from runner.pipeline.gpus import GpusWanted
from runner.pipeline.handed_in import Reception
from runner.pipeline.host import HostFacts, open_bench
from runner.pipeline.looking_ahead import check_entry, is_checked, pass_by_construction, relative_cost
from runner.pipeline.pinning import image_room, pinned_entries
from runner.pipeline.publish import write_latency, write_leaderboard, write_scores
from runner.pipeline.record import (
    EvaluateRequest,
    RunRecord,
    check_request,
    read_record,
    read_seed,
    write_record,
)
from runner.pipeline.references import cases_of_references
from runner.pipeline.reporting import write_report
from runner.pipeline.scorer_container import EngineDoor, pinned_scorers, settle_scores, settle_scores_apart
from runner.pipeline.standings import Standings, work_out
from runner.plan import budget_for, entered_tasks, shared_runs, shortfalls, show_limit
from runner.provenance import DataHashes
from runner.settings import Settings
from runner.store import RunFolder, locked, write_value
from runner.submissions import Status, Submission

EngineFactory = Callable[[str], Engine]
"""Connects to the engine at an address; empty: the usual places."""


@dataclass(frozen=True, kw_only=True)
class Finished:
    """What came of a run."""

    run: RunFolder
    record: RunRecord
    standings: Standings


def evaluate(
    request: EvaluateRequest,
    *,
    connect: EngineFactory,
    stop: threading.Event,
    observe: Observer,
    gpus: GpuHost | None = None,
) -> Finished:
    """Evaluate submissions on hidden data.

    Args:
        request: What is asked for.
        connect: Connects to the engine.
        stop: Set when the user asks us to stop.
        observe: Is told what happens.
        gpus: Where GPUs are asked for; None: this host's own driver.

    Raises:
        RunnerError: Ours or the host's failure; what was done is on disk.
    """
    checked = check_request(request)
    engine = connect(checked.settings.settings.engine)
    run = RunFolder(root=request.out)
    with locked(run):
        record = write_record(run, request, checked, observe)
        return _work(run, record, engine, stop=stop, observe=observe, gpus=gpus)


def resume(
    run: RunFolder,
    *,
    connect: EngineFactory,
    stop: threading.Event,
    observe: Observer,
    gpus: GpuHost | None = None,
) -> Finished:
    """Finish a run that was cut short; nothing that was done is done again.

    Raises:
        RunnerError: As ``evaluate``.
    """
    record = read_record(run)
    engine = connect(record.settings.engine)
    with locked(run):
        return _work(run, record, engine, stop=stop, observe=observe, gpus=gpus)


def _work(
    run: RunFolder,
    record: RunRecord,
    engine: Engine,
    *,
    stop: threading.Event,
    observe: Observer,
    gpus: GpuHost | None,
) -> Finished:
    loaded, cases = reopen(run, record)
    settings = record.settings
    wanted = GpusWanted(count=loaded.challenge.limits.gpus, allow_cpu=record.allow_cpu, host=gpus)
    bench_of = open_bench(engine, settings, gpus=wanted, stop=stop, observe=observe, policy=loaded.challenge.policy)
    with Confine() as confine, bench_of as (bench, host):
        record = replace(record, host=host)
        write_value(run.record, record)
        context = Context(
            run=run, loaded=loaded, cases=cases, settings=settings,
            input_hashes={c.name: c.inputs for c in record.cases},
            seed=read_seed(run), bench=bench, host=host, confine=confine, observe=observe,
            hashes=DataHashes(cache=run.private / "hashes.json"),
        )  # fmt: skip
        with image_room(engine, host.engine, settings, observe) as room:
            # First, so that a scorer that cannot be had is told before anything was run.
            scorers = pinned_scorers(engine, loaded, settings, room, observe=observe, stop=stop)
            entries = pinned_entries(context, record, room)
            _say_shortfalls(context, settings, host)
            _settle_all(context, entries, record)
            settle_scores(context, record, scorers)
        return finish(run, record, loaded=loaded, cases=cases, confine=confine, observe=observe)


def _without_cuts(loaded: LoadedChallenge) -> LoadedChallenge:
    """The check's runs cost, and nobody is ranked by predictions to fit on."""
    rule = loaded.challenge.causality.model_copy(update={"method": CausalityMethod.OFF})
    return replace(loaded, challenge=loaded.challenge.model_copy(update={"causality": rule}))


def finish(
    run: RunFolder,
    record: RunRecord,
    *,
    loaded: LoadedChallenge,
    cases: Mapping[str, Case],
    confine: Confine,
    observe: Observer,
) -> Finished:
    """Score, rank and report what is on disk; needs no engine. What is kept for ensembles is only scored."""
    observe(Step(text="scoring and ranking"))
    standings = work_out(run, record, loaded, cases, confine)
    write_scores(run, standings)
    if record.for_ensemble:
        return Finished(run=run, record=record, standings=standings)
    write_leaderboard(run, record, standings)
    write_latency(run, standings)
    write_report(run, record, standings, loaded=loaded, cases=cases, confine=confine)
    return Finished(run=run, record=record, standings=standings)


def reopen(run: RunFolder, record: RunRecord) -> tuple[LoadedChallenge, Mapping[str, Case]]:
    """Read a run's challenge and data again; what is kept for ensembles is not checked for causality.

    Raises:
        UsageError: The data are not what they were.
    """
    loaded = load_challenge(run.challenge)
    if record.for_ensemble:
        loaded = _without_cuts(loaded)
    if record.files_only:
        with Confine() as confine:
            found = cases_of_references(confine, loaded, record.data)
    else:
        found = find_cases(record.data, loaded.challenge)
    cases = {case.name: case for case in found}
    before = {case.name: case.frames for case in record.cases}
    now = {name: len(case.frames) for name, case in cases.items()}
    if before != now:
        changed = sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
        raise UsageError(
            f"the data have changed since the run began: case {changed[0]!r} had {before.get(changed[0], 0)} frames "
            f"and has {now.get(changed[0], 0)}",
            where=str(record.data),
            remedy="put the data back, or begin a new run with another --out",
        )
    return loaded, cases


def _say_shortfalls(context: Context, settings: Settings, host: HostFacts) -> None:
    limits = context.challenge.limits
    longest = max(case.media_seconds for case in context.cases.values())
    budget = budget_for(limits, settings.ceiling, host.size, media_seconds=longest)
    for short in shortfalls(limits, budget, media_seconds=longest):
        rule, here = show_limit(short.limit, short.challenge), show_limit(short.limit, short.here)
        context.observe(Notice(text=f"{short.limit}: the challenge gives {rule}, this host {here}"))


def _settle_all(context: Context, entries: tuple[Entry, ...], record: RunRecord) -> None:
    reception = Reception(
        run=context.run, challenge=context.challenge, cases=context.cases, base=record.base, confine=context.confine,
        observe=context.observe,
    )  # fmt: skip
    files = [one for one in record.submissions if one.predictions and one.status is not Status.WITHDRAWN]
    counts = [reception.count(one) for one in files]
    runs = {number: runs_of(context, entry) for number, entry in enumerate(entries)}
    every = [run for mine in runs.values() for run in mine]
    context.observe(
        RunsPlanned(
            total=sum(len(tuple(run.parts())) for run in every) + sum(total for total, _ in counts),
            done=sum(done_parts(context, run) for run in every) + sum(done for _, done in counts),
            tasks=len({task for run in every for task in run.entry.shared.names} | _tasks_of(context, files)),
        )
    )
    if any(is_checked(context, entry) for entry in entries):
        times = relative_cost(context, shared_runs(context.challenge, tuple(context.challenge.tasks)))
        context.observe(
            Step(
                text=f"checking causality adds about {times:.1f} × the plain evaluation of each submission that is "
                "accepted"
            )
        )
    for submission in files:
        reception.settle(submission)
    for number, entry in enumerate(entries):
        settled = spread(lambda run: settle_run(context, run), runs[number], workers=context.settings.jobs)
        outcomes = [outcome for one in settled for outcome in one]
        for task in entry.shared.names:
            _check_causality(context, entry, task, [one for one in outcomes if one.task == task])


def _tasks_of(context: Context, submissions: list[Submission]) -> set[str]:
    return {task for one in submissions for task in entered_tasks(context.challenge, one)}


def _check_causality(context: Context, entry: Entry, task: str, outcomes: list[CaseOutcome]) -> None:
    """Cuts cost runs: none for a submission that is refused or pending already."""
    if entry.shared.stream is not None:
        pass_by_construction(context, entry, task, {outcome.case: outcome for outcome in outcomes})
        return
    if not is_checked(context, entry):
        return
    refusing = [o for o in outcomes if not o.verdict.accepted and _refuses(context, o)]
    if refusing or any(o.verdict.pending for o in outcomes):
        # What an earlier image of this submission may have left says nothing of this one.
        context.run.causality(entry.submission.slug, task).unlink(missing_ok=True)
        return
    check_entry(context, entry, task, {outcome.case: outcome for outcome in outcomes})


def _refuses(context: Context, outcome: CaseOutcome) -> bool:
    word = outcome.verdict.word.value
    return not outcome.verdict.pending and context.challenge.consequence.scope_of(word) == "submission"


def score_again(
    run: RunFolder,
    observe: Observer,
    *,
    challenge: LoadedChallenge | None = None,
    door: EngineDoor | None = None,
) -> Finished:
    """Score, rank and report a run again from disk; no container is run but a scorer's whose scores do not fit.

    Args:
        run: The run.
        observe: Is told what happens.
        challenge: A mended copy of the run's challenge, taken in place of the run's own.
        door: How scorers in containers come by an engine; None: what they gave before must fit.

    Raises:
        ScorerFault: The scorer failed; nothing is lost.
        UsageError: The run is not finished, or its data are gone.
    """
    with locked(run), Confine() as confine:
        record = read_record(run)
        loaded, cases = reopen(run, record)
        loaded = challenge or loaded
        if door is not None:
            settle_scores_apart(run, record, loaded=loaded, cases=cases, confine=confine, observe=observe, door=door)
        return finish(run, record, loaded=loaded, cases=cases, confine=confine, observe=observe)
