"""The participant's job: one image on public data, under the organisers' policy, stage by stage.

What this machine cannot tell is not judged but named. Without the GPU a challenge asks for, and on a sample so
short that loading a model takes longer than the sample is worth, the run time proves nothing about the final: the
container is given longer, and the report says so.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from runner.catalog import LoadedChallenge, find_challenge, load_challenge
from runner.causality.verdict import CausalityOutcome, CausalityVerdict
from runner.challenge import CausalityRule, Challenge, LeakPolicy
from runner.challenge.limits import RunTimeFixed
from runner.confine import Confine
from runner.dataset import Case, find_cases
from runner.engine import Engine
from runner.errors import HostFault, RunnerError, UsageError
from runner.execute import Bench
from runner.formats.contract import Role
from runner.formats.reading import read_output, read_reference
from runner.gpu.pool import GpuHost
from runner.images import BuildNetwork, PinnedImage, RefusedImage, SourceKind, Terms, pin
from runner.judge import CaseOutcome
from runner.pipeline.attempts import due_of, kept_prediction
from runner.pipeline.cases import runs_of, settle_run
from runner.pipeline.context import Context, Entry
from runner.pipeline.evaluate import EngineFactory
from runner.pipeline.events import Observer, Step
from runner.pipeline.gpus import GpusWanted
from runner.pipeline.host import HostFacts, open_bench
from runner.pipeline.looking_ahead import CausalityFinding, CausalityRecord, check_entry, leak_hints
from runner.pipeline.pinning import build_of, image_room, refused_verdict, terms_of
from runner.pipeline.preflights import look_into, refusal_of
from runner.plan import Shared, budget_for, shared_runs, shortfalls, show_limit
from runner.preflight import PreflightFinding, Severity
from runner.provenance import DataHashes
from runner.quantities import show_bytes
from runner.scoring.run import aggregate_cases, score_case
from runner.settings import Settings, load_settings
from runner.store import RunFolder
from runner.submissions import Submission
from runner.verdict import Hint, Verdict, VerdictWord

_SHORT_SAMPLE_SECONDS = 60.0
_WITHOUT_GPU_FACTOR = 20.0
_WITHOUT_GPU_AT_LEAST = 600.0
_FIXED_SEED = 20
"""At home the cuts need not be secret, but the same check twice must say the same."""


class StageState(StrEnum):
    """How a stage of a check ended."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_TESTED = "not tested"
    NOT_REACHED = "not reached"


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One stage of a check.

    Attributes:
        name: What was looked at.
        state: How it ended.
        sentence: What was seen, with the numbers.
        hints: How to mend it.
        log: The end of the container's log, where the stage failed; untrusted text.
        notes: What is good to know and stops nothing.
    """

    name: str
    state: StageState
    sentence: str = ""
    hints: tuple[Hint, ...] = ()
    log: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CheckReport:
    """What came of a check.

    Attributes:
        challenge: Name.
        version: As the organisers number it.
        digest: Of challenge.yaml and the code beside it; must equal the organisers'.
        image: ID of the image that was checked.
        stages: In their order.
        not_tested: What this machine could not tell.
        lacks: What the final has and this machine has not.
    """

    challenge: str
    version: str
    digest: str
    image: str
    stages: tuple[Stage, ...]
    not_tested: tuple[str, ...]
    lacks: tuple[str, ...]

    @property
    def accepted(self) -> bool:
        """No stage failed."""
        return all(stage.state is not StageState.FAILED for stage in self.stages)


@dataclass(frozen=True, kw_only=True)
class CheckRequest:
    """What ``proctor check`` is asked for.

    Attributes:
        image: A reference, an archive, or a folder with a Dockerfile.
        challenge: Name or folder.
        tasks: The tasks that are entered; empty: all.
        data: Own data in the challenge's layout; None: the bundled sample.
        keep: Where the run's files stay; None: nowhere.
        build_arguments: For a folder's Dockerfile.
        build_network: What a folder's build may reach.
    """

    image: str
    challenge: str
    tasks: tuple[str, ...] = ()
    data: Path | None = None
    keep: Path | None = None
    settings_file: Path | None = None
    flags: Mapping[str, str]
    require_gpu: bool = False
    build_arguments: Mapping[str, str]
    build_network: BuildNetwork = BuildNetwork.DEFAULT


_STAGES = ("image", "preflight", "run", "output format", "causality", "score")


def without_run(remedy: str) -> str:
    """A remedy that says to go on with a run, for a check, which keeps nothing to go on with."""
    return remedy.replace("proctor resume RUN", "the same check again")


@contextmanager
def _nothing_to_resume() -> Iterator[None]:
    try:
        yield
    except RunnerError as error:
        error.remedy = without_run(error.remedy)
        raise


@_nothing_to_resume()
def check(
    request: CheckRequest,
    *,
    connect: EngineFactory,
    stop: threading.Event,
    observe: Observer,
    tell: Callable[[Stage], None],
    gpus: GpuHost | None = None,
) -> CheckReport:
    """Check an image as the organisers would, on public data.

    Args:
        request: What is asked for.
        connect: Connects to the engine.
        stop: Set when the user asks us to stop.
        observe: Is told what happens.
        tell: Is told each stage as it ends.
        gpus: Where GPUs are asked for; None: this host's own driver.

    Raises:
        RunnerError: Ours or the host's failure.
    """
    loaded = _entered(load_challenge(find_challenge(request.challenge)), request.tasks)
    settings = load_settings(request.settings_file, request.flags).settings
    data = request.data or loaded.folder / "sample"
    cases = find_cases(data, loaded.challenge)
    engine = connect(settings.engine)
    wanted = GpusWanted(
        count=loaded.challenge.limits.gpus, allow_cpu=not request.require_gpu, host=gpus,
        remedy="run on a machine with a GPU, or leave out --require-gpu",
    )  # fmt: skip
    root = _kept(request.keep)
    with ExitStack() as stack:
        confine = stack.enter_context(Confine())
        bench, host = stack.enter_context(
            open_bench(
                engine,
                settings,
                gpus=wanted,
                stop=stop,
                observe=observe,
                policy=loaded.challenge.policy,
            )
        )
        if root is None:
            # In the workspace, not among other programs' files: what a killed check leaves is swept with the rest.
            root = stack.enter_context(bench.workspace.desk())
            root.chmod(0o700)
        has_gpu = not wanted.count or bench.gpus is not None
        relaxed = _public(loaded, _run_time(loaded.challenge, cases, has_gpu=has_gpu, sample=request.data is None))
        stages = _Stages(tell)
        room = stack.enter_context(image_room(engine, host.engine, settings, observe))
        build = build_of(
            settings, reference="proctor-check:latest", network=request.build_network,
            arguments=request.build_arguments,
        )  # fmt: skip
        terms = terms_of(settings, loaded.challenge, bench, room, build)
        image = _image(request, engine, terms, stages, observe)
        findings = look_into(bench, host, image, loaded.challenge, settings) if image is not None else ()
        if image is not None and _passes_preflight(findings, loaded.challenge, stages):
            context = _context(
                RunFolder(root=root),
                loaded=relaxed,
                cases=cases,
                settings=settings,
                bench=bench,
                host=host,
                confine=confine,
                observe=observe,
            )
            shared = shared_runs(loaded.challenge, tuple(loaded.challenge.tasks))
            myself = _myself(request.image)
            entries = [Entry(submission=myself, shared=one, image=image, findings=findings) for one in shared]
            _run_stages(context, entries, stages)
        return CheckReport(
            challenge=loaded.challenge.name, version=loaded.challenge.version, digest=loaded.digest,
            image=image.id if image else "", stages=stages.all(),
            not_tested=_not_tested(loaded.challenge, cases, has_gpu=has_gpu, sample=request.data is None),
            lacks=_lacks(loaded.challenge, cases, settings, host, has_gpu=has_gpu),
        )  # fmt: skip


def _entered(loaded: LoadedChallenge, tasks: tuple[str, ...]) -> LoadedChallenge:
    """The challenge as far as the tasks go that are entered; its digest is that of the whole."""
    known = loaded.challenge.tasks
    strangers = [name for name in tasks if name not in known]
    if strangers:
        raise UsageError(
            f"there is no task {strangers[0]!r} in {loaded.challenge.name}",
            remedy=f"its tasks are {', '.join(known)}",
        )
    if not tasks:
        return loaded
    kept = {name: task for name, task in known.items() if name in tasks}
    lacking = [earlier for task in kept.values() for earlier in task.inputs_from if earlier not in kept]
    if lacking:
        raise UsageError(
            f"a task that is entered is given the prediction of task {lacking[0]!r}, which is not entered",
            remedy=f"add --task {lacking[0]}",
        )
    return replace(loaded, challenge=loaded.challenge.model_copy(update={"tasks": kept}))


class _Stages:
    """The stages so far; what was not reached is filled in at the end."""

    def __init__(self, tell: Callable[[Stage], None]) -> None:
        self._done: list[Stage] = []
        self._tell = tell

    def add(self, stage: Stage) -> bool:
        self._done.append(stage)
        self._tell(stage)
        return stage.state is not StageState.FAILED

    def passed(self, name: str, sentence: str) -> bool:
        return self.add(Stage(name=name, state=StageState.PASSED, sentence=sentence))

    def failed(self, name: str, verdict: Verdict, log: str = "") -> bool:
        sentence = f"{verdict.word.value}: {verdict.sentence}"
        return self.add(Stage(name=name, state=StageState.FAILED, sentence=sentence, hints=verdict.hints, log=log))

    def all(self) -> tuple[Stage, ...]:
        seen = {stage.name for stage in self._done}
        for name in _STAGES:
            if name not in seen:
                self.add(Stage(name=name, state=StageState.NOT_REACHED))
        return tuple(self._done)


def _kept(keep: Path | None) -> Path | None:
    if keep is None:
        return None
    if keep.exists() and any(keep.iterdir()):
        raise UsageError(f"the folder {str(keep)!r} is not empty", remedy="give a new folder with --keep")
    keep.mkdir(parents=True, exist_ok=True, mode=0o700)
    return keep


def _run_time(challenge: Challenge, cases: tuple[Case, ...], *, has_gpu: bool, sample: bool) -> float | None:
    """Seconds a run is given in place of the challenge's budget; None: the challenge's."""
    longest = max(challenge.limits.run_time.seconds(case.media_seconds) for case in cases)
    if not has_gpu:
        return max(longest * _WITHOUT_GPU_FACTOR, _WITHOUT_GPU_AT_LEAST)
    return max(longest, _SHORT_SAMPLE_SECONDS) if sample else None


def _public(loaded: LoadedChallenge, run_time: float | None) -> LoadedChallenge:
    challenge = loaded.challenge.model_copy(update={"data": "public"})
    if run_time is not None:
        limits = challenge.limits.model_copy(update={"run_time": RunTimeFixed(fixed=run_time)})
        challenge = challenge.model_copy(update={"limits": limits})
    return replace(loaded, challenge=challenge)


def _myself(image: str) -> Submission:
    return Submission(submission="this image", team="you", image=image)


def _context(
    run: RunFolder,
    *, loaded: LoadedChallenge, cases: tuple[Case, ...], settings: Settings, bench: Bench, host: HostFacts,
    confine: Confine, observe: Observer,
) -> Context:  # fmt: skip
    hashes = DataHashes(cache=run.private / "hashes.json")
    return Context(
        run=run, loaded=loaded, cases={case.name: case for case in cases},
        input_hashes={case.name: hashes.inputs(case) for case in cases}, settings=settings, seed=_FIXED_SEED,
        bench=bench, host=host, confine=confine, observe=observe, hashes=hashes,
    )  # fmt: skip


def _image(
    request: CheckRequest, engine: Engine, terms: Terms, stages: _Stages, observe: Observer
) -> PinnedImage | None:
    observe(Step(text=f"having the image {request.image}"))
    image = pin(engine, request.image, base=Path(), terms=terms, progress=lambda text: observe(Step(text=text)))
    if isinstance(image, RefusedImage):
        stages.failed("image", refused_verdict(image), log=image.log)
        return None
    kind = "built" if image.kind is SourceKind.FOLDER else image.kind.value
    size = show_bytes(image.facts.size)
    stages.passed("image", f"{kind} {image.id.removeprefix('sha256:')[:12]}, {size}")
    return image


def _passes_preflight(findings: tuple[PreflightFinding, ...], challenge: Challenge, stages: _Stages) -> bool:
    """Whether an image may be run; the data is public, so that its own words may be quoted."""
    warnings = tuple(Hint(cause=f.full, fix=f.remedy) for f in findings if f.severity is Severity.WARNS)
    notes = tuple(f.full for f in findings if f.severity is Severity.NOTE)
    refusal = refusal_of(findings, public=True)
    state = StageState.FAILED if refusal else StageState.PASSED
    sentence = f"built for {challenge.platform.value}, with an entry point"
    if refusal:
        sentence = f"{refusal.word.value}: {refusal.sentence}"
    hints = (*(refusal.hints if refusal else ()), *warnings)
    return stages.add(Stage(name="preflight", state=state, sentence=sentence, hints=hints, notes=notes))


def _run_stages(context: Context, entries: list[Entry], stages: _Stages) -> None:
    settled: list[CaseOutcome] = []
    for entry in entries:
        for run in runs_of(context, entry):
            what = run.cases[0].name if len(run.cases) == 1 else f"all {len(run.cases)} cases"
            context.observe(Step(text=f"running {_named(context, entry)}case {what}"))
            outcomes = settle_run(context, run)
            settled += outcomes
            failed = next((outcome for outcome in outcomes if not outcome.verdict.accepted), None)
            if failed is not None and failed.verdict.pending:
                raise HostFault(failed.verdict.sentence, remedy="see: proctor doctor")
            if failed is not None:
                _tell_failure(context, failed, stages)
                return
    stages.passed("run", _times(context, settled))
    stages.passed("output format", f"{len(settled)} of {len(settled)} predictions are valid")
    if all(_causal(context, entry, settled, stages) for entry in entries):
        _score(context, settled, stages)


def _named(context: Context, entry: Entry) -> str:
    """Which tasks, where the challenge has several."""
    return f"task {', '.join(entry.shared.names)}, " if len(context.challenge.tasks) > 1 else ""


def _times(context: Context, outcomes: list[CaseOutcome]) -> str:
    runs = {outcome.ran_as or (outcome.task, outcome.case): outcome for outcome in outcomes}
    return "; ".join(_time(context, home, outcome) for home, outcome in runs.items())


def _time(context: Context, home: tuple[str, str], outcome: CaseOutcome) -> str:
    task, case = home
    whole = case not in context.cases
    media = sum(c.media_seconds for c in context.cases.values()) if whole else context.cases[case].media_seconds
    of_media = f" for {media:g} s of media" if media else ""
    named = f"task {task}, " if len({shared.names for shared in _shared(context)}) > 1 else ""
    return f"{named}{'all cases' if whole else f'case {case}'}: {outcome.seconds or 0:.1f} s{of_media}"


def _shared(context: Context) -> tuple[Shared, ...]:
    return shared_runs(context.challenge, tuple(context.challenge.tasks))


_FORMAT_WORDS = (VerdictWord.MISSING_OUTPUT, VerdictWord.BAD_OUTPUT, VerdictWord.UNSAFE_OUTPUT)


def _tell_failure(context: Context, outcome: CaseOutcome, stages: _Stages) -> None:
    """On public data the participant may see what their container printed."""
    log = ""
    task, case = outcome.ran_as or (outcome.task, outcome.case)
    folder = context.run.attempt(outcome.submission, task, case, "full", outcome.attempt)
    if outcome.attempt and (folder / "log.txt").is_file():
        log = (folder / "log.txt").read_text(encoding="utf-8", errors="replace")
    of_format = outcome.verdict.word in _FORMAT_WORDS
    if of_format:
        stages.passed("run", f"case {outcome.case}: ended with exit code 0 after {outcome.seconds or 0:.1f} s")
    where = f"case {outcome.case}"
    if len(context.challenge.tasks) > 1:
        where = f"task {outcome.task}, {where}"
    verdict = replace(outcome.verdict, sentence=f"{where}: {outcome.verdict.sentence}")
    stages.failed("output format" if of_format else "run", verdict, log=log)


def _causal(context: Context, entry: Entry, settled: list[CaseOutcome], stages: _Stages) -> bool:
    if context.challenge.causality.method == "off":
        if entry.task != next(iter(context.challenge.tasks)):
            return True  # said once
        return stages.passed("causality", "the challenge does not ask for it")
    return all(_causal_in(context, entry, task, settled, stages) for task in entry.shared.names)


def _causal_in(context: Context, entry: Entry, task: str, settled: list[CaseOutcome], stages: _Stages) -> bool:
    record = check_entry(context, entry, task, {one.case: one for one in settled if one.task == task})
    worst = _worst(record)
    if worst is None:
        return stages.add(Stage(name="causality", state=StageState.NOT_TESTED, sentence="no case was drawn for it"))
    if worst.pending:
        raise HostFault("the host failed while causality was checked", remedy="see: proctor doctor")
    stage = _causality_stage(worst.verdict, context.challenge.causality)
    if len(context.challenge.tasks) > 1:
        stage = replace(stage, sentence=f"task {task}: {stage.sentence}")
    return stages.add(stage)


def _worst(record: CausalityRecord) -> CausalityFinding | None:
    """The finding that matters most."""
    order = (CausalityOutcome.LEAKING, CausalityOutcome.LENGTH_DEPENDENT)
    return min(
        record.findings,
        key=lambda f: order.index(f.verdict.outcome) if f.verdict.outcome in order else len(order),
        default=None,
    )


def _causality_stage(verdict: CausalityVerdict, rule: CausalityRule) -> Stage:
    sentence = f"{verdict.outcome.value}: {verdict.detail}"
    policies = {CausalityOutcome.LEAKING: rule.on_leak, CausalityOutcome.LENGTH_DEPENDENT: rule.length_dependence}
    policy = policies.get(verdict.outcome)
    if policy is LeakPolicy.REFUSE:
        hints = leak_hints(verdict.outcome)
        return Stage(name="causality", state=StageState.FAILED, sentence=sentence, hints=hints)
    if policy is not None:
        does = "is not ranked for it" if policy is LeakPolicy.UNRANKED else "is not refused for it"
        return Stage(
            name="causality", state=StageState.PASSED, sentence=f"{sentence}; in this challenge a method {does}"
        )
    state = StageState.PASSED if verdict.outcome is CausalityOutcome.PASSED else StageState.NOT_TESTED
    return Stage(name="causality", state=state, sentence=sentence)


def _score(context: Context, settled: list[CaseOutcome], stages: _Stages) -> None:
    """Score on the public data; a failure of the scorer is the organisers', and raised."""
    told = []
    for name, task in context.challenge.tasks.items():
        scores = []
        for outcome in (one for one in settled if one.task == name):
            case, due = context.cases[outcome.case], due_of(context.cases[outcome.case])
            rule = task.reference_format or task.format
            reference = read_reference(context.confine, rule, case.references[name], due=due)
            path = kept_prediction(context.run, outcome, task.format)
            reading = read_output(context.confine, task.format, path, due=due, role=Role.PREDICTION)
            assert reading.prediction is not None
            scores.append(
                score_case(
                    context.confine, context.loaded, name, reference, reading.prediction, frames=len(case.frames)
                )
            )
        figures = aggregate_cases(context.confine, context.loaded, name, scores)
        words = ", ".join(f"{metric} {value:.4f}" for metric, value in figures.items() if value is not None)
        told.append(f"{f'task {name}: ' if len(context.challenge.tasks) > 1 else ''}{words}")
    cases = len(context.cases)
    stages.passed("score", f"{'; '.join(told)} (over {cases} cases; says nothing of the hidden data)")


def _not_tested(challenge: Challenge, cases: tuple[Case, ...], *, has_gpu: bool, sample: bool) -> tuple[str, ...]:
    if not has_gpu:
        return ("GPU", "run time")
    longest = max(challenge.limits.run_time.seconds(case.media_seconds) for case in cases)
    return ("run time: the sample is too short to tell",) if sample and longest < _SHORT_SAMPLE_SECONDS else ()


def _lacks(
    challenge: Challenge, cases: tuple[Case, ...], settings: Settings, host: HostFacts, *, has_gpu: bool
) -> tuple[str, ...]:
    longest = max(case.media_seconds for case in cases)
    budget = budget_for(challenge.limits, settings.ceiling, host.size, media_seconds=longest)
    lacks = [
        f"{short.limit}: the final has {show_limit(short.limit, short.challenge)}, "
        f"this machine {show_limit(short.limit, short.here)}"
        for short in shortfalls(challenge.limits, budget, media_seconds=longest)
    ]
    if not has_gpu:
        what = f" ({challenge.reference_hardware})" if challenge.reference_hardware else ""
        lacks.insert(0, f"GPU: the final has {challenge.limits.gpus}{what}, this machine none that can be used")
    return tuple(lacks)
