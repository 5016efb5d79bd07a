"""Room is made by removing what we brought, the least recently used first, and nothing that anybody may need."""

import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runner.clock import SimulatedClock
from runner.engine import ContainerSpec, EngineRefusal, EngineUnreachable, ImageFacts, ImageMissing, RefusalPhase
from runner.engine.fake import FakeEngine
from runner.errors import HostFault
from runner.images import Fate, PinnedImage, Room, Terms, free_below, load_archive, pin
from tests.archives import IMAGE, SAVED, sha256

GIB = 1 << 30


class Host:
    """An engine on a disk of 100 GiB, on which each image takes what it says; images come from a registry."""

    def __init__(self, folder: Path) -> None:
        self.engine = FakeEngine(SimulatedClock())
        self.folder = folder
        self.now = 1000.0
        self.told: list[str] = []

    def free(self) -> int:
        held = (self.engine.image(image_id).size for image_id in self.engine.image_ids())
        return 100 * GIB - sum(held)

    def room(self, *, keep_free: int = 0, free: Callable[[], int | None] | None = None) -> Room:
        return Room(
            self.engine, self.folder / "images", keep_free=keep_free, free=free or self.free, tell=self.told.append,
            now=lambda: self.now,
        )  # fmt: skip

    def bring(self, name: str, *, size: int = 30 * GIB) -> str:
        """Pull an image in a run of its own, a minute after the last; its ID."""
        digest = f"sha256:{sha256(name.encode())}"
        reference = f"127.0.0.1:5001/{name}@{digest}"
        facts = {"id": f"sha256:{sha256(digest.encode())}", "repo_digests": (reference,), "size": size}
        self.engine.add_remote(f"127.0.0.1:5001/{name}:1", lambda _: 0, **facts)  # type: ignore[arg-type]
        self.engine.add_remote(reference, lambda _: 0, **facts)  # type: ignore[arg-type]
        self.now += 60
        with self.room() as room:
            terms = Terms(deadline=10, clock=SimulatedClock(), room=room)
            found = pin(self.engine, f"127.0.0.1:5001/{name}:1", base=self.folder, terms=terms, progress=lambda _: None)
            assert isinstance(found, PinnedImage)
            return found.id

    def held(self, *images: str) -> list[bool]:
        return [image in self.engine.image_ids() for image in images]


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_the_least_recently_used_go_first_and_no_more_than_needed(host: Host) -> None:
    images = [host.bring(name) for name in ("a", "b", "c")]
    with host.room() as room:
        room.make(10 * GIB)
        assert host.held(*images) == [True, True, True]
        room.make(50 * GIB)
    assert host.held(*images) == [False, False, True]
    assert host.told == [
        f"removed image {image[:19]}, unused and to be had again, to make room" for image in images[:2]
    ]


def test_use_counts_and_not_arrival(host: Host) -> None:
    first, second = host.bring("a"), host.bring("b")
    host.now += 60
    with host.room() as room:
        room.use(first)
    with host.room() as room:
        room.make(50 * GIB)
    assert host.held(first, second) == [True, False]


def test_room_is_kept_free_beside_what_is_needed(host: Host) -> None:
    image = host.bring("a")
    with host.room(keep_free=70 * GIB) as room:
        room.make(0)
        assert host.held(image) == [True]
    with host.room(keep_free=71 * GIB) as room:
        room.make(0)
    assert host.held(image) == [False]


def test_too_little_for_the_image_alone_is_the_hosts_and_too_little_to_spare_is_not(host: Host) -> None:
    with host.room(keep_free=1000 * GIB) as room:
        room.make(100 * GIB)
        with pytest.raises(HostFault) as caught:
            room.make(100 * GIB + 1)
    assert caught.value.what == "the engine's disk has 100 GiB free, an image needs about 100 GiB"
    assert "Docker Root Dir" in caught.value.remedy


def test_a_disk_that_cannot_be_seen_is_left_alone(host: Host) -> None:
    image = host.bring("a")
    with host.room(keep_free=1000 * GIB, free=lambda: None) as room:
        room.make(1000 * GIB)
    assert host.held(image) == [True]


def tight(host: Host) -> None:
    """Make all the room there can be."""
    with host.room(keep_free=101 * GIB) as room:
        room.make(0)


def test_what_we_did_not_bring_stays(host: Host) -> None:
    """A local image, and one that was there when we pulled it."""
    local = host.engine.add_image("mine:1", lambda _: 0, id=f"sha256:{'1' * 64}", size=GIB)
    there = f"sha256:{'2' * 64}"
    reference = f"127.0.0.1:5001/there@sha256:{'3' * 64}"
    for put in (host.engine.add_image, host.engine.add_remote):
        put("127.0.0.1:5001/there:1", lambda _: 0, id=there, size=GIB, repo_digests=(reference,))
    host.engine.add_remote(reference, lambda _: 0, id=there, size=GIB, repo_digests=(reference,))
    with host.room() as room:
        terms = Terms(deadline=10, clock=SimulatedClock(), room=room)
        for source in ("mine:1", "docker://127.0.0.1:5001/there:1"):
            pin(host.engine, source, base=host.folder, terms=terms, progress=lambda _: None)
    tight(host)
    assert host.held(local, there) == [True, True]


@pytest.mark.parametrize(
    "change", ["other digest", "gone", "unreachable", "refused"],
)  # fmt: skip
def test_what_cannot_be_had_again_stays(host: Host, change: str) -> None:
    image = host.bring("a")
    digest = f"sha256:{sha256(b'a')}"
    reference = f"127.0.0.1:5001/a@{digest}"
    if change == "other digest":
        host.engine.add_remote(reference, lambda _: 0, id=image, repo_digests=("127.0.0.1:5001/a@sha256:other",))
    elif change == "gone":
        del host.engine._registry[reference]
    else:
        error = EngineUnreachable("x") if change == "unreachable" else EngineRefusal(RefusalPhase.PULL, "denied")
        host.engine.fail_next("registry_digest", error)
    tight(host)
    assert host.held(image) == [True]
    if change in ("unreachable", "refused"):
        tight(host)
        assert host.held(image) == [False]


def test_what_somebody_named_since_stays(host: Host) -> None:
    image = host.bring("a")
    facts = host.engine.image(image)
    host.engine.add_image("mine:1", lambda _: 0, id=image, size=facts.size)
    tight(host)
    assert host.held(image) == [True]


def test_what_this_run_uses_stays_until_its_end(host: Host) -> None:
    image = host.bring("a")
    with host.room(keep_free=100 * GIB) as room:
        room.use(image)
        room.make(0)
        assert host.held(image) == [True]
        tight(host)
        assert host.held(image) == [True]
    tight(host)
    assert host.held(image) == [False]


@pytest.fixture
def other_runner(host: Host) -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    """Another process that uses an image."""
    children: list[subprocess.Popen[str]] = []

    def start(image: str) -> subprocess.Popen[str]:
        program = f"""
            import sys
            from pathlib import Path
            from runner.images import Room
            room = Room(None, Path({str(host.folder / "images")!r}), keep_free=0, free=lambda: 0, tell=print)
            room.use({image!r})
            print("used", flush=True)
            sys.stdin.read()
        """
        child = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        children.append(child)
        assert child.stdout is not None
        assert child.stdout.readline() == "used\n"
        return child

    yield start
    for child in children:
        child.kill()
        child.communicate()


def test_what_another_runner_uses_stays_until_it_dies(
    host: Host, other_runner: Callable[[str], subprocess.Popen[str]]
) -> None:
    image = host.bring("a")
    child = other_runner(image)
    tight(host)
    assert host.held(image) == [True]
    child.kill()
    child.wait()
    tight(host)
    assert host.held(image) == [False]


def test_an_archive_is_had_again_only_while_its_file_is_the_same(host: Host, tmp_path: Path) -> None:
    path = tmp_path / "a.tar"

    def load() -> None:
        path.write_bytes(SAVED)
        with host.room() as room:
            terms = Terms(deadline=10, clock=SimulatedClock(), room=room)
            pin(host.engine, "a.tar", base=tmp_path, terms=terms, progress=lambda _: None)

    load()
    path.write_bytes(SAVED + b"\0")
    tight(host)
    assert host.held(IMAGE.id) == [True]
    path.unlink()
    tight(host)
    assert host.held(IMAGE.id) == [True]
    path.write_bytes(SAVED)
    tight(host)
    assert host.held(IMAGE.id) == [False]
    load()
    assert host.held(IMAGE.id) == [True]


def test_an_archive_of_an_image_that_was_there_brings_nothing(host: Host, tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(SAVED)
    load_archive(host.engine, tmp_path / "a.tar", deadline=10)
    with host.room() as room:
        terms = Terms(deadline=10, clock=SimulatedClock(), room=room)
        pin(host.engine, "a.tar", base=tmp_path, terms=terms, progress=lambda _: None)
    tight(host)
    assert host.held(IMAGE.id) == [True]


def test_an_image_that_is_gone_is_forgotten(host: Host) -> None:
    image = host.bring("a")
    host.engine.remove_image(image)
    tight(host)
    assert "sha256" not in (host.folder / "images" / "ledger.json").read_text()
    assert host.told == []


def test_an_image_that_the_engine_keeps_is_not_said_to_be_gone(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    image = host.bring("a")
    monkeypatch.setattr(FakeEngine, "remove_image", lambda *_: None)
    tight(host)
    assert host.told == []
    assert image in (host.folder / "images" / "ledger.json").read_text()


def test_an_image_without_an_origin_is_not_ours_to_remove(host: Host) -> None:
    facts = ImageFacts(id=f"sha256:{'4' * 64}")
    with host.room() as room:
        room.brought(facts, "")
    assert not (host.folder / "images" / "ledger.json").exists()


def test_the_engines_disk_is_seen_only_where_it_is_this_hosts(tmp_path: Path) -> None:
    import os  # noqa: PLC0415

    kernel = os.uname().release
    assert (free_below(str(tmp_path), kernel=kernel) or 0) > 0
    assert free_below(str(tmp_path), kernel="6.10.14-linuxkit") is None
    assert free_below(str(tmp_path / "none"), kernel=kernel) is None


def test_the_fake_forgets_as_an_engine_does(host: Host) -> None:
    image = host.bring("a")
    host.engine.remove_image(image)
    with pytest.raises(ImageMissing):
        host.engine.image(image)


def discarded(host: Host, image: str, *, built: bool = False) -> Fate:
    with host.room() as room:
        return room.discard(image, built=built)


def test_what_we_brought_is_removed_on_demand_though_its_source_is_gone(host: Host) -> None:
    image, other = host.bring("a"), host.bring("b")
    host.engine._registry.clear()
    assert discarded(host, image) is Fate.DELETED
    assert host.held(image, other) == [False, True]
    assert discarded(host, image) is Fate.GONE


def test_what_we_did_not_bring_stays_on_demand_unless_we_built_it(host: Host) -> None:
    image = host.engine.add_image("mine:1", lambda _: 0)
    assert discarded(host, image) is Fate.NOT_OURS
    assert host.held(image) == [True]
    assert discarded(host, image, built=True) is Fate.DELETED
    assert host.held(image) == [False]


def test_what_somebody_named_since_stays_on_demand(host: Host) -> None:
    image = host.bring("a")
    host.engine.add_image("mine:1", lambda _: 0, id=image, size=host.engine.image(image).size)
    assert discarded(host, image) is Fate.NOT_OURS
    assert host.held(image) == [True]


def test_what_a_container_uses_stays_on_demand(host: Host) -> None:
    image = host.bring("a")
    container = host.engine.create(ContainerSpec(image_id=image, name="c", labels={}))
    assert discarded(host, image) is Fate.IN_USE
    assert host.held(image) == [True]
    host.engine.remove(container)
    assert discarded(host, image) is Fate.DELETED


def test_what_another_runner_uses_stays_on_demand(
    host: Host, other_runner: Callable[[str], subprocess.Popen[str]]
) -> None:
    image = host.bring("a")
    child = other_runner(image)
    assert discarded(host, image) is Fate.IN_USE
    child.communicate()
    assert discarded(host, image) is Fate.DELETED
