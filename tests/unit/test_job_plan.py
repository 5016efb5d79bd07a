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
from runner.challenge import Challenge, Invocation, InvocationMode, Limits
from runner.dataset import frames_case
from runner.job import EXECUTION_CONTRACT, Cut, CutKind, Job, Output
from runner.plan import (
    HostSize,
    Shortfall,
    Shown,
    budget_for,
    job_name,
    plan_job,
    shared_runs,
    shortfalls,
    show_limit,
)
from runner.policy import COMPATIBLE, STRICT, PolicyName, Processors, policy_named
from runner.settings import Ceiling
from runner.submissions import slug_of

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


def test_names_of_jobs_of_a_data_set() -> None:
    clip = Cut(frames=300, kind=CutKind.CLIP, repeat=1)
    assert [job_name(None, repeat=repeat, alone=True) for repeat in (0, 1)] == ["alone", "alone-1"]
    assert [job_name(clip, alone=True), job_name(clip, every=True)] == ["clip-0300-1", "clip-run-1"]
    assert [job_name(Cut(frames=7, repeat=repeat), every=True) for repeat in (0, 2)] == ["cut-run", "cut-run-2"]


CASE = frames_case("A", Path("/data/A"), ("0.png", "1.png", "2.png"), fps=1.0, references={"steps": Path("/r/A.csv")})


def challenge_with(make_challenge: Callable[..., Challenge], **task: Any) -> Challenge:
    """The challenge, with some keys of its task changed; those of its format by ``format_…``."""
    challenge = make_challenge()
    own = challenge.tasks["steps"]
    rule = {key.removeprefix("format_"): task.pop(key) for key in list(task) if key.startswith("format_")}
    changed = own.model_copy(update={**task, "format": own.format.model_copy(update=rule)})
    return challenge.model_copy(update={"tasks": {"steps": changed}})


@pytest.fixture
def plan(make_challenge: Callable[..., Challenge], make_budget: Callable[..., Budget]) -> Callable[..., Job]:
    """Plan the same job, but for what is changed."""

    def make(challenge: Challenge | None = None, invocation: Invocation | None = None, **changes: Any) -> Job:
        challenge = challenge or make_challenge()
        if invocation is not None:
            challenge = challenge.model_copy(update={"invocation": invocation})
        base: dict[str, Any] = {
            "submission": "team-1",
            "shared": shared_runs(challenge, ("steps",))[0],
            "challenge": challenge,
            "shown": (Shown(case=CASE, inputs="h"),),
            "image_id": "sha256:1",
            "budget": make_budget(),
        }
        return plan_job(**{**base, **changes})

    return make


def test_a_job_says_what_is_run(plan: Callable[..., Job], make_budget: Callable[..., Budget]) -> None:
    job = plan()
    assert job == Job(
        submission="team-1", task="steps", case="A", name="full", frames=3, image_id="sha256:1",
        arguments=("{input}", "{output}.csv"), told="steps", places={"frames": "{case}"},
        input_mount="/data/inputs", output_mount="/data/outputs",
        outputs=(Output(case="A", file="{case}.csv", frames=3),), budget=make_budget(), digest=job.digest,
    )  # fmt: skip
    assert len(job.digest) == 64
    assert plan().digest == job.digest


@pytest.mark.parametrize(
    ("cut", "frames"),
    [(None, 3), (Cut(frames=2), 2), (Cut(frames=2, kind=CutKind.ALTERED_FUTURE), 3)],
)
def test_frames_are_those_shown(plan: Callable[..., Job], cut: Cut | None, frames: int) -> None:
    assert plan(shown=(Shown(case=CASE, inputs="h", cut=cut),)).frames == frames


@pytest.mark.parametrize(
    "changes",
    [
        {"image_id": "sha256:2"},
        {"shown": (Shown(case=CASE, inputs="other"),)},
        {"shown": (Shown(case=CASE, inputs="h", donor="d"),)},
        {"shown": (Shown(case=CASE, inputs="h", earlier="e"),)},
        {"repeat": 1},
        {"shown": (Shown(case=CASE, inputs="h", cut=Cut(frames=2)),)},
        {"policy": COMPATIBLE},
        {"policy": policy_named(PolicyName.STRICT, runtime="runsc")},
        {"policy": policy_named(PolicyName.STRICT, processors=Processors.CPUSET)},
        {"invocation": Invocation(args=("{input}",))},
        {"invocation": Invocation(args=("{input}", "{output}.csv"), input_mount="/in")},
        {"invocation": Invocation(args=("{input}", "{output}.csv"), output_mount="/out")},
        {"invocation": Invocation(args=("{input}", "{output}.csv"), command=("sh",))},
        {"invocation": Invocation(args=("{input}", "{output}.csv"), environment={"A": "1"})},
        {"invocation": Invocation(args=("{input}", "{output}.csv"), lists={"all.txt": "{case}"})},
        {"invocation": Invocation(args=("{input}", "{output}.csv"), mode=InvocationMode.DATASET)},
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
    jobs = [plan(shown=(Shown(case=CASE, inputs="h", cut=cut),)) for cut in cuts]
    altered = Cut(frames=1, kind=CutKind.ALTERED_FUTURE)
    jobs.append(plan(shown=(Shown(case=CASE, inputs="h", cut=altered, length=2),)))
    assert len({job.digest for job in jobs}) == len(jobs) == 14


def test_the_digest_changes_with_the_file_the_task_and_the_contract(
    plan: Callable[..., Job], make_challenge: Callable[..., Challenge], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = plan()
    assert plan(challenge_with(make_challenge, format_file="{case}.txt")).digest != before.digest
    renamed = replace(shared_runs(make_challenge(), ("steps",))[0], names=("phases",))
    assert plan(shared=renamed).digest != before.digest
    monkeypatch.setattr(runner.plan, "EXECUTION_CONTRACT", EXECUTION_CONTRACT + 1)
    assert plan().digest != before.digest


def test_the_digest_does_not_change_with_what_a_container_cannot_meet(
    plan: Callable[..., Job], make_challenge: Callable[..., Challenge]
) -> None:
    elsewhere = frames_case("B", Path("/elsewhere"), CASE.frames, fps=25.0, references={"steps": Path("/r/B.csv")})
    for changes in (
        {"submission": "team-2"},
        {"shown": (Shown(case=elsewhere, inputs="h"),)},
        {"challenge": challenge_with(make_challenge, title="T", scorer="other.scorer", missing_case="fail")},
        {"challenge": challenge_with(make_challenge, format_separator=";", format_extra_columns="ignore")},
    ):
        assert plan(**changes).digest == plan().digest, changes


def test_a_data_set_is_one_job_with_a_prediction_a_case(
    plan: Callable[..., Job], make_challenge: Callable[..., Challenge]
) -> None:
    other = frames_case("Video 2", Path("/data/2"), ("0.png",), fps=1.0, references={"steps": Path("/r/2.csv")})
    shown = (Shown(case=CASE, inputs="h"), Shown(case=other, inputs="i"))
    job = plan(make_challenge(invocation={"mode": "dataset"}), shown=shown)
    assert (job.case, job.cases, job.frames, job.whole) == ("data set", ("A", "Video 2"), 4, True)
    assert [output.kept for output in job.outputs] == [
        f"{slug_of('A')}/prediction.csv", f"{slug_of('Video 2')}/prediction.csv"
    ]  # fmt: skip
    assert (job.of(1).case, job.of(1).frames, job.of(1).outputs) == ("Video 2", 1, job.outputs[1:])


def test_a_prediction_with_a_file_a_frame(plan: Callable[..., Job], make_challenge: Callable[..., Challenge]) -> None:
    challenge = challenge_with(make_challenge, format_file="{case}/{frame}.png")
    for cut, names in ((None, ("0.png", "1.png", "2.png")), (Cut(frames=1), ("0.png",))):
        (output,) = plan(challenge, shown=(Shown(case=CASE, inputs="h", cut=cut),)).outputs
        assert (output.path, output.names, output.kept, output.shown) == ("{case}", names, "prediction", "<case>/")


SEVERAL = {
    "video": {"kind": "video", "path": "v/{case}.mp4"},
    "kinematics": {"kind": "table", "path": "k/{case}.tsv"},
}


@pytest.mark.parametrize(
    ("args", "tasks", "groups"),
    [
        ((), {"a": {}, "b": {}}, [("a", "b")]),
        ((), {"a": {}, "b": {"inputs": ["video"]}, "c": {}}, [("a", "c"), ("b",)]),
        ((), {"a": {"inputs": ["video", "kinematics"]}, "b": {}}, [("a", "b")]),
        (("{task}",), {"a": {}, "b": {}}, [("a",), ("b",)]),
        ((), {"a": {"file": "{task}/{case}.csv"}, "b": {"file": "{task}/{case}.csv"}}, [("a",), ("b",)]),
        ((), {"a": {"file": "a-{case}.csv"}, "b": {"file": "b-{case}.csv"}}, [("a", "b")]),
        ((), {"a": {}, "b": {"inputs_from": ["a"]}, "c": {"inputs_from": ["a"]}}, [("a",), ("b",), ("c",)]),
    ],
)
def test_tasks_that_a_container_cannot_tell_apart_share_a_run(
    make_challenge: Callable[..., Challenge],
    args: tuple[str, ...],
    tasks: dict[str, Any],
    groups: list[tuple[str, ...]],
) -> None:
    task = make_challenge().tasks["steps"].model_dump(mode="json")
    written = {
        name: {**task, **own, "format": {**task["format"], "file": own.pop("file", "{case}.csv")}}
        for name, own in ((name, dict(own)) for name, own in tasks.items())
    }
    for name, one in written.items():
        one.pop("file", None)
        del name
    challenge = make_challenge(
        cases={"inputs": SEVERAL, "references": "r/{case}.csv", "fps": 30}, invocation={"args": args}, tasks=written,
    )  # fmt: skip
    assert [shared.names for shared in shared_runs(challenge, tuple(tasks))] == groups
    assert shared_runs(challenge, ("b",))[0].names == ("b",)


def test_open_files_and_log_are_the_policys() -> None:
    policy = replace(STRICT, open_files=99, log_bytes=5)
    budget = budget_for(LIMITS, Ceiling(), BIG, media_seconds=1.0, policy=policy)
    assert (budget.open_files, budget.log_bytes) == (99, 5)


OTHER = frames_case("B", Path("/data/B"), ("0.png", "1.png"), fps=1.0, references={"steps": Path("/r/B.csv")})


def test_in_a_data_set_each_case_has_its_own_cut(
    plan: Callable[..., Job], make_challenge: Callable[..., Challenge]
) -> None:
    challenge = make_challenge(invocation={"mode": "dataset"})

    def job(one: Cut | None, other: Cut | None, below: str = "") -> Job:
        shown = (Shown(case=CASE, inputs="h", cut=one), Shown(case=OTHER, inputs="i", cut=other))
        return plan(challenge, shown=shown, below=below)

    both = job(Cut(frames=2), Cut(frames=1))
    assert (both.name, both.case, both.frames) == ("cut-run", "data set", 3)
    assert both.cuts == {"A": Cut(frames=2), "B": Cut(frames=1)}
    assert [output.frames for output in both.outputs] == [2, 1]
    one = job(None, Cut(frames=1), "B")
    assert (one.name, one.case, one.frames, one.cuts) == ("cut-0001", "B", 4, {"B": Cut(frames=1)})
    assert len({both.digest, one.digest, job(Cut(frames=1), Cut(frames=1)).digest, job(None, None).digest}) == 4
    assert job(None, None).digest == job(None, None, "A").digest


def test_a_data_set_of_one_case_is_kept_below_it(
    plan: Callable[..., Job], make_challenge: Callable[..., Challenge]
) -> None:
    challenge = make_challenge(invocation={"mode": "dataset"})
    shown = (Shown(case=CASE, inputs="h"),)
    alone = plan(challenge, shown=shown, below="A", repeat=2)
    assert (alone.name, alone.case, alone.whole, alone.cuts) == ("alone-2", "A", True, {})
    assert alone.outputs[0].kept == f"{slug_of('A')}/prediction.csv"
