"""Challenge, image and settings become jobs. Pure."""

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from typing import TypeVar

from runner.budget import Budget
from runner.challenge import Invocation, Limits, Task
from runner.dataset import Case
from runner.job import EXECUTION_CONTRACT, Cut, CutKind, Job
from runner.policy import STRICT, Policy, facts_of
from runner.quantities import show_bytes, show_seconds
from runner.settings import Ceiling

_SHORT = {CutKind.PREFIX: "cut", CutKind.ALTERED_FUTURE: "altered"}


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
    limits: Limits, ceiling: Ceiling, host: HostSize, *, media_seconds: float, policy: Policy = STRICT
) -> Budget:
    """The challenge's limits for a case, tightened by what this host gives.

    Args:
        limits: The challenge's.
        ceiling: The settings'.
        host: The engine's host.
        media_seconds: Length of the case.
        policy: Says how many files may be open and how much log is kept.
    """
    memory = _tightest(limits.memory, ceiling.memory, host.memory)
    return Budget(
        run_time=_tightest(limits.run_time.seconds(media_seconds), ceiling.run_time),
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


def job_name(cut: Cut | None, *, repeat: int = 0) -> str:
    """``full``, ``repeat-1``, ``cut-0123``, ``cut-0123-1``, ``altered-0123``."""
    if cut is None:
        return f"repeat-{repeat}" if repeat else "full"
    name = f"{_SHORT[cut.kind]}-{cut.frames:04d}"
    return f"{name}-{cut.repeat}" if cut.repeat else name


def plan_job(
    *,
    submission: str,
    task_name: str,
    task: Task,
    invocation: Invocation,
    case: Case,
    case_hash: str,
    image_id: str,
    budget: Budget,
    policy: Policy = STRICT,
    cut: Cut | None = None,
    donor_hash: str = "",
    repeat: int = 0,
) -> Job:
    """Describe one container run; its digest is the hash of everything that could change its result.

    Args:
        submission: Slug.
        task_name: As in challenge.yaml.
        task: The task.
        invocation: How containers are started.
        case: What it is shown.
        case_hash: Hash of the case's inputs.
        image_id: The pinned image.
        budget: The full case's, also for a cut.
        policy: What the container is held to.
        cut: The view; None: the full sequence.
        donor_hash: Hash of the case whose frames an altered future shows.
        repeat: 0 for the run that is judged, 1, 2, … for its repetitions.
    """
    name = job_name(cut, repeat=repeat)
    facts = {
        "contract": EXECUTION_CONTRACT,
        "image": image_id,
        "args": invocation.args,
        "mounts": (invocation.input_mount, invocation.output_mount),
        "task": task_name,
        "file": task.format.file,
        "budget": dataclasses.asdict(budget),
        "policy": facts_of(policy),
        "case": case_hash,
        "cut": dataclasses.asdict(cut) if cut else None,
        "donor": donor_hash,
        "repeat": repeat,
    }
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    shown = cut.frames if cut is not None and cut.kind is CutKind.PREFIX else len(case.frames)
    return Job(
        submission=submission, task=task_name, case=case.name, name=name, cut=cut, frames=shown, image_id=image_id,
        arguments=invocation.args, input_mount=invocation.input_mount, output_mount=invocation.output_mount,
        expected_file=task.format.file, budget=budget, digest=digest,
    )  # fmt: skip
