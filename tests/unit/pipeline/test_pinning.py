"""Each submission's image is pinned, refused with a verdict, left pending, or told to the organisers."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from runner.catalog import find_challenge, load_challenge
from runner.clock import SimulatedClock
from runner.confine import Confine
from runner.dataset import Case
from runner.engine import EngineRefusal, RefusalPhase
from runner.engine.fake import FAKE_FACTS, FakeEngine
from runner.errors import HostFault, UsageError
from runner.execute import Bench
from runner.images import PinnedImage
from runner.judge import CaseOutcome
from runner.lease import Leases
from runner.ownership import current_owner
from runner.pipeline import pinning
from runner.pipeline.context import Context, Entry
from runner.pipeline.events import Event, Notice
from runner.pipeline.host import HostFacts
from runner.pipeline.pinning import image_room, pinned_entries
from runner.pipeline.record import RunRecord
from runner.provenance import DataHashes
from runner.settings import Ceiling, Settings
from runner.store import RunFolder, read_value
from runner.submissions import Status, Submission
from runner.verdict import Blame, VerdictWord
from runner.workspace import Workspace
from tests.archives import IMAGE, ODD, SAVED


@dataclass
class Scene:
    """A run of two cases, whose images are about to be pinned."""

    folder: Path
    cases: dict[str, Case]
    engine: FakeEngine = field(default_factory=lambda: FakeEngine(SimulatedClock()))
    events: list[Event] = field(default_factory=list)
    limit: int = 1 << 30

    @property
    def run(self) -> RunFolder:
        return RunFolder(root=self.folder / "run")

    def context(self) -> Context:
        loaded = load_challenge(find_challenge("pitvis2023"))
        settings = Settings(
            workspace=self.folder / "work", ceiling=Ceiling(image_size=self.limit), pull_deadline=100.0, keep_free=0
        )
        bench = Bench(
            engine=self.engine, clock=self.engine._clock, workspace=Workspace(folder=self.folder / "work"),
            leases=Leases(folder=self.folder / "leases"), owner=current_owner(), run_token="t", helper="",
        )  # fmt: skip
        return Context(
            run=self.run, loaded=loaded, cases=self.cases, input_hashes=dict.fromkeys(self.cases, "0"), seed=1,
            settings=settings, bench=bench, host=HostFacts(engine=FAKE_FACTS, output="x", gpus=()),
            confine=Confine(), observe=self.events.append,
            hashes=DataHashes(cache=self.folder / "hashes.json"),
        )  # fmt: skip

    def pin(self, *rows: tuple[str, str], **changes: Any) -> tuple[Entry, ...]:
        """Pin the images of these submissions, as a run or its resume does."""
        submissions = tuple(
            Submission(submission=name, team=name, image=image, tasks=("steps",)) for name, image in rows
        )
        fields: dict[str, Any] = {
            "proctor": "0", "challenge": "pitvis2023", "challenge_version": "1", "challenge_digest": "d",
            "data": self.folder, "cases": (), "submissions": submissions, "base": self.folder, "settings": Settings(),
            "sources": {}, "allow_cpu": True, "started": "", **changes,
        }  # fmt: skip
        context = self.context()
        with image_room(self.engine, FAKE_FACTS, context.settings, self.events.append) as room:
            return pinned_entries(context, RunRecord(**fields), room)

    def outcomes(self, slug: str) -> list[CaseOutcome]:
        """The outcomes on disk of a submission's only task."""
        paths = sorted(self.run.root.glob(f"submissions/{slug}/*/*/outcome.json"))
        return [read_value(path, CaseOutcome) for path in paths]

    @property
    def notices(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Notice)]


@pytest.fixture
def scene(tmp_path: Path, make_case: Callable[..., Case], monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setattr(pinning, "findings_of", lambda *_: ())
    (tmp_path / "good.tar").write_bytes(SAVED)
    (tmp_path / "odd.tar").write_bytes(ODD["manifest: two images"].data)
    return Scene(folder=tmp_path, cases={name: make_case(name) for name in ("one", "two")})


def test_a_good_image_becomes_an_entry_and_is_kept(scene: Scene) -> None:
    (entry,) = scene.pin(("a", "good.tar"))
    assert (entry.submission.submission, entry.image.id) == ("a", IMAGE.id)
    assert read_value(scene.run.image("a"), PinnedImage) == entry.image
    assert scene.outcomes("a") == []


def test_a_bad_image_is_its_makers_and_the_others_go_on(scene: Scene) -> None:
    entries = scene.pin(("bad", "odd.tar"), ("good", "good.tar"))
    assert [entry.submission.submission for entry in entries] == ["good"]
    outcomes = scene.outcomes("bad")
    assert [outcome.case for outcome in outcomes] == ["one", "two"]
    for outcome in outcomes:
        assert (outcome.verdict.word, outcome.verdict.blame) == (VerdictWord.BAD_IMAGE, Blame.PARTICIPANT)
        assert outcome.verdict.sentence == "image archive 'odd.tar' holds 2 images, not one"
        assert outcome.verdict.hints[0].fix == "save one image a file: docker save IMAGE -o FILE"
        assert (outcome.attempt, outcome.seconds) == (0, None)
        assert outcome.limit > 0
    assert scene.notices == ["bad: bad-image: image archive 'odd.tar' holds 2 images, not one"]


def test_a_registry_that_is_down_leaves_a_submission_pending(scene: Scene) -> None:
    for _ in range(7):
        scene.engine.fail_next("pull", EngineRefusal(RefusalPhase.PULL, "connection refused"))
    entries = scene.pin(("down", "127.0.0.1:5001/x:1"), ("good", "good.tar"))
    assert [entry.submission.submission for entry in entries] == ["good"]
    for outcome in scene.outcomes("down"):
        assert outcome.verdict.pending
        assert outcome.verdict.sentence.startswith("the host failed, not the submission: image '127.0.0.1:5001/x:1'")
    # Once the registry is back, the same run takes it.
    scene.engine.add_remote("127.0.0.1:5001/x:1", lambda _: 0)
    assert len(scene.pin(("down", "127.0.0.1:5001/x:1"), ("good", "good.tar"))) == 2


def test_what_the_organisers_must_mend_stops_the_run_and_all_of_it_is_told(scene: Scene) -> None:
    scene.engine.fail_next("pull", EngineRefusal(RefusalPhase.PULL, "unauthorized: authentication required"))
    with pytest.raises(UsageError) as caught:
        scene.pin(("a", "127.0.0.1:5001/x:1"), ("b", "gone.tar"), ("good", "good.tar"))
    assert caught.value.what.startswith("2 images cannot be had: submission 'a': image '127.0.0.1:5001/x:1'")
    assert "submission 'b': there is no image archive" in caught.value.what
    with pytest.raises(UsageError) as caught:
        scene.pin(("b", "gone.tar"))
    assert caught.value.where == "submission 'b'"


def test_a_resume_goes_on_with_the_same_image(scene: Scene) -> None:
    (before,) = scene.pin(("a", "good.tar"))
    (scene.folder / "good.tar").write_bytes(ODD["manifest: two images"].data)
    assert scene.pin(("a", "good.tar")) == (before,)
    scene.engine.remove_image(before.image.id)
    with pytest.raises(UsageError, match="that this run began with is no longer on the engine") as caught:
        scene.pin(("a", "good.tar"))
    assert caught.value.where == "submission 'a'"


def test_another_source_is_another_image_and_what_was_found_of_the_old_one_goes(scene: Scene) -> None:
    scene.pin(("a", "good.tar"))
    causality = scene.run.causality("a", "steps")
    causality.parent.mkdir(parents=True)
    causality.write_text("{}")
    assert scene.pin(("a", "odd.tar")) == ()
    assert not scene.run.image("a").exists()
    assert not causality.exists()
    assert {outcome.verdict.word for outcome in scene.outcomes("a")} == {VerdictWord.BAD_IMAGE}


def test_the_hosts_ceiling_counts(scene: Scene) -> None:
    scene.limit = 1 << 20
    scene.engine.add_remote("127.0.0.1:5001/x:1", lambda _: 0, size=(1 << 20) + 1)
    assert scene.pin(("a", "127.0.0.1:5001/x:1")) == ()
    assert "1 MiB are allowed here" in scene.outcomes("a")[0].verdict.sentence


def test_a_host_that_fails_while_an_image_is_looked_into_leaves_it_pending(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> tuple[()]:
        raise HostFault("the engine is away")

    monkeypatch.setattr(pinning, "findings_of", fails)
    assert scene.pin(("a", "good.tar")) == ()
    assert {outcome.verdict.word for outcome in scene.outcomes("a")} == {VerdictWord.HOST_FAULT}


def test_a_folder_is_built_only_where_that_is_asked_for_and_the_risk_is_told(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Beside hidden data the build must keep to its memory, which buildx cannot do.
    monkeypatch.setattr("runner.images.folder.has_buildx", lambda: True)
    (scene.folder / "method").mkdir()
    (scene.folder / "method" / "Dockerfile").write_text("FROM scratch\n")
    with pytest.raises(UsageError, match="is a folder") as caught:
        scene.pin(("a", "./method"))
    assert "--build-untrusted" in caught.value.remedy
    assert scene.notices == []
    (entry,) = scene.pin(("a", "./method"), build_untrusted=True)
    assert entry.image.id == scene.engine.image("proctor-build:a").id
    assert scene.engine.builds == [("default", 8 << 30)]
    (notice,) = scene.notices
    assert notice.startswith("--build-untrusted, for 1 folders: building runs the folders' programs as root")
    assert "the hidden data" in notice


def test_a_withdrawn_submission_is_not_looked_at(scene: Scene) -> None:
    gone = Submission(submission="a", team="a", image="gone.tar", status=Status.WITHDRAWN)
    assert scene.pin(submissions=(gone,)) == ()


def test_images_of_a_run_stay_while_it_lasts(scene: Scene) -> None:
    scene.pin(("a", "good.tar"))
    assert IMAGE.id in (scene.folder / "work" / "images" / "ledger.json").read_text()
