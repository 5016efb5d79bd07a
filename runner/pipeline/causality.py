"""The check for causality alone: one image on public data, as many cuts as are asked for."""

import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pydantic import ValidationError

from runner.catalog import LoadedChallenge
from runner.causality import CausalityOutcome
from runner.challenge import CausalityMethod, CausalityRule, InvocationMode
from runner.errors import HostFault, UsageError
from runner.gpu.pool import GpuHost
from runner.images import PinnedImage, RefusedImage
from runner.judge import CaseOutcome
from runner.pipeline.cases import CaseRun, runs_of, settle_run
from runner.pipeline.context import Context, Entry
from runner.pipeline.evaluate import EngineFactory
from runner.pipeline.events import Observer, Step
from runner.pipeline.home import Home, HomeRequest, at_home, entered, nothing_to_resume
from runner.pipeline.looking_ahead import CausalityRecord, check_cases, cost_of, relative_cost
from runner.pipeline.pinning import refused_verdict
from runner.pipeline.preflights import look_into, refusal_of
from runner.pipeline.sequences import drawn_cases, runs_together, sequence_of
from runner.store import write_whole
from runner.verdict import Verdict
from runner.yaml_text import plain_words


@dataclass(frozen=True, kw_only=True)
class CausalityRequest:
    """What ``proctor causality`` is asked for.

    Attributes:
        home: The image, and on what.
        changes: What is to differ from the challenge's section ``causality``, by key.
        seed: Draws cases and cuts; None: one is drawn.
    """

    home: HomeRequest
    changes: Mapping[str, object]
    seed: int | None = None


@dataclass(frozen=True, kw_only=True)
class CausalityPlan:
    """What lies ahead.

    Attributes:
        seed: Draws cases and cuts.
        cases: Those that are checked.
        expected: Container runs for a clean method, beside those of the plain evaluation.
        most: Never more than so many.
        relative: ``expected`` as a multiple of the plain evaluation of the whole data.
    """

    seed: int
    cases: tuple[str, ...]
    expected: int
    most: int
    relative: float


@dataclass(frozen=True, kw_only=True)
class CausalityReport:
    """What came of it.

    Attributes:
        challenge: Name.
        version: As the organisers number it.
        digest: Of challenge.yaml and the code beside it.
        image: ID of the image; empty where it could not be had.
        rule: What was asked of it.
        plan: What it was to cost; None where nothing was run.
        refusal: Why nothing was tested: the image cannot be had or run, or gives no valid answers.
        log: The end of what a build printed, where that failed; untrusted text.
        records: By task.
    """

    challenge: str
    version: str
    digest: str
    image: str
    rule: CausalityRule
    plan: CausalityPlan | None = None
    refusal: Verdict | None = None
    log: str = ""
    records: Mapping[str, CausalityRecord]

    @property
    def leaking(self) -> bool:
        """In some task an answer depends on later frames."""
        return any(
            record.summary is not None and record.summary.outcome is CausalityOutcome.LEAKING
            for record in self.records.values()
        )


@nothing_to_resume()
def check_causality(
    request: CausalityRequest,
    *,
    connect: EngineFactory,
    stop: threading.Event,
    observe: Observer,
    tell: Callable[[CausalityPlan], None],
    gpus: GpuHost | None = None,
) -> CausalityReport:
    """Check one image for causality on public data.

    Args:
        request: What is asked for.
        connect: Connects to the engine.
        stop: Set when the user asks us to stop.
        observe: Is told what happens.
        tell: Is told what it costs, before it starts.
        gpus: Where GPUs are asked for; None: this host's own driver.

    Raises:
        RunnerError: Ours or the host's failure.
    """
    loaded = _with_rule(entered(request.home.challenge, request.home.tasks), request.changes)
    seed = secrets.randbits(32) if request.seed is None else request.seed
    report = CausalityReport(
        challenge=loaded.challenge.name, version=loaded.challenge.version, digest=loaded.digest, image="",
        rule=loaded.challenge.causality, records={},
    )  # fmt: skip
    with at_home(request.home, loaded, connect=connect, stop=stop, observe=observe, gpus=gpus) as home:
        image = home.pin()
        if isinstance(image, RefusedImage):
            return replace(report, refusal=refused_verdict(image), log=image.log)
        report = replace(report, image=image.id)
        findings = look_into(home.bench, home.host, image, loaded.challenge, home.settings)
        refusal = refusal_of(findings, public=True)
        if refusal is not None:
            return replace(report, refusal=refusal)
        return _checked(report, home, image, home.entries(image, findings), seed=seed, tell=tell)


def _checked(
    report: CausalityReport,
    home: Home,
    image: PinnedImage,
    entries: list[Entry],
    *,
    seed: int,
    tell: Callable[[CausalityPlan], None],
) -> CausalityReport:
    context = home.context(seed)
    write_whole(context.run.private / "seed", f"{seed}\n".encode())
    plan = _plan(context, entries)
    tell(plan)
    report = replace(report, plan=plan, image=image.id)
    records: dict[str, CausalityRecord] = {}
    for entry in entries:
        outcomes = [one for run in _plain_runs(context, entry) for one in _settled(context, run)]
        failed = next((one for one in outcomes if not one.verdict.accepted), None)
        if failed is not None:
            sentence = f"case {failed.case}: {failed.verdict.sentence}"
            return replace(report, refusal=replace(failed.verdict, sentence=sentence), records=records)
        for task in entry.shared.names:
            records[task] = check_cases(context, entry, task, plan.cases)
            if any(finding.pending for finding in records[task].findings):
                raise HostFault("the host failed while causality was checked", remedy="see: proctor doctor")
    return replace(report, records=records)


def _with_rule(loaded: LoadedChallenge, changes: Mapping[str, object]) -> LoadedChallenge:
    """The challenge with its section changed; one that asks for no check is checked all the same."""
    own = loaded.challenge.causality
    if loaded.challenge.invocation.mode is InvocationMode.STREAM:
        raise UsageError(
            f"{loaded.challenge.name} streams its frames, so that no method can look ahead",
            remedy="check it with: proctor check",
        )
    if changes.get("method") == CausalityMethod.OFF:
        raise UsageError("--method off checks nothing", remedy="name another method, or leave --method out")
    method = CausalityMethod.TARGETED if own.method is CausalityMethod.OFF else own.method
    changed = {**own.model_dump(), "method": method, **changes}
    if changed["method"] != CausalityMethod.EXHAUSTIVE:
        changed["rule"] = "all"
    try:
        rule = CausalityRule.model_validate(changed)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        option = "cases" if "on" in first["loc"] else "-".join(str(part) for part in first["loc"]).replace("_", "-")
        raise UsageError(
            f"--{option} {first['input']!r}: {plain_words(first)}" if option else plain_words(first),
            remedy="see: proctor causality --help",
        ) from error
    challenge = loaded.challenge.model_copy(update={"causality": rule})
    try:
        challenge.require_cuts()
    except ValueError as error:
        what = str(error).removesuffix("; causality.method: off")
        raise UsageError(what, remedy="name tasks that can be checked with --task") from error
    return replace(loaded, challenge=challenge)


def _plan(context: Context, entries: list[Entry]) -> CausalityPlan:
    names = drawn_cases(context)
    expected = most = 0
    for entry in entries:
        costs = [cost_of(context, sequence_of(context, entry.shared, context.cases[name])) for name in names]
        times = len(entry.shared.names) * (1 + len(entry.shared.inputs_from))
        together = max if runs_together(context) else sum
        expected += times * together(cost.clean for cost in costs)
        most += times * sum(cost.most for cost in costs)
    relative = relative_cost(context, [entry.shared for entry in entries])
    return CausalityPlan(seed=context.seed, cases=names, expected=expected, most=most, relative=relative)


def _plain_runs(context: Context, entry: Entry) -> list[CaseRun]:
    """The ordinary runs that the check is compared with, or that a later task is given the predictions of."""
    if context.challenge.invocation.mode is InvocationMode.DATASET:
        return list(runs_of(context, entry)) if runs_together(context) else []
    return [CaseRun(entry=entry, cases=(context.cases[name],)) for name in drawn_cases(context)]


def _settled(context: Context, run: CaseRun) -> list[CaseOutcome]:
    what = run.cases[0].name if len(run.cases) == 1 else f"all {len(run.cases)} cases"
    context.observe(Step(text=f"running case {what}"))
    outcomes = settle_run(context, run)
    pending = next((one for one in outcomes if one.verdict.pending), None)
    if pending is not None:
        raise HostFault(pending.verdict.sentence, remedy="see: proctor doctor")
    return outcomes
