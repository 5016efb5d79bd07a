"""Images are pinned by digest, and a failure is told with whose doing it is."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from runner.clock import SimulatedClock
from runner.engine import EngineRefusal, EngineUnreachable, RefusalPhase
from runner.engine.fake import FakeEngine
from runner.errors import HostFault, UsageError
from runner.images import Build, PinnedImage, RefusedImage, Room, SourceKind, Terms, pin, pin_again, source_kind
from tests.archives import IMAGE, ODD, SAVED, sha256

DIGEST = f"sha256:{'ab' * 32}"
WHERE = "s.csv, line 2"


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine(SimulatedClock())


def terms(**changes: object) -> Terms:
    return replace(Terms(deadline=10, clock=SimulatedClock()), **changes)  # type: ignore[arg-type]


class TestPin:
    def found(
        self, engine: FakeEngine, source: str, base: Path, told: list[str] | None = None
    ) -> PinnedImage | RefusedImage:
        progress = (told if told is not None else []).append
        return pin(engine, source, base=base, terms=terms(), progress=progress, where=WHERE)

    def pinned(self, engine: FakeEngine, source: str, base: Path, told: list[str] | None = None) -> PinnedImage:
        found = self.found(engine, source, base, told)
        assert isinstance(found, PinnedImage), found
        return found

    def test_an_archive(self, engine: FakeEngine, tmp_path: Path) -> None:
        (tmp_path / "a.tar").write_bytes(SAVED)
        assert self.pinned(engine, "a.tar", tmp_path) == PinnedImage(
            source="a.tar", kind=SourceKind.ARCHIVE, id=IMAGE.id, digests=(), facts=engine.image(IMAGE.id),
            origin=f"sha256:{sha256(SAVED)}",
        )  # fmt: skip
        assert self.pinned(engine, str(tmp_path / "a.tar"), Path("/elsewhere")).id == IMAGE.id

    def test_a_damaged_archive_is_refused_as_a_value(self, engine: FakeEngine, tmp_path: Path) -> None:
        (tmp_path / "a.tar").write_bytes(ODD["manifest: two images"].data)
        assert self.found(engine, "a.tar", tmp_path) == RefusedImage(
            source="a.tar", kind=SourceKind.ARCHIVE, sentence="image archive 'a.tar' holds 2 images, not one",
            remedy="save one image a file: docker save IMAGE -o FILE",
        )  # fmt: skip

    def test_the_limit_and_the_platform_reach_the_archive(self, engine: FakeEngine, tmp_path: Path) -> None:
        (tmp_path / "a.tar").write_bytes(SAVED)
        found = pin(engine, "a.tar", base=tmp_path, terms=terms(limit=1000), progress=lambda _: None)
        assert isinstance(found, RefusedImage)
        assert found.sentence.endswith("unpacks to more than the 1000 B allowed here")
        (tmp_path / "b.tar").write_bytes(ODD["oci: two images"].data)
        found = pin(engine, "b.tar", base=tmp_path, terms=terms(platform="linux/riscv64"), progress=lambda _: None)
        assert isinstance(found, RefusedImage)
        assert "none of them for linux/riscv64" in found.sentence

    def test_an_image_of_the_engine_is_not_pulled(self, engine: FakeEngine, tmp_path: Path) -> None:
        here = engine.add_image("team:1", lambda _: 0, repo_digests=("team@sha256:1",))
        engine.add_remote("team:1", lambda _: 0, id="sha256:newer")
        told: list[str] = []
        pinned = self.pinned(engine, "team:1", tmp_path, told)
        assert (pinned.kind, pinned.id, pinned.digests, told) == (SourceKind.LOCAL, here, ("team@sha256:1",), [])
        assert self.pinned(engine, here, tmp_path).kind is SourceKind.LOCAL

    def test_a_registrys_image_is_pulled_and_its_digest_kept(self, engine: FakeEngine, tmp_path: Path) -> None:
        digests = (f"other@{DIGEST}", f"x127.0.0.1:5003/team@{DIGEST}", f"127.0.0.1:5003/team@{DIGEST}")
        there = engine.add_remote("127.0.0.1:5003/team:1", lambda _: 0, repo_digests=digests)
        told: list[str] = []
        pinned = self.pinned(engine, "127.0.0.1:5003/team:1", tmp_path, told)
        assert (pinned.kind, pinned.id, told) == (SourceKind.REGISTRY, there, ["Pulling from 127.0.0.1:5003/team"])
        assert pinned.origin == f"127.0.0.1:5003/team@{DIGEST}"

    def test_a_short_name_is_known_in_full(self, engine: FakeEngine, tmp_path: Path) -> None:
        digests = (f"127.0.0.1:5001/xteam/m@{DIGEST}", f"127.0.0.1:5001/team/m@{DIGEST}")
        engine.add_remote("team/m:1", lambda _: 0, repo_digests=digests)
        assert self.pinned(engine, "team/m:1", tmp_path).origin == digests[1]

    def test_an_image_that_another_runner_removes_meanwhile_is_the_hosts(
        self, engine: FakeEngine, tmp_path: Path
    ) -> None:
        here = engine.add_image("team:1", lambda _: 0, id=IMAGE.id)

        class Losing(Room):
            def use(self, image_id: str) -> None:
                engine.remove_image(image_id)

        room = Losing(engine, tmp_path, keep_free=0, free=lambda: None, tell=print)
        with pytest.raises(HostFault, match=f"the image {here} was removed by another runner"):
            pin(engine, "team:1", base=tmp_path, terms=terms(room=room), progress=lambda _: None)

    def test_docker_and_two_slashes_always_pulls(self, engine: FakeEngine, tmp_path: Path) -> None:
        engine.add_image("team:1", lambda _: 0)
        newer = engine.add_remote("team:1", lambda _: 0, id="sha256:newer")
        pinned = self.pinned(engine, "docker://team:1", tmp_path)
        assert (pinned.source, pinned.kind, pinned.id) == ("docker://team:1", SourceKind.REGISTRY, newer)

    def test_a_folder_is_refused_unless_it_may_be_built(self, engine: FakeEngine, tmp_path: Path) -> None:
        (tmp_path / "method").mkdir()
        with pytest.raises(UsageError) as caught:
            self.found(engine, "method", tmp_path)
        assert str(caught.value) == (
            "s.csv, line 2: image 'method' is a folder (building runs strangers' code with network beside the data: "
            "build it elsewhere and give the image, or allow it with --build-untrusted)"
        )
        (tmp_path / "method" / "Dockerfile").write_text("FROM scratch\n")
        build = Build(reference="built:1", deadline=5, memory=1 << 30, memory_must_hold=True)
        found = pin(engine, "method", base=tmp_path, terms=terms(build=build), progress=lambda _: None)
        assert isinstance(found, PinnedImage)
        assert (found.kind, found.source, found.id) == (SourceKind.FOLDER, "method", engine.image("built:1").id)

    @pytest.mark.parametrize(
        "name", ["gone.tar", "gone.tar.gz", "gone.tgz", "gone.tar.xz", "gone.tar.bz2", "gone.tar.zst", "gone.tzst"]
    )
    def test_an_archive_that_is_not_there(self, engine: FakeEngine, tmp_path: Path, name: str) -> None:
        with pytest.raises(UsageError) as caught:
            self.found(engine, name, tmp_path)
        assert str(caught.value) == f"s.csv, line 2: there is no image archive '{tmp_path}/{name}' (check the path)"

    def test_an_image_that_is_nowhere_is_refused(self, engine: FakeEngine, tmp_path: Path) -> None:
        found = self.found(engine, "team:9", tmp_path)
        assert isinstance(found, RefusedImage)
        assert found.sentence == (
            "image 'team:9': the registry has no such image "
            "(the engine says: 'manifest for team:9 not found: manifest unknown')"
        )
        assert found.remedy == "check the name and the tag, and push the image"

    @pytest.mark.parametrize("prefix", ["sha256:", "", "docker://sha256:"])
    def test_an_id_that_the_engine_does_not_hold_is_not_pulled(
        self, engine: FakeEngine, tmp_path: Path, prefix: str
    ) -> None:
        source = prefix + "0" * 64
        with pytest.raises(UsageError) as caught:
            self.found(engine, source, tmp_path)
        assert str(caught.value) == (
            f"s.csv, line 2: the engine holds no image '{source}' (see: docker images --no-trunc)"
        )

    def test_an_engine_that_does_not_answer(self, engine: FakeEngine, tmp_path: Path) -> None:
        engine.fail_next("image", EngineUnreachable("down"))
        with pytest.raises(HostFault):
            self.found(engine, "team:9", tmp_path)

    @pytest.mark.parametrize("source", ["x" * 5000, "a/" * 3000], ids=["a name", "a path"])
    def test_a_text_too_long_for_a_path_is_a_name(self, engine: FakeEngine, tmp_path: Path, source: str) -> None:
        assert isinstance(self.found(engine, source, tmp_path), RefusedImage)


class TestPinAgain:
    """A run goes on with the image it began with, wherever its name points by now."""

    def again(self, engine: FakeEngine, before: PinnedImage, base: Path) -> PinnedImage:
        return pin_again(engine, before, base=base, terms=terms(), progress=lambda _: None, where=WHERE)

    def pulled(self, engine: FakeEngine, base: Path) -> PinnedImage:
        engine.add_remote("127.0.0.1:5002/team:1", lambda _: 0, repo_digests=(f"127.0.0.1:5002/team@{DIGEST}",))
        found = pin(engine, "127.0.0.1:5002/team:1", base=base, terms=terms(), progress=lambda _: None)
        assert isinstance(found, PinnedImage)
        return found

    def test_the_engines_own_is_taken_though_the_tag_moved(self, engine: FakeEngine, tmp_path: Path) -> None:
        before = self.pulled(engine, tmp_path)
        engine.add_image("127.0.0.1:5002/team:1", lambda _: 0, id="sha256:moved")
        engine.add_remote("127.0.0.1:5002/team:1", lambda _: 0, id="sha256:moved")
        assert self.again(engine, before, tmp_path) == before

    def test_an_image_that_is_gone_is_pulled_by_its_digest(self, engine: FakeEngine, tmp_path: Path) -> None:
        before = self.pulled(engine, tmp_path)
        engine.remove_image(before.id)
        engine.add_remote("127.0.0.1:5002/team:1", lambda _: 0, id="sha256:moved")
        engine.add_remote(f"127.0.0.1:5002/team@{DIGEST}", lambda _: 0, id=before.id)
        assert self.again(engine, before, tmp_path) == before
        assert engine.image(before.id).id == before.id

    def test_a_digest_that_is_gone_is_told(self, engine: FakeEngine, tmp_path: Path) -> None:
        before = self.pulled(engine, tmp_path)
        engine.remove_image(before.id)
        engine.add_remote("127.0.0.1:5002/team:1", lambda _: 0, id="sha256:moved")
        with pytest.raises(UsageError) as caught:
            self.again(engine, before, tmp_path)
        assert caught.value.what.startswith(
            f"the image {before.id} that this run began with is no longer on the engine, and cannot be had again: "
            f"image '127.0.0.1:5002/team@{DIGEST}': the registry has no such image"
        )
        assert caught.value.where == WHERE
        assert caught.value.remedy == (
            "put the same image back on the engine (docker load), or begin a new run with another --out"
        )

    def test_an_archive_that_gives_another_image_is_told(self, engine: FakeEngine, tmp_path: Path) -> None:
        (tmp_path / "a.tar").write_bytes(SAVED)
        before = pin(engine, "a.tar", base=tmp_path, terms=terms(), progress=lambda _: None)
        assert isinstance(before, PinnedImage)
        engine.remove_image(before.id)
        assert self.again(engine, before, tmp_path) == before
        other = replace(before, id=f"sha256:{'0' * 64}")
        with pytest.raises(UsageError, match=f"cannot be had again: its source now gives {IMAGE.id}"):
            self.again(engine, other, tmp_path)

    def test_a_registry_that_is_down_leaves_it_pending(self, engine: FakeEngine, tmp_path: Path) -> None:
        before = self.pulled(engine, tmp_path)
        engine.remove_image(before.id)
        for _ in range(9):
            engine.fail_next("pull", EngineRefusal(RefusalPhase.PULL, "connection refused"))
        with pytest.raises(HostFault):
            self.again(engine, before, tmp_path)


def test_what_is_no_name_at_all_is_for_the_pull_to_tell(engine: FakeEngine, tmp_path: Path) -> None:
    engine.fail_next("image", EngineRefusal(RefusalPhase.OTHER, "invalid reference format", status=400))
    engine.fail_next("pull", EngineRefusal(RefusalPhase.PULL, "invalid reference format", status=400))
    with pytest.raises(UsageError, match="this is no name of an image"):
        pin(engine, "UPPER", base=tmp_path, terms=terms(), progress=lambda _: None)
    with pytest.raises(UsageError, match="image 'docker://' names nothing"):
        pin(engine, "docker://", base=tmp_path, terms=terms(), progress=lambda _: None)
    engine.fail_next("image", EngineRefusal(RefusalPhase.OTHER, "broken", status=500))
    with pytest.raises(EngineRefusal):
        source_kind(engine, "x", base=tmp_path)


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("file", SourceKind.ARCHIVE),
        ("folder", SourceKind.FOLDER),
        ("./folder", SourceKind.FOLDER),
        ("folder.tar", SourceKind.ARCHIVE),
        ("here:1", SourceKind.LOCAL),
        ("method", SourceKind.LOCAL),
        ("./method", SourceKind.FOLDER),
        ("docker://here:1", SourceKind.REGISTRY),
        ("there:1", SourceKind.REGISTRY),
        ("nul\0byte", SourceKind.REGISTRY),
    ],
)
def test_what_an_images_text_means(engine: FakeEngine, tmp_path: Path, source: str, kind: SourceKind) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder.tar").mkdir()
    (tmp_path / "method").mkdir()
    engine.add_image("here:1", lambda _: 0)
    engine.add_image("method:latest", lambda _: 0)
    assert source_kind(engine, source, base=tmp_path) is kind


def test_a_user_who_asks_to_stop_is_heard(engine: FakeEngine, tmp_path: Path) -> None:
    from runner.errors import Interrupted  # noqa: PLC0415

    stop = threading.Event()
    stop.set()
    engine.fail_next("pull", EngineRefusal(RefusalPhase.PULL, "connection refused"))
    with pytest.raises(Interrupted):
        pin(engine, "team:9", base=tmp_path, terms=terms(stop=stop), progress=lambda _: None)
