"""One job on the simulated engine: what comes of every way it can end, and that nothing is ever left behind."""

import math
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner import mounts, watched
from runner.budget import Budget, Usage
from runner.cleaner import Cleaner
from runner.clock import SimulatedClock
from runner.dataset import Case
from runner.engine import (
    ContainerFacts,
    ContainerSpec,
    EngineRefusal,
    EngineUnreachable,
    Exit,
    GpuRequest,
    ImageMissing,
    RefusalPhase,
)
from runner.engine.fake import FakeBox, FakeEngine, FakeExit, FakeProgram
from runner.errors import HostFault, HostUnfit, Interrupted
from runner.execute import Bench, run_job
from runner.gpu.access import GpuAccess
from runner.gpu.discovery import find_gpus
from runner.gpu.energy import EnergyZone
from runner.gpu.pool import GpuPool
from runner.inputs import CaseView
from runner.job import Cut, CutKind, Intake, IntakeRefusal, Job, JobResult, KillReason, Output
from runner.lease import Leases
from runner.ownership import LABEL_OWNER, LABEL_RUN, Owner
from runner.tally import Tally
from runner.workspace import Workspace
from tests.gpu.stand_in import GIB, StandIn, card, host_of

OWNER = Owner(machine="m", boot="b", pid_namespace="1", pid=7, started="8")
CREATE, START = RefusalPhase.CREATE, RefusalPhase.START
DOWN = EngineUnreachable("the engine does not answer")


class Scripted(FakeEngine):
    """A fake whose methods can be made to do something first, for the participants' containers only."""

    def __init__(self, clock: SimulatedClock) -> None:
        super().__init__(clock)
        self.clock = clock
        self.before: dict[str, Callable[[str], None]] = {}
        self.after: dict[str, Callable[[str], None]] = {}
        self.deaf_to_kill = False
        self._theirs: set[str] = set()

    def _call(self, hooks: dict[str, Callable[[str], None]], method: str, container: str) -> None:
        if method in hooks and container in self._theirs:
            hooks[method](container)

    def create(self, spec: ContainerSpec) -> str:
        theirs = not spec.name.endswith("-hold")
        if theirs:
            self._theirs.add(spec.name)
        self._call(self.before, "create", spec.name)
        container = super().create(spec)
        if theirs:
            self._theirs.add(container)
        self._call(self.after, "create", spec.name)
        return container

    def start(self, container: str) -> None:
        self._call(self.before, "start", container)
        super().start(container)
        self._call(self.after, "start", container)

    def inspect(self, container: str) -> ContainerFacts | None:
        self._call(self.before, "inspect", container)
        return super().inspect(container)

    def kill(self, container: str) -> None:
        self._call(self.before, "kill", container)
        if not self.deaf_to_kill:
            super().kill(container)

    def logs(self, container: str, *, lines: int, max_bytes: int) -> bytes:
        self._call(self.before, "logs", container)
        return super().logs(container, lines=lines, max_bytes=max_bytes)

    def remove(self, container: str) -> None:
        self._call(self.before, "remove", container)
        super().remove(container)


class Host:
    """A host with a simulated engine, on which one job is run at a time unless a test nests them."""

    def __init__(self, folder: Path, case: Case, job: Job) -> None:
        self.clock = SimulatedClock()
        self.engine = Scripted(self.clock)
        self.folder, self.case, self.job = folder, case, job
        self.work = folder / "work"
        self.work.mkdir()
        self.leases = Leases(folder=folder / "leases")
        self.bench = Bench(
            engine=self.engine, clock=self.clock, workspace=Workspace(folder=self.work), leases=self.leases,
            owner=OWNER, run_token="run-1", stop=threading.Event(),
            helper=self.engine.add_image("helper", lambda _: FakeExit(seconds=math.inf)),
        )  # fmt: skip
        self.runs = 0

    def run(
        self, program: FakeProgram, *, view: CaseView | None = None, bench: Bench | None = None, **job: Any
    ) -> JobResult:
        """Run a program as the participant's."""
        self.runs += 1
        name = f"team-{self.runs}"
        image = self.engine.image(self.engine.add_image(name, program))
        self.out = self.folder / name
        self.out.mkdir()
        changed = replace(self.job, image_id=image.id, **job)
        return run_job(
            bench or self.bench,
            changed,
            {self.case.name: view or CaseView(case=self.case)},
            image=image,
            attempt=3,
            folder=self.out,
        )

    def fault(self, program: FakeProgram, **job: Any) -> HostFault:
        """Run a program and expect that the host is to blame."""
        with pytest.raises(HostFault) as caught:
            self.run(program, **job)
        return caught.value

    @property
    def spec(self) -> ContainerSpec:
        """What the engine was told of the last container of a participant."""
        return next(spec for spec in reversed(self.engine.created) if not spec.name.endswith("-hold"))

    def assert_clean(self) -> None:
        """Nothing is left: no container, no volume, no desk, no mount, no lease."""
        assert self.engine.containers(LABEL_OWNER) == ()
        assert self.engine.volumes(LABEL_OWNER) == ()
        assert [path.name for path in self.work.iterdir() if not path.name.startswith("blank-")] == []
        assert mounts.mounted_below(self.folder) == ()
        with self.leases.first_free(iter(["uid-200000"])) as name:
            assert name == "uid-200000"


@pytest.fixture
def host(tmp_path: Path, make_case: Callable[..., Case], make_job: Callable[..., Job]) -> Iterator[Host]:
    """A host; after every test that uses it, nothing may be left."""
    host = Host(tmp_path, make_case(), make_job())
    yield host
    host.assert_clean()
    host.engine.close()


def write(box: FakeBox, text: str = "t,step\n") -> None:
    box.path(box.arguments[1]).write_text(text)


def good(box: FakeBox) -> FakeExit:
    write(box)
    return FakeExit(seconds=10.0)


def ends(code: int = 0, *, seconds: float = 10.0, oom: bool = False) -> FakeProgram:
    def program(box: FakeBox) -> FakeExit:
        write(box)
        return FakeExit(code=code, seconds=seconds, oom_killed=oom)

    return program


def forever(_: FakeBox) -> FakeExit:
    return FakeExit(seconds=math.inf)


class TestNormal:
    def test_the_facts_of_a_good_run(self, host: Host) -> None:
        result = host.run(good)
        name = result.neutral_name
        assert len(name) == 16
        assert result == JobResult(
            job="full", digest="d1", attempt=3, exit=Exit(code=0, oom_killed=False, seconds=10.0), refusal="",
            killed=None, intake=Intake(file=f"{name}.csv", size=7), log_truncated=False, neutral_name=name, notes=(),
            usage=Usage(
                engine_seconds=10.0, monotonic_seconds=10.0, output_bytes=7, alone=True
            ),
        )  # fmt: skip
        assert (host.out / "predictions" / "prediction.csv").read_text() == "t,step\n"
        assert sorted(path.name for path in host.out.iterdir()) == ["log.txt", "predictions"]

    def test_a_short_run_is_seen_to_end_at_once(self, host: Host) -> None:
        usage = host.run(ends(seconds=0.05)).usage
        assert usage.monotonic_seconds == 0.05

    @pytest.mark.parametrize(
        ("code", "oom"),
        [(0, True), (1, False), (1, True), (126, False), (127, False), (137, True), (137, False), (143, False),
         (153, False), (255, False)],
    )  # fmt: skip
    def test_exit_codes_are_facts_and_the_file_is_taken_all_the_same(self, host: Host, code: int, oom: bool) -> None:
        result = host.run(ends(code, oom=oom))
        assert result.exit == Exit(code=code, oom_killed=oom, seconds=10.0)
        assert (result.killed, result.intake) == (None, Intake(file=f"{result.neutral_name}.csv", size=7))

    @pytest.mark.parametrize("helper", [True, False], ids=["volume", "watched"])
    def test_what_no_output_of_the_job_is_counts_once_for_all_of_them(self, host: Host, helper: bool) -> None:
        def leave(box: FakeBox) -> int:
            write(box)
            folder = box.path("/data/outputs")
            for name in ("first", "second", "third"):
                (folder / name).mkdir()
                (folder / name / f"{box.arguments[1].rpartition('/')[2]}").write_text("x")
            (folder / "first" / "note.txt").touch()
            return 0

        outputs = tuple(Output(case=host.case.name, file=file) for file in ("first/{case}.csv", "second/{case}.csv"))
        bench = host.bench if helper else replace(host.bench, helper="", watched=True)
        result = host.run(leave, bench=bench, outputs=outputs)
        assert result.intake is not None
        # The file at the top, the note in the first folder, and the third folder with what is in it.
        assert [(intake.refusal, intake.stray) for intake in (result.intake, *result.further)] == [(None, 3)] * 2

    def test_what_the_program_is_given(self, host: Host, make_case: Callable[..., Case]) -> None:
        seen: dict[str, object] = {}

        def look(box: FakeBox) -> int:
            folder = box.path(box.arguments[0])
            seen.update({path.name: path.read_text() for path in folder.iterdir()})
            seen["output"] = list(box.path("/data/outputs").iterdir())
            seen["siblings"] = [path.name for path in folder.parent.iterdir()]
            seen["desk"] = sorted(len(path.name) for path in folder.parent.parent.iterdir())
            return 0

        altered = Cut(frames=2, kind=CutKind.ALTERED_FUTURE)
        view = CaseView(case=host.case, donor=make_case("DONOR", frames=9), cut=altered)
        result = host.run(look, view=view, cuts={host.case.name: altered})
        name = result.neutral_name
        assert seen == {
            "000.png": "PATIENT-07:0", "001.png": "PATIENT-07:1", "002.png": "DONOR:6", "003.png": "DONOR:7",
            "output": [], "siblings": [name], "desk": [16],
        }  # fmt: skip
        assert host.spec.command == (f"/data/inputs/{name}", f"/data/outputs/{name}.csv")
        assert "PATIENT-07" not in repr(host.spec)

    def test_the_containers_are_ours_by_label_and_name(self, host: Host) -> None:
        host.run(good)
        holder, participant = host.engine.created
        for spec in (holder, participant):
            assert spec.labels == {LABEL_OWNER: "m:b:1:7:8", LABEL_RUN: "run-1"}
            assert spec.user == "200000:200000"
        assert participant.name.startswith("proctor-")
        assert holder.image_id == host.bench.helper
        assert [(mount.target, mount.read_only) for mount in holder.volumes] == [("/hold", True)]
        assert holder.volumes[0].volume == participant.volumes[0].volume
        assert (holder.network, holder.cap_drop, holder.read_only, holder.pids) == ("none", ("ALL",), True, 16)

    def test_names_are_never_used_twice(self, host: Host) -> None:
        names = {host.run(good).neutral_name for _ in range(3)} | {spec.name for spec in host.engine.created}
        assert len(names) == 3 + 6

    @pytest.mark.parametrize(
        ("lines", "kept_first", "truncated"), [(0, "", False), (3, "line 0", False), (500, "line 300", True)]
    )
    def test_the_end_of_the_log_is_kept(
        self, host: Host, make_budget: Callable[..., Budget], lines: int, kept_first: str, truncated: bool
    ) -> None:
        def talk(box: FakeBox) -> int:
            for number in range(lines):
                box.print(f"line {number}")
            return 0

        result = host.run(talk, budget=make_budget(log_bytes=1 << 20))
        log = (host.out / "log.txt").read_text().splitlines()
        assert (log[0] if log else "", log[-1] if log else "") == (kept_first, f"line {lines - 1}" if lines else "")
        assert result.log_truncated is truncated

    @pytest.mark.parametrize(("whole_lines", "truncated"), [(198, False), (199, True), (500, True)])
    def test_a_line_that_was_cut_off_counts_as_one(self, host: Host, whole_lines: int, truncated: bool) -> None:
        def talk(box: FakeBox) -> int:
            box.log += b"x\n" * whole_lines + b"half a li"
            return 0

        assert host.run(talk).log_truncated is truncated

    def test_a_log_of_one_endless_line_is_bounded(self, host: Host, make_budget: Callable[..., Budget]) -> None:
        def shout(box: FakeBox) -> int:
            box.print("x" * 100_000)
            return 0

        result = host.run(shout, budget=make_budget(log_bytes=3 << 12))
        assert (host.out / "log.txt").stat().st_size == 3 << 12
        assert result.log_truncated is True

    def test_nothing_written(self, host: Host) -> None:
        result = host.run(lambda _: 0)
        assert result.intake == Intake(file=f"{result.neutral_name}.csv", refusal=IntakeRefusal.MISSING)
        assert result.usage.output_bytes == 0
        assert list((host.out / "predictions").iterdir()) == []


class TestTime:
    @pytest.mark.parametrize("limit", [0.5, 60.0, 3600.0])
    def test_a_container_is_killed_two_seconds_after_its_limit(
        self, host: Host, make_budget: Callable[..., Budget], limit: float
    ) -> None:
        result = host.run(forever, budget=make_budget(run_time=limit))
        assert result.killed is KillReason.TIME
        assert result.exit is not None
        assert result.exit.code == 137
        assert limit + 2.0 <= result.exit.seconds <= limit + 2.002
        assert result.usage.engine_seconds == result.exit.seconds
        assert result.usage.monotonic_seconds == pytest.approx(result.exit.seconds, abs=1e-6)

    @pytest.mark.parametrize(("seconds", "killed"), [(61.0, None), (61.99, None), (62.1, KillReason.TIME)])
    def test_what_ends_by_itself_before_that_is_not_killed(
        self, host: Host, seconds: float, killed: KillReason | None
    ) -> None:
        result = host.run(ends(seconds=seconds))
        assert result.killed is killed
        assert result.usage.engine_seconds == pytest.approx(min(seconds, 62.001), abs=0.001)

    def test_what_it_wrote_is_taken_all_the_same(self, host: Host) -> None:
        result = host.run(ends(seconds=math.inf))
        assert result.intake == Intake(file=f"{result.neutral_name}.csv", size=7)


def outage(host: Host, *, begin: float, length: float) -> None:
    """The engine does not answer for some seconds of the clock."""

    def look(_: str) -> None:
        if begin <= host.clock.now() < begin + length:
            raise DOWN

    host.engine.before["inspect"] = look


class TestOutage:
    @pytest.mark.parametrize(("begin", "length", "shown"), [(2.0, 5.0, "5.0"), (8.0, 5.0, "5.0"), (5.0, 59.0, "59.0")])
    def test_a_gap_and_a_good_end_is_a_note(self, host: Host, begin: float, length: float, shown: str) -> None:
        outage(host, begin=begin, length=length)
        result = host.run(good)
        note = f"the engine did not answer for {shown} s while the job ran; its own record of the run time counts"
        assert (result.notes, result.killed) == ((note,), None)
        assert (result.usage.engine_seconds, result.usage.monotonic_seconds) == (10.0, 10.0)
        assert result.intake == Intake(file=f"{result.neutral_name}.csv", size=7)

    def test_a_single_answer_missed_is_a_gap(self, host: Host) -> None:
        outage(host, begin=0.5, length=1.0)
        assert host.run(good).notes == (
            "the engine did not answer for 1.0 s while the job ran; its own record of the run time counts",
        )

    @pytest.mark.parametrize("code", [1, 125, 137, 143, 255])
    def test_a_gap_and_a_bad_end_proves_nothing(self, host: Host, code: int) -> None:
        outage(host, begin=2.0, length=5.0)
        assert host.fault(ends(code)).what == (
            f"the engine did not answer for 5.0 s while the job ran, and the container ended with {code}: "
            "it may have been the engine's doing"
        )

    def test_a_limit_that_the_engine_does_not_keep_is_the_hosts(self, host: Host) -> None:
        limits = host.engine.inspect

        def loosely(container: str) -> ContainerFacts | None:
            facts = limits(container)
            return None if facts is None else replace(facts, limits={**facts.limits, "pids": 1 << 20})

        host.engine.inspect = loosely  # type: ignore[method-assign]
        told = host.fault(good).what
        assert told.startswith("the engine does not keep what it was told: pids is 1048576 where ")

    def test_a_gap_and_a_late_end_proves_nothing(self, host: Host) -> None:
        outage(host, begin=55.0, length=10.0)
        assert "ended with 0" in host.fault(ends(seconds=61.0)).what

    def test_a_gap_and_a_kill_proves_nothing(self, host: Host) -> None:
        outage(host, begin=55.0, length=10.0)
        assert "ended with 137" in host.fault(forever).what

    def test_longer_than_patience(self, host: Host) -> None:
        outage(host, begin=5.0, length=1000.0)
        fault = host.fault(ends(seconds=300.0))
        assert fault.what == "the engine has not answered for 60 s"
        assert 65.0 <= host.clock.now() <= 66.0
        assert fault.exit_code == 5


def raise_it(error: Exception) -> None:
    raise error


class TestRestart:
    def test_a_restart_of_the_engine_is_the_hosts_fault(self, host: Host) -> None:
        def at_five(_: str) -> None:
            if host.clock.now() >= 5.0:
                host.engine.before.pop("inspect")
                host.engine.restart()

        host.engine.before["inspect"] = at_five
        # The holder ends as well; what is left in the volume does not matter any more.
        assert host.fault(good).what == (
            "the container ended with 143 and the engine does not answer: it may have been its doing"
        )

    @pytest.mark.parametrize("code", [137, 143])
    def test_only_codes_that_a_restart_gives_are_doubted(self, host: Host, code: int) -> None:
        host.engine.fail_next("ping", DOWN)
        assert f"ended with {code}" in host.fault(ends(code)).what

    @pytest.mark.parametrize("code", [0, 1, 139])
    def test_others_are_not(self, host: Host, code: int) -> None:
        host.engine.fail_next("ping", DOWN)
        result = host.run(ends(code))
        assert result.exit is not None
        assert result.exit.code == code


class TestRemovedBySomebodyElse:
    def test_while_it_ran(self, host: Host) -> None:
        def remove(container: str) -> None:
            if host.clock.now() >= 5.0:
                FakeEngine.remove(host.engine, container)

        host.engine.before["inspect"] = remove
        assert host.fault(good).what == "the container was removed by somebody else while it ran"

    def test_after_it_ended(self, host: Host) -> None:
        host.engine.before["logs"] = lambda container: FakeEngine.remove(host.engine, container)
        assert host.fault(good).what.startswith("the engine refused to other: No such container: ")


def refusing(message: str) -> FakeProgram:
    """A program whose container the engine refuses to start."""

    def program(_: FakeBox) -> int:
        raise EngineRefusal(START, message, status=400)

    return program


RUNC = "OCI runtime create failed: runc create failed: unable to start container process: "
MOUNTING = RUNC + 'error mounting "/w/v" to rootfs at "/data/inputs": '
NO_ENTRY = "the image's entry point, or its interpreter, does not exist in it"
NOT_EXECUTABLE = "the image's entry point is not executable"
NOT_IN_PATH = "the image's entry point does not exist in it"
ELSE_THERE = "the image has something else where a folder is mounted, or its WORKDIR cannot be made"
NOT_A_FOLDER = "the image has a file where a folder is mounted"


class TestRefusals:
    @pytest.mark.parametrize(
        ("message", "sentence"),
        [
            (RUNC + 'exec: "/nope": stat /nope: no such file or directory: unknown', NO_ENTRY),
            (RUNC + 'exec: "/app/run": permission denied: unknown', NOT_EXECUTABLE),
            (RUNC + 'exec: "predict": executable file not found in $PATH: unknown', NOT_IN_PATH),
            # What stands in the image cannot pass for the host's reason.
            (RUNC + 'exec: "no space left on device": executable file not found in $PATH: unknown', NOT_IN_PATH),
            (RUNC + "exec /app/run: exec format error", "the image's entry point is for another architecture"),
            (RUNC + "exec /app/run: argument list too long: unknown", "the image's environment is too large"),
            (MOUNTING + "not a directory: unknown: Are you trying to mount a directory onto a file (or vice-versa)?",
             NOT_A_FOLDER),
            (RUNC + "mkdir /data/inputs/sub: read-only file system: unknown", ELSE_THERE),
        ],
    )  # fmt: skip
    def test_at_start_a_participants_is_a_value(self, host: Host, message: str, sentence: str) -> None:
        assert host.run(refusing(message)) == JobResult(
            job="full", digest="d1", attempt=3, exit=None, refusal=sentence, killed=None, intake=None,
            usage=Usage(engine_seconds=0.0, monotonic_seconds=0.0, output_bytes=0, alone=True),
            neutral_name=host.spec.command[0].rpartition("/")[2] if host.spec.command else "",
        )  # fmt: skip

    def test_at_create_a_participants_is_a_value(self, host: Host) -> None:
        host.engine.before["create"] = lambda _: raise_it(EngineRefusal(CREATE, "No command specified", status=400))
        result = host.run(good)
        assert (result.exit, result.refusal) == (None, "the image has neither ENTRYPOINT nor CMD")

    @pytest.mark.parametrize(
        "message",
        [
            MOUNTING + "no such file or directory: unknown",
            RUNC + "mkdir /sys/fs/cgroup/docker/abc: no space left on device: unknown",
            RUNC + "mkdir /sys/fs/cgroup/docker/abc: cannot allocate memory: unknown",
            "failed to create shim: fork/exec /usr/bin/shim-runc-v2: resource temporarily unavailable: unknown",
            "failed to create task: open /sys/fs/cgroup/pids.max: permission denied: unknown",
            "something new",
        ],
    )
    def test_at_start_the_hosts_is_a_fault(self, host: Host, message: str) -> None:
        assert host.fault(refusing(message)).what == f"the engine refused to start a container: {message}"

    @pytest.mark.parametrize(
        "error",
        [
            EngineRefusal(CREATE, "mkdir /var/lib/docker/overlay2/abc-init: no space left on device", status=500),
            EngineRefusal(CREATE, "error while creating mount source path '/w': mkdir /w: permission denied"),
            EngineRefusal(CREATE, "invalid mount config: bind source path does not exist: /w", status=400),
            EngineRefusal(CREATE, 'Conflict. The name "/proctor-x" is already in use', status=409),
            EngineRefusal(CREATE, "Your kernel does not support swap limit capabilities"),
            ImageMissing(CREATE, "No such image: sha256:1", status=404),
        ],
        ids=str,
    )
    def test_at_create_the_hosts_is_a_fault(self, host: Host, error: EngineRefusal) -> None:
        host.engine.before["create"] = lambda _: raise_it(error)
        assert host.fault(good).what == f"the engine refused to create a container: {error.message}"

    def test_a_host_without_the_gpu_toolkit_is_unfit(self, host: Host) -> None:
        message = 'could not select device driver "" with capabilities: [[gpu]]'
        with pytest.raises(HostUnfit) as caught:
            host.run(refusing(message))
        assert caught.value.what == "the engine cannot give a container a GPU"

    @pytest.mark.parametrize("method", ["create", "start"])
    @pytest.mark.parametrize("when", ["before", "after"])
    def test_no_answer_leaves_nothing_whether_it_was_done_or_not(self, host: Host, method: str, when: str) -> None:
        getattr(host.engine, when)[method] = lambda _: raise_it(DOWN)
        assert host.fault(good).what == DOWN.what

    @pytest.mark.parametrize("method", ["create_volume", "create", "start", "read_tree"])
    @pytest.mark.parametrize("error", [DOWN, EngineRefusal(RefusalPhase.OTHER, "no")], ids=["down", "refused"])
    def test_trouble_with_our_own_holder_is_the_hosts_fault(self, host: Host, method: str, error: Exception) -> None:
        # The holder's create and start come first.
        host.engine.fail_next(method, error)
        assert isinstance(host.fault(good), HostFault)

    @pytest.mark.parametrize("error", [DOWN, EngineRefusal(RefusalPhase.OTHER, "in use")], ids=["down", "refused"])
    def test_a_container_that_cannot_be_removed_is_the_hosts_fault(self, host: Host, error: Exception) -> None:
        host.engine.before["remove"] = lambda _: raise_it(error)
        assert isinstance(host.fault(good), HostFault)
        # It is found by its label; what is on this host is gone.
        del host.engine.before["remove"]
        (left,) = host.engine.containers(LABEL_OWNER)
        assert list(host.work.iterdir()) == []
        host.engine.remove(left.id)
        for volume in host.engine.volumes(LABEL_OWNER):
            host.engine.remove_volume(volume.name)


class TestKill:
    def test_a_container_that_does_not_end_is_the_hosts_fault(self, host: Host) -> None:
        host.engine.deaf_to_kill = True
        fault = host.fault(forever)
        assert (fault.what, fault.where) == ("the container did not end when it was killed", host.spec.name)
        # Ten seconds for the engine, ten more for its process id.
        assert 82.0 <= host.clock.now() <= 82.1

    def test_a_kill_whose_answer_is_lost_is_a_kill(self, host: Host) -> None:
        def kill_then_fail(container: str) -> None:
            FakeEngine.kill(host.engine, container)
            raise DOWN

        host.engine.before["kill"] = kill_then_fail
        result = host.run(forever)
        assert result.killed is KillReason.TIME

    @pytest.mark.parametrize(("certain", "code"), [(True, -9), (False, None)])
    def test_its_process_is_killed_only_where_it_is_certainly_that(
        self, host: Host, monkeypatch: pytest.MonkeyPatch, certain: bool, code: int | None
    ) -> None:
        host.engine.deaf_to_kill = True
        with subprocess.Popen(["sleep", "60"]) as process:
            # Every cgroup path holds a slash, none holds this text.
            identity = "/" if certain else "not-its-cgroup"
            look = Scripted.inspect

            def inspect(engine: Scripted, container: str) -> ContainerFacts | None:
                if process.poll() is not None:
                    FakeEngine.kill(engine, container)
                facts = look(engine, container)
                return replace(facts, pid=process.pid, id=identity) if facts is not None and facts.pid else facts

            def kill(pid: int, number: int, really: Callable[[int, int], None] = os.kill) -> None:
                really(pid, number)
                process.wait()

            monkeypatch.setattr(Scripted, "inspect", inspect)
            with monkeypatch.context() as patch:
                # The simulated clock does not wait for a real process to die.
                patch.setattr(os, "kill", kill)
                if certain:
                    assert host.run(forever).killed is KillReason.TIME
                else:
                    host.fault(forever)
            assert process.poll() == code
            process.kill()


class TestStop:
    def test_a_stopped_run_begins_nothing(self, host: Host) -> None:
        host.bench.stop.set()
        with pytest.raises(Interrupted) as caught:
            host.run(good)
        assert (caught.value.exit_code, host.engine.created) == (130, [])

    @pytest.mark.parametrize("at", [0.0, 5.0, 61.0])
    def test_a_container_that_runs_is_killed_and_removed(self, host: Host, at: float) -> None:
        killed: list[str] = []

        def stop(_: str) -> None:
            if host.clock.now() >= at:
                host.bench.stop.set()

        host.engine.before["inspect"] = stop
        host.engine.before["kill"] = killed.append
        with pytest.raises(Interrupted, match="stopped while a container ran"):
            host.run(forever)
        assert len(killed) == 1
        assert host.clock.now() == max(1.0, at)  # it is looked at every second

    def test_what_has_ended_meanwhile_is_kept(self, host: Host) -> None:
        def stop(_: str) -> None:
            if host.clock.now() >= 10.0:
                host.bench.stop.set()

        host.engine.before["inspect"] = stop
        result = host.run(good)
        assert result.exit == Exit(code=0, oom_killed=False, seconds=10.0)


class TestFilesOfTheHost:
    def test_a_frame_that_is_gone_is_the_hosts_fault(self, host: Host) -> None:
        (host.case.inputs[0].path / "002.png").unlink()
        fault = host.fault(good)
        assert fault.what == "a file of this host could not be read or written: No such file or directory"
        assert fault.where.endswith("002.png")
        assert host.engine.created == []

    def test_a_log_that_cannot_be_written_is_the_hosts_fault(self, host: Host) -> None:
        host.engine.before["logs"] = lambda _: host.out.rmdir()
        assert host.fault(good).where.endswith("log.txt")

    def test_a_damaged_tar_is_the_hosts_fault(self, host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
        whole = FakeEngine.read_tree
        monkeypatch.setattr(
            Scripted, "read_tree", lambda engine, c, path: (chunk[:4096] for chunk in whole(engine, c, path))
        )
        fault = host.fault(lambda box: write(box, "x" * 8192))
        assert fault.what == "what the engine read of the output is damaged: unexpected end of data"

    def test_an_error_of_the_program_that_is_no_fault_of_anybody_still_leaves_nothing(self, host: Host) -> None:
        def broken(_: FakeBox) -> int:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            host.run(broken)


class TestLeases:
    def test_containers_at_once_have_different_users_and_know_of_each_other(self, host: Host) -> None:
        inner: list[JobResult] = []
        users: list[str] = []

        def outer(box: FakeBox) -> FakeExit:
            users.append(box.spec.user)
            inner.append(host.run(lambda box: users.append(box.spec.user)))
            return good(box)

        result = host.run(outer)
        assert users == ["200000:200000", "200001:200001"]
        assert (result.usage.alone, inner[0].usage.alone) == (False, False)

    def test_one_after_the_other_they_are_alone(self, host: Host) -> None:
        for _ in range(2):
            assert host.run(good).usage.alone is True
            threading.Event().wait(0.011)  # the grain of file times
        assert host.spec.user == "200000:200000"

    def test_without_root_a_container_runs_as_ourselves(self, host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "geteuid", lambda: 1234)
        monkeypatch.setattr(os, "getuid", lambda: 1234)
        monkeypatch.setattr(os, "getgid", lambda: 567)
        host.run(good)
        assert host.spec.user == "1234:567"


class TestGpus:
    @pytest.fixture
    def nvml(self) -> StandIn:
        return StandIn(card(1), card(2))

    @pytest.fixture
    def said(self) -> list[str]:
        return []

    @pytest.fixture
    def bench(self, host: Host, nvml: StandIn, said: list[str]) -> Bench:
        gpus = find_gpus(nvml).gpus
        nvml.open()
        pool = GpuPool(
            host_of(nvml, host.folder / "gpu-leases"), gpus, GpuAccess.DEVICE_REQUEST,
            stop=host.bench.stop, say=said.append, settling=0.0,
        )  # fmt: skip
        return replace(host.bench, gpus=pool)

    @pytest.fixture
    def budget(self, make_budget: Callable[..., Budget]) -> Budget:
        return make_budget(gpus=1)

    def test_a_device_is_held_and_its_holder_still_counts_as_alone(
        self, host: Host, bench: Bench, budget: Budget, nvml: StandIn
    ) -> None:
        nvml.used["GPU-1"] = [0, 5 * GIB, 3 * GIB]  # before the job, at its start, at its end
        nvml.joules["GPU-1"] = [10.0, 25.0]
        usage = host.run(good, bench=bench, budget=budget).usage
        assert (host.spec.gpus, usage.alone) == (GpuRequest(device_ids=("GPU-1",)), True)
        (gpu,) = usage.gpus
        assert (gpu.device, gpu.peak_memory, gpu.joules, gpu.every) == ("GPU-1", 5 * GIB, 15.0, 0.2)
        assert nvml.listening[0].closed

    def test_two_jobs_never_share_one(self, host: Host, bench: Bench, budget: Budget) -> None:
        devices: list[GpuRequest | None] = []

        def outer(box: FakeBox) -> None:
            devices.append(box.spec.gpus)
            host.run(lambda box: devices.append(box.spec.gpus), bench=bench, budget=budget)

        host.run(outer, bench=bench, budget=budget)
        assert devices == [GpuRequest(device_ids=("GPU-1",)), GpuRequest(device_ids=("GPU-2",))]

    def test_a_job_of_two_is_given_two(self, host: Host, bench: Bench, make_budget: Callable[..., Budget]) -> None:
        usage = host.run(good, bench=bench, budget=make_budget(gpus=2)).usage
        assert host.spec.gpus == GpuRequest(device_ids=("GPU-1", "GPU-2"))
        assert [gpu.device for gpu in usage.gpus] == ["GPU-1", "GPU-2"]

    def test_a_job_of_more_than_there_are_is_refused(
        self, host: Host, bench: Bench, make_budget: Callable[..., Budget]
    ) -> None:
        with pytest.raises(HostUnfit):
            host.run(good, bench=bench, budget=make_budget(gpus=3))

    def test_no_device_where_none_is_asked_for_or_none_is_there(
        self, host: Host, bench: Bench, budget: Budget, nvml: StandIn
    ) -> None:
        for usage in (host.run(good, bench=bench).usage, host.run(good, budget=budget).usage):
            assert usage.gpus == ()
            assert (host.spec.gpus, host.spec.environment["NVIDIA_VISIBLE_DEVICES"]) == (None, "void")
        assert nvml.listening == []

    def test_a_job_that_waited_for_its_device_was_alone(self, host: Host, bench: Bench, budget: Budget) -> None:
        """Whoever held the device was gone before the job began; that it was there meanwhile does not count."""
        started = threading.Event()

        def holds(box: FakeBox) -> FakeExit:
            started.set()
            threading.Event().wait(0.5)
            return good(box)

        assert bench.gpus is not None
        bench.gpus.set_aside("GPU-2", "out of the way")
        with ThreadPoolExecutor(1) as threads:
            first = threads.submit(host.run, holds, bench=bench, budget=budget)
            assert started.wait(10)
            second = run_job(
                bench, replace(host.job, budget=budget, image_id=(image := host.engine.image(
                    host.engine.add_image("second", good))).id),
                {host.case.name: CaseView(case=host.case)}, image=image, attempt=1,
                folder=fresh(host.folder / "second"),
            )  # fmt: skip
            assert first.result(timeout=10).usage.alone is True
        assert second.usage.alone is True

    def test_a_device_lost_under_a_job_is_the_hosts_fault_and_the_next_try_gets_another(
        self, host: Host, bench: Bench, budget: Budget, nvml: StandIn, said: list[str]
    ) -> None:
        def loses(box: FakeBox) -> FakeExit:
            nvml.lost.add("GPU-1")
            return good(box)

        sentence = "GPU-1 was lost while a job held it: GPU is lost"
        assert host.fault(loses, bench=bench, budget=budget).what == sentence
        assert host.run(good, bench=bench, budget=budget).usage.gpus[0].device == "GPU-2"
        assert said == [f"{sentence}; it is not used for the rest of this run"]

    def test_what_runs_on_a_lost_device_is_ended_at_once(
        self, host: Host, bench: Bench, nvml: StandIn, make_budget: Callable[..., Budget]
    ) -> None:
        budget = make_budget(gpus=1, run_time=1e9)
        lost = threading.Event()

        def loses(_: FakeBox) -> FakeExit:
            nvml.lost.add("GPU-1")
            lost.set()
            return FakeExit(seconds=math.inf)

        # The simulated clock would jump to the limit; this one lets the watch look meanwhile.
        def slowly(_: str) -> None:
            threading.Event().wait(0.05 if lost.is_set() else 0)

        host.engine.before["inspect"] = slowly
        fault = host.fault(loses, bench=bench, budget=budget)
        assert "GPU-1 was lost" in fault.what
        assert host.clock.now() < budget.run_time

    def test_processors_are_counted_where_they_can_be(self, host: Host, tmp_path: Path) -> None:
        counter = tmp_path / "energy_uj"
        counter.write_text("1000000")
        zones = (EnergyZone(counter=counter, wraps_at=10**9),)

        def works(box: FakeBox) -> FakeExit:
            counter.write_text("3500000")
            return good(box)

        assert host.run(works, bench=replace(host.bench, zones=zones)).usage.processor_joules == 2.5

    @pytest.mark.parametrize(
        "message",
        ["Unknown runtime specified nvidia", "unknown or invalid runtime name: nvidia",
         "failed to create task: CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=GPU-1: unknown"],
    )  # fmt: skip
    def test_an_engine_that_cannot_give_one_is_unfit(
        self, host: Host, bench: Bench, budget: Budget, message: str
    ) -> None:
        with pytest.raises(HostUnfit) as caught:
            host.run(refusing(message), bench=bench, budget=budget)
        assert caught.value.what == "the engine cannot give a container a GPU"


def fresh(folder: Path) -> Path:
    folder.mkdir()
    return folder


class TestCleaner:
    """Removal can go on while a job's files are read; nothing of it may fall into the next run."""

    @pytest.fixture
    def cleaner(self) -> Iterator[Cleaner]:
        cleaner = Cleaner()
        yield cleaner
        cleaner.close()

    def test_things_are_gone_before_the_next_run_begins(self, host: Host, cleaner: Cleaner) -> None:
        bench, removing, gone = replace(host.bench, cleaner=cleaner), threading.Event(), threading.Event()

        def slowly(_: str) -> None:
            removing.wait(5)
            gone.set()

        host.engine.before["remove"] = slowly
        assert host.run(good, bench=bench).usage.alone is True
        assert len(host.engine.containers(LABEL_OWNER)) == 2  # its files can be read meanwhile
        removing.set()
        host.engine.after["create"] = lambda _: raise_it(AssertionError("too early")) if not gone.is_set() else None
        result = host.run(good, bench=bench)
        assert (result.usage.alone, host.spec.user) == (True, "200000:200000")
        cleaner.settle()
        host.assert_clean()

    def test_what_cannot_be_put_away_is_a_fault_of_the_host(self, host: Host, cleaner: Cleaner) -> None:
        bench = replace(host.bench, cleaner=cleaner)
        host.engine.before["remove"] = lambda _: raise_it(EngineRefusal(RefusalPhase.OTHER, "in use"))
        host.run(good, bench=bench)
        with pytest.raises(HostFault, match="in use"):
            host.run(good, bench=bench)
        del host.engine.before["remove"]
        # It is told once; the next run goes well.
        host.run(good, bench=bench)
        cleaner.settle()
        for container in host.engine.containers(LABEL_OWNER):
            host.engine.remove(container.id)
        for volume in host.engine.volumes(LABEL_OWNER):
            host.engine.remove_volume(volume.name)

    def test_a_run_that_fails_is_put_away_at_once(self, host: Host, cleaner: Cleaner) -> None:
        with pytest.raises(HostFault):
            host.run(refusing("something new"), bench=replace(host.bench, cleaner=cleaner))
        host.assert_clean()


@pytest.mark.root
class TestLoop:
    """The other way to hold an output: a file system in a file."""

    def run(self, host: Host, program: FakeProgram) -> JobResult:
        return host.run(program, bench=replace(host.bench, helper=""))

    def test_a_good_run(self, host: Host) -> None:
        result = self.run(host, good)
        assert result.intake == Intake(file=f"{result.neutral_name}.csv", size=7)
        assert (host.out / "predictions" / "prediction.csv").read_text() == "t,step\n"
        assert [bind.read_only for bind in host.spec.binds] == [True, False]
        assert host.spec.volumes == ()
        assert len(host.engine.created) == 1

    def test_the_place_is_the_jobs_own_and_as_large_as_the_budget_says(self, host: Host) -> None:
        def look(box: FakeBox) -> int:
            folder = box.path("/data/outputs")
            room, facts = os.statvfs(folder), folder.stat()
            assert (3 << 20) < room.f_blocks * room.f_frsize <= (4 << 20)
            assert room.f_files == 64
            assert (facts.st_uid, facts.st_gid, facts.st_mode & 0o777) == (200_000, 200_000, 0o755)
            assert room.f_flag & (os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC) == 14
            assert list(folder.iterdir()) == []
            return 0

        self.run(host, look)

    def test_more_than_fits(self, host: Host) -> None:
        def flood(box: FakeBox) -> int:
            with box.path(box.arguments[1]).open("wb", buffering=0) as sink:
                while sink.write(b"x" * 100_000) == 100_000:
                    pass
            return 1

        intake = self.run(host, flood).intake
        assert intake is not None
        assert intake.full is True

    def test_more_files_than_allowed(self, host: Host) -> None:
        def flood(box: FakeBox) -> int:
            folder = box.path("/data/outputs")
            for number in range(os.statvfs(folder).f_ffree):
                (folder / f"{number}").touch()
            with pytest.raises(OSError, match="No space left"):
                (folder / "more").touch()
            return 1

        intake = self.run(host, flood).intake
        assert intake is not None
        assert (intake.refusal, intake.full) == (IntakeRefusal.MISSING, True)
        assert 40 < intake.other_entries <= 64

    @pytest.mark.parametrize("code", [0, 1])
    def test_nothing_is_left_after_a_fault(self, host: Host, code: int) -> None:
        host.engine.before["logs"] = lambda _: raise_it(DOWN)
        with pytest.raises(HostFault):
            self.run(host, ends(code))


class TestWatched:
    """The last way: a plain folder, looked at while the container runs."""

    def run(self, host: Host, program: FakeProgram, **job: Any) -> JobResult:
        return host.run(program, bench=replace(host.bench, helper="", watched=True), **job)

    @pytest.fixture
    def noticed(self, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
        """Set when the watcher has asked for the container's end."""
        event = threading.Event()
        look = Scripted.inspect

        def inspect(engine: Scripted, container: str) -> ContainerFacts | None:
            if threading.current_thread() is not threading.main_thread():
                event.set()
            return look(engine, container)

        monkeypatch.setattr(Scripted, "inspect", inspect)
        return event

    def test_a_good_run(self, host: Host) -> None:
        result = self.run(host, good)
        assert result.intake == Intake(file=f"{result.neutral_name}.csv", size=7)
        assert (result.killed, result.overshoot) == (None, None)
        assert (host.out / "predictions" / "prediction.csv").read_text() == "t,step\n"
        assert [bind.read_only for bind in host.spec.binds] == [True, False]
        assert (host.spec.volumes, len(host.engine.created)) == ((), 1)

    @pytest.mark.root
    def test_the_folder_is_the_jobs_own_on_the_hosts_own_disk(self, host: Host) -> None:
        seen: list[tuple[int, int, int]] = []

        def look(box: FakeBox) -> int:
            facts = box.path("/data/outputs").stat()
            seen.append((facts.st_uid, facts.st_mode & 0o777, facts.st_dev))
            return 0

        self.run(host, look)
        assert seen == [(200_000, 0o755, host.work.stat().st_dev)]

    def test_a_container_that_writes_too_much_is_killed(self, host: Host, noticed: threading.Event) -> None:
        def flood(box: FakeBox) -> FakeExit:
            write(box, "x" * (5 << 20))
            assert noticed.wait(20)
            return FakeExit(seconds=math.inf)

        result = self.run(host, flood)
        assert result.killed is KillReason.OUTPUT
        assert result.exit is not None
        assert (result.exit.code, result.exit.seconds <= 2.0) == (137, True)
        assert result.overshoot == Tally(bytes=5 << 20, entries=1)
        assert result.intake is not None
        assert result.intake.refusal is IntakeRefusal.TOO_LARGE

    def test_one_that_ends_before_it_is_noticed_still_wrote_too_much(self, host: Host) -> None:
        def flood(box: FakeBox) -> FakeExit:
            write(box)
            box.path("/data/outputs/features").write_bytes(b"x" * (5 << 20))
            return FakeExit(seconds=0.01)

        result = self.run(host, flood)
        assert result.overshoot == Tally(bytes=(5 << 20) + 4096, entries=2)
        assert result.intake is not None
        assert (result.intake.size, result.intake.full) == (7, True)

    @pytest.mark.parametrize("code", [0, 1, 143])
    def test_who_ended_by_itself_was_not_killed(self, host: Host, noticed: threading.Event, code: int) -> None:
        def flood(box: FakeBox) -> FakeExit:
            write(box, "x" * (5 << 20))
            assert noticed.wait(20)
            return FakeExit(code=code, seconds=0.0)

        result = self.run(host, flood)
        assert result.exit is not None
        assert (result.exit.code, result.killed) == (code, None)
        assert result.overshoot is not None

    def test_files_are_counted_as_well(self, host: Host) -> None:
        def flood(box: FakeBox) -> None:
            for number in range(80):
                box.path(f"/data/outputs/{number}").touch()

        overshoot = self.run(host, flood).overshoot
        assert overshoot is not None
        assert overshoot.entries == 65

    def test_a_kill_the_engine_refuses_is_tried_again(self, host: Host, noticed: threading.Event) -> None:
        refused: list[str] = []

        def refuse(container: str) -> None:
            if len(refused) < 3:
                refused.append(container)
                raise EngineRefusal(RefusalPhase.KILL, "busy")

        def flood(box: FakeBox) -> FakeExit:
            host.engine.before["kill"] = refuse
            write(box, "x" * (5 << 20))
            assert noticed.wait(20)
            while len(refused) < 3:
                threading.Event().wait(0.01)
            return FakeExit(seconds=math.inf)

        assert self.run(host, flood).killed is KillReason.OUTPUT

    def test_a_disk_without_room_is_the_hosts_fault(
        self, host: Host, noticed: threading.Event, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def hide(box: FakeBox) -> FakeExit:
            write(box)
            monkeypatch.setattr(watched, "SPARE_ROOM", 1 << 60)
            assert noticed.wait(20)
            return FakeExit(seconds=math.inf)

        with pytest.raises(HostFault, match="no room for an output that is only watched"):
            self.run(host, hide)

    def test_the_other_ways_are_not_watched(self, host: Host, noticed: threading.Event) -> None:
        result = host.run(lambda box: write(box, "x" * (5 << 20)))
        assert (noticed.is_set(), result.overshoot, result.killed) == (False, None, None)
