"""A check for causality on the simulated engine, in every way a container is started and with every kind of answer."""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from runner.catalog import LoadedChallenge
from runner.causality import CausalityOutcome
from runner.challenge import Challenge
from runner.clock import SimulatedClock
from runner.confine import Confine
from runner.dataset import find_cases
from runner.engine.fake import FAKE_FACTS, FakeBox, FakeEngine, FakeExit
from runner.errors import HostFault, UsageError
from runner.execute import Bench
from runner.images import PinnedImage, SourceKind
from runner.job import Cut, CutKind, Job
from runner.judge import CaseOutcome
from runner.lease import Leases
from runner.ownership import Owner
from runner.pipeline import looking_ahead, sequences
from runner.pipeline.cases import runs_of, settle_run
from runner.pipeline.context import Context, Entry
from runner.pipeline.events import CausalityBegan, CausalityEnded, CutEnded, Event
from runner.pipeline.host import HostFacts
from runner.pipeline.looking_ahead import CausalityRecord, check_entry, relative_cost
from runner.pipeline.looks import Look, Looked, run_look
from runner.plan import shared_runs
from runner.provenance import DataHashes
from runner.settings import Settings
from runner.store import RunFolder, read_value
from runner.submissions import Submission, slug_of
from runner.workspace import Workspace

OWNER = Owner(machine="m", boot="b", pid_namespace="1", pid=7, started="8")
Values = Sequence[int]
Method = Callable[[Values], Values]

START_UP, A_FRAME = 3.0, 0.25
"""How long every program here takes, in seconds."""


def causal(values: Values) -> Values:
    return [value % 10 for value in values]


def ahead(values: Values) -> Values:
    """Answers what is seen in the next frame."""
    return [value % 10 for value in [*values[1:], values[-1]]]


def by_length(values: Values) -> Values:
    return [(value + len(values)) % 10 for value in values]


def sequence(seed: int, frames: int) -> list[int]:
    """Phases of a few frames each."""
    return [(seed + number // 4) % 7 for number in range(frames)]


@dataclass
class Stage:
    """A host with a data set, on which entries are run and checked."""

    folder: Path
    engine: FakeEngine
    clock: SimulatedClock
    confine: Confine
    data: Path = field(init=False)
    events: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.data = self.folder / "data"

    def case(self, name: str, values: Values, *, rows: int | None = None) -> None:
        """Write a case as a folder of frames and as a table; each frame holds a number."""
        frames = self.data / "inputs" / name
        frames.mkdir(parents=True)
        for number, value in enumerate(values):
            (frames / f"{number:05d}.png").write_text(str(value))
        for kind in ("tables", "references"):
            (self.data / kind).mkdir(exist_ok=True)
        lines = [f"{number}\t{value}" for number, value in enumerate(values)][:rows]
        (self.data / "tables" / f"{name}.tsv").write_text("\n".join(["t\tx", *lines]))
        (self.data / "references" / f"{name}.csv").write_text("SECRET")

    def context(self, challenge: Challenge, *, jobs: int = 1) -> Context:
        """A run on that data."""
        loaded = LoadedChallenge(challenge=challenge, folder=self.folder, digest="d")
        cases = {case.name: case for case in find_cases(self.data, challenge)}
        hashes = DataHashes(cache=self.folder / "hashes.json")
        settings = Settings(workspace=self.folder / "work", jobs=jobs, host_retries=0)
        helper = self.engine.add_image("helper", lambda _: FakeExit(seconds=float("inf")))
        (self.folder / "work").mkdir(exist_ok=True)
        bench = Bench(
            engine=self.engine, clock=self.clock, workspace=Workspace(folder=self.folder / "work"), owner=OWNER,
            leases=Leases(folder=self.folder / "leases"), run_token="run-1", stop=threading.Event(), helper=helper,
        )  # fmt: skip
        return Context(
            run=RunFolder(root=self.folder / "run"), loaded=loaded, cases=cases, settings=settings, seed=7,
            input_hashes={name: hashes.inputs(case) for name, case in cases.items()}, bench=bench,
            host=HostFacts(engine=FAKE_FACTS, output="volume in memory", gpus=()), confine=self.confine,
            observe=self.events.append, hashes=hashes,
        )  # fmt: skip

    def entries(self, context: Context, program: Callable[[FakeBox], FakeExit]) -> list[Entry]:
        """A submission in all tasks."""
        facts = self.engine.image(self.engine.add_image("method", program))
        image = PinnedImage(source="method", kind=SourceKind.LOCAL, id=facts.id, digests=(), facts=facts)
        submission = Submission(submission="ours", team="us", image="method")
        runs = shared_runs(context.challenge, tuple(context.challenge.tasks))
        return [Entry(submission=submission, shared=one, image=image) for one in runs]

    def check(self, context: Context, program: Callable[[FakeBox], FakeExit]) -> dict[str, CausalityRecord]:
        """Evaluate a program and check it; by task."""
        records = {}
        for entry in self.entries(context, program):
            outcomes: list[CaseOutcome] = []
            for run in runs_of(context, entry):
                outcomes += settle_run(context, run)
            assert all(one.verdict.accepted for one in outcomes), [one.verdict.sentence for one in outcomes]
            for task in entry.shared.names:
                mine = {one.case: one for one in outcomes if one.task == task}
                records[task] = check_entry(context, entry, task, mine)
                assert read_value(context.run.causality("ours", task), CausalityRecord) == records[task]
        return records

    @property
    def starts(self) -> int:
        """Containers of participants that were started."""
        return sum(not spec.name.endswith("-hold") for spec in self.engine.created)

    def jobs(self, task: str, case: str) -> list[str]:
        """Names of the jobs that are kept below a case."""
        return sorted(path.name for path in (self.folder / "run/submissions/ours" / task / slug_of(case)).glob("*/"))


@pytest.fixture(scope="module")
def confine() -> Iterator[Confine]:
    with Confine() as opened:
        yield opened


@pytest.fixture
def stage(tmp_path: Path, confine: Confine) -> Stage:
    clock = SimulatedClock()
    return Stage(folder=tmp_path, engine=FakeEngine(clock), clock=clock, confine=confine)


@pytest.fixture
def challenge(make_challenge: Callable[..., Challenge]) -> Callable[..., Challenge]:
    """A challenge that checks causality; ``rule`` changes the section."""

    def make(*, rule: dict[str, Any] | None = None, task: dict[str, Any] | None = None, **changes: Any) -> Challenge:
        own = make_challenge().tasks["steps"].model_dump(mode="json")
        own["format"]["columns"]["step"]["labels"] = list(range(10))
        section = {
            "method": "targeted", "on": "all", "cuts": 4, "on_leak": "refuse", "length_dependence": "report",
            **(rule or {}),
        }  # fmt: skip
        tasks = {name: {**own, **more} for name, more in (task or {"steps": {}}).items()}
        return make_challenge(causality=section, **{"tasks": tasks, **changes})

    return make


def frames_of(folder: Path) -> list[int]:
    return [int(path.read_text()) for path in sorted(folder.iterdir())]


def table(rows: Values) -> str:
    return "t,step\n" + "".join(f"{number},{value}\n" for number, value in enumerate(rows))


def took(frames: int) -> FakeExit:
    return FakeExit(seconds=START_UP + A_FRAME * frames)


def frame_wise(method: Method) -> Callable[[FakeBox], FakeExit]:
    """A program that is started once a case."""

    def program(box: FakeBox) -> FakeExit:
        values = frames_of(box.path(box.arguments[0]))
        box.path(box.arguments[1]).write_text(table(method(values)))
        return took(len(values))

    return program


def all_at_once(method: Method, *, scores: bool = False) -> Callable[[FakeBox], FakeExit]:
    """A program that is started once for all cases."""

    def program(box: FakeBox) -> FakeExit:
        count = 0
        for case in sorted(box.path("/data/inputs").iterdir()):
            values = frames_of(case)
            count += len(values)
            answers = method(values)
            if scores:
                rows = {f"{t:05d}": {"s": [float(c == label) for c in range(10)]} for t, label in enumerate(answers)}
                box.path(f"/data/outputs/{case.name}.json").write_text(json.dumps(rows))
            else:
                box.path(f"/data/outputs/{case.name}.csv").write_text(table(answers))
        return took(count)

    return program


SCORES = {
    "kind": "frame_scores", "file": "{case}.json", "layout": "json", "key": "s", "classes": 10, "range": (0, 1),
    "frame_ids": "stem",
}  # fmt: skip


def test_a_clean_method_a_case(stage: Stage, challenge: Callable[..., Challenge]) -> None:
    stage.case("A", sequence(0, 20))
    stage.case("B", sequence(3, 24))
    record = stage.check(stage.context(challenge()), frame_wise(causal))["steps"]
    assert [(one.case, one.frames, one.verdict.outcome, one.verdict.cuts_tested) for one in record.findings] == [
        ("A", 20, "passed", 4), ("B", 24, "passed", 4),
    ]  # fmt: skip
    assert record.summary is not None
    assert record.summary.outcome is CausalityOutcome.PASSED
    assert record.pace is not None
    assert (record.pace.start_up_seconds, record.pace.seconds_per_frame) == pytest.approx((START_UP, A_FRAME))
    assert record.pace.runs == 2 * (2 + 4) == stage.starts
    assert record.online_compatible is True  # at 2 frames a second
    lengths = sorted(cut.frames for cut in record.findings[0].verdict.cuts)
    jobs = stage.jobs("steps", "A")
    assert sorted(int(name[-4:]) for name in jobs if name not in ("full", "repeat-1")) == lengths
    assert {name.rpartition("-")[0] for name in jobs} == {"", "altered", "cut", "repeat"}
    cuts = [event for event in stage.events if isinstance(event, CutEnded)]
    assert len(cuts) == 2 * (1 + 4)
    began = [(event.case, event.expected) for event in stage.events if isinstance(event, CausalityBegan)]
    assert began == [("A", 5), ("B", 5)]


def test_a_leak_is_found_confirmed_and_drawn(stage: Stage, challenge: Callable[..., Challenge]) -> None:
    values = sequence(0, 20)
    stage.case("A", values)
    stage.case("B", sequence(3, 20))
    record = stage.check(stage.context(challenge()), frame_wise(ahead))["steps"]
    finding = record.findings[0]
    assert finding.verdict.outcome is CausalityOutcome.LEAKING
    leak = finding.verdict.first_leak
    assert leak is not None
    assert (leak.cut.kind, leak.future_frames, leak.frame) == (CutKind.ALTERED_FUTURE, 1, leak.cut.frames - 1)
    assert record.online_compatible is False
    ribbons = finding.ribbons
    assert ribbons is not None
    assert (ribbons.column, ribbons.whole.cut, ribbons.whole.frames, ribbons.whole.step) == ("step", None, 20, 1)
    assert ribbons.whole.answers == tuple(ahead(values))
    first, second = ribbons.views[:2]
    assert (first.cut, second.cut) == (Cut(frames=leak.cut.frames), leak.cut)
    assert first.answers == tuple(ahead(values[: leak.cut.frames]))
    assert len(ribbons.views) <= 6
    assert {one.cut.repeat for one in ribbons.views if one.cut is not None} == {0}


def test_a_dependence_on_length_is_no_leak(stage: Stage, challenge: Callable[..., Challenge]) -> None:
    stage.case("A", sequence(0, 20))
    stage.case("B", sequence(3, 20))
    record = stage.check(stage.context(challenge(rule={"on": 1})), frame_wise(by_length))["steps"]
    assert [one.verdict.outcome for one in record.findings] == [CausalityOutcome.LENGTH_DEPENDENT]
    assert record.online_compatible is None


@pytest.mark.parametrize(("method", "outcome"), [(causal, CausalityOutcome.PASSED), (ahead, CausalityOutcome.LEAKING)])
@pytest.mark.parametrize("scores", [False, True])
def test_in_mode_dataset_a_case_is_a_data_set_of_its_own(
    stage: Stage, challenge: Callable[..., Challenge], method: Method, outcome: CausalityOutcome, scores: bool
) -> None:
    stage.case("A", sequence(0, 20))
    stage.case("B", sequence(3, 20))
    task = {"steps": {"format": SCORES} if scores else {}}
    context = stage.context(challenge(rule={"on": 1}, task=task, invocation={"mode": "dataset"}))
    record = stage.check(context, all_at_once(method, scores=scores))["steps"]
    (finding,) = record.findings
    assert finding.verdict.outcome is outcome
    assert stage.jobs("steps", "data set") == ["full"]
    kept = stage.jobs("steps", finding.case)
    assert {"alone", "alone-1"} <= set(kept)
    assert not {"full", "repeat-1"} & set(kept)
    assert record.pace is not None
    assert record.pace.start_up_seconds == pytest.approx(START_UP)
    assert finding.ribbons is not None
    values = [int(path.read_text()) for path in sorted((stage.data / "inputs" / finding.case).iterdir())]
    assert finding.ribbons.whole.answers == tuple(method(values))
    assert finding.ribbons.column == ("" if scores else "step")


def test_a_cut_run_over_a_data_set_is_one_start(stage: Stage, challenge: Callable[..., Challenge]) -> None:
    for number, name in enumerate("ABCDE"):
        stage.case(name, sequence(number, 20 + number))
    context = stage.context(challenge(rule={"method": "cut-run"}, invocation={"mode": "dataset"}))
    record = stage.check(context, all_at_once(causal))["steps"]
    assert stage.starts == 2
    assert stage.jobs("steps", "data set") == ["cut-run", "full"]
    assert record.summary is not None
    assert (record.summary.outcome, record.summary.cuts_tested) == (CausalityOutcome.PASSED, 5)
    assert [stage.jobs("steps", name) for name in "ABCDE"] == [[]] * 5


def test_a_cut_run_in_company_confirms_a_leak(stage: Stage, challenge: Callable[..., Challenge]) -> None:
    """Only the method of one case leaks: the others' runs go on beside it, and nothing is asked of them."""
    for number, name in enumerate("ABC"):
        stage.case(name, [10 * number + value for value in sequence(number, 24)])

    def one_leaks(values: Values) -> Values:
        return (ahead if values[0] // 10 == 1 else causal)(values)

    context = stage.context(challenge(rule={"method": "cut-run", "length_dependence": "refuse"},
                                      invocation={"mode": "dataset"}))  # fmt: skip
    record = stage.check(context, all_at_once(one_leaks))["steps"]
    outcomes = {one.case: one.verdict.outcome for one in record.findings}
    assert outcomes["A"] is outcomes["C"] is CausalityOutcome.PASSED
    assert outcomes["B"] is CausalityOutcome.LEAKING
    assert {"altered-run", "cut-run", "cut-run-1", "cut-run-2", "full", "repeat-1", "repeat-2"} <= set(
        stage.jobs("steps", "data set")
    )
    # The search after the leak cuts one case only, and shows the others whole.
    searched = stage.jobs("steps", "B")
    assert searched
    assert all(name.startswith("altered-0") for name in searched)
    assert record.summary is not None
    assert record.summary.outcome is CausalityOutcome.LEAKING


def test_an_earlier_task_is_run_on_the_same_cut(stage: Stage, challenge: Callable[..., Challenge]) -> None:
    """The second task repeats what the first said; what leaks is the first, and it shows in both."""
    stage.case("A", sequence(0, 20))
    stage.case("B", sequence(3, 20))
    tasks = {"first": {"format": TABLE}, "second": {"format": TABLE, "inputs_from": ["first"]}}
    built = challenge(rule={"on": 1}, task=tasks)
    shown: list[int] = []

    def program(box: FakeBox) -> FakeExit:
        values = frames_of(box.path(box.arguments[0]))
        answers = ahead(values)
        if box.environment["PROCTOR_TASK"] == "second":
            name = Path(box.arguments[1]).name
            earlier = box.path(f"/data/inputs/predictions/first/{name}").read_text()
            assert earlier == table(answers)
            shown.append(len(values))
        box.path(box.arguments[1]).write_text(table(answers))
        return took(len(values))

    records = stage.check(stage.context(built), program)
    assert [record.findings[0].verdict.outcome for record in records.values()] == ["leaking", "leaking"]
    assert set(shown) >= {cut.frames for cut in records["second"].findings[0].verdict.cuts}
    name = records["second"].findings[0].case
    assert set(stage.jobs("second", name)) <= set(stage.jobs("first", name))


def test_an_earlier_task_that_fails_on_a_cut_leaves_it_without_an_answer(
    stage: Stage, challenge: Callable[..., Challenge]
) -> None:
    stage.case("A", sequence(0, 20))
    tasks = {"first": {"format": TABLE}, "second": {"format": TABLE, "inputs_from": ["first"]}}

    def program(box: FakeBox) -> FakeExit:
        values = frames_of(box.path(box.arguments[0]))
        box.path(box.arguments[1]).write_text(table(causal(values)))
        return FakeExit(code=3 if box.environment["PROCTOR_TASK"] == "first" and len(values) < 20 else 0, seconds=1)

    record = stage.check(stage.context(challenge(task=tasks)), program)["second"]
    (finding,) = record.findings
    assert finding.verdict.outcome is CausalityOutcome.INCONCLUSIVE
    assert "(crashed in task first)" in finding.verdict.detail
    assert record.pace is None


TABLE = {
    "kind": "frame_table", "file": "{case}.csv", "index": {"column": "t"},
    "columns": {"step": {"labels": tuple(range(10))}},
}  # fmt: skip


@pytest.mark.parametrize("method", [causal, ahead])
def test_runs_side_by_side_change_no_verdict(
    stage: Stage, challenge: Callable[..., Challenge], tmp_path: Path, method: Method
) -> None:
    stage.case("A", sequence(0, 20))
    stage.case("B", sequence(3, 20))
    one = stage.check(stage.context(challenge()), frame_wise(method))["steps"]
    context = replace(stage.context(challenge(), jobs=6), run=RunFolder(root=tmp_path / "other"))
    other = stage.check(context, frame_wise(method))["steps"]
    assert [finding.verdict for finding in one.findings] == [finding.verdict for finding in other.findings]


def test_a_check_that_was_cut_short_repeats_nothing(stage: Stage, challenge: Callable[..., Challenge]) -> None:
    stage.case("A", sequence(0, 20))
    first = stage.check(stage.context(challenge()), frame_wise(causal))["steps"]
    starts = stage.starts
    assert stage.check(stage.context(challenge()), frame_wise(causal))["steps"] == first
    assert stage.starts == starts


def test_a_clip_is_all_that_is_tested(stage: Stage, challenge: Callable[..., Challenge]) -> None:
    """PETRAW's protocol: all prefixes of the clip, the last answer of each; the whole sequence is not run again."""
    stage.case("A", sequence(0, 40))
    stage.case("B", sequence(3, 40))
    rule = {"method": "exhaustive", "rule": "last", "clip": 8, "on": 1}
    record = stage.check(stage.context(challenge(rule=rule)), frame_wise(causal))["steps"]
    (finding,) = record.findings
    assert (finding.frames, finding.verdict.outcome, finding.verdict.cuts_tested) == (8, "passed", 7)
    assert stage.jobs("steps", finding.case) == [*(f"clip-{k:04d}" for k in range(1, 9)), "clip-0008-1", "full"]
    assert finding.ribbons is not None
    assert finding.ribbons.whole.cut == Cut(frames=8, kind=CutKind.CLIP)


def test_an_altered_future_of_a_clip_is_as_long_as_the_clip(stage: Stage, challenge: Callable[..., Challenge]) -> None:
    stage.case("A", sequence(0, 40))
    stage.case("B", sequence(3, 40))
    shown = []

    def program(box: FakeBox) -> FakeExit:
        shown.append(len(frames_of(box.path(box.arguments[0]))))
        return frame_wise(ahead)(box)

    record = stage.check(stage.context(challenge(rule={"clip": 12, "on": 1})), program)["steps"]
    assert record.findings[0].verdict.outcome is CausalityOutcome.LEAKING
    assert [one for one in stage.jobs("steps", record.findings[0].case) if one.startswith("altered")]
    assert max(shown[2:]) == 12


def test_a_table_is_cut_and_the_last_row_may_have_no_line_end(
    stage: Stage, challenge: Callable[..., Challenge]
) -> None:
    stage.case("A", sequence(0, 20))
    stage.case("B", sequence(3, 20))
    inputs = {"kinematics": {"kind": "table", "path": "tables/{case}.tsv"}}
    cases = {"inputs": inputs, "references": "references/{case}.csv", "fps": 2}

    def program(box: FakeBox) -> FakeExit:
        rows = box.path(box.arguments[0]).read_text().splitlines()[1:]
        box.path(box.arguments[1]).write_text(table(ahead([int(row.split("\t")[1]) for row in rows])))
        return took(len(rows))

    built = challenge(cases=cases, invocation={"args": ("{kinematics}", "{output}.csv")})
    record = stage.check(stage.context(built), program)["steps"]
    assert [one.verdict.outcome for one in record.findings] == [CausalityOutcome.LEAKING] * 2


BOTH: dict[str, Any] = {
    "inputs": {
        "frames": {"kind": "frames", "path": "inputs/{case}"},
        "kinematics": {"kind": "table", "path": "tables/{case}.tsv"},
    },
    "references": "references/{case}.csv", "fps": 2,
}  # fmt: skip


def test_inputs_of_different_length_cannot_be_cut_at_the_same_frame(
    stage: Stage, challenge: Callable[..., Challenge]
) -> None:
    stage.case("A", sequence(0, 20), rows=19)
    context = stage.context(challenge(cases=BOTH))
    with pytest.raises(UsageError) as caught:
        relative_cost(context, shared_runs(context.challenge, ("steps",)))
    assert caught.value.what == (
        "causality cannot be checked on case 'A': it has 20 frames, but its kinematics has 19, so that they cannot be "
        "cut at the same frame"
    )
    alone = challenge(cases=BOTH, task={"steps": {"inputs": ["frames"]}})
    context = stage.context(alone)
    assert relative_cost(context, shared_runs(alone, ("steps",))) > 0


def test_a_video_is_cut_where_it_can_be(
    stage: Stage, challenge: Callable[..., Challenge], monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.case("A", sequence(0, 20))
    (stage.data / "videos").mkdir()
    (stage.data / "videos" / "A.mp4").write_bytes(b"a video")
    monkeypatch.setattr(sequences, "video_length", lambda _: 20)
    monkeypatch.setattr(sequences, "cut_points", lambda _: (1, 5, 9, 20))
    inputs = {**BOTH["inputs"], "video": {"kind": "video", "path": "videos/{case}.mp4"}}
    for rule, task, tested in (
        ({}, {}, ((1, 5, 9), False, True)),
        ({}, {"inputs": ["frames", "kinematics"]}, (None, False, False)),
        ({"clip": 10}, {}, (None, True, True)),
        ({"method": "exhaustive"}, {}, (None, True, True)),
        ({"method": "exhaustive"}, {"inputs": ["frames"]}, (None, False, False)),
    ):
        built = challenge(cases={**BOTH, "inputs": inputs}, rule=rule, task={"steps": task})
        context = stage.context(built)
        found = sequences.sequence_of(context, shared_runs(built, ("steps",))[0], context.cases["A"])
        assert (found.possible, found.clip, found.copied) == tested, (rule, task)


def test_the_video_of_an_earlier_task_counts(
    stage: Stage, challenge: Callable[..., Challenge], monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.case("A", sequence(0, 20))
    (stage.data / "videos").mkdir()
    (stage.data / "videos" / "A.mp4").write_bytes(b"another video")
    monkeypatch.setattr(sequences, "video_length", lambda _: 20)
    monkeypatch.setattr(sequences, "cut_points", lambda _: (5, 9))
    inputs = {**BOTH["inputs"], "video": {"kind": "video", "path": "videos/{case}.mp4"}}
    tasks = {"first": {"inputs": ["video"]}, "second": {"inputs": ["kinematics"], "inputs_from": ["first"]}}
    built = challenge(cases={**BOTH, "inputs": inputs}, task=tasks)
    context = stage.context(built)
    found = sequences.sequence_of(context, shared_runs(built, ("second",))[0], context.cases["A"])
    assert (found.possible, found.copied) == ((5, 9), True)


def test_what_the_check_costs(stage: Stage, challenge: Callable[..., Challenge]) -> None:
    """One whole run more and 19 prefixes of half the length on average, on one of two cases of the same length."""
    stage.case("A", sequence(0, 20))
    stage.case("B", sequence(3, 20))
    for on, times in ((1, 5.25), ("all", 10.5)):
        context = stage.context(challenge(rule={"on": on, "method": "exhaustive"}))
        assert relative_cost(context, shared_runs(context.challenge, ("steps",))) == pytest.approx(times)


def test_a_host_that_fails_leaves_a_case_pending(
    stage: Stage, challenge: Callable[..., Challenge], monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.case("A", sequence(0, 20))
    stage.case("B", sequence(3, 20))
    real = run_look

    def failing(context: Context, entry: Entry, task: str, look: Look) -> Looked:
        if look.cases[0].name == "A" and look.cuts:
            raise HostFault("the disk is full")
        return real(context, entry, task, look)

    monkeypatch.setattr(looking_ahead, "run_look", failing)
    record = stage.check(stage.context(challenge()), frame_wise(causal))["steps"]
    assert [(one.case, one.pending) for one in record.findings] == [("A", True), ("B", False)]
    said = [event.sentence for event in stage.events if isinstance(event, CausalityEnded)]
    assert said[0] == "pending, the host failed: the disk is full"
    assert record.findings[1].verdict.outcome is CausalityOutcome.PASSED


def test_a_cut_that_nearly_keeps_its_time_is_run_again_alone(stage: Stage, challenge: Callable[..., Challenge]) -> None:
    stage.case("A", sequence(0, 20))
    slow: set[int] = set()

    def program(box: FakeBox) -> FakeExit:
        frames = len(frames_of(box.path(box.arguments[0])))
        frame_wise(causal)(box)
        if frames < 20 and frames not in slow:
            slow.add(frames)
            return FakeExit(seconds=61.0)  # of 60
        return FakeExit(seconds=30.0)

    record = stage.check(stage.context(challenge()), program)["steps"]
    (finding,) = record.findings
    assert (finding.verdict.outcome, finding.verdict.cuts_tested) == (CausalityOutcome.PASSED, 4)
    folder = stage.folder / "run/submissions/ours/steps" / slug_of("A")
    assert {len(list(path.glob("attempt-*"))) for path in folder.glob("cut-*")} == {2}


def test_a_method_that_fails_on_prefixes_is_not_refused(stage: Stage, challenge: Callable[..., Challenge]) -> None:
    stage.case("A", sequence(0, 20))
    stage.case("B", sequence(3, 20))

    def program(box: FakeBox) -> FakeExit:
        frame_wise(causal)(box)
        return FakeExit(code=int(len(frames_of(box.path(box.arguments[0]))) < 20), seconds=1.0)

    record = stage.check(stage.context(challenge(rule={"on": 1})), program)["steps"]
    (finding,) = record.findings
    assert finding.verdict.outcome is CausalityOutcome.INCONCLUSIVE
    assert "(crashed)" in finding.verdict.detail
    assert "crashed" not in finding.verdict.sentence


@pytest.mark.parametrize(("mode", "seconds"), [("case", 10.0), ("dataset", 20.0)])
def test_a_cut_has_the_time_of_the_whole(
    stage: Stage, challenge: Callable[..., Challenge], mode: str, seconds: float
) -> None:
    """Of its case; or, where one container has all cases, of all of them: each lasts 10 s here."""
    stage.case("A", sequence(0, 20))
    stage.case("B", sequence(3, 20))
    limits = {"run_time": {"per_media": "1 s / 1 s"}, "memory": "2 GiB", "shm": "64 MiB", "cpus": 2}
    program = all_at_once(causal) if mode == "dataset" else frame_wise(causal)
    invocation = {"mode": mode} if mode == "dataset" else {"args": ("{input}", "{output}.csv")}
    stage.check(stage.context(challenge(rule={"on": 1, "cuts": 2}, limits=limits, invocation=invocation)), program)
    jobs = [read_value(path, Job) for path in (stage.folder / "run").rglob("job.json")]
    assert {job.budget.run_time for job in jobs} == {seconds}
    assert sum(bool(job.cuts) for job in jobs) == 2
