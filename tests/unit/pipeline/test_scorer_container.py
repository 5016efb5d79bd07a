"""A scorer in a container: what it is shown, when it runs again, and whose fault it is where it fails."""

import json
import math
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from runner.catalog import LoadedChallenge
from runner.challenge import Challenge
from runner.clock import SimulatedClock
from runner.confine import Confine
from runner.dataset import Case
from runner.engine import EngineRefusal, EngineUnreachable, RefusalPhase
from runner.engine.fake import FAKE_FACTS, FakeBox, FakeEngine, FakeExit
from runner.errors import HostFault, HostUnfit, RunnerError, ScorerFault, UsageError
from runner.execute import Bench
from runner.images import PinnedImage, SourceKind
from runner.judge import CaseOutcome
from runner.lease import Leases
from runner.ownership import LABEL_OWNER, current_owner
from runner.pipeline import record as records
from runner.pipeline import scorer_container
from runner.pipeline.container_scores import ContainerScores, ToScore, all_to_score
from runner.pipeline.context import Context
from runner.pipeline.events import Event, HostFailed, Notice, Step
from runner.pipeline.host import HostFacts
from runner.pipeline.pinning import image_room
from runner.pipeline.record import RunRecord
from runner.pipeline.scorer_container import (
    EngineDoor,
    pinned_scorers,
    scorers_at_hand,
    settle_scores,
    settle_scores_apart,
)
from runner.pipeline.standings import work_out
from runner.provenance import DataHashes
from runner.settings import Settings
from runner.store import RunFolder, read_value, write_value
from runner.submissions import Status, Submission
from runner.verdict import Verdict, VerdictWord
from runner.workspace import Workspace
from tests.archives import ODD, SAVED
from tests.unit.conftest import CHALLENGE

IMAGE = "scorer:1"
HOST = HostFacts(engine=FAKE_FACTS, output="x", gpus=())
TRUTH = {"one": 3, "Two words": 5}
GUESSES: Mapping[str, Mapping[str, int | None]] = {
    "good": {"one": 3, "Two words": 5},
    "bad": {"one": 9, "Two words": None},
}
"""By team and case; None where nothing was accepted."""

Program = Callable[[FakeBox], FakeExit | int]


def challenge_of(**scorer: Any) -> Challenge:
    bad = {"kind": "answer", "file": "{case}.json", "fields": {"n": {"type": "integer"}}}
    image = {
        "image": IMAGE, "args": ["{input}", "{output}", "{task}"],
        "limits": {"run_time": {"fixed": 60}, "memory": "128 MiB", "shm": "16 MiB", "cpus": 1, "output": "2 MiB"},
        "metrics": {
            "share": {"title": "Share", "worst": 0, "higher_is_better": True},
            "error": {"title": "Error", "worst": 99, "higher_is_better": False},
        },
    }  # fmt: skip
    task = {
        "format": bad, "scorer": "container", "scorer_image": {**image, **scorer}, "missing_case": "worst",
        "primary": {"metric": "error", "higher_is_better": False},
    }  # fmt: skip
    cases = {"inputs": {"text": {"kind": "file", "path": "{case}.txt"}}, "references": "{case}.json"}
    return Challenge.model_validate({**CHALLENGE, "cases": cases, "tasks": {"words": task}})


def numbers(box: FakeBox, side: str) -> dict[str, int]:
    """What lies in one of the two folders, by case."""
    folder = box.path("/data/inputs") / f"{side}s"
    return {below.name: json.loads((below / f"{side}.json").read_text())["n"] for below in folder.iterdir()}


def write(box: FakeBox, text: str) -> None:
    (box.path("/data/outputs") / "scores.json").write_text(text)


def good(box: FakeBox) -> int:
    guesses, truth = numbers(box, "prediction"), numbers(box, "reference")
    assert guesses.keys() == truth.keys()
    cases = {case: {"error": abs(guess - truth[case]), "share": None} for case, guess in guesses.items()}
    write(box, json.dumps({"cases": cases}))
    return 0


class Scene:
    """A run of two submissions whose verdicts are settled."""

    def __init__(self, folder: Path, confine: Confine) -> None:
        self.folder, self.confine = folder, confine
        self.clock = SimulatedClock()
        self.engine = FakeEngine(self.clock)
        self.run = RunFolder(root=folder / "run")
        self.events: list[Event] = []
        self.challenge = challenge_of()
        self.settings = Settings(workspace=folder / "work", host_retries=1, keep_free=0)
        self.runs = 0
        (folder / "work").mkdir()
        self.helper = self.engine.add_image("helper", lambda _: FakeExit(seconds=math.inf))
        self.cases = {name: self._case(name, number) for name, number in TRUTH.items()}
        self.record = self._record(*(Submission(submission=name, team=name, image="x") for name in GUESSES))
        for team, guesses in GUESSES.items():
            for case, guess in guesses.items():
                self._outcome(team, case, guess)

    def _case(self, name: str, number: int) -> Case:
        path = self.folder / "references" / f"{name}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"n": number}))
        return Case(name=name, inputs=(), frames=(), media_seconds=0.0, references={"words": path})

    def _outcome(self, team: str, case: str, guess: int | None) -> None:
        word = VerdictWord.CRASHED if guess is None else VerdictWord.ACCEPTED
        outcome = CaseOutcome(
            submission=team, task="words", case=case, verdict=Verdict(word=word, sentence="so it was"), digest="d",
            attempt=1, seconds=1.0, limit=60.0,
        )  # fmt: skip
        write_value(self.run.outcome(team, "words", case), outcome)
        path = self.run.attempt(team, "words", case, "full", 1) / "predictions" / "prediction.json"
        path.parent.mkdir(parents=True)
        if guess is not None:
            path.write_text(json.dumps({"n": guess}))

    def _record(self, *submissions: Submission) -> RunRecord:
        return RunRecord(
            proctor="0", challenge="toy", challenge_version="1", challenge_digest="d", data=self.folder, cases=(),
            submissions=submissions, base=self.folder, settings=self.settings, sources={}, allow_cpu=True, started="",
        )  # fmt: skip

    @property
    def loaded(self) -> LoadedChallenge:
        return LoadedChallenge(challenge=self.challenge, folder=self.folder, digest="d")

    @property
    def bench(self) -> Bench:
        return Bench(
            engine=self.engine, clock=self.clock, workspace=Workspace(folder=self.folder / "work"),
            leases=Leases(folder=self.folder / "leases"), owner=current_owner(), run_token="t", helper=self.helper,
        )  # fmt: skip

    @property
    def context(self) -> Context:
        return Context(
            run=self.run, loaded=self.loaded, cases=self.cases, input_hashes={}, seed=0, settings=self.settings,
            bench=self.bench, host=HOST, confine=self.confine, observe=self.events.append,
            hashes=DataHashes(cache=self.run.private / "hashes.json"),
        )  # fmt: skip

    def scorer(self, program: Program, name: str = IMAGE, **facts: Any) -> PinnedImage:
        def counted(box: FakeBox) -> FakeExit | int:
            self.runs += 1
            return program(box)

        found = self.engine.image(self.engine.add_image(name, counted, **facts))
        return PinnedImage(source=name, kind=SourceKind.LOCAL, id=found.id, digests=(), facts=found)

    def settle(self, image: PinnedImage) -> int:
        """Have the scores on disk; how many containers that took."""
        before = self.runs
        settle_scores(self.context, self.record, {"words": image})
        assert self.engine.containers(LABEL_OWNER) == ()
        return self.runs - before

    def fault(self, program: Program) -> ScorerFault:
        with pytest.raises(ScorerFault) as caught:
            self.settle(self.scorer(program))
        return caught.value

    def due(self) -> tuple[ToScore, ...]:
        return all_to_score(self.run, self.record, self.loaded, self.cases)

    def stored(self, team: str) -> ContainerScores:
        return read_value(self.run.container_scores(team, "words"), ContainerScores)

    def figures(self) -> dict[str, tuple[float | None, Mapping[str, float]]]:
        (board,) = work_out(self.run, self.record, self.loaded, self.cases, self.confine).boards
        return {row.submission.submission: (row.rank, row.values) for row in board.rows}

    def said(self, kind: type[Notice | Step]) -> list[str]:
        return [event.text for event in self.events if isinstance(event, kind)]


@pytest.fixture(scope="module")
def confine() -> Iterator[Confine]:
    with Confine(preload=("runner.formats.readers.json_text",)) as confined:
        yield confined


@pytest.fixture
def scene(tmp_path: Path, confine: Confine) -> Iterator[Scene]:
    scene = Scene(tmp_path, confine)
    yield scene
    scene.engine.close()


class TestScored:
    def test_the_scores_rank(self, scene: Scene) -> None:
        image = scene.scorer(good)
        assert scene.settle(image) == 2
        assert scene.stored("good").scores == {
            "one": {"error": 0.0, "share": None},
            "Two words": {"error": 0.0, "share": None},
        }
        assert scene.stored("bad").scores == {"one": {"error": 6.0, "share": None}}
        assert (scene.stored("good").image, scene.stored("bad").image) == (image.id, image.id)
        # The case that crashed counts 99, as challenge.yaml says of the worst; a share is nowhere defined but there.
        assert scene.figures() == {
            "good": (1.0, {"error": 0.0}),
            "bad": (2.0, {"error": (6 + 99) / 2, "share": 0.0}),
        }
        assert scene.said(Step) == [
            "scoring good, task words, in a container", "scoring bad, task words, in a container",
        ]  # fmt: skip

    def test_what_a_scorer_is_shown_and_held_to(self, scene: Scene) -> None:
        seen: dict[str, object] = {}

        def look(box: FakeBox) -> int:
            view = box.path("/data/inputs")
            files = [path for path in view.rglob("*") if path.is_file()]
            seen["files"] = sorted(path.relative_to(view).as_posix() for path in files)
            seen["modes"] = {path.stat().st_mode & 0o777 for path in files}
            seen["output"] = list(box.path("/data/outputs").iterdir())
            seen["arguments"], seen["task"] = box.arguments[-3:], box.environment["PROCTOR_TASK"]
            return good(box)

        scene.settle(scene.scorer(look))
        assert seen == {
            "files": ["predictions/one/prediction.json", "references/one/reference.json"], "modes": {0o444},
            "output": [], "arguments": ("/data/inputs", "/data/outputs", "words"), "task": "words",
        }  # fmt: skip
        spec = next(spec for spec in reversed(scene.engine.created) if not spec.name.endswith("-hold"))
        assert (spec.network, spec.gpus, spec.read_only, spec.cap_add) == ("none", None, True, ())
        assert (spec.cpus, spec.shm, spec.pids) == (1.0, 16 << 20, 512)
        assert spec.memory == (128 << 20) + (2 << 20)  # its output is a volume in memory, given on top
        assert spec.user not in ("", "0", "0:0")
        assert [bind.read_only for bind in spec.binds] == [True]
        assert spec.environment["NVIDIA_VISIBLE_DEVICES"] == "void"

    def test_folders_are_shown_with_what_is_in_them(self, scene: Scene) -> None:
        for team, name in (("good", "one"), ("bad", "one"), ("good", "Two words")):
            path = scene.run.attempt(team, "words", name, "full", 1) / "predictions" / "prediction.json"
            number = path.read_text()
            path.unlink()
            (path / "deep").mkdir(parents=True)
            (path / "deep" / "0.json").write_text(number)
        reference = scene.cases["one"].references["words"]
        reference.rename(reference.with_suffix(".txt"))
        case = replace(scene.cases["one"], references={"words": reference.with_suffix(".txt")})
        due = next(one for one in scene.due() if one.submission.submission == "good")
        scene.cases["one"] = case
        assert scorer_container._shown(scene.context, due) == {
            "predictions/one": scene.run.attempt("good", "words", "one", "full", 1) / "predictions/prediction.json",
            "references/one/reference.txt": reference.with_suffix(".txt"),
            "predictions/Two words": scene.run.attempt("good", "words", "Two words", "full", 1)
            / "predictions/prediction.json",
            "references/Two words/reference.json": scene.cases["Two words"].references["words"],
        }

    def test_who_has_withdrawn_or_has_nothing_accepted_is_not_scored(self, scene: Scene) -> None:
        for case in TRUTH:
            path = scene.run.outcome("good", "words", case)
            write_value(path, replace(read_value(path, CaseOutcome), verdict=Verdict(
                word=VerdictWord.CRASHED, sentence="so it was")))  # fmt: skip
        gone = Submission(submission="gone", team="gone", image="x", status=Status.WITHDRAWN)
        scene.record = replace(scene.record, submissions=(*scene.record.submissions, gone))
        assert scene.settle(scene.scorer(good)) == 1
        assert list(scene.figures()) == ["bad", "good", "gone"]


class TestAgain:
    def test_what_fits_is_not_run_again(self, scene: Scene) -> None:
        image = scene.scorer(good)
        scene.settle(image)
        before = scene.run.container_scores("good", "words").read_bytes()
        assert scene.settle(image) == 0
        assert scene.run.container_scores("good", "words").read_bytes() == before

    @pytest.mark.parametrize(
        ("what", "runs"),
        [("reference", 2), ("one reference", 1), ("prediction", 1), ("image", 1), ("section", 2), ("verdict", 1)],
    )
    def test_what_changed_is_scored_again(self, scene: Scene, what: str, runs: int) -> None:
        image = scene.scorer(good)
        scene.settle(image)
        match what:
            case "reference":
                scene.cases["one"].references["words"].write_text('{"n": 4000}')
            case "one reference":
                scene.cases["Two words"].references["words"].write_text('{"n": 4000}')
            case "prediction":
                path = scene.run.attempt("good", "words", "one", "full", 1) / "predictions" / "prediction.json"
                path.write_text('{"n": 4000}')
            case "image":
                image = scene.scorer(good, name="scorer:2")
                settle_scores(scene.context, scene.record, {"words": image}, due=scene.due()[1:])
            case "section":
                scene.challenge = challenge_of(args=["{input}", "{output}", "words"])
            case "verdict":
                path = scene.run.outcome("good", "words", "one")
                crashed = Verdict(word=VerdictWord.CRASHED, sentence="so it was")
                write_value(path, replace(read_value(path, CaseOutcome), verdict=crashed))
        with pytest.raises(UsageError) as caught:
            scene.figures()
        assert caught.value.what.startswith("what the scorer's container gave for '")
        assert caught.value.remedy == f"proctor score {scene.run.root}"
        assert scene.settle(image) == runs
        assert scene.settle(image) == 0
        scene.figures()

    def test_without_scores_there_is_no_ranking(self, scene: Scene) -> None:
        with pytest.raises(UsageError) as caught:
            scene.figures()
        assert caught.value.what == (
            "what the scorer's container gave for 'good' in task 'words' is not there, or is of other predictions, "
            "references or rules, or by another image"
        )
        assert caught.value.where == str(scene.run.container_scores("good", "words"))

    def test_a_prediction_that_is_gone_is_told(self, scene: Scene) -> None:
        path = scene.run.attempt("good", "words", "one", "full", 1) / "predictions" / "prediction.json"
        path.unlink()
        with pytest.raises(UsageError, match="a prediction that was accepted is not there any more") as caught:
            scene.settle(scene.scorer(good))
        assert (caught.value.where, scene.runs) == (str(path), 0)

    def test_a_reference_with_problems_is_told_before_a_container_runs(self, scene: Scene) -> None:
        scene.cases["one"].references["words"].write_text('{"n": "three"}')
        with pytest.raises(UsageError, match="field 'n' is a text where a whole number is due"):
            scene.settle(scene.scorer(good))
        assert scene.runs == 0


def scores(text: str) -> Program:
    def program(box: FakeBox) -> int:
        write(box, text)
        return 0

    return program


def talks(box: FakeBox) -> int:
    for number in range(30):
        box.print(f"line {number}")
        box.print("")
    return 3


def killed(box: FakeBox) -> FakeExit:
    good(box)
    return FakeExit(code=137, oom_killed=True)


def linked(box: FakeBox) -> int:
    (box.path("/data/outputs") / "scores.json").symlink_to("/etc/passwd")
    return 0


FINE = '{"error": 1, "share": 1}'


class TestFault:
    @pytest.mark.parametrize(
        ("program", "sentence"),
        [
            (talks, "crashed: the program ended with exit code 3 after 1.0 s"),
            (killed, "out-of-memory: the process was killed for using more than the 128 MiB of memory allowed"),
            (lambda _: FakeExit(seconds=math.inf), "timed-out: ran 62.0 s of 60.0 s allowed and was stopped"),
            (lambda _: 0, ("missing-output: the program ended with exit code 0 but did not write scores.json; the "
                           "output folder is empty")),
            (linked, "unsafe-output: scores.json is a symbolic link, not a regular file of its own"),
            (scores('{"cases": {"one": {"error": NaN, "share": 1}}}'),
             "bad-output: scores.json has 1 problem: line 1, column 29: NaN and infinity are not JSON, found 'NaN'"),
            (scores(f'{{"cases": {{"one": {FINE}}}}}'),
             "bad-output: scores.json has 1 problem: case 'Two words' is missing"),
            (scores(f'{{"cases": {{"one": {FINE}, "Two words": {FINE}, "three": {FINE}}}}}'),
             "bad-output: scores.json has 1 problem: there is a case that was not shown, found 'three'"),
            (scores(f'{{"cases": {{"one": {FINE}, "Two words": {{"error": true, "share": null}}}}}}'),
             "bad-output: scores.json has 1 problem: case 'Two words': 'error' is neither a number nor null"),
        ],
    )  # fmt: skip
    def test_a_scorer_that_fails_is_the_organisers_and_nothing_is_lost(
        self, scene: Scene, program: Program, sentence: str
    ) -> None:
        fault = scene.fault(program)
        assert fault.what == f"the scorer's container failed on 'good' in task 'words': {sentence}"
        assert fault.exit_code == 4
        assert fault.remedy == "mend the scorer's image, then: proctor score RUN; nothing else has to run anew"
        assert Path(fault.where).is_file()
        assert scene.runs == 1  # what a scorer does is not the host's fault, and is not tried again
        assert not scene.run.container_scores("good", "words").exists()
        assert scene.settle(scene.scorer(good)) == 2
        assert scene.figures()["good"] == (1.0, {"error": 0.0})

    def test_the_end_of_what_it_printed_is_told(self, scene: Scene) -> None:
        scene.fault(talks)
        assert scene.said(Notice) == [f"the scorer printed: line {number}" for number in range(20, 30)]

    def test_one_submission_that_breaks_it_leaves_the_scores_of_those_before(self, scene: Scene) -> None:
        def picky(box: FakeBox) -> int:
            return good(box) if len(numbers(box, "prediction")) == 2 else 1

        assert "failed on 'bad'" in scene.fault(picky).what
        assert scene.stored("good").scores["one"] == {"error": 0.0, "share": None}
        assert not scene.run.container_scores("bad", "words").exists()

    def test_a_host_that_fails_is_tried_again(self, scene: Scene) -> None:
        image = scene.scorer(good)
        scene.engine.fail_next("start", EngineRefusal(RefusalPhase.START, "no space left on device"))
        scene.engine.fail_next("start", EngineRefusal(RefusalPhase.START, "no space left on device"))
        with pytest.raises(HostFault, match="no space left on device"):
            scene.settle(image)
        assert [event.again for event in scene.events if isinstance(event, HostFailed)] == [True, False]
        scene.engine.fail_next("start", EngineRefusal(RefusalPhase.START, "no space left on device"))
        assert scene.settle(image) == 2

    def test_an_engine_that_goes_away_is_no_fault_of_the_scorer(self, scene: Scene) -> None:
        def ends(_: FakeBox) -> int:
            for _time in range(9):
                scene.engine.fail_next("ping", EngineUnreachable("the engine is away"))
            return 1

        with pytest.raises(HostFault, match="the engine is away"):
            scene.settle(scene.scorer(ends))


class TestImage:
    def pin(self, scene: Scene, *, here: bool = False) -> Mapping[str, PinnedImage]:
        with image_room(scene.engine, FAKE_FACTS, scene.settings, scene.events.append) as room:
            if here:
                return scorers_at_hand(scene.engine, scene.loaded, scene.settings, room, observe=scene.events.append)
            return pinned_scorers(scene.engine, scene.loaded, scene.settings, room, observe=scene.events.append)

    def test_it_is_the_engines_own_or_the_registrys(self, scene: Scene) -> None:
        scene.challenge = challenge_of(image="registry.example/scorer:1")
        assert self.pin(scene, here=True) == {}
        scene.engine.add_remote("registry.example/scorer:1", good)
        assert self.pin(scene, here=True) == {}
        assert self.pin(scene)["words"].kind is SourceKind.REGISTRY
        assert self.pin(scene, here=True)["words"].kind is SourceKind.LOCAL

    def test_an_archive_lies_beside_challenge_yaml_and_goes_with_the_run(self, scene: Scene) -> None:
        scene.challenge = challenge_of(image="images/scorer.tar")
        assert self.pin(scene, here=True) == {}
        with pytest.raises(UsageError, match="there is no image archive"):
            self.pin(scene)
        (scene.folder / "images").mkdir()
        (scene.folder / "images" / "scorer.tar").write_bytes(SAVED)
        assert self.pin(scene, here=True)["words"].kind is SourceKind.ARCHIVE
        for number in range(2):
            (scene.folder / "challenge.yaml").write_text(str(number))
            records._copy_challenge(scene.run, scene.loaded)
            copy = scene.run.challenge / "images" / "scorer.tar"
            assert copy.read_bytes() == SAVED
        (scene.folder / "images" / "scorer.tar").write_bytes(SAVED + b"0")
        records._copy_challenge(scene.run, scene.loaded)
        assert copy.read_bytes() == SAVED + b"0"

    def test_a_folder_is_to_be_built_first(self, scene: Scene) -> None:
        (scene.folder / "scorer").mkdir()
        scene.challenge = challenge_of(image="./scorer")
        with pytest.raises(UsageError, match=r"the scorer's image './scorer' is a folder") as caught:
            self.pin(scene)
        assert caught.value.remedy == "build it: docker build -t NAME ./scorer, and name it by that NAME"
        assert caught.value.where == f"{scene.folder / 'challenge.yaml'}: tasks.words.scorer_image"

    def test_one_that_cannot_be_run_is_the_organisers(self, scene: Scene) -> None:
        scene.challenge = challenge_of(image="odd.tar")
        (scene.folder / "odd.tar").write_bytes(ODD["manifest: two images"].data)
        with pytest.raises(UsageError) as caught:
            self.pin(scene)
        assert caught.value.what == "the scorer's image cannot be run: image archive 'odd.tar' holds 2 images, not one"


@dataclass
class Door:
    """An engine behind a door: how often it was asked for, and how often a bench was opened."""

    scene: Scene
    answers: bool = True
    connected: int = 0
    opened: int = 0
    stop: threading.Event = field(default_factory=threading.Event)

    def connect(self, _address: str) -> FakeEngine:
        self.connected += 1
        if not self.answers:
            raise HostUnfit("no engine answers", remedy="start one")
        return self.scene.engine

    @contextmanager
    def bench(self, *_: object, **given: Any) -> Iterator[tuple[Bench, HostFacts]]:
        self.opened += 1
        yield replace(self.scene.bench, stop=given["stop"]), HOST

    def settle(self) -> tuple[int, int]:
        """How often an engine was asked for so far, and a bench opened."""
        scene = self.scene
        settle_scores_apart(
            scene.run, scene.record, loaded=scene.loaded, cases=scene.cases, confine=scene.confine,
            observe=scene.events.append,
            door=EngineDoor(connect=self.connect, stopping=lambda: nullcontext(self.stop)),
        )  # fmt: skip
        return self.connected, self.opened


@pytest.fixture
def door(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> Door:
    door = Door(scene)
    monkeypatch.setattr(scorer_container, "open_bench", door.bench)
    return door


class TestApart:
    def test_an_engine_is_made_ready_only_where_scores_do_not_fit(self, scene: Scene, door: Door) -> None:
        scene.scorer(good)
        assert door.settle() == (1, 1)
        assert scene.figures()["good"][0] == 1.0
        assert door.settle() == (2, 1)
        scene.cases["one"].references["words"].write_text('{"n": 4000}')
        assert door.settle() == (3, 2)

    def test_without_an_engine_the_scores_on_disk_count_where_they_fit(self, scene: Scene, door: Door) -> None:
        scene.scorer(good)
        door.settle()
        door.answers = False
        assert door.settle() == (2, 1)
        assert scene.said(Notice) == [
            "no scorer's image was looked at: no engine answers; the scores it gave before count"
        ]
        scene.cases["one"].references["words"].write_text('{"n": 4000}')
        with pytest.raises(HostUnfit, match="no engine answers"):
            door.settle()

    def test_an_image_that_is_gone_matters_only_where_it_is_needed(self, scene: Scene, door: Door) -> None:
        image = scene.scorer(good)
        door.settle()
        scene.engine.remove_image(image.id)
        assert door.settle() == (2, 1)
        scene.run.container_scores("bad", "words").unlink()
        with pytest.raises(RunnerError, match=IMAGE):
            door.settle()

    def test_a_challenge_without_such_a_scorer_asks_for_no_engine(self, scene: Scene, door: Door) -> None:
        task = scene.challenge.tasks["words"].model_copy(update={"scorer": "toy.words", "scorer_image": None})
        scene.challenge = scene.challenge.model_copy(update={"tasks": {"words": task}})
        assert door.settle() == (0, 0)

    def test_who_asks_to_stop_is_obeyed(self, scene: Scene, door: Door) -> None:
        scene.scorer(good)
        door.stop.set()
        with pytest.raises(RunnerError) as caught:
            door.settle()
        assert (caught.value.exit_code, scene.runs) == (130, 0)
