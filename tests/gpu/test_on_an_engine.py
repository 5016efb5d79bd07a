"""GPUs on a real engine: the devices a container gets, whose turn it is, and what a lost one costs.

Played with a stand-in of NVIDIA's toolkit on a private engine and a stand-in of its driver. No card, no driver, no
toolkit of NVIDIA's has taken part; CDI needs a newer engine and is not played at all.
"""

import itertools
import json
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from runner.budget import GpuUsage
from runner.pipeline.evaluate import evaluate
from runner.pipeline.events import Event, HostFailed, Notice
from runner.pipeline.record import EvaluateRequest
from tests.drills.daemon import until
from tests.gpu.conftest import Stage
from tests.gpu.entry import stand_in
from tests.gpu.stand_in import GIB, host_of

pytestmark = [pytest.mark.engine, pytest.mark.root]

HELD = "GPU-0"


class TestGiven:
    @pytest.mark.parametrize(
        ("asked", "access"),
        [("auto", "nvidia-runtime"), ("device-request", "device-request")],
    )
    def test_a_container_gets_the_held_device_and_no_other_whatever_its_image_says(
        self, stage: Stage, asked: str, access: str
    ) -> None:
        out = stage.folder / "run"
        ran = stage.evaluate(out, "plain", "hostile", gpu_access=asked).wait()
        assert ran.code == 0, ran.err
        record = json.loads((out / "run.json").read_text())
        assert (record["host"]["gpu_access"], record["host"]["gpus"]) == (access, ["GPU-0", "GPU-1"])
        runs = [(name, case) for name in ("hostile", "plain") for case in ("01", "02")]
        assert stage.words(out) == dict.fromkeys(runs, "accepted")
        assert stage.seen(out) == {run: ["nvidia0"] for run in runs}
        given = [one for one in stage.toolkit.given().values() if one.environment.get("PROCTOR_TASK") == "steps"]
        assert [one.devices for one in given] == [(HELD,)] * 4
        hostile = [one.environment for one in given if "NVIDIA_GDS" in one.environment]
        assert len(hostile) == 2
        for environment in hostile:
            names = ("NVIDIA_", "CUDA_", "LD_", "DOCKER_RESOURCE_")
            told = {name: value for name, value in environment.items() if name.startswith(names)}
            told.pop("CUDA_CACHE_PATH", None)
            assert told == {
                "NVIDIA_VISIBLE_DEVICES": HELD, "DOCKER_RESOURCE_GPU": HELD, "CUDA_VISIBLE_DEVICES": "0",
                "NVIDIA_DRIVER_CAPABILITIES": "compute,utility", "NVIDIA_DISABLE_REQUIRE": "true",
                "NVIDIA_REQUIRE_CUDA": "", "NVIDIA_MIG_CONFIG_DEVICES": "", "NVIDIA_MIG_MONITOR_DEVICES": "",
                "NVIDIA_IMEX_CHANNELS": "", "NVIDIA_GDS": "", "CUDA_VERSION": "12.4", "LD_AUDIT": "",
                "LD_LIBRARY_PATH": "/opt/lib",
            }  # fmt: skip

    def test_the_hostile_image_would_get_all_without_us(self, stage: Stage) -> None:
        """The control: the stand-in believes an image as the real toolkit does."""
        api = stage.daemon.api()
        container = api.create_container(stage.images["hostile"], ["/dev"], host_config={"Runtime": "nvidia"})["Id"]
        api.start(container)
        api.wait(container)
        api.remove_container(container)
        api.close()
        assert stage.toolkit.given()[container].devices == ("GPU-0", "GPU-1")

    def test_a_job_that_is_due_none_gets_none_even_where_every_container_runs_in_nvidias_runtime(
        self, stage: Stage
    ) -> None:
        out = stage.folder / "run"
        ran = stage.evaluate(out, "hostile", gpus=0, runtime="nvidia").wait()
        assert ran.code == 0, ran.err
        assert stage.seen(out) == {("hostile", "01"): [], ("hostile", "02"): []}
        given = stage.toolkit.given().values()
        assert {one.environment["NVIDIA_VISIBLE_DEVICES"] for one in given} == {"void"}
        assert {one.devices for one in given} == {()}
        assert {one.environment["DOCKER_RESOURCE_GPU"] for one in given if "NVIDIA_GDS" in one.environment} == {"void"}

    def test_a_job_of_two_gets_two(self, stage: Stage) -> None:
        out = stage.folder / "run"
        ran = stage.evaluate(out, "plain", gpus=2).wait()
        assert ran.code == 0, ran.err
        assert stage.seen(out) == {("plain", "01"): ["nvidia0", "nvidia1"], ("plain", "02"): ["nvidia0", "nvidia1"]}


class TestRefused:
    @pytest.mark.parametrize(
        ("gives", "why"),
        [
            ("all", "a container sees GPUs that its job does not hold: /dev/nvidia1"),
            ("none", "a container does not see the GPU its job holds: /dev/nvidia0"),
        ],
    )
    def test_a_toolkit_that_gives_others_or_none_is_found_out_before_anybody_runs(
        self, stage: Stage, gives: str, why: str
    ) -> None:
        stage.toolkit.give(gives)
        out = stage.folder / "run"
        ran = stage.evaluate(out, "plain").wait()
        assert ran.code == 3
        assert why in " ".join(ran.err.split())
        assert stage.words(out) == {}
        doctor = stage.begin("doctor", "--json").wait()
        assert doctor.code == 3
        findings = {f["name"]: f for f in json.loads(doctor.out)}
        assert findings["GPU access"]["state"] == "problem"
        assert findings["GPU access"]["sentence"] == f"by nvidia-runtime (gpu_access: auto): {why}"

    def test_too_few_cards_are_refused_and_check_goes_on(self, stage: Stage) -> None:
        out = stage.folder / "run"
        ran = stage.evaluate(out, "plain", gpus=2, cards=1).wait()
        assert ran.code == 3
        assert "the challenge asks for 2 GPU and this host has 1 that can be used" in " ".join(ran.err.split())
        checked = stage.begin(
            "check", stage.images["plain"], "--challenge", stage.challenge(1), "--task", "steps", cards=0
        ).wait()
        assert checked.code == 0, checked.out + checked.err
        assert checked.out.splitlines()[-1].startswith("accepted, not tested: GPU, run time")
        with_one = stage.begin(
            "check", stage.images["plain"], "--challenge", stage.challenge(1), "--task", "steps", "--require-gpu"
        )
        assert "GPU" not in with_one.wait().out.splitlines()[-1]

    @pytest.mark.parametrize(
        ("access", "why"),
        [("cdi", "gpu_access is 'cdi' and Docker Engine 20.10"), ("nvidia-runtime", "runtime is 'runc'")],
    )
    def test_a_way_the_engine_does_not_offer_is_refused(self, stage: Stage, access: str, why: str) -> None:
        if access == "cdi" and not stage.daemon.api().version()["Version"].startswith("20.10"):
            pytest.fail("this engine may offer CDI: play it")
        ran = stage.evaluate(stage.folder / "run", "plain", gpu_access=access, runtime="runc").wait()
        assert ran.code == 3
        assert why in " ".join(ran.err.split())

    def test_the_doctor_names_the_cards_and_the_way(self, stage: Stage) -> None:
        ran = stage.begin("doctor", "--json").wait()
        rows = json.loads(ran.out)
        assert [row["sentence"] for row in rows if row["name"].startswith("GPU")] == [
            f"GPU-{number}: Stand-in 16 GB, 16 GiB, compute capability 8.0, driver 550.54, CUDA 12.4, 15 GiB free"
            for number in (0, 1)
        ] + [
            "by nvidia-runtime (gpu_access: auto): a container gets the GPU its job holds, and none where it holds none"
        ]


class TestTurns:
    def test_two_runners_take_turns_on_one_card(self, stage: Stage) -> None:
        outs = [stage.folder / name for name in ("one", "two")]
        first = stage.evaluate(outs[0], "holds", cards=1)
        first.wait_until_held(stage)
        second = stage.evaluate(outs[1], "plain", cards=1)
        until(lambda: "other jobs hold the GPUs of this host" in second.err, "the notice")
        assert second.process.poll() is None
        assert len(stage.running()) == 1
        stage.let_go()
        ran = [play.wait() for play in (first, second)]
        assert [one.code for one in ran] == [0, 0], ran
        assert stage.words(outs[0]) == {("holds", "01"): "accepted", ("holds", "02"): "accepted"}
        assert stage.words(outs[1]) == {("plain", "01"): "accepted", ("plain", "02"): "accepted"}
        spells = sorted(stage.spells(), key=lambda spell: spell.began)
        assert len(spells) == 6  # a probe and two cases each
        assert all(before.ended < after.began for before, after in itertools.pairwise(spells))

    def test_more_jobs_than_cards_wait_in_one_runner_too(self, stage: Stage) -> None:
        out = stage.folder / "run"
        ran = stage.evaluate(out, "plain", cards=1, jobs="2").wait()
        assert ran.code == 0, ran.err
        assert set(stage.words(out).values()) == {"accepted"}
        spells = sorted(stage.spells(), key=lambda spell: spell.began)
        assert len(spells) == 3
        assert all(before.ended < after.began for before, after in itertools.pairwise(spells))

    def test_two_runners_use_two_cards_at_once(self, stage: Stage) -> None:
        plays = [stage.evaluate(stage.folder / name, "holds") for name in ("one", "two")]
        plays[0].wait_until_held(stage, containers=2)
        given = stage.toolkit.given()
        assert sorted(given[name].devices for name in stage.holding()) == [("GPU-0",), ("GPU-1",)]
        stage.let_go()
        assert [play.wait().code for play in plays] == [0, 0]

    def test_a_killed_holder_frees_its_card(self, stage: Stage) -> None:
        one, two = stage.folder / "one", stage.folder / "two"
        holder = stage.evaluate(one, "holds", cards=1)
        holder.wait_until_held(stage)
        heir = stage.evaluate(two, "plain", cards=1)
        until(lambda: "other jobs hold the GPUs" in heir.err, "the notice")
        holder.process.send_signal(signal.SIGKILL)
        holder.process.wait()
        ran = heir.wait()
        assert ran.code == 0, ran.err
        assert set(stage.words(two).values()) == {"accepted"}

    def test_whoever_waits_can_be_interrupted(self, stage: Stage) -> None:
        holder = stage.evaluate(stage.folder / "one", "holds", cards=1)
        holder.wait_until_held(stage)
        waits = stage.evaluate(stage.folder / "two", "plain", cards=1)
        until(lambda: "other jobs hold the GPUs" in waits.err, "the notice")
        waits.process.send_signal(signal.SIGINT)
        assert waits.wait().code == 130
        assert len(stage.running()) == 1
        stage.let_go()
        assert holder.wait().code == 0


class TestSampledAndLost:
    def test_what_was_sampled_is_kept_and_reported(self, stage: Stage) -> None:
        out = stage.folder / "run"
        ran = stage.evaluate(out, "plain").wait()
        assert ran.code == 0, ran.err
        (usage,) = stage.results(out)["plain", "01"].usage.gpus
        assert usage == GpuUsage(
            device="GPU-0", name="Stand-in 16 GB", peak_memory=1 * GIB, peak_utilisation=80, mean_utilisation=80.0,
            joules=50.0 * (usage.samples - 1), counted=True, samples=usage.samples, every=0.2,
        )  # fmt: skip
        assert usage.samples >= 2
        page = (out / "report.organiser.html").read_text()
        assert "at least 1 GiB" in page
        assert "sampled every 200 ms" in page

    def test_a_card_lost_under_a_job_costs_a_second_attempt_on_another(self, stage: Stage) -> None:
        out, nvml, events = stage.folder / "run", stand_in(2), list[Event]()

        def play() -> None:
            until(lambda: bool(stage.holding()), "the program that holds")
            (first,) = stage.holding()
            nvml.lost.add("GPU-0")
            until(lambda: bool(set(stage.holding()) - {first}), "the program that holds on another card")
            stage.let_go()

        request = EvaluateRequest(
            challenge=str(stage.challenge(1)), data=stage.data, submissions=stage.submissions("holds"), out=out,
            settings_file=stage.settings(), flags={"workspace": str(stage.workspace)}, allow_cpu=False, seed=5,
        )  # fmt: skip
        with ThreadPoolExecutor(1) as threads:
            playing = threads.submit(play)
            evaluate(
                request, connect=lambda _: stage.daemon.engine(), stop=threading.Event(), observe=events.append,
                gpus=host_of(nvml, stage.leases),
            )  # fmt: skip
            playing.result(timeout=60)
        sentence = "GPU-0 was lost while a job held it: GPU is lost"
        failed = [event for event in events if isinstance(event, HostFailed)]
        assert [(event.case, event.again) for event in failed] == [("02", True)]
        assert sentence in failed[0].text
        notices = [event.text for event in events if isinstance(event, Notice)]
        assert f"{sentence}; it is not used for the rest of this run" in notices
        assert stage.words(out) == {("holds", "01"): "accepted", ("holds", "02"): "accepted"}
        results = stage.results(out)
        assert [results["holds", case].usage.gpus[0].device for case in ("01", "02")] == ["GPU-0", "GPU-1"]
        assert stage.seen(out)["holds", "02"] == ["nvidia1"]
        assert nvml.opened == 0
