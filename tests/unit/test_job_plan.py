"""Limits only tighten, and a job's digest changes with everything that could change its result, and nothing else."""

from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import runner.plan
from runner.budget import Budget
from runner.challenge import Challenge, Invocation, Limits, Task
from runner.dataset import Case
from runner.job import Cut, CutKind, Job
from runner.plan import HostSize, Shortfall, budget_for, job_name, plan_job, shortfalls, show_limit
from runner.policy import COMPATIBLE, STRICT, PolicyName, Processors, policy_named
from runner.settings import Ceiling

MIB = 1 << 20
LIMITS = Limits.model_validate(
    {
        "run_time": {"per_media": "60 s / 10 min", "allowance": "5 s"}, "memory": "8 GiB", "shm": "1 GiB", "cpus": 4,
        "gpus": 1, "output": "20 MiB", "output_files": 50, "tmp": "2 GiB", "pids": 300,
    }
)  # fmt: skip
BIG = HostSize(cpus=64, memory=1 << 40)


def test_without_a_ceiling_a_budget_is_the_challenges_own() -> None:
    assert budget_for(LIMITS, Ceiling(), BIG, media_seconds=600.0) == Budget(
        run_time=65.0, memory=8 << 30, shm=1 << 30, cpus=4.0, gpus=1, pids=300, output_bytes=20 * MIB, output_files=50,
        tmp=2 << 30, open_files=4096, log_bytes=3 * MIB,
    )  # fmt: skip


def test_shm_and_tmp_never_exceed_the_memory_that_is_left_of_the_host() -> None:
    budget = budget_for(LIMITS, Ceiling(), HostSize(cpus=2, memory=512 * MIB), media_seconds=600.0)
    assert (budget.memory, budget.shm, budget.tmp, budget.cpus) == (512 * MIB, 512 * MIB, 512 * MIB, 2.0)


def optional(low: int, high: int) -> st.SearchStrategy[int | None]:
    return st.none() | st.integers(low, high)


@given(
    rule=st.fixed_dictionaries(
        {
            "run_time": st.floats(0.5, 1e5).map(lambda seconds: {"fixed": seconds}),
            "memory": st.integers(64 * MIB, 1 << 36),
            "shm": st.integers(MIB, 64 * MIB),
            "cpus": st.floats(0.1, 128),
            "output": st.integers(MIB, 1 << 34),
            "tmp": st.integers(MIB, 1 << 34),
            "pids": st.integers(16, 1 << 15),
        }
    ),
    ceiling=st.fixed_dictionaries(
        {
            "run_time": st.none() | st.floats(0.5, 1e5),
            "memory": optional(6 * MIB, 1 << 36),
            "shm": optional(MIB, 1 << 34),
            "cpus": st.none() | st.floats(0.1, 128),
            "output": optional(MIB, 1 << 34),
            "tmp": optional(MIB, 1 << 34),
            "pids": optional(16, 1 << 15),
        }
    ),
    host=st.builds(HostSize, cpus=st.integers(1, 128), memory=st.integers(64 * MIB, 1 << 36)),
)
def test_a_budget_is_never_above_challenge_ceiling_or_host(
    rule: dict[str, Any], ceiling: dict[str, Any], host: HostSize
) -> None:
    limits, cap = Limits.model_validate(rule), Ceiling.model_validate(ceiling)
    budget = budget_for(limits, cap, host, media_seconds=1.0)
    bounds: dict[str, tuple[float, list[float | None]]] = {
        "run_time": (budget.run_time, [limits.run_time.seconds(1.0), cap.run_time]),
        "memory": (budget.memory, [limits.memory, cap.memory, host.memory]),
        "shm": (budget.shm, [limits.shm, cap.shm, budget.memory]),
        "cpus": (budget.cpus, [limits.cpus, cap.cpus, host.cpus]),
        "output": (budget.output_bytes, [limits.output, cap.output]),
        "tmp": (budget.tmp, [limits.tmp, cap.tmp, budget.memory]),
        "pids": (budget.pids, [limits.pids, cap.pids]),
    }
    for name, (value, given_bounds) in bounds.items():
        assert value == min(bound for bound in given_bounds if bound is not None), name
    assert (budget.gpus, budget.output_files) == (limits.gpus, limits.output_files)
    rules = {found.limit: found for found in shortfalls(limits, budget, media_seconds=1.0)}
    assert all(found.here < found.challenge for found in rules.values())
    assert ("memory" in rules) is (budget.memory < limits.memory)


def test_shortfalls_name_what_this_host_holds_lower() -> None:
    host = HostSize(cpus=2, memory=4 << 30)
    budget = budget_for(LIMITS, Ceiling(run_time=10.0), host, media_seconds=600.0)
    assert shortfalls(LIMITS, budget, media_seconds=600.0) == (
        Shortfall(limit="run time", challenge=65.0, here=10.0),
        Shortfall(limit="memory", challenge=8 << 30, here=4 << 30),
        Shortfall(limit="cpus", challenge=4.0, here=2.0),
    )
    assert shortfalls(LIMITS, budget_for(LIMITS, Ceiling(), BIG, media_seconds=1.0), media_seconds=1.0) == ()


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [("run time", 65.0, "65.0 s"), ("cpus", 2.0, "2"), ("pids", 300, "300"), ("memory", 8 << 30, "8 GiB")],
)
def test_limits_for_people(name: str, value: float, shown: str) -> None:
    assert show_limit(name, value) == shown


@pytest.mark.parametrize(
    ("cut", "repeat", "name"),
    [
        (None, 0, "full"),
        (None, 1, "repeat-1"),
        (None, 12, "repeat-12"),
        (Cut(frames=7), 0, "cut-0007"),
        (Cut(frames=12345), 0, "cut-12345"),
        (Cut(frames=7, repeat=2), 0, "cut-0007-2"),
        (Cut(frames=7, kind=CutKind.ALTERED_FUTURE), 0, "altered-0007"),
        (Cut(frames=7, kind=CutKind.ALTERED_FUTURE, repeat=1), 0, "altered-0007-1"),
    ],
)
def test_job_names(cut: Cut | None, repeat: int, name: str) -> None:
    assert job_name(cut, repeat=repeat) == name


CASE = Case(name="A", folder=Path("/data/A"), frames=("0.png", "1.png", "2.png"), fps=1.0, reference=Path("/r/A.csv"))


@pytest.fixture
def plan(make_challenge: Callable[..., Challenge], make_budget: Callable[..., Budget]) -> Callable[..., Job]:
    """Plan the same job, but for what is changed."""
    base: dict[str, Any] = {
        "submission": "team-1",
        "task_name": "steps",
        "task": make_challenge().tasks["steps"],
        "invocation": Invocation(args=("{input}", "{output}.csv")),
        "case": CASE,
        "case_hash": "h",
        "image_id": "sha256:1",
        "budget": make_budget(),
    }
    return lambda **changes: plan_job(**{**base, **changes})


def task_with(task: Task, **format_changes: Any) -> Task:
    return task.model_copy(update={"format": task.format.model_copy(update=format_changes)})


def test_a_job_says_what_is_run(plan: Callable[..., Job], make_budget: Callable[..., Budget]) -> None:
    job = plan()
    assert job == Job(
        submission="team-1", task="steps", case="A", name="full", cut=None, frames=3, image_id="sha256:1",
        arguments=("{input}", "{output}.csv"), input_mount="/data/inputs", output_mount="/data/outputs",
        expected_file="{case}.csv", budget=make_budget(), digest=job.digest,
    )  # fmt: skip
    assert len(job.digest) == 64
    assert plan().digest == job.digest


@pytest.mark.parametrize(
    ("cut", "frames"),
    [(None, 3), (Cut(frames=2), 2), (Cut(frames=2, kind=CutKind.ALTERED_FUTURE), 3)],
)
def test_frames_are_those_shown(plan: Callable[..., Job], cut: Cut | None, frames: int) -> None:
    assert plan(cut=cut).frames == frames


@pytest.mark.parametrize(
    "changes",
    [
        {"image_id": "sha256:2"},
        {"task_name": "phases"},
        {"case_hash": "other"},
        {"donor_hash": "d"},
        {"repeat": 1},
        {"cut": Cut(frames=2)},
        {"policy": COMPATIBLE},
        {"policy": policy_named(PolicyName.STRICT, runtime="runsc")},
        {"policy": policy_named(PolicyName.STRICT, processors=Processors.CPUSET)},
        {"invocation": Invocation(args=("{input}",))},
        {"invocation": Invocation(args=("{input}", "{output}.csv"), input_mount="/in")},
        {"invocation": Invocation(args=("{input}", "{output}.csv"), output_mount="/out")},
    ],
    ids=str,
)
def test_the_digest_changes_with_what_a_container_meets(plan: Callable[..., Job], changes: dict[str, Any]) -> None:
    assert plan(**changes).digest != plan().digest


@pytest.mark.parametrize("field", [field.name for field in fields(Budget)])
def test_the_digest_changes_with_every_limit(
    plan: Callable[..., Job], make_budget: Callable[..., Budget], field: str
) -> None:
    budget = make_budget()
    assert plan(budget=replace(budget, **{field: getattr(budget, field) + 1})).digest != plan().digest


def test_the_digest_tells_all_views_apart(plan: Callable[..., Job]) -> None:
    cuts = [None, *(Cut(frames=n, kind=kind, repeat=r) for n in (1, 2) for kind in CutKind for r in (0, 1))]
    assert len({plan(cut=cut).digest for cut in cuts}) == len(cuts) == 9


def test_the_digest_changes_with_the_file_and_the_contract(
    plan: Callable[..., Job], make_challenge: Callable[..., Challenge], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = plan().digest
    assert plan(task=task_with(make_challenge().tasks["steps"], file="{case}.txt")).digest != before
    monkeypatch.setattr(runner.plan, "EXECUTION_CONTRACT", 2)
    assert plan().digest != before


def test_the_digest_does_not_change_with_what_a_container_cannot_meet(
    plan: Callable[..., Job], make_challenge: Callable[..., Challenge]
) -> None:
    task = make_challenge().tasks["steps"]
    for changes in (
        {"submission": "team-2"},
        {"case": replace(CASE, name="B", folder=Path("/elsewhere"), reference=Path("/r/B.csv"), fps=25.0)},
        {"task": task.model_copy(update={"title": "T", "scorer": "other.scorer", "missing_case": "fail"})},
        {"task": task_with(task, separator=";", extra_columns="ignore")},
    ):
        assert plan(**changes).digest == plan().digest, changes


def test_open_files_and_log_are_the_policys() -> None:
    policy = replace(STRICT, open_files=99, log_bytes=5)
    budget = budget_for(LIMITS, Ceiling(), BIG, media_seconds=1.0, policy=policy)
    assert (budget.open_files, budget.log_bytes) == (99, 5)
