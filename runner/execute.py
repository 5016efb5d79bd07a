"""Runs one job under its budget and returns the facts; judges nothing.

The engine's ``wait`` decides nothing: it has no deadline of its own and a lost connection looks like an answer. It only
ends our naps; the container is looked at after each, against our own monotonic clock. A participant's
failure is a value in the result; only the host can make this raise:

* no answer for longer than ``PATIENCE`` seconds, or any gap in the answers while a job ended otherwise than well: the
  engine may have been restarted and have killed the container itself, so the run proves nothing;
* SIGKILL that does not end the container.
"""

import contextlib
import functools
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from runner.budget import Budget, Usage, clocks_disagree
from runner.cleaner import Cleaner
from runner.clock import Clock
from runner.dataset import Case
from runner.engine import (
    ContainerFacts,
    ContainerSpec,
    Engine,
    EngineRefusal,
    EngineUnreachable,
    Exit,
    ImageFacts,
    RefusalPhase,
)
from runner.errors import HostFault, HostUnfit, Interrupted
from runner.gpu.access import NO_GPU_GIVEN, GpuAccess
from runner.gpu.discovery import Gpu
from runner.gpu.energy import EnergyZone
from runner.gpu.pool import GpuPool
from runner.gpu.sampling import Consumption, Watch
from runner.inputs import lay_out
from runner.job import Intake, IntakeRefusal, Job, JobResult, KillReason, StartRefusal
from runner.lease import Leases
from runner.outputs import OutputPlace, loop_place, volume_place
from runner.own_tree import OwnTree
from runner.ownership import LABEL_OWNER, LABEL_RUN, NAME_PREFIX, Owner
from runner.policy import STRICT, Policy
from runner.processors import ProcessorPool
from runner.sandbox import Seat, container_spec, unkept
from runner.watched import watched_place
from runner.workspace import Workspace, neutral_name

PATIENCE = 60.0
"""Seconds without an answer of the engine after which a job is given up."""

KILL_PATIENCE = 10.0
"""Seconds a killed container may take to end before we end it ourselves, and again before we give up."""

_LONGEST_NAP = 1.0
_SHORTEST_NAP = 0.002
_LOG_LINES = 200
_FIRST_UID = 200_000
_UIDS = 4096
_BY_A_RESTART = (137, 143)
_LAST_ANSWERS = 2.0
_SLOW_ANSWER = 0.5
_BY_US = 137
_wall = time.time

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
    processors: ProcessorPool | None = None
    cleaner: Cleaner | None = None

    @property
    def labels(self) -> dict[str, str]:
        """Labels of everything this run makes on the engine."""
        return {LABEL_OWNER: str(self.owner), LABEL_RUN: self.run_token}


@dataclass(frozen=True, kw_only=True)
class View:
    """Whose frames a job is shown: the case's own, and a donor's where its future is altered."""

    case: Case
    donor: Case | None = None


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a started container came to its end."""

    exit: Exit
    killed: KillReason | None
    monotonic_seconds: float
    notes: tuple[str, ...]


def run_job(bench: Bench, job: Job, view: View, *, image: ImageFacts, attempt: int, folder: Path) -> JobResult:
    """Run a job once.

    Args:
        bench: What this host gives.
        job: What to run.
        view: What it is shown.
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
        return _run(bench, job, view, image=image, attempt=attempt, folder=folder)
    except EngineRefusal as refusal:
        raise HostFault(str(refusal), remedy="see: proctor doctor") from refusal
    except OSError as error:
        raise HostFault(
            f"a file of this host could not be read or written: {error.strerror or error}",
            where=str(error.filename or ""),
            remedy="make room, or mend the disk, then: proctor resume RUN",
        ) from error


def _run(bench: Bench, job: Job, view: View, *, image: ImageFacts, attempt: int, folder: Path) -> JobResult:
    with contextlib.ExitStack() as stack:
        # Devices first: a job that waits for one is in nobody's company yet, and a user id is given back before it.
        gpus = stack.enter_context(_devices(bench, job.budget))
        cpuset, processors = stack.enter_context(_processors(bench, job.budget))
        began_ns = time.time_ns()  # compared with the modification times of lease files only
        uid_name, uid, gid = stack.enter_context(_user(bench))
        desk = stack.enter_context(bench.workspace.desk())
        name, mounted_name = neutral_name(), neutral_name()
        view_folder = desk / neutral_name()
        view_folder.mkdir()
        lay_out(view_folder, name=name, case=view.case, cut=job.cut, donor=view.donor)
        place = stack.enter_context(_place(bench, desk, mounted_name, job.budget, uid=uid, gid=gid))
        seat = Seat(
            name=NAME_PREFIX + neutral_name(), labels=bench.labels, uid=uid, gid=gid, view=view_folder,
            input_name=name, output=place.mounted, gpus=tuple(gpu.uuid for gpu in gpus),
            gpu_access=bench.gpus.access if bench.gpus else GpuAccess.AUTO, seccomp=bench.seccomp,
            cpuset=cpuset,
        )  # fmt: skip
        spec = container_spec(policy=bench.policy, job=job, image=image, seat=seat)
        expected = job.expected_file.replace("{case}", name)
        # By name: where the answer to create is lost, the container may be there all the same.
        stack.callback(_put_away, bench, functools.partial(bench.engine.remove, spec.name))
        result = _run_container(bench, spec, job, place, gpus, expected=expected, attempt=attempt, folder=folder)
        alone = not bench.leases.taken_since(began_ns, but=(uid_name, *processors))
        if bench.cleaner is not None:
            bench.cleaner.later(stack.pop_all().close)
        return replace(result, usage=replace(result.usage, alone=alone), neutral_name=name)


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
    return bench.gpus.watch(gpus, bench.zones, failed=functools.partial(_end_now, bench, container))


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
    expected: str,
    attempt: int,
    folder: Path,
) -> JobResult:
    with contextlib.ExitStack() as stack:
        try:
            container = bench.engine.create(spec)
            _require_limits(bench.engine, container, spec)
            kill = functools.partial(_end_now, bench, container)
            stack.enter_context(place.watching(kill))
            tree = None if spec.read_only else OwnTree(bench.engine, container, most=job.budget.tmp)
            if tree is not None:
                stack.enter_context(tree.watching(kill))
            watch = stack.enter_context(_watching(bench, gpus, container))
            asked = bench.clock.now()
            bench.engine.start(container)
        except EngineRefusal as refusal:
            return _refused(job, attempt, refusal)

        def exceeded() -> bool:
            return place.overshoot() is not None or (tree is not None and tree.exceeded() > 0)

        ended = _watch(bench, container, job.budget, exceeded, asked=asked)
        used = _consumption(bench, watch)
    truncated = _keep_log(bench.engine, container, folder / "log.txt", job.budget.log_bytes)
    predictions = folder / "predictions"
    predictions.mkdir(exist_ok=True)
    intake = place.take(expected, predictions / job.expected_file.replace("{case}", "prediction"))
    return JobResult(
        job=job.name, digest=job.digest, attempt=attempt, exit=ended.exit, killed=ended.killed,
        usage=_usage(ended, intake, used), intake=intake, log_truncated=truncated, notes=ended.notes,
        overshoot=place.overshoot(), tree_bytes=tree.settle() if tree is not None else 0,
    )  # fmt: skip


def _require_limits(engine: Engine, container: str, spec: ContainerSpec) -> None:
    """Read back, before it is started, what the engine holds a container to."""
    facts = engine.inspect(container)
    loose = unkept(spec, facts.limits) if facts is not None else ("the container is gone",)
    if loose:
        raise HostFault(f"the engine does not keep what it was told: {'; '.join(loose)}", remedy="see: proctor doctor")


def _usage(ended: Ended, intake: Intake, used: Consumption) -> Usage:
    return Usage(
        engine_seconds=ended.exit.seconds,
        monotonic_seconds=ended.monotonic_seconds,
        output_bytes=intake.size if intake.refusal is not IntakeRefusal.MISSING else 0,
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


@dataclass
class _Gap:
    """Time in which the engine did not answer.

    Attributes:
        longest: Seconds of the longest stretch in which answers were lost.
        since: When the present one began.
        slow: Seconds, in all, of answers that came, but late: it stood still, and lost nothing.
    """

    longest: float = 0.0
    since: float | None = None
    slow: float = 0.0

    def failed(self, asked: float, now: float) -> None:
        self.since = asked if self.since is None else self.since
        self.longest = max(self.longest, now - self.since)

    def answered(self, asked: float, now: float) -> None:
        if self.since is not None:
            self.longest = max(self.longest, now - self.since, 0.001)
        elif now - asked > _SLOW_ANSWER:
            self.slow += now - asked
        self.since = None


def _look(engine: Engine, container: str, clock: Clock, gap: _Gap) -> ContainerFacts | None:
    """Look once; None where the engine does not answer."""
    asked = clock.now()
    try:
        facts = engine.inspect(container)
    except EngineUnreachable as error:
        gap.failed(asked, clock.now())
        if gap.longest > PATIENCE:
            raise HostFault(
                f"the engine has not answered for {gap.longest:.0f} s", remedy="see: proctor doctor"
            ) from error
        return None
    gap.answered(asked, clock.now())
    if facts is None:
        raise HostFault(
            "the container was removed by somebody else while it ran", remedy="leave proctor's containers alone"
        )
    return facts


def _watch(bench: Bench, container: str, budget: Budget, exceeded: Callable[[], bool], *, asked: float) -> Ended:
    """Look at a container that was started since ``asked`` until it has ended, killing it when its time is over."""
    clock = bench.clock
    began = clock.now()
    wall = _wall() - began
    gap = _Gap()
    killed: KillReason | None = None
    while True:
        # Napping comes first: to look at a container that is just starting only holds it up.
        _nap(bench, container, budget.kill_at - (clock.now() - began))
        facts = _look(bench.engine, container, clock, gap)
        elapsed = clock.now() - began
        if facts is not None and facts.exit is not None and facts.state in ("exited", "dead"):
            if exceeded() and facts.exit.code == _BY_US:
                killed = KillReason.OUTPUT
            else:
                _check_restart(bench, facts.exit)  # takes seconds that are nobody's run time
            break
        if facts is not None and bench.stop.is_set():
            _kill(bench, container, facts, gap)
            raise Interrupted("stopped while a container ran", remedy="go on with: proctor resume RUN")
        if facts is not None and (elapsed >= budget.kill_at or exceeded()):
            killed = KillReason.OUTPUT if exceeded() else KillReason.TIME
            facts = _kill(bench, container, facts, gap)
            elapsed = clock.now() - began
            break
    assert facts.exit is not None
    # Stepped by whom does not matter: an engine mounts our folders, so it lives by the same clock.
    stepped = abs(_wall() - clock.now() - wall) > _SLOW_ANSWER
    told_late = not stepped and _disagree(facts.exit, elapsed) and facts.exit.seconds < elapsed
    if told_late and (killed is None or facts.exit.code != _BY_US):
        return _told_late(facts.exit, elapsed, gap, budget)
    if elapsed < facts.exit.seconds <= elapsed + began - asked:
        elapsed = facts.exit.seconds  # the answer to start came late
    return _ended(facts.exit, killed, elapsed, gap, budget)


def _check_restart(bench: Bench, ended: Exit) -> None:
    """An engine that goes down ends its containers first, with these codes, and still answers for a moment."""
    if ended.code not in _BY_A_RESTART or ended.oom_killed:
        return
    deadline = bench.clock.now() + _LAST_ANSWERS
    while bench.clock.now() < deadline:
        try:
            bench.engine.ping()
        except EngineUnreachable as error:
            raise HostFault(
                f"the container ended with {ended.code} and the engine does not answer: it may have been its doing",
                remedy="see: proctor doctor",
            ) from error
        bench.clock.sleep(_LAST_ANSWERS / 20)


def _nap(bench: Bench, container: str, until_kill: float) -> None:
    """Wait until the container has ended, it is time to kill it, or to look again; never a busy loop."""
    seconds = min(_LONGEST_NAP, max(_SHORTEST_NAP, until_kill))
    began = bench.clock.now()
    bench.engine.await_exit(container, seconds=seconds)
    if bench.clock.now() - began < _SHORTEST_NAP:
        bench.clock.sleep(_SHORTEST_NAP)


def _ended(ended: Exit, killed: KillReason | None, elapsed: float, gap: _Gap, budget: Budget) -> Ended:
    late = killed is KillReason.TIME or ended.seconds > budget.run_time
    if not gap.longest:
        # A program that prints waits for an engine that stands still.
        if late and gap.slow and ended.seconds - gap.slow <= budget.run_time:
            raise HostFault(
                f"the engine kept us waiting for {gap.slow:.1f} s while the job ran, which then was late: it may have "
                "been the engine's doing",
                remedy="see: proctor doctor",
            )
        notes = (f"the engine kept us waiting for {gap.slow:.1f} s while the job ran",) if gap.slow else ()
        return Ended(exit=ended, killed=killed, monotonic_seconds=elapsed, notes=notes)
    if ended.code != 0 or late:
        raise HostFault(
            f"the engine did not answer for {gap.longest:.1f} s while the job ran, and the container ended with "
            f"{ended.code}: it may have been the engine's doing",
            remedy="see: proctor doctor",
        )
    note = f"the engine did not answer for {gap.longest:.1f} s while the job ran; its own record of the run time counts"
    return Ended(exit=ended, killed=None, monotonic_seconds=ended.seconds, notes=(note,))


def _disagree(ended: Exit, elapsed: float) -> bool:
    usage = Usage(engine_seconds=ended.seconds, monotonic_seconds=elapsed, output_bytes=0, alone=True)
    return clocks_disagree(usage)


def _told_late(ended: Exit, elapsed: float, gap: _Gap, budget: Budget) -> Ended:
    """No clock was stepped, and by the engine's own record the container had ended long before we heard of it."""
    late = _ended(ended, None, ended.seconds, gap, budget)
    if ended.code != 0:
        raise HostFault(
            f"the engine told only after {elapsed:.1f} s that the container had ended with {ended.code} after "
            f"{ended.seconds:.1f} s: it may have been the engine's doing",
            remedy="see: proctor doctor",
        )
    note = f"the engine told of the end {elapsed - ended.seconds:.1f} s late; its own record of the run time counts"
    return replace(late, notes=late.notes or (note,))


def _kill(bench: Bench, container: str, facts: ContainerFacts, gap: _Gap) -> ContainerFacts:
    """End a container: by the engine, then, as root, by its process id, then not at all."""
    for by_engine in (True, False):
        if by_engine:
            with contextlib.suppress(EngineUnreachable):
                bench.engine.kill(container)
        else:
            _log.warning("the engine did not end container %s; killing its process %d", facts.name, facts.pid)
            _kill_process(facts)
        deadline = bench.clock.now() + KILL_PATIENCE
        while bench.clock.now() < deadline:
            seen = _look(bench.engine, container, bench.clock, gap)
            if seen is not None and seen.exit is not None and seen.state in ("exited", "dead"):
                return seen
            bench.clock.sleep(_SHORTEST_NAP)
    raise HostFault(
        "the container did not end when it was killed",
        where=facts.name,
        remedy="restart the engine, then: proctor resume RUN",
    )


def _end_now(bench: Bench, container: str) -> None:
    """End a container that writes more than it may, without the engine's delay; whether it ended is seen elsewhere."""
    with contextlib.suppress(HostFault, EngineRefusal):
        if (facts := bench.engine.inspect(container)) is not None:
            _kill_process(facts)
            bench.engine.kill(container)


def _kill_process(facts: ContainerFacts) -> None:
    """SIGKILL to the container's first process, where it is certain that it is that process."""
    try:
        cgroup = Path(f"/proc/{facts.pid}/cgroup").read_text(encoding="ascii", errors="replace")
    except OSError:
        return
    if facts.pid and facts.id in cgroup:
        with contextlib.suppress(OSError):
            os.kill(facts.pid, signal.SIGKILL)


def _keep_log(engine: Engine, container: str, path: Path, max_bytes: int) -> bool:
    """Keep the end of the log; True where it is not whole."""
    text = engine.logs(container, lines=_LOG_LINES, max_bytes=max_bytes)
    path.write_bytes(text)
    lines = text.count(b"\n") + (not text.endswith(b"\n"))  # a program that is killed may be in the middle of one
    return len(text) >= max_bytes or lines >= _LOG_LINES
