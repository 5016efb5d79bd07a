"""Challenge, image and settings become jobs. Pure."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pydantic import TypeAdapter

from runner.budget import Budget
from runner.challenge import Challenge, Invocation, InvocationMode, Limits, Pacing, Stream, Task
from runner.dataset import Case
from runner.job import EXECUTION_CONTRACT, Cut, CutKind, Job, Output, Streaming, frames_of
from runner.policy import STRICT, Policy, facts_of
from runner.quantities import show_bytes, show_seconds
from runner.settings import Ceiling
from runner.submissions import Profile, Submission, slug_of

_STREAMING = TypeAdapter(Streaming)
_SHORT = {CutKind.PREFIX: "cut", CutKind.ALTERED_FUTURE: "altered", CutKind.CLIP: "clip"}


@dataclass(frozen=True, kw_only=True)
class HostSize:
    """What the engine's host has; ``memory`` in bytes."""

    cpus: int
    memory: int


@dataclass(frozen=True, kw_only=True)
class Shortfall:
    """A limit that this host, or its settings, hold lower than the challenge does."""

    limit: str
    challenge: float
    here: float


_Amount = TypeVar("_Amount", int, float)


def _tightest(rule: _Amount, *ceilings: _Amount | None) -> _Amount:
    return min(rule, *(rule if ceiling is None else ceiling for ceiling in ceilings))


def budget_for(
    limits: Limits,
    ceiling: Ceiling,
    host: HostSize,
    *,
    media_seconds: float,
    policy: Policy = STRICT,
    stream: Stream | None = None,
) -> Budget:
    """The challenge's limits for a case, tightened by what this host gives.

    Args:
        limits: The challenge's.
        ceiling: The settings'.
        host: The engine's host.
        media_seconds: Length of the case.
        policy: Says how many files may be open and how much log is kept.
        stream: How frames are streamed: at the camera's pace a case takes as long as it is, however fast a method is.
    """
    run_time = limits.run_time.seconds(media_seconds)
    if stream is not None and stream.pacing is Pacing.REALTIME:
        run_time = max(run_time, media_seconds + stream.answer)
    memory = _tightest(limits.memory, ceiling.memory, host.memory)
    return Budget(
        run_time=_tightest(run_time, ceiling.run_time),
        memory=memory,
        shm=_tightest(limits.shm, ceiling.shm, memory),
        cpus=_tightest(limits.cpus, ceiling.cpus, float(host.cpus)),
        gpus=limits.gpus,
        pids=_tightest(limits.pids, ceiling.pids),
        output_bytes=_tightest(limits.output, ceiling.output),
        output_files=limits.output_files,
        tmp=_tightest(limits.tmp, ceiling.tmp, memory),
        open_files=policy.open_files,
        log_bytes=policy.log_bytes,
    )


def shortfalls(limits: Limits, budget: Budget, *, media_seconds: float) -> tuple[Shortfall, ...]:
    """Where a budget is smaller than the challenge's own limits."""
    pairs = (
        ("run time", limits.run_time.seconds(media_seconds), budget.run_time),
        ("memory", limits.memory, budget.memory),
        ("shm", limits.shm, budget.shm),
        ("cpus", limits.cpus, budget.cpus),
        ("pids", limits.pids, budget.pids),
        ("output", limits.output, budget.output_bytes),
        ("tmp", limits.tmp, budget.tmp),
    )
    return tuple(Shortfall(limit=name, challenge=rule, here=here) for name, rule, here in pairs if here < rule)


def show_limit(name: str, value: float) -> str:
    """A limit's value for people."""
    if name == "run time":
        return show_seconds(value)
    return f"{value:g}" if name in ("cpus", "pids") else show_bytes(int(value))


def job_name(cut: Cut | None, *, repeat: int = 0, alone: bool = False, every: bool = False) -> str:
    """``full``, ``repeat-1``, ``cut-0123``, ``cut-0123-1``, ``altered-0123``, ``clip-0300``, ``alone``, ``cut-run``.

    Args:
        cut: The view; None: the full sequence.
        repeat: Of the full sequence; a cut has its own.
        alone: A data set of one case, where the ordinary run has all of them.
        every: Each case of a data set is cut, at a place of its own.
    """
    if cut is None:
        if alone:
            return f"alone-{repeat}" if repeat else "alone"
        return f"repeat-{repeat}" if repeat else "full"
    name = f"{_SHORT[cut.kind]}-{'run' if every else f'{cut.frames:04d}'}"
    return f"{name}-{cut.repeat}" if cut.repeat else name


def entered_tasks(challenge: Challenge, submission: Submission) -> tuple[str, ...]:
    """The tasks a submission takes part in, in the challenge's order."""
    return tuple(name for name in challenge.tasks if not submission.tasks or name in submission.tasks)


@dataclass(frozen=True, kw_only=True)
class Shared:
    """The tasks that one run of a container answers: they show it the same, in the same way.

    Attributes:
        names: As in challenge.yaml, in its order; attempts are kept below the first.
        inputs: Names of the inputs it is shown, in the order of ``cases.inputs``.
        inputs_from: Earlier tasks whose predictions it is shown.
        files: By task, where its prediction is written.
        stream: How its frames are streamed; None: they lie there when it is started.
    """

    names: tuple[str, ...]
    inputs: tuple[str, ...]
    inputs_from: tuple[str, ...] = ()
    files: Mapping[str, str]
    stream: Stream | None = None


def streamed(challenge: Challenge, profile: Profile) -> Stream | None:
    """How frames are streamed to a submission that chose a profile; None: they are not."""
    invocation = challenge.invocation
    chosen = invocation.mode is InvocationMode.STREAM or profile is Profile.STREAM
    return invocation.stream if chosen else None


def shared_runs(
    challenge: Challenge, tasks: Sequence[str], *, profile: Profile = Profile.DEFAULT
) -> tuple[Shared, ...]:
    """Group the tasks a submission enters by what a container meets; their order is kept.

    Args:
        challenge: The challenge.
        tasks: Names of some of its tasks.
        profile: How the submission's container is run.
    """
    groups: dict[tuple[object, ...], list[str]] = {}
    for name in challenge.tasks:
        if name in tasks:
            task = challenge.tasks[name]
            apart = name if task.inputs_from or _tells_task(challenge.invocation, task) else ""
            groups.setdefault((_inputs(challenge, task), task.inputs_from, apart), []).append(name)
    stream = streamed(challenge, profile)
    return tuple(_shared(challenge, names, stream) for names in groups.values())


def _shared(challenge: Challenge, names: Sequence[str], stream: Stream | None) -> Shared:
    first = challenge.tasks[names[0]]
    return Shared(
        names=tuple(names), inputs=_inputs(challenge, first), inputs_from=first.inputs_from,
        files={name: challenge.tasks[name].format.file.replace("{task}", name) for name in names}, stream=stream,
    )  # fmt: skip


def _inputs(challenge: Challenge, task: Task) -> tuple[str, ...]:
    return tuple(name for name in challenge.cases.rules if not task.inputs or name in task.inputs)


def _tells_task(invocation: Invocation, task: Task) -> bool:
    return any("{task}" in text for text in (*invocation.command, *invocation.args, task.format.file))


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A case that a job is shown, and the hashes of what that is.

    Attributes:
        case: The case.
        inputs: Hash of its inputs.
        donor: Hash of the inputs of the case whose frames an altered future shows.
        earlier: Hash of the earlier predictions it is shown.
        cut: Where it ends or turns; None: nowhere.
        length: How long an altered future is, where that is less than the case.
    """

    case: Case
    inputs: str
    donor: str = ""
    earlier: str = ""
    cut: Cut | None = None
    length: int | None = None

    @property
    def frames(self) -> int:
        """How many frames are shown."""
        return frames_of(len(self.case.frames), self.cut, length=self.length)


DATA_SET = "data set"
"""In place of a case, where a container is started for all of them."""


def plan_job(
    *,
    submission: str,
    shared: Shared,
    challenge: Challenge,
    shown: Sequence[Shown],
    image_id: str,
    budget: Budget,
    policy: Policy = STRICT,
    repeat: int = 0,
    below: str = "",
) -> Job:
    """Describe one container run; its digest is the hash of everything that could change its result.

    Args:
        submission: Slug.
        shared: The tasks it answers.
        challenge: Says how containers are started.
        shown: The cases it is shown; more than one only in mode ``dataset``.
        image_id: The pinned image.
        budget: That of the full sequence, also for a cut.
        policy: What the container is held to.
        repeat: 0 for the run that is judged, 1, 2, … for its repetitions.
        below: In mode ``dataset``: name of the case that the run is about, and below which it is kept; empty: it is
            about all of them.
    """
    invocation, rules = challenge.invocation, challenge.cases.rules
    whole = invocation.mode is InvocationMode.DATASET and shared.stream is None
    stream = _streaming(challenge, shared)
    cuts = {one.case.name: one.cut for one in shown if one.cut is not None}
    cut = cuts.get(below) if below else next(iter(cuts.values()), None)
    name = job_name(cut, repeat=repeat, alone=bool(whole and below), every=whole and not below)
    outputs = _outputs(shared, shown, apart=whole)
    places = {one: rules[one].inside for one in shared.inputs}
    told = ",".join(shared.names)
    facts = {
        "contract": EXECUTION_CONTRACT,
        "image": image_id,
        "invocation": invocation.model_dump(mode="json", exclude={"stream"}),
        "told": told,
        "places": places,
        "outputs": [(output.file, output.apart) for output in outputs],
        "budget": dataclasses.asdict(budget),
        "policy": facts_of(policy),
        "shown": [(one.inputs, one.donor, one.earlier, *((one.length,) if one.length else ())) for one in shown],
        "cut": _cut_facts(shown),
        "repeat": repeat,
        **({"stream": _STREAMING.dump_python(stream, mode="json")} if stream is not None else {}),
    }
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    return Job(
        submission=submission, task=shared.names[0], name=name, cuts=cuts, image_id=image_id,
        case=below or (DATA_SET if whole else shown[0].case.name),
        frames=sum(one.frames for one in shown), command=invocation.command,
        arguments=invocation.args, environment=invocation.environment, told=told, places=places, whole=whole,
        lists={} if stream is not None else invocation.lists, input_mount=invocation.input_mount,
        output_mount=invocation.output_mount, outputs=outputs, budget=budget, digest=digest, stream=stream,
    )  # fmt: skip


def _streaming(challenge: Challenge, shared: Shared) -> Streaming | None:
    if shared.stream is None:
        return None
    fps = challenge.cases.fps
    assert fps is not None, "challenge.yaml has it where an input has frames"
    formats = {name: challenge.tasks[name].format for name in shared.names}
    return Streaming(rule=shared.stream, fps=fps, formats=formats)


def _cut_facts(shown: Sequence[Shown]) -> object:
    """The cut of the only case, or a list with one for each; None where nothing is cut."""
    cuts = [dataclasses.asdict(one.cut) if one.cut else None for one in shown]
    if len(cuts) == 1 or not any(cuts):
        return cuts[0]
    return cuts


def _outputs(shared: Shared, shown: Sequence[Shown], *, apart: bool) -> tuple[Output, ...]:
    outputs = []
    for one in shown:
        for file in dict.fromkeys(shared.files.values()):
            frames = one.frames
            stems = one.case.stems[:frames] if "{frame}" in file else ()
            outputs.append(
                Output(
                    case=one.case.name,
                    file=file,
                    frames=frames,
                    stems=stems,
                    apart=slug_of(one.case.name) if apart else "",
                )
            )
    return tuple(outputs)
