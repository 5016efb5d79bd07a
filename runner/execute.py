"""Runs one job under its budget and returns the facts; judges nothing.

A participant's failure is a value in the result; only the host can make this raise.
"""

import contextlib
import functools
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from runner.budget import Budget, Usage
from runner.cleaner import Cleaner
from runner.clock import Clock
from runner.conducting import Conducting, Seen
from runner.due_tree import DueTree
from runner.engine import (
    ContainerSpec,
    Engine,
    EngineRefusal,
    ImageFacts,
    RefusalPhase,
)
from runner.errors import HostFault, HostUnfit, Interrupted
from runner.follow import Ended, end_now, follow
from runner.gpu.access import NO_GPU_GIVEN, GpuAccess
from runner.gpu.discovery import Gpu
from runner.gpu.energy import EnergyZone
from runner.gpu.pool import GpuPool
from runner.gpu.sampling import Consumption, Watch
from runner.inputs import CaseView, lay_out
from runner.job import Intake, Job, JobResult, KillReason, StartRefusal
from runner.lease import Leases
from runner.outputs import OutputPlace, Wanted, loop_place, volume_place
from runner.own_tree import OwnTree
from runner.ownership import LABEL_OWNER, LABEL_RUN, NAME_PREFIX, Owner
from runner.policy import STRICT, Policy
from runner.processors import ProcessorPool
from runner.sandbox import Seat, container_spec, unkept
from runner.streaming.source import streamed_inputs
from runner.watched import watched_place
from runner.workspace import Workspace, neutral_name

_LOG_LINES = 200
_FIRST_UID = 200_000
_UIDS = 4096

_log = logging.getLogger(__name__)

_HOSTS_REASONS = (
    "no space left on device", "cannot allocate memory", "too many open files", "input/output error",
    "resource temporarily unavailable",
)  # fmt: skip
"""A refusal that ends with one of these is the host's; nothing an image chose stands at the end."""

_PARTICIPANTS_REFUSALS = (
    (("no command specified",), StartRefusal.NOTHING_TO_START),
    (("not a directory",), StartRefusal.FILE_FOR_FOLDER),
    (("executable file not found",), StartRefusal.NO_ENTRY_POINT),
    (("exec: ", "no such file or directory"), StartRefusal.NO_INTERPRETER),
    (("exec: ", "permission denied"), StartRefusal.NOT_EXECUTABLE),
    (("exec format error",), StartRefusal.OTHER_ARCHITECTURE),
    (("argument list too long",), StartRefusal.ENVIRONMENT),
    (("mkdir",), StartRefusal.NO_FOLDER),
)
"""All marks of an entry must be there. Only the first can be refused at create, where the image is not touched yet."""


@dataclass(frozen=True, kw_only=True)
class Bench:
    """What every job of a run is given by this host.

    Attributes:
        engine: Where containers run.
        clock: What durations are measured with.
        workspace: Where views and outputs live meanwhile.
        leases: User ids and devices that runners share.
        owner: This process, for labels.
        run_token: A random name of this run, for labels.
        helper: ID of our helper image; empty where outputs are loop-mounted or watched.
        watched: Outputs are plain folders that are only watched.
        stop: Set when the user asked us to stop.
        gpus: This host's devices; None where none is used.
        zones: The processors' energy counters, where they can be read.
        seccomp: A profile in place of the engine's own; None: the engine's.
        policy: What every container of the run is held to.
        engine_room: Says how many bytes are free on the engine's disk; None where this host cannot see it.
        processors: Whole ones for each job; None: a quota of all.
        cleaner: Puts a job's things away while its files are read; None: at once.
    """

    engine: Engine
    clock: Clock
    workspace: Workspace
    leases: Leases
    owner: Owner
    run_token: str
    helper: str
    watched: bool = False
    stop: threading.Event = field(default_factory=threading.Event)
    gpus: GpuPool | None = None
    zones: tuple[EnergyZone, ...] = ()
    seccomp: str | None = None
    policy: Policy = STRICT
    engine_room: Callable[[], int | None] = lambda: None
    processors: ProcessorPool | None = None
    cleaner: Cleaner | None = None

    @property
    def labels(self) -> dict[str, str]:
        """Labels of everything this run makes on the engine."""
        return {LABEL_OWNER: str(self.owner), LABEL_RUN: self.run_token}


def run_job(
    bench: Bench, job: Job, views: Mapping[str, CaseView], *, image: ImageFacts, attempt: int, folder: Path
) -> JobResult:
    """Run a job once.

    Args:
        bench: What this host gives.
        job: What to run.
        views: What it is shown of each of its cases, by real name.
        image: The pinned image's facts.
        attempt: 1, 2, …
        folder: Where the log and the predictions go; fresh.

    Raises:
        HostFault: The host failed; the participant had no part in it.
        HostUnfit: The host cannot run such a job at all.
        Interrupted: The user asked us to stop.
    """
    if bench.stop.is_set():
        raise Interrupted("stopped", remedy="go on with: proctor resume RUN")
    try:
        if bench.cleaner is not None:
            bench.cleaner.settle()
        return _run(bench, job, views, image=image, attempt=attempt, folder=folder)
    except EngineRefusal as refusal:
        raise HostFault(str(refusal), remedy="see: proctor doctor") from refusal
    except OSError as error:
        raise HostFault(
            f"a file of this host could not be read or written: {error.strerror or error}",
            where=str(error.filename or ""),
            remedy="make room, or mend the disk, then: proctor resume RUN",
        ) from error


def _run(
    bench: Bench, job: Job, views: Mapping[str, CaseView], *, image: ImageFacts, attempt: int, folder: Path
) -> JobResult:
    with contextlib.ExitStack() as stack:
        # Devices first: a job that waits for one is in nobody's company yet, and a user id is given back before it.
        gpus = stack.enter_context(_devices(bench, job.budget))
        cpuset, processors = stack.enter_context(_processors(bench, job.budget))
        began_ns = time.time_ns()  # compared with the modification times of lease files only
        uid_name, uid, gid = stack.enter_context(_user(bench))
        desk = stack.enter_context(bench.workspace.desk())
        names, mounted_name = {case: neutral_name() for case in job.cases}, neutral_name()
        name = names[job.cases[0]]
        seen = _lay_out(desk, job, views, names)
        place = stack.enter_context(_place(bench, desk, mounted_name, job.budget, uid=uid, gid=gid))
        seat = Seat(
            name=NAME_PREFIX + neutral_name(), labels=bench.labels, uid=uid, gid=gid, view=seen.view,
            input_name=name, output=place.mounted, gpus=tuple(gpu.uuid for gpu in gpus),
            gpu_access=bench.gpus.access if bench.gpus else GpuAccess.AUTO, seccomp=bench.seccomp,
            cpuset=cpuset,
        )  # fmt: skip
        spec = container_spec(policy=bench.policy, job=job, image=image, seat=seat)
        # By name: where the answer to create is lost, the container may be there all the same.
        stack.callback(_put_away, bench, functools.partial(bench.engine.remove, spec.name))
        stream = None
        if job.stream is not None:
            stream = functools.partial(
                Conducting, job, views[job.case], seen, clock=bench.clock, predictions=folder / "predictions"
            )
        result = _run_container(
            bench, spec, job, place, gpus, names=names, attempt=attempt, folder=folder, stream=stream
        )
        alone = not bench.leases.taken_since(began_ns, but=(uid_name, *processors))
        if bench.cleaner is not None:
            bench.cleaner.later(stack.pop_all().close)
        return replace(result, usage=replace(result.usage, alone=alone), neutral_name=name)


def _lay_out(desk: Path, job: Job, views: Mapping[str, CaseView], names: Mapping[str, str]) -> Seen:
    """Write what a job is shown from the start: of a streamed case nothing that has frames."""
    seen = Seen(view=desk / neutral_name(), staging=desk / neutral_name(), name=names[job.cases[0]])
    shown = {names[case]: views[case] for case in job.cases}
    if job.stream is None:
        lay_out(seen.view, shown, inputs=tuple(job.places), lists=job.lists)
        return seen
    streamed = streamed_inputs(views[job.case].case, tuple(job.places))
    lay_out(seen.view, shown, inputs=[name for name in job.places if name not in {one.name for one in streamed}])
    seen.view.chmod(0o755)  # frames are put there, and it is mounted read-only all the same
    seen.staging.mkdir()
    return seen


def _put_away(bench: Bench, action: Callable[[], None]) -> None:
    """Do it, or owe it: nothing else is started before it is done, so two of our containers are never there at once."""
    try:
        action()
    except (HostFault, EngineRefusal) as error:
        if bench.cleaner is None:
            raise
        _log.warning("something is still to be put away: %s", error)
        bench.cleaner.owe(action)


@contextlib.contextmanager
def _user(bench: Bench) -> Iterator[tuple[str, int, int]]:
    """A user id that no other live container has; without root, our own."""
    names = (f"uid-{_FIRST_UID + slot}" for slot in range(_UIDS))
    with bench.leases.first_free(names) as name:
        if hasattr(os, "geteuid") and os.geteuid() != 0:
            yield name, os.getuid(), os.getgid()
        else:
            uid = int(name.removeprefix("uid-"))
            yield name, uid, uid


@contextlib.contextmanager
def _devices(bench: Bench, budget: Budget) -> Iterator[tuple[Gpu, ...]]:
    if not budget.gpus or bench.gpus is None:
        yield ()
        return
    with bench.gpus.held(budget.gpus) as gpus:
        yield gpus


@contextlib.contextmanager
def _processors(bench: Bench, budget: Budget) -> Iterator[tuple[str | None, tuple[str, ...]]]:
    if bench.processors is None:
        yield None, ()
        return
    with bench.processors.held(budget.cpus) as held:
        yield held


def _watching(bench: Bench, gpus: tuple[Gpu, ...], container: str) -> Watch:
    if bench.gpus is None:
        return Watch(None, (), bench.zones)
    return bench.gpus.watch(gpus, bench.zones, failed=functools.partial(end_now, bench.engine, container))


def _consumption(bench: Bench, watch: Watch) -> Consumption:
    """What was used; devices that failed meanwhile are the host's fault."""
    used = watch.consumption()
    if bench.gpus is not None:
        bench.gpus.require(used)
    return used


@contextlib.contextmanager
def _place(bench: Bench, desk: Path, name: str, budget: Budget, *, uid: int, gid: int) -> Iterator[OutputPlace]:
    if bench.helper:
        with volume_place(
            bench.engine,
            helper=bench.helper,
            name=NAME_PREFIX + name,
            labels=bench.labels,
            budget=budget,
            uid=uid,
            gid=gid,
            mode=0o777 if bench.policy.image_user else 0o700,
            put_away=functools.partial(_put_away, bench),
        ) as place:
            yield place
    else:
        mode = 0o777 if bench.policy.image_user else 0o755
        make = watched_place if bench.watched else loop_place
        with make(desk, name=name, budget=budget, uid=uid, gid=gid, mode=mode) as folder:
            yield folder


def _run_container(
    bench: Bench,
    spec: ContainerSpec,
    job: Job,
    place: OutputPlace,
    gpus: tuple[Gpu, ...],
    *,
    names: Mapping[str, str],
    attempt: int,
    folder: Path,
    stream: Callable[..., Conducting] | None = None,
) -> JobResult:
    with contextlib.ExitStack() as stack:
        conducting: Conducting | None = None
        try:
            container = bench.engine.create(spec)
            _require_limits(bench.engine, container, spec)
            kill = functools.partial(end_now, bench.engine, container)
            stack.enter_context(place.watching(kill))
            tree = (
                None
                if spec.read_only
                else OwnTree(bench.engine, container, most=job.budget.tmp, free=bench.engine_room)
            )
            if tree is not None:
                stack.enter_context(tree.watching(kill))
            watch = stack.enter_context(_watching(bench, gpus, container))
            if stream is not None:
                attached = stack.enter_context(contextlib.closing(bench.engine.attach(container)))
                conducting = stack.enter_context(contextlib.closing(stream(attached=attached, kill=kill)))
            asked = bench.clock.now()
            bench.engine.start(container)
            if conducting is not None:
                conducting.begin()
        except EngineRefusal as refusal:
            return _refused(job, attempt, refusal)

        def over() -> KillReason | None:
            exceeded = place.overshoot() is not None or (tree is not None and tree.exceeded() > 0)
            if exceeded:
                return KillReason.OUTPUT
            return conducting.over() if conducting is not None else None

        ended = follow(bench.engine, bench.clock, container, _followed(job), asked=asked, over=over, stop=bench.stop)
        used = _consumption(bench, watch)
        conducted = conducting.settle() if conducting is not None else None
        if conducting is not None and conducted is not None:
            conducted.require_engine(job, slow=ended.slow)
            # Its input ends before it is killed; it may end of that, with a code that says nothing then.
            ended = replace(ended, killed=ended.killed or conducting.over())
    if conducted is None:
        truncated = _keep_log(bench.engine, container, folder / "log.txt", job.budget.log_bytes)
        intake, *further = _take(job, place, names, folder / "predictions")
    else:
        truncated = conducted.keep(folder)
        intake, *further = conducted.intakes
    return JobResult(
        job=job.name,
        digest=job.digest,
        attempt=attempt,
        exit=ended.exit,
        killed=ended.killed,
        usage=_usage(ended, (intake, *further), used, uncounted=conducted.uncounted if conducted is not None else 0.0),
        intake=intake,
        further=tuple(further),
        log_truncated=truncated,
        notes=ended.notes,
        overshoot=place.overshoot(),
        tree_bytes=tree.settle() if tree is not None else 0,
        stream=conducted.facts if conducted is not None else None,
    )


def _followed(job: Job) -> Budget:
    """The budget by which a container is followed; one that is streamed to has its own clock, which is never later."""
    if job.stream is None:
        return job.budget
    return replace(job.budget, run_time=job.stream.rule.start_up + job.budget.run_time)


def _require_limits(engine: Engine, container: str, spec: ContainerSpec) -> None:
    """Read back, before it is started, what the engine holds a container to."""
    facts = engine.inspect(container)
    loose = unkept(spec, facts.limits) if facts is not None else ("the container is gone",)
    if loose:
        raise HostFault(f"the engine does not keep what it was told: {'; '.join(loose)}", remedy="see: proctor doctor")


def _take(job: Job, place: OutputPlace, names: Mapping[str, str], predictions: Path) -> list[Intake]:
    """Take every output out, and no more of all together than the place may hold."""
    files = [output.path.replace("{case}", names[output.case]) for output in job.outputs]
    due = DueTree((file, output.names) for output, file in zip(job.outputs, files, strict=True))
    taken: list[Intake] = []
    left = job.budget.output_bytes
    for output, file in zip(job.outputs, files, strict=True):
        target = predictions / output.kept
        target.parent.mkdir(parents=True, exist_ok=True)
        wanted = Wanted(
            path=file, files=output.names, siblings=_siblings(file, files), most=left, due=None if taken else due
        )
        taken.append(place.take(wanted, target))
        left -= taken[-1].size
    return [replace(one, stray=taken[0].stray) for one in taken]


def _siblings(file: str, files: Sequence[str]) -> frozenset[str]:
    """Names beside a file that are expected as well."""
    above = file.rpartition("/")[0]
    start = f"{above}/" if above else ""
    return frozenset(
        other.removeprefix(start).partition("/")[0] for other in files if other != file and other.startswith(start)
    )


def _usage(ended: Ended, intakes: Sequence[Intake], used: Consumption, *, uncounted: float) -> Usage:
    return Usage(
        engine_seconds=max(0.0, ended.exit.seconds - uncounted),
        monotonic_seconds=max(0.0, ended.monotonic_seconds - uncounted),
        output_bytes=sum(intake.size for intake in intakes),
        alone=True,
        gpus=used.gpus,
        processor_joules=used.processor_joules,
    )


def _refused(job: Job, attempt: int, refusal: EngineRefusal) -> JobResult:
    """Tell a participant's refusal, a value, from a host that cannot run the job, an exception."""
    text = refusal.message.lower()
    known = _PARTICIPANTS_REFUSALS if refusal.phase is RefusalPhase.START else _PARTICIPANTS_REFUSALS[:1]
    for marks, reason in () if text.removesuffix(": unknown").endswith(_HOSTS_REASONS) else known:
        if all(mark in text for mark in marks):
            nothing = Usage(engine_seconds=0.0, monotonic_seconds=0.0, output_bytes=0, alone=True)
            return JobResult(
                job=job.name, digest=job.digest, attempt=attempt, exit=None, refusal=reason.value, killed=None,
                usage=nothing, intake=None,
            )  # fmt: skip
    if any(mark in text for mark in NO_GPU_GIVEN):
        raise HostUnfit(
            "the engine cannot give a container a GPU",
            remedy="install the NVIDIA container toolkit; see: proctor doctor",
        ) from refusal
    raise HostFault(
        f"the engine refused to {refusal.phase.value} a container: {refusal.message}", remedy="see: proctor doctor"
    ) from refusal


def _keep_log(engine: Engine, container: str, path: Path, max_bytes: int) -> bool:
    """Keep the end of the log; True where it is not whole."""
    text = engine.logs(container, lines=_LOG_LINES, max_bytes=max_bytes)
    path.write_bytes(text)
    lines = text.count(b"\n") + (not text.endswith(b"\n"))  # a program that is killed may be in the middle of one
    return len(text) >= max_bytes or lines >= _LOG_LINES
