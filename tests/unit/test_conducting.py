"""A streamed job on the simulated engine: its answers become its outputs, and every end has its facts."""

import csv
import functools
import json
import math
import threading
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner import conducting, execute
from runner.budget import Budget, judged_seconds
from runner.challenge import FormatSection, FrameScoresFormat, FrameTableFormat, InputKind, Pacing, Stream
from runner.clock import SimulatedClock
from runner.dataset import Case, Input
from runner.engine import Attached, ContainerFacts, EngineRefusal, RefusalPhase
from runner.engine.fake import FakeBox, FakeEngine, FakeExit, FakeProgram
from runner.errors import HostFault, Interrupted, UsageError
from runner.execute import Bench, run_job
from runner.inputs import CaseView
from runner.job import Intake, IntakeRefusal, Job, JobResult, KillReason, StartRefusal, Streaming
from runner.judge import judge_run
from runner.lease import Leases
from runner.ownership import LABEL_OWNER, Owner
from runner.streaming.conductor import StreamOutcome, conduct
from runner.streaming.frame import StreamedFrame
from runner.streaming.protocol import Breach
from runner.streaming.source import frames_of
from runner.workspace import Workspace

SCORES = FrameScoresFormat.model_validate(
    {"kind": "frame_scores", "file": "{case}.csv", "layout": "table", "classes": 2}
)
STEPS = FrameTableFormat.model_validate(
    {"kind": "frame_table", "file": "{case}.csv", "index": {"column": "t"}, "columns": {"step": {"labels": [0, 1]}}}
)
RULE = Stream(answer=5.0, start_up=30.0)
SHORT = Stream(answer=1.0, start_up=1.0)
"""For what is waited for, which takes as long on this engine."""

Talk = Generator[bytes, bytes, FakeExit | int | None]
FRAMES = 4


def say(**fields: object) -> bytes:
    return json.dumps(fields).encode() + b"\n"


HELLO = say(type="hello", protocol=1, frames="path")


def answer(index: int, **fields: object) -> bytes:
    return say(type="answer", index=index, answer=fields or {"step": index % 2})


def client(
    box: FakeBox,
    answers: Callable[[int], bytes],
    *,
    seconds: float = 0.5,
    start_up: float = 2.0,
    code: int = 0,
    begin: Callable[[FakeBox, dict[str, Any]], None] = lambda _box, _message: None,
) -> Talk:
    """A client that answers each frame after some seconds, and ends with a code."""
    data = yield b""
    pending, reply = data, b""
    while True:
        for line in pending.splitlines():
            said = json.loads(line)
            if said["type"] == "hello":
                box.sleep(start_up)
                reply += HELLO
            elif said["type"] == "begin":
                begin(box, said)
            elif said["type"] == "frame":
                box.sleep(seconds)
                reply += answers(said["index"])
        pending, reply = (yield reply), b""
        if not pending:
            return code


class Host:
    """A host with a simulated engine on which a streamed job is run."""

    def __init__(self, folder: Path, case: Case, job: Job) -> None:
        self.clock = SimulatedClock()
        self.engine = FakeEngine(self.clock)
        self.folder, self.case = folder, case
        self.job = replace(job, stream=Streaming(rule=RULE, fps=2.0, formats={"steps": STEPS}))
        (folder / "work").mkdir()
        self.bench = Bench(
            engine=self.engine, clock=self.clock, workspace=Workspace(folder=folder / "work"),
            leases=Leases(folder=folder / "leases"),
            owner=Owner(machine="m", boot="b", pid_namespace="1", pid=7, started="8"), run_token="run-1",
            stop=threading.Event(), helper=self.engine.add_image("helper", lambda _: FakeExit(seconds=math.inf)),
        )  # fmt: skip
        self.out = folder / "attempt"

    def run(self, program: FakeProgram, *, case: Case | None = None, **job: Any) -> JobResult:
        """Run a program as the participant's."""
        image = self.engine.image(self.engine.add_image("team", program))
        self.out.mkdir()
        changed = replace(self.job, image_id=image.id, **job)
        views = {self.case.name: CaseView(case=case or self.case)}
        return run_job(self.bench, changed, views, image=image, attempt=1, folder=self.out)

    def verdict(self, result: JobResult) -> str:
        """Word and sentence of a run that did not end well."""
        verdict = judge_run(self.job, result, None, public=False)
        return f"{verdict.word}: {verdict.sentence}"


@pytest.fixture
def host(tmp_path: Path, make_case: Callable[..., Case], make_job: Callable[..., Job]) -> Iterator[Host]:
    """A host; after every test that uses it, nothing may be left."""
    host = Host(tmp_path, make_case(), make_job())
    yield host
    assert host.engine.containers(LABEL_OWNER) == ()
    assert host.engine.volumes(LABEL_OWNER) == ()
    assert [path.name for path in (tmp_path / "work").iterdir() if not path.name.startswith("blank-")] == []
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("stream")] == []
    host.engine.close()


def test_a_good_stream_leaves_what_a_container_would_have_written(host: Host) -> None:
    result = host.run(lambda box: client(box, answer))
    name = result.neutral_name
    assert (host.out / "predictions" / "prediction.csv").read_text() == "t,step\n0,0\n1,1\n2,0\n3,1\n"
    assert result.exit is not None
    assert (result.exit.code, result.killed) == (0, None)
    assert result.intake == Intake(file=f"{name}.csv", size=23)
    assert result.stream is not None
    assert (result.stream.breach, result.stream.released, result.stream.answered) == ("", FRAMES, FRAMES)
    assert (result.stream.way, result.stream.period, sum(result.stream.counts)) == ("path", 0.5, FRAMES)
    times = (result.stream.start_up, result.stream.first_frame, result.stream.p50, result.stream.longest)
    # The clock is moved by whoever sleeps on it, and more than one does.
    least = (2.0, 0.5, 0.5, 0.5)
    assert all(one is not None and one >= due - 1e-6 for one, due in zip(times, least, strict=True))


def test_the_run_time_counts_from_begin(host: Host) -> None:
    result = host.run(lambda box: client(box, answer))
    assert result.exit is not None
    assert result.exit.seconds >= 4.0
    assert result.stream is not None
    assert result.stream.start_up is not None
    run = judged_seconds(result.usage)
    assert 2.0 - 1e-6 <= run <= result.exit.seconds - result.stream.start_up + 1e-6


def test_the_times_of_every_frame_are_kept(host: Host) -> None:
    host.run(lambda box: client(box, answer))
    with (host.out / "timing.csv").open() as source:
        rows = list(csv.DictReader(source))
    assert [row["index"] for row in rows] == ["0", "1", "2", "3"]
    assert (rows[0]["released"], rows[0]["answered"]) == ("0.000000", rows[0]["seconds"])
    for row in rows:
        assert float(row["seconds"]) >= 0.5 - 1e-6
        assert float(row["seconds"]) == pytest.approx(float(row["answered"]) - float(row["released"]), abs=2e-6)
        assert row["missed"] == "0"


def test_the_container_is_described_with_an_open_input_and_sees_no_frame_before_its_turn(host: Host) -> None:
    seen: list[list[str]] = []

    def look(index: int, box: FakeBox) -> bytes:
        seen.append(sorted(path.name for path in box.path("/data/inputs").iterdir()))
        return answer(index)

    result = host.run(lambda box: client(box, lambda index: look(index, box)))
    assert result.stream is not None
    assert result.stream.answered == FRAMES
    assert [len(names) for names in seen] == [1] * FRAMES
    assert len({name for names in seen for name in names}) == FRAMES
    spec = next(spec for spec in host.engine.created if not spec.name.endswith("-hold"))
    assert spec.stdin


def test_an_input_without_frames_lies_there_from_begin_on(host: Host, tmp_path: Path) -> None:
    (tmp_path / "camera.txt").write_text("k = 1")
    begun: list[dict[str, Any]] = []
    read: list[str] = []

    def look(box: FakeBox, message: dict[str, Any]) -> None:
        begun.append(message)
        read.append(box.path(message["files"]["camera"]).read_text())

    camera = Input(name="camera", kind=InputKind.FILE, path=tmp_path / "camera.txt", inside="{case}/camera.txt")
    case = replace(host.case, inputs=(*host.case.inputs, camera))
    program = functools.partial(client, answers=answer, begin=look)
    result = host.run(program, case=case, places={"frames": "{case}/left", "camera": "{case}/camera.txt"})
    name = result.neutral_name
    assert result.stream is not None
    assert result.stream.answered == FRAMES
    assert begun == [
        {"type": "begin", "case": name, "fps": 2.0, "inputs": ["frames"],
         "files": {"camera": f"/data/inputs/{name}/camera.txt"}}
    ]  # fmt: skip
    assert read == ["k = 1"]


def test_the_log_is_what_is_no_message(host: Host) -> None:
    def talk(index: int, box: FakeBox) -> bytes:
        box.print(f"to stderr {index}")
        return b"loading\n" + answer(index)

    result = host.run(lambda box: client(box, lambda index: talk(index, box)))
    assert (host.out / "log.txt").read_text().splitlines() == [
        line for index in range(FRAMES) for line in (f"to stderr {index}", "loading")
    ]
    assert not result.log_truncated


def test_the_end_of_a_long_log_is_kept(host: Host, make_budget: Callable[..., Budget]) -> None:
    result = host.run(
        lambda box: client(box, lambda index: b"x" * 100 + b"\n" + answer(index)), budget=make_budget(log_bytes=150)
    )
    assert len((host.out / "log.txt").read_bytes()) == 150
    assert result.log_truncated


def test_answers_that_are_no_labels_are_left_to_the_reader(host: Host) -> None:
    result = host.run(lambda box: client(box, lambda index: answer(index, step="one")))
    assert result.intake is not None
    assert result.intake.refusal is None
    assert (host.out / "predictions" / "prediction.csv").read_text().splitlines()[1] == '0,"""one"""'


def test_answers_that_are_too_large_are_refused(host: Host, make_budget: Callable[..., Budget]) -> None:
    result = host.run(
        lambda box: client(box, lambda index: answer(index, step="x" * 150)), budget=make_budget(output_bytes=200)
    )
    assert result.intake == Intake(
        file=f"{result.neutral_name}.csv", refusal=IntakeRefusal.TOO_LARGE, detail="more than the 200 bytes allowed"
    )


# How it can end.


def test_a_breach_ends_the_container(host: Host) -> None:
    result = host.run(lambda box: client(box, lambda index: answer(index) + (answer(7) if index == 2 else b"")))
    assert result.killed is KillReason.PROTOCOL
    assert result.stream is not None
    assert result.stream.breach == "early"
    assert host.verdict(result) == "broke-protocol: it answered a frame that it had not been shown"


def test_a_program_that_ends_because_its_input_did_is_judged_by_its_breach(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ends_by_itself(engine: FakeEngine, container: str) -> None:
        found = engine._find(container)
        assert found is not None
        engine._end(found, code=1)

    monkeypatch.setattr(execute, "end_now", ends_by_itself)
    result = host.run(lambda box: client(box, lambda index: answer(index + 1)))
    assert result.exit is not None
    assert (result.exit.code, result.killed) == (1, KillReason.PROTOCOL)
    assert host.verdict(result) == "broke-protocol: it answered a frame that it had not been shown"


def test_silence_is_time_that_is_over(host: Host) -> None:
    stream = Streaming(rule=SHORT, fps=2.0, formats={"steps": STEPS})
    result = host.run(lambda box: client(box, lambda i: answer(i) if i < 2 else b"", start_up=0.0), stream=stream)
    assert result.killed is KillReason.PROTOCOL
    assert host.verdict(result) == "timed-out: frame 2 was not answered within 1.0 s"


def test_no_hello_is_time_that_is_over_and_no_run_time(host: Host) -> None:
    def mute(box: FakeBox) -> Talk:
        while (yield b"loading\n"):
            box.sleep(1.0)
        return 0

    result = host.run(mute, stream=Streaming(rule=SHORT, fps=2.0, formats={"steps": STEPS}))
    assert result.stream is not None
    assert result.stream.start_up is None
    assert judged_seconds(result.usage) == 0
    assert host.verdict(result) == "timed-out: it did not say hello within 1.0 s of its start"


@pytest.mark.parametrize(
    ("code", "oom", "expected"),
    [
        (
            3,
            False,
            "crashed: the program ended with exit code 3 before the case was over; 1 of its frames was answered",
        ),
        (
            0,
            False,
            "crashed: the program ended with exit code 0 before the case was over; 1 of its frames was answered",
        ),
        (137, True, "out-of-memory: the process was killed for using more than the 2 GiB of memory allowed"),
        (1, True, "out-of-memory: a child process was killed for using more than the 2 GiB of memory allowed"),
    ],
)
def test_a_program_that_ends_in_the_middle(host: Host, code: int, oom: bool, expected: str) -> None:
    def leaves(box: FakeBox) -> Talk:
        yield b""
        yield HELLO
        yield answer(0)
        return FakeExit(code=code, oom_killed=oom, seconds=0.0)

    result = host.run(leaves)
    assert result.killed is None
    assert host.verdict(result) == expected


def test_a_program_that_ends_before_hello(host: Host) -> None:
    def leaves(box: FakeBox) -> Talk:
        yield b"Traceback\n"
        return 1

    result = host.run(leaves)
    assert host.verdict(result) == "crashed: the program ended with exit code 1 before it said hello"
    assert (host.out / "log.txt").read_text() == "Traceback\n"


def test_a_bad_exit_code_after_the_last_answer_is_a_crash(host: Host) -> None:
    result = host.run(lambda box: client(box, answer, code=1))
    assert result.stream is not None
    assert result.stream.breach == ""
    assert host.verdict(result).startswith("crashed: the program ended with exit code 1 after ")


def test_a_case_that_takes_too_long(host: Host, make_budget: Callable[..., Budget]) -> None:
    result = host.run(lambda box: client(box, answer, seconds=3.0), budget=make_budget(run_time=4.0))
    assert result.killed is KillReason.TIME
    assert judged_seconds(result.usage) > 4.0
    host.job = replace(host.job, budget=make_budget(run_time=4.0))
    assert host.verdict(result).endswith("s of 4.0 s allowed and was stopped")
    assert host.verdict(result).startswith("timed-out: ran ")


def test_a_late_case_that_ends_by_itself(host: Host, make_budget: Callable[..., Budget]) -> None:
    budget = make_budget(run_time=7.0)
    result = host.run(lambda box: client(box, answer, seconds=1.8), budget=budget)
    assert result.killed is None
    verdict = judge_run(replace(host.job, budget=budget), result, None, public=False)
    assert (verdict.word, verdict.sentence[:4]) == ("timed-out", "ran ")


def test_a_missed_frame_holds_what_was_answered_before(host: Host) -> None:
    rule = Stream(pacing=Pacing.REALTIME, answer=5.0, before_first={"step": 1})
    stream = Streaming(rule=rule, fps=1.0, formats={"steps": STEPS})
    result = host.run(lambda box: client(box, lambda i: b"" if i in (0, 2) else answer(i), seconds=0.1), stream=stream)
    assert result.stream is not None
    assert result.stream.missed == 2
    assert (host.out / "predictions" / "prediction.csv").read_text() == "t,step\n0,1\n1,1\n2,1\n3,1\n"
    job = replace(host.job, stream=stream)
    verdict = judge_run(job, replace(result, intake=Intake(file="", refusal=IntakeRefusal.MISSING)), None, public=False)
    assert verdict.notes == ("2 of 4 frames were answered too late or not at all: what was answered before is held",)


def test_what_is_wrong_with_the_data_is_raised(host: Host) -> None:
    short = replace(host.case, frames=(*host.case.frames, "999.png"))
    with pytest.raises(UsageError, match="its input frames has 4 frames where the case has 5"):
        host.run(lambda box: client(box, answer), case=short)


def test_an_engine_that_joins_no_streams_is_the_hosts(host: Host) -> None:
    host.engine.fail_next("attach", EngineRefusal(RefusalPhase.ATTACH, "no streams"))
    with pytest.raises(HostFault, match="the engine refused to attach a container: no streams"):
        host.run(lambda box: client(box, answer))


@pytest.mark.parametrize("rule", [STEPS, SCORES], ids=["table", "scores"])
def test_a_container_that_cannot_be_started_leaves_nothing_open(host: Host, rule: FormatSection) -> None:
    def refuses(_: FakeBox) -> Talk:
        raise EngineRefusal(RefusalPhase.START, "exec format error")

    result = host.run(refuses, stream=Streaming(rule=RULE, fps=2.0, formats={"steps": rule}))
    assert (result.refusal, result.stream) == (StartRefusal.OTHER_ARCHITECTURE, None)


def test_a_stream_that_outlives_its_container_is_the_hosts(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    held = threading.Event()

    def hangs(*_: object, **__: object) -> StreamOutcome:
        held.wait(60)
        raise AssertionError("nobody waits any more")

    monkeypatch.setattr(conducting, "conduct", hangs)
    monkeypatch.setattr(conducting, "_PATIENCE", 0.1)

    def ends(_: FakeBox) -> int:
        return 0

    with pytest.raises(HostFault, match="the stream of a container that is dead does not end"):
        host.run(ends)
    held.set()
    next(thread for thread in threading.enumerate() if thread.name == "stream").join()


def test_an_engine_that_goes_down_in_the_middle_is_the_hosts(host: Host) -> None:
    def falls(index: int) -> bytes:
        if index == 2:
            host.engine.restart()
        return answer(index)

    with pytest.raises(HostFault, match="the container ended with 143 and the engine does not answer"):
        host.run(lambda box: client(box, falls))


@pytest.mark.parametrize("half", [b"", b'{"type":'])
def test_a_connection_that_breaks_while_the_container_lives_is_the_hosts(
    host: Host, half: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conducting, "_MOMENTS", dict.fromkeys(Breach, 0.1))
    joined: list[Attached] = []
    attach = host.engine.attach

    def remembered(container: str) -> Attached:
        joined.append(attach(container))
        return joined[-1]

    def breaks(index: int) -> bytes:
        if index == 2:
            threading.Timer(0.2, joined[0].close).start()
            return half
        return answer(index)

    host.engine.attach = remembered  # type: ignore[method-assign]
    with pytest.raises(HostFault, match="the connection to a container's standard streams broke"):
        host.run(lambda box: client(box, breaks))


@pytest.mark.parametrize(("stall", "hosts"), [(0.0, False), (0.6, True)])
def test_a_deadline_that_an_engine_may_have_cost_is_the_hosts(host: Host, stall: float, hosts: bool) -> None:
    """The engine stands still for six tenths of a second, and an answer may take one."""
    look, stalled = host.engine.inspect, iter([0.0, stall])  # the first look is before it is started

    def inspect(container: str) -> ContainerFacts | None:
        host.clock.sleep(next(stalled, 0.0))
        return look(container)

    host.engine.inspect = inspect  # type: ignore[method-assign]
    stream = Streaming(rule=SHORT, fps=2.0, formats={"steps": STEPS})

    def run() -> JobResult:
        return host.run(lambda box: client(box, lambda i: answer(i) if i < 2 else b"", start_up=0.0), stream=stream)

    if hosts:
        with pytest.raises(HostFault, match=r"the engine kept us waiting for 0.6 s while frames were streamed"):
            run()
    else:
        assert host.verdict(run()).startswith("timed-out: frame 2")


def test_a_container_that_ends_while_we_make_a_frame_has_left(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stream waits for a frame then, and meets nothing of what the container says."""
    stopped = threading.Event()

    def slow(*given: Any, **more: Any) -> Iterator[StreamedFrame]:
        for frame in frames_of(*given, **more):
            if frame.index == 1:
                stopped.wait(60)
                time.sleep(1.0)  # longer than anybody naps before he sees that he is to stop
            yield frame

    def leaves(box: FakeBox) -> Talk:
        yield b""
        yield HELLO
        yield answer(0)
        return 0

    def conducted(*given: Any, stop: threading.Event, **more: Any) -> StreamOutcome:
        def pass_on() -> None:
            stop.wait(60)
            stopped.set()

        threading.Thread(target=pass_on, daemon=True).start()
        return conduct(*given, stop=stop, **more)

    monkeypatch.setattr(conducting, "frames_of", slow)
    monkeypatch.setattr(conducting, "conduct", conducted)
    monkeypatch.setattr(conducting, "_PATIENCE", 4.0)
    result = host.run(leaves)
    assert result.stream is not None
    assert result.stream.breach == "exited"
    assert host.verdict(result).startswith("crashed: the program ended with exit code 0 before the case was over")


def test_a_user_who_stops_us_is_obeyed(host: Host) -> None:
    def stops(index: int) -> bytes:
        host.bench.stop.set()
        return b""

    with pytest.raises(Interrupted):
        host.run(lambda box: client(box, stops))
