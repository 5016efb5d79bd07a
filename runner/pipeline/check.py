"""The participant's job: one image on public data, under the organisers' policy, stage by stage.

What this machine cannot tell is not judged but named.
"""

import shlex
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from runner.catalog import LoadedChallenge
from runner.causality.verdict import CausalityOutcome, CausalityVerdict
from runner.challenge import AnswersCompared, CausalityMethod, CausalityRule, Challenge, LeakPolicy
from runner.dataset import Case
from runner.errors import HostFault, UsageError
from runner.formats.reading import read_again
from runner.gpu.pool import GpuHost
from runner.images import PinnedImage, RefusedImage, SourceKind
from runner.judge import CaseOutcome
from runner.pipeline.attempts import due_of, kept_prediction
from runner.pipeline.cases import runs_of, settle_run
from runner.pipeline.context import Context, Entry
from runner.pipeline.evaluate import EngineFactory
from runner.pipeline.events import Observer, Step
from runner.pipeline.home import SHORT_SAMPLE_SECONDS, Home, HomeRequest, at_home, entered, nothing_to_resume
from runner.pipeline.host import HostFacts
from runner.pipeline.looking_ahead import BY_CONSTRUCTION, check_entry, leak_hints, policy_for
from runner.pipeline.pinning import refused_verdict
from runner.pipeline.preflights import look_into, refusal_of
from runner.pipeline.references import reference_of
from runner.pipeline.scorer_container import score_one, scorers_at_hand
from runner.pipeline.streams import stream_words, streams_of
from runner.plan import Shared, budget_for, shared_runs, shortfalls, show_limit
from runner.preflight import PreflightFinding, Severity
from runner.quantities import show_bytes
from runner.scoring.contract import CaseScore
from runner.scoring.run import aggregate_cases, score_case
from runner.settings import Settings
from runner.submissions import Profile, Submission
from runner.verdict import Hint, Verdict, VerdictWord

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


_STAGES = ("image", "preflight", "run", "output format", "causality", "score")


@nothing_to_resume()
def check(
    request: HomeRequest,
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
    loaded = entered(request.challenge, request.tasks)
    _require_profile(loaded, request.profile)
    rule, sample = few_cuts(loaded.challenge.causality), request.data is None
    few = (
        f"a few cuts only; all of them: proctor causality {shlex.quote(request.image)} --challenge {request.challenge}"
    )
    stages = _Stages(tell, few_cuts=few if rule != loaded.challenge.causality else "")
    with at_home(request, loaded, connect=connect, stop=stop, observe=observe, gpus=gpus) as home:
        settings = home.settings
        image = _image(home, stages)
        findings = look_into(home.bench, home.host, image, loaded.challenge, settings) if image is not None else ()
        if image is not None and _passes_preflight(findings, loaded.challenge, stages):
            scorers = scorers_at_hand(home.engine, loaded, settings, home.room, observe=observe)
            context = home.context(_FIXED_SEED, causality=rule)
            _run_stages(context, home.entries(image, findings), stages, scorers)
        return CheckReport(
            challenge=loaded.challenge.name, version=loaded.challenge.version, digest=loaded.digest,
            image=image.id if image else "", stages=stages.all(),
            not_tested=_not_tested(loaded.challenge, home.cases, has_gpu=home.has_gpu, sample=sample),
            lacks=_lacks(loaded.challenge, home.cases, settings, home.host, has_gpu=home.has_gpu),
        )  # fmt: skip


def _require_profile(loaded: LoadedChallenge, profile: Profile) -> None:
    if profile is Profile.STREAM and loaded.challenge.invocation.stream is None:
        raise UsageError(
            f"{loaded.challenge.name} does not stream frames", remedy="leave --profile out, or take another challenge"
        )


class _Stages:
    """The stages so far; what was not reached is filled in at the end.

    Attributes:
        few_cuts: That causality is checked with fewer cuts than in the final, and how to check it whole; empty where
            it is not.
    """

    def __init__(self, tell: Callable[[Stage], None], *, few_cuts: str) -> None:
        self._done: list[Stage] = []
        self._tell = tell
        self.few_cuts = few_cuts

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


def _image(home: Home, stages: _Stages) -> PinnedImage | None:
    image = home.pin()
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


def _run_stages(context: Context, entries: list[Entry], stages: _Stages, scorers: Mapping[str, PinnedImage]) -> None:
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
    stages.add(
        Stage(
            name="run", state=StageState.PASSED, sentence=_times(context, settled), notes=_latencies(context, settled)
        )
    )
    sentence = f"{len(settled)} of {len(settled)} predictions are valid"
    stages.add(Stage(name="output format", state=StageState.PASSED, sentence=sentence, notes=_noted(context, settled)))
    if all(_causal(context, entry, settled, stages) for entry in entries):
        _score(context, entries[0].submission, settled, stages, scorers)


def _named(context: Context, entry: Entry) -> str:
    """Which tasks, where the challenge has several."""
    return f"task {', '.join(entry.shared.names)}, " if len(context.challenge.tasks) > 1 else ""


def _times(context: Context, outcomes: list[CaseOutcome]) -> str:
    runs = {outcome.ran_as or (outcome.task, outcome.case): outcome for outcome in outcomes}
    return "; ".join(_time(context, home, outcome) for home, outcome in runs.items())


def _noted(context: Context, outcomes: list[CaseOutcome]) -> tuple[str, ...]:
    """What was noted of the predictions that were accepted."""
    several = len(context.challenge.tasks) > 1
    return tuple(
        f"{f'task {outcome.task}, ' if several else ''}case {outcome.case}: {note}"
        for outcome in outcomes
        for note in outcome.verdict.notes
    )


def _latencies(context: Context, outcomes: list[CaseOutcome]) -> tuple[str, ...]:
    """A line for each case that was streamed."""
    streams = streams_of(context.run, outcomes).items()
    several = len(context.challenge.tasks) > 1
    return tuple(
        f"{f'task {task}, ' if several else ''}case {case}: {stream_words(facts)}" for (task, case), facts in streams
    )


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
    if entry.shared.stream is not None:
        return stages.passed("causality", f"{_named(context, entry)}{BY_CONSTRUCTION}")
    if context.challenge.causality.method == "off":
        if entry.task != next(iter(context.challenge.tasks)):
            return True  # said once
        return stages.passed("causality", "the challenge does not ask for it")
    return all(_causal_in(context, entry, task, settled, stages) for task in entry.shared.names)


_FEW_CUTS = 6


def few_cuts(rule: CausalityRule) -> CausalityRule:
    """The challenge's rule, but cheap enough to be waited for: a few aimed cuts of one case in place of all."""
    every = rule.method is CausalityMethod.EXHAUSTIVE
    alone = rule.method is not CausalityMethod.CUT_RUN
    return rule.model_copy(
        update={
            "method": CausalityMethod.TARGETED if every else rule.method, "rule": AnswersCompared.ALL,
            "cuts": min(rule.cuts, _FEW_CUTS), "on": 1 if alone else rule.on,
        }
    )  # fmt: skip


def _causal_in(context: Context, entry: Entry, task: str, settled: list[CaseOutcome], stages: _Stages) -> bool:
    record = check_entry(context, entry, task, {one.case: one for one in settled if one.task == task})
    if record.summary is None:
        return stages.add(Stage(name="causality", state=StageState.NOT_TESTED, sentence="no case was drawn for it"))
    if any(finding.pending for finding in record.findings):
        raise HostFault("the host failed while causality was checked", remedy="see: proctor doctor")
    stage = _causality_stage(record.summary, policy_for(context.challenge.causality, record))
    if len(context.challenge.tasks) > 1:
        stage = replace(stage, sentence=f"task {task}: {stage.sentence}")
    notes = (f"{stages.few_cuts} --task {task}",) if stages.few_cuts else ()
    return stages.add(replace(stage, notes=notes))


def _causality_stage(verdict: CausalityVerdict, policy: LeakPolicy | None) -> Stage:
    sentence = f"{verdict.outcome.value}: {verdict.detail}"
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


def _score(
    context: Context,
    myself: Submission,
    settled: list[CaseOutcome],
    stages: _Stages,
    scorers: Mapping[str, PinnedImage],
) -> None:
    """Score on the public data; a failure of the scorer is the organisers', and raised."""
    told = []
    untried = [name for name, task in context.challenge.tasks.items() if task.scorer_image and name not in scorers]
    for name in context.challenge.tasks:
        named = f"task {name}: " if len(context.challenge.tasks) > 1 else ""
        if name in untried:
            told.append(f"{named}scorer not tried: it runs in a container, whose image is not here")
            continue
        outcomes = {one.case: one for one in settled if one.task == name}
        if name in scorers:
            scores = score_one(context, myself, name, outcomes, scorers[name])
        else:
            scores = [_case_score(context, outcome) for outcome in outcomes.values()]
        figures = aggregate_cases(context.confine, context.loaded, name, scores)
        words = ", ".join(f"{metric} {value:.4f}" for metric, value in figures.items() if value is not None)
        told.append(f"{named}{words}")
    cases = len(context.cases)
    if len(untried) == len(context.challenge.tasks):
        stages.add(Stage(name="score", state=StageState.NOT_TESTED, sentence="; ".join(told)))
        return
    stages.passed("score", f"{'; '.join(told)} (over {cases} cases; says nothing of the hidden data)")


def _case_score(context: Context, outcome: CaseOutcome) -> CaseScore:
    task = context.challenge.tasks[outcome.task]
    case, due = context.cases[outcome.case], due_of(context.cases[outcome.case])
    reference = reference_of(context.confine, task, outcome.task, case)
    path = kept_prediction(context.run, outcome, task.format)
    reading = read_again(context.confine, task.format, path, due=due)
    assert reading.prediction is not None
    return score_case(
        context.confine, context.loaded, outcome.task, reference, reading.prediction, frames=len(case.frames)
    )


def _not_tested(challenge: Challenge, cases: tuple[Case, ...], *, has_gpu: bool, sample: bool) -> tuple[str, ...]:
    if not has_gpu:
        return ("GPU", "run time")
    longest = max(challenge.limits.run_time.seconds(case.media_seconds) for case in cases)
    return ("run time: the sample is too short to tell",) if sample and longest < SHORT_SAMPLE_SECONDS else ()


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
