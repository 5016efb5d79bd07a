"""What is purged is gone and on record, the receipt verifies the rest, and nothing else is ever deleted."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from runner.clock import SimulatedClock
from runner.engine import Engine, EngineUnreachable
from runner.engine.fake import FakeEngine
from runner.errors import HostFault, Interrupted, UsageError
from runner.images import Room, SourceKind
from runner.ownership import Owner, current_owner
from runner.pipeline.purge import PurgePlan, PurgeRequest, purge
from runner.pipeline.receipt import Verified, VerifyRequest, verify_receipt, write_receipt
from runner.receipt.contents import PURGE_FILE, RECEIPT_FILE, Purge
from runner.receipt.keys import make_key, public_file
from runner.receipt.seal import seal
from runner.store import RunFolder, locked
from tests.finished_run import IMAGE, STEP_OF, leave_pending, make_run

PREDICTIONS = sorted(path for path, step in STEP_OF.items() if step == "predictions")
OTHERS = sorted(set(STEP_OF) - set(PREDICTIONS))


@dataclass
class Scene:
    """A finished run with a signed receipt, and an engine that holds its image, which proctor brought."""

    folder: Path
    run: RunFolder
    engine: FakeEngine = field(default_factory=lambda: FakeEngine(SimulatedClock()))
    connected: int = 0

    @property
    def key(self) -> Path:
        return self.folder / "key"

    def connect(self, _address: str) -> Engine:
        self.connected += 1
        return self.engine

    def bring(self) -> None:
        self.engine.add_image("x:1", lambda _: 0, id=IMAGE)
        folder = self.folder / "work" / "images"
        with Room(self.engine, folder, keep_free=0, free=lambda: None, tell=lambda _: None) as room:
            room.brought(self.engine.image(IMAGE), f"registry/x@{IMAGE}")

    def purge(
        self,
        what: str,
        *,
        key: Path | None = None,
        confirm: Callable[[PurgePlan], bool] = lambda _: True,
        at: str = "2023-01-02T00:00:00+00:00",
    ) -> Purge:
        request = PurgeRequest(
            run=self.run, images="images" in what, inputs="inputs" in what, predictions="predictions" in what, at=at,
            key=key or self.key,
        )  # fmt: skip
        return purge(request, connect=self.connect, confirm=confirm)

    def verify(self) -> Verified:
        return verify_receipt(VerifyRequest(run=self.run, public=public_file(self.key)))

    def files(self) -> list[str]:
        """Files of the run folder that are there, but for receipt, record of purges and lock."""
        paths = (p.relative_to(self.run.root).as_posix() for p in self.run.root.rglob("*") if p.is_file())
        return sorted(set(paths) - {RECEIPT_FILE, PURGE_FILE, ".lock"})


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    make_key(tmp_path / "key")
    run = make_run(tmp_path)
    write_receipt(run, key=tmp_path / "key")
    made = Scene(folder=tmp_path, run=run)
    made.bring()
    return made


def test_predictions_are_deleted_and_the_receipt_verifies_the_rest(scene: Scene) -> None:
    done = scene.purge("predictions")
    assert sorted(done.files) == PREDICTIONS
    assert scene.files() == OTHERS
    assert not list(scene.run.root.rglob("predictions"))
    assert scene.connected == 0
    found = scene.verify()
    assert (found.whole, found.purged, found.files) == (True, len(PREDICTIONS), len(STEP_OF))


def test_the_record_has_the_digests_of_the_receipt(scene: Scene) -> None:
    scene.purge("predictions images")
    receipt = json.loads((scene.run.root / RECEIPT_FILE).read_bytes())["content"]["files"]["predictions"]
    (one,) = json.loads((scene.run.root / PURGE_FILE).read_bytes())["content"]["purges"]
    assert one == {
        "at": "2023-01-02T00:00:00+00:00", "files": receipt, "inputs": [],
        "images": [{"submission": "team-1", "id": IMAGE, "origin": f"registry/x@{IMAGE}", "fate": "deleted"}],
    }  # fmt: skip


def test_what_is_changed_after_a_purge_is_still_found(scene: Scene) -> None:
    scene.purge("predictions")
    scene.run.scores.write_bytes(b"")
    (scene.run.root / PREDICTIONS[0]).parent.mkdir(parents=True)
    (scene.run.root / PREDICTIONS[0]).write_bytes(b"")
    paths = [(one.path, one.what.value, one.step.value) for one in scene.verify().findings]
    assert paths == [("scores.csv", "changed", "scores"), (PREDICTIONS[0], "changed", "predictions")]


def test_a_changed_record_is_found_and_excuses_nothing(scene: Scene) -> None:
    scene.purge("predictions")
    path = scene.run.root / PURGE_FILE
    path.write_bytes(path.read_bytes().replace(b"2023", b"2024"))
    found = [(one.path, one.step.value) for one in scene.verify().findings]
    assert found == [(PURGE_FILE, "purge"), *((path, "predictions") for path in PREDICTIONS)]


def test_a_record_that_nobody_signed_excuses_nothing(scene: Scene) -> None:
    scene.purge("predictions")
    signed = json.loads((scene.run.root / PURGE_FILE).read_bytes())
    (scene.run.root / PURGE_FILE).write_bytes(seal(signed["content"], None))
    first, *rest = scene.verify().findings
    assert "is not signed" in first.sentence
    assert [one.path for one in rest] == PREDICTIONS


def test_a_missing_record_excuses_nothing(scene: Scene) -> None:
    scene.purge("predictions")
    (scene.run.root / PURGE_FILE).unlink()
    assert [one.path for one in scene.verify().findings] == PREDICTIONS


def test_a_record_of_other_bytes_excuses_nothing(scene: Scene) -> None:
    (scene.run.root / RECEIPT_FILE).rename(scene.folder / "receipt")
    (scene.run.root / PREDICTIONS[0]).write_bytes(b"other")
    scene.purge("predictions")
    (scene.folder / "receipt").rename(scene.run.root / RECEIPT_FILE)
    (only,) = scene.verify().findings
    assert only.path == PREDICTIONS[0]
    assert "was purged with other bytes than the receipt's" in only.sentence


def test_two_purges_stand_in_one_record(scene: Scene) -> None:
    scene.purge("predictions")
    scene.purge("images", at="2023-01-03T00:00:00+00:00")
    purges = json.loads((scene.run.root / PURGE_FILE).read_bytes())["content"]["purges"]
    assert [(len(one["files"]), len(one["images"])) for one in purges] == [(len(PREDICTIONS), 0), (0, 1)]
    assert scene.verify().whole


def test_a_purge_that_was_cut_short_can_be_finished(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_path: Path) -> None:
        raise OSError(5, "I/O error")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", fail)
        with pytest.raises(OSError, match="I/O error"):
            scene.purge("predictions")
    assert scene.files() == sorted(STEP_OF)
    assert scene.verify().whole
    scene.purge("predictions")
    assert scene.files() == OTHERS
    assert scene.verify().whole


def test_only_the_image_that_we_brought_is_deleted(scene: Scene) -> None:
    other = scene.engine.add_image("other:1", lambda _: 0)
    assert [one.fate for one in scene.purge("images").images] == ["deleted"]
    assert scene.engine.image_ids() == (other,)
    assert scene.files() == sorted(STEP_OF)
    assert [one.fate for one in scene.purge("images").images] == ["gone before"]


@pytest.mark.parametrize(
    ("kind", "fate"),
    [
        (SourceKind.FOLDER, "deleted"),
        (SourceKind.LOCAL, "kept: it was on the engine before, or somebody has named it since"),
    ],
)
def test_an_image_that_was_there_before_is_kept_and_one_that_we_built_is_not(
    tmp_path: Path, kind: SourceKind, fate: str
) -> None:
    scene = Scene(folder=tmp_path, run=make_run(tmp_path, kind=kind))
    make_key(scene.key)
    scene.engine.add_image("x:1", lambda _: 0, id=IMAGE)
    assert [one.fate for one in scene.purge("images").images] == [fate]
    assert (IMAGE in scene.engine.image_ids()) is (fate != "deleted")


def test_an_engine_that_is_away_leaves_all_as_it_was(scene: Scene) -> None:
    scene.engine.fail_next("image", EngineUnreachable("the engine does not answer"))
    with pytest.raises(HostFault, match="does not answer"):
        scene.purge("images predictions")
    assert scene.files() == sorted(STEP_OF)
    assert not (scene.run.root / PURGE_FILE).exists()


def test_copies_of_inputs_of_dead_runners_are_deleted_and_the_data_are_not(scene: Scene) -> None:
    me, work = current_owner(), scene.folder / "work"
    dead = Owner(machine=me.machine, boot="another boot", pid_namespace=me.pid_namespace, pid=1, started="1")
    for name, owner in (("0123456789abcdef", dead), ("fedcba9876543210", me)):
        (work / name / "view").mkdir(parents=True)
        (work / name / "view" / "00000.png").write_bytes(b"frame")
        (work / f"{name}.owner").symlink_to(str(owner))
    before = sorted((scene.folder / "data").rglob("*"))
    done = scene.purge("inputs")
    assert done.inputs == (f"folder {work / '0123456789abcdef'}",)
    assert [(work / name).exists() for name in ("0123456789abcdef", "fedcba9876543210")] == [False, True]
    assert sorted((scene.folder / "data").rglob("*")) == before
    assert scene.files() == sorted(STEP_OF)
    assert scene.verify().cases == 2


def untouched(scene: Scene) -> bool:
    return scene.files() == sorted(STEP_OF) and IMAGE in scene.engine.image_ids() and scene.connected == 0


def test_nothing_is_deleted_where_the_answer_is_no(scene: Scene) -> None:
    shown: list[PurgePlan] = []

    def refuse(plan: PurgePlan) -> bool:
        shown.append(plan)
        return False

    with pytest.raises(Interrupted, match="nothing was deleted"):
        scene.purge("images inputs predictions", confirm=refuse)
    (plan,) = shown
    sizes = sum((scene.run.root / path).stat().st_size for path in PREDICTIONS)
    assert (sorted(plan.files), list(plan.images), plan.inputs, plan.size) == (PREDICTIONS, [IMAGE], True, sizes)
    assert untouched(scene)
    assert not (scene.run.root / PURGE_FILE).exists()


def test_a_run_in_progress_is_not_purged(scene: Scene) -> None:
    with locked(scene.run), pytest.raises(UsageError, match="another proctor"):
        scene.purge("images inputs predictions")
    leave_pending(scene.run, "01")
    with pytest.raises(UsageError, match="not finished: 1 of 2"):
        scene.purge("images inputs predictions")
    assert untouched(scene)


def test_evidence_is_not_deleted(scene: Scene) -> None:
    (scene.run.root / PREDICTIONS[1]).write_bytes(b"forged")
    with pytest.raises(UsageError, match="is not what the receipt says"):
        scene.purge("predictions")
    assert untouched(scene)


def test_a_signed_receipt_wants_a_signed_purge(scene: Scene) -> None:
    make_key(scene.folder / "other")
    with pytest.raises(UsageError, match="could be anybody's"):
        scene.purge("predictions", key=scene.folder / "other")
    request = PurgeRequest(run=scene.run, images=False, inputs=False, predictions=True, key=None, at="")
    with pytest.raises(UsageError, match="could be anybody's"):
        purge(request, connect=scene.connect, confirm=lambda _: True)
    assert untouched(scene)


def test_a_changed_receipt_or_record_stops_a_purge(scene: Scene) -> None:
    path = scene.run.root / RECEIPT_FILE
    before = path.read_bytes()
    path.write_bytes(before + b" ")
    with pytest.raises(UsageError, match="the receipt was changed"):
        scene.purge("predictions")
    path.write_bytes(before)
    (scene.run.root / PURGE_FILE).write_bytes(b"{}")
    with pytest.raises(UsageError, match="record of an earlier purge was changed"):
        scene.purge("predictions")
    assert untouched(scene)


def test_a_run_without_a_receipt_is_purged_and_gets_one_of_the_rest(scene: Scene) -> None:
    (scene.run.root / RECEIPT_FILE).unlink()
    scene.purge("predictions")
    assert write_receipt(scene.run, key=scene.key).files == len(OTHERS)
    found = scene.verify()
    assert (found.whole, found.purged) == (True, 0)


@pytest.mark.parametrize("what", ["", "images"])
def test_wrong_input_is_told_and_makes_nothing(tmp_path: Path, what: str) -> None:
    make_key(tmp_path / "key")
    scene = Scene(folder=tmp_path, run=RunFolder(root=tmp_path / "nowhere"))
    with pytest.raises(UsageError, match="not a run folder" if what else "nothing is named"):
        scene.purge(what)
    assert not scene.run.root.exists()
