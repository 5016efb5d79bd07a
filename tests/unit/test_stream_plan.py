"""A streamed run as a job: who is streamed to, what the digest covers, what time it has."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from runner.budget import Budget
from runner.challenge import Challenge, InvocationMode, Limits, Pacing, Stream
from runner.dataset import frames_case
from runner.engine import ImageFacts
from runner.job import Job, Streaming
from runner.plan import HostSize, Shown, budget_for, plan_job, shared_runs, streamed
from runner.policy import STRICT
from runner.sandbox import Seat, container_spec
from runner.settings import Ceiling
from runner.submissions import Profile
from tests.unit.conftest import CHALLENGE

CASE = frames_case("A", Path("/data/A"), ("0.png", "1.png", "2.png"), fps=2.0, references={"steps": Path("/r/A.csv")})
BATCH: dict[str, Any] = {"args": ("{input}", "{output}.csv")}
STREAM: dict[str, Any] = {"answer": 3}


@pytest.fixture
def plan(make_challenge: Callable[..., Challenge], make_budget: Callable[..., Budget]) -> Callable[..., Job]:
    """Plan a job on a challenge that offers streams."""

    def make(
        profile: Profile = Profile.STREAM,
        *,
        stream: dict[str, Any] | None = None,
        invocation: dict[str, Any] | None = None,
        **sections: Any,
    ) -> Job:
        offered = {**BATCH, "stream": STREAM if stream is None else stream, **(invocation or {})}
        challenge = make_challenge(invocation=offered, **sections)
        return plan_job(
            submission="team-1", shared=shared_runs(challenge, ("steps",), profile=profile)[0], challenge=challenge,
            shown=(Shown(case=CASE, inputs="h"),), image_id="sha256:1", budget=make_budget(),
        )  # fmt: skip

    return make


@pytest.mark.parametrize(
    ("mode", "offered", "profile", "found"),
    [
        ("case", True, Profile.DEFAULT, False),
        ("case", True, Profile.STREAM, True),
        ("dataset", True, Profile.DEFAULT, False),
        ("dataset", True, Profile.STREAM, True),
        ("stream", True, Profile.DEFAULT, True),
        ("stream", True, Profile.STREAM, True),
        ("case", False, Profile.DEFAULT, False),
    ],
)
def test_who_is_streamed_to(
    make_challenge: Callable[..., Challenge], mode: str, offered: bool, profile: Profile, found: bool
) -> None:
    challenge = make_challenge(invocation={"mode": mode, "stream": STREAM if offered else None})
    assert streamed(challenge, profile) == (challenge.invocation.stream if found else None)
    (shared,) = shared_runs(challenge, ("steps",), profile=profile)
    assert (shared.stream is not None) == found


def test_a_streamed_job_says_how(plan: Callable[..., Job], make_challenge: Callable[..., Challenge]) -> None:
    job = plan()
    rule = make_challenge().tasks["steps"].format
    assert job.stream == Streaming(rule=Stream(answer=3.0), fps=2.0, formats={"steps": rule})
    assert job.stream.of(job.outputs[0]) == {"steps": rule}
    assert (job.name, job.case, job.whole, job.frames, job.arguments) == ("full", "A", False, 3, BATCH["args"])
    assert plan(Profile.DEFAULT).stream is None


def test_it_survives_being_written(plan: Callable[..., Job]) -> None:
    adapter = TypeAdapter(Job)
    job = plan()
    assert adapter.validate_json(adapter.dump_json(job)) == job


def test_one_container_has_one_case_and_no_lists(plan: Callable[..., Job]) -> None:
    offered = {"mode": InvocationMode.DATASET, "lists": {"data/{case}.txt": "{frame}.png"}}
    job = plan(invocation=offered)
    assert (job.whole, job.case, job.lists, job.outputs[0].apart) == (False, "A", {}, "")
    batch = plan(Profile.DEFAULT, invocation=offered)
    assert (batch.whole, batch.lists) == (True, {"data/{case}.txt": "{frame}.png"})


def test_an_offer_changes_nothing_for_who_does_not_take_it(
    plan: Callable[..., Job], make_challenge: Callable[..., Challenge], make_budget: Callable[..., Budget]
) -> None:
    challenge = make_challenge(invocation=BATCH)
    plain = plan_job(
        submission="team-1", shared=shared_runs(challenge, ("steps",))[0], challenge=challenge,
        shown=(Shown(case=CASE, inputs="h"),), image_id="sha256:1", budget=make_budget(),
    )  # fmt: skip
    assert plan(Profile.DEFAULT).digest == plan(Profile.DEFAULT, stream={"answer": 99}).digest == plain.digest
    assert plan().digest != plain.digest


FORMAT = CHALLENGE["tasks"]["steps"]["format"]


@pytest.mark.parametrize(
    "changes",
    [
        {"stream": {"answer": 4}},
        {"stream": {**STREAM, "start_up": 4}},
        {"stream": {**STREAM, "frames": ("inline",)}},
        {"stream": {**STREAM, "pacing": "realtime", "before_first": {"step": 0}}},
        {"cases": {**CHALLENGE["cases"], "fps": 3}},
        {"tasks": {"steps": {**CHALLENGE["tasks"]["steps"], "format": {**FORMAT, "index": {"column": "u"}}}}},
        {"tasks": {"steps": {**CHALLENGE["tasks"]["steps"], "format": {**FORMAT, "separator": ";"}}}},
    ],
    ids=str,
)
def test_the_digest_changes_with_the_stream_and_what_its_answers_are_made_into(
    plan: Callable[..., Job], changes: dict[str, Any]
) -> None:
    assert plan(**changes).digest != plan().digest


@pytest.mark.parametrize(
    ("run_time", "ceiling", "expected"), [(60.0, None, 60.0), (1.0, None, 4.5), (1.0, 4.0, 4.0), (60.0, 4.0, 4.0)]
)
def test_at_the_cameras_pace_a_case_has_the_time_it_is_long(
    run_time: float, ceiling: float | None, expected: float
) -> None:
    """Three frames at two a second, and the three seconds that the last answer may take; the host's ceiling holds."""
    limits = Limits.model_validate({**CHALLENGE["limits"], "run_time": {"fixed": run_time}})
    realtime = Stream(answer=3.0, pacing=Pacing.REALTIME, before_first={"step": 0})
    host, most = HostSize(cpus=8, memory=1 << 40), Ceiling(run_time=ceiling)
    for stream, due in ((realtime, expected), (Stream(), min(run_time, ceiling or run_time)), (None, None)):
        found = budget_for(limits, most, host, media_seconds=CASE.media_seconds, stream=stream)
        assert found.run_time == (min(run_time, ceiling or run_time) if due is None else due)


def test_tasks_that_share_a_run_share_a_stream(make_challenge: Callable[..., Challenge]) -> None:
    own = CHALLENGE["tasks"]["steps"]
    tasks = {"a": own, "b": own, "c": {**own, "format": {**FORMAT, "file": "c-{case}.csv"}}}
    challenge = make_challenge(invocation={"stream": STREAM}, tasks=tasks)
    (shared,) = shared_runs(challenge, tuple(tasks), profile=Profile.STREAM)
    assert shared.names == ("a", "b", "c")
    stream = Streaming(rule=Stream(), fps=2.0, formats={name: challenge.tasks[name].format for name in tasks})
    job = plan_job(
        submission="t", shared=shared, challenge=challenge, shown=(Shown(case=CASE, inputs="h"),), image_id="i",
        budget=Budget(run_time=1, memory=1, shm=1, cpus=1, gpus=0, pids=1, output_bytes=1, output_files=1, tmp=1,
                      open_files=1, log_bytes=1),
    )  # fmt: skip
    assert [list(stream.of(output)) for output in job.outputs] == [["a", "b"], ["c"]]


def test_only_a_streamed_container_has_an_open_input(plan: Callable[..., Job]) -> None:
    seat = Seat(name="n", labels={}, uid=1, gid=1, view=Path("/v"), input_name="c", output=Path("/o"))
    for profile in Profile:
        spec = container_spec(policy=STRICT, job=plan(profile), image=ImageFacts(id="sha256:1"), seat=seat)
        assert spec.stdin == (profile is Profile.STREAM)
        assert spec.command == ("/data/inputs/c", "/data/outputs/c.csv")
