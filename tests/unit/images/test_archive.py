"""A hostile or damaged archive is refused without reaching what is not its own, and a good one is written anew."""

import contextlib
import io
import json
import re
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from runner.clock import SimulatedClock
from runner.engine import EngineRefusal, EngineUnreachable, ImageFacts, RefusalPhase
from runner.engine.fake import FakeEngine
from runner.errors import HostFault, UsageError
from runner.images import Unusable, load_archive
from tests.archives import (
    AMD,
    ARM,
    EVIL,
    GOOD,
    IMAGE,
    LIMIT,
    ODD,
    ONE,
    OTHER,
    SAVED,
    Entry,
    Image,
    Odd,
    docker_entries,
    index,
    layer,
    oci,
    replaced,
    sha256,
    tar_of,
    with_sum,
)

CONFIG_NAME = f"{sha256(IMAGE.text)}.json"
LAYER_NAMES = [f"{sha256(data)}.tar" for data in IMAGE.layers]
CLEAN = {
    CONFIG_NAME: IMAGE.text,
    LAYER_NAMES[0]: IMAGE.layers[0],
    LAYER_NAMES[1]: IMAGE.layers[1],
    "manifest.json": json.dumps([{"Config": CONFIG_NAME, "RepoTags": None, "Layers": LAYER_NAMES}]).encode(),
}


class Spying(FakeEngine):
    """A fake that keeps what it is given to load."""

    def __init__(self) -> None:
        super().__init__(SimulatedClock())
        self.loaded: dict[str, bytes] = {}

    def load(self, archive: Iterable[bytes], *, deadline: float) -> tuple[str, ...]:
        data = b"".join(archive)
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            members = tar.getmembers()
            assert all(member.isreg() for member in members)
            assert data.endswith(b"\0" * 1024), "the tar has no end"
            self.loaded = {m.name: tar.extractfile(m).read() for m in members}  # type: ignore[union-attr]
            assert len(members) == len(self.loaded), "a name stands there twice"
        return super().load([data], deadline=deadline)


@pytest.fixture
def engine() -> Spying:
    return Spying()


Load = Callable[[bytes], ImageFacts]


@pytest.fixture
def load(engine: Spying, tmp_path: Path) -> Load:
    """Load an archive of these bytes."""

    def load(data: bytes) -> ImageFacts:
        path = tmp_path / "image.tar"
        path.write_bytes(data)
        loaded = load_archive(engine, path, deadline=10, limit=LIMIT, where="s.csv, line 2")
        assert loaded.sha256 == sha256(data)
        return loaded.facts

    return load


def refusal(load: Load, data: bytes) -> Unusable:
    with pytest.raises(Unusable) as caught:
        load(data)
    return caught.value


def says(odd: Odd, sentence: str) -> bool:
    """Whether a sentence is the one; ``…`` in it stands for anything."""
    wanted = ".*".join(re.escape(part) for part in odd.sentence.split("…"))
    comma = "" if odd.sentence.startswith(",") else " "
    return re.fullmatch(rf"image archive 'image\.tar'{comma}{wanted}", sentence, re.DOTALL) is not None


@pytest.mark.parametrize("name", GOOD)
def test_a_good_archive_is_sent_anew_without_names_and_unpacked(engine: Spying, load: Load, name: str) -> None:
    facts = load(GOOD[name])
    assert (facts.id, facts.entrypoint, facts.repo_tags) == (IMAGE.id, ("/run",), ())
    assert engine.loaded == CLEAN
    # Without it nothing is loaded, so it is sent when everything before it has proved right.
    assert list(engine.loaded)[-1] == "manifest.json"


@pytest.mark.parametrize("name", ODD)
def test_an_odd_archive_gets_its_sentence_and_the_engine_is_not_asked(engine: Spying, load: Load, name: str) -> None:
    caught = refusal(load, ODD[name].data)
    assert says(ODD[name], caught.what), caught.what
    assert caught.remedy != ""
    assert engine.loaded == {}


def test_there_are_more_than_thirty_odd_archives() -> None:
    assert len(ODD) > 90


@pytest.mark.parametrize(
    "entries",
    [
        (Entry("/manifest.json", EVIL),),
        (Entry("../manifest.json", EVIL),),
        (Entry("x/../manifest.json", EVIL),),
        (Entry("d", kind=tarfile.SYMTYPE, link="."), Entry("d/manifest.json", EVIL)),
        (Entry("evil.json", EVIL), Entry("manifest.json", kind=tarfile.LNKTYPE, link="evil.json")),
        (Entry("repositories", b'{"proctor-helper": {"1": "l1"}}'),),
        (Entry("index.json", b"{}"), Entry("oci-layout", b"{}"), Entry("blobs/sha256/x", b"x")),
        (Entry("../../etc/x", b"x"), Entry("/etc/x", b"x"), Entry("dev", kind=tarfile.CHRTYPE)),
        (Entry("l1", kind=tarfile.DIRTYPE), Entry("l9", kind=tarfile.SYMTYPE, link="/"), Entry("f", b"x")),
        (Entry("unknown", b"12345", kind=b"Z"),),
        (Entry("comment", b"13 comment=x\n", kind=tarfile.XGLTYPE),),
    ],
)
@pytest.mark.parametrize("first", [False, True])
def test_nothing_but_the_image_itself_reaches_the_engine(
    engine: Spying, load: Load, entries: tuple[Entry, ...], first: bool
) -> None:
    if first and any(entry.name == "manifest.json" for entry in entries):
        entries = entries[:1]
    helper = engine.add_image("proctor-helper:1", lambda _: 0)
    parts = (*entries, *docker_entries()) if first else (*docker_entries(), *entries)
    facts = load(tar_of(*parts))
    assert (facts.id, facts.repo_tags) == (IMAGE.id, ())
    assert engine.loaded == CLEAN
    assert engine.image("proctor-helper:1").id == helper


def test_equal_layers_are_sent_once_and_links_are_followed(engine: Spying, load: Load) -> None:
    """``docker save`` before 25 writes equal layers once."""
    twice = Image((IMAGE.layers[0], IMAGE.layers[1], IMAGE.layers[0]))
    link = Entry("l2/layer.tar", kind=tarfile.SYMTYPE, link="../l0/layer.tar")
    assert load(tar_of(*replaced(docker_entries(twice), "l2/layer.tar", link))).id == twice.id
    assert sorted(engine.loaded) == sorted([f"{sha256(twice.text)}.json", *LAYER_NAMES, "manifest.json"])
    assert json.loads(engine.loaded["manifest.json"])[0]["Layers"] == [*LAYER_NAMES, LAYER_NAMES[0]]


def test_a_layer_named_twice_in_the_manifest_is_sent_once(engine: Spying, load: Load) -> None:
    twice = Image((IMAGE.layers[0], IMAGE.layers[0]))
    names = ["l0/layer.tar", "l0/layer.tar"]
    assert load(tar_of(*docker_entries(twice, Layers=names))).id == twice.id
    assert len(engine.loaded) == 3


def test_a_packed_layer_that_stands_for_two_digests_is_refused(load: Load) -> None:
    import gzip  # noqa: PLC0415

    packed = Entry("l0/layer.tar", gzip.compress(IMAGE.layers[0]))
    entries = replaced(docker_entries(Layers=["l0/layer.tar", "l0/layer.tar"]), "l0/layer.tar", packed)
    assert "is damaged: layer 'l0/layer.tar' has the SHA-256" in refusal(load, tar_of(*entries)).what


def test_a_layer_that_only_looks_packed_is_taken_as_it_is(load: Load) -> None:
    """A tar begins with the name of its first file."""
    looks = Image((tar_of(Entry("BZh91AY", b"x")), tar_of(Entry("\x1f\x8b", b"x"))))
    assert load(tar_of(*docker_entries(looks))).id == looks.id


def test_an_image_without_layers(load: Load) -> None:
    bare = Image((), {"rootfs": {"type": "layers"}})
    assert load(tar_of(*docker_entries(bare))).id == bare.id


def test_125_layers_are_taken(load: Load) -> None:
    deep = Image(tuple(layer(f"n{number}") for number in range(125)))
    assert load(tar_of(*docker_entries(deep))).id == deep.id


@pytest.mark.parametrize(("platform", "image"), [("linux/amd64", ONE), ("linux/arm64", OTHER)])
def test_the_platform_chooses(engine: Spying, tmp_path: Path, platform: str, image: object) -> None:
    path = tmp_path / "image.tar"
    path.write_bytes(oci(ONE, OTHER, top=index(ONE.refer(platform=AMD), OTHER.refer(platform=ARM))))
    loaded = load_archive(engine, path, deadline=10, platform=platform)
    assert loaded.facts.id == image.image.id  # type: ignore[attr-defined]


def test_one_image_is_taken_whatever_its_platform(load: Load) -> None:
    """Whether it fits the challenge is for the preflight to say."""
    assert load(oci(OTHER, top=index(OTHER.refer(platform=ARM)))).id == OTHER.image.id


def test_the_limit_counts_layers_that_are_not_packed(engine: Spying, tmp_path: Path) -> None:
    path = tmp_path / "image.tar"
    path.write_bytes(SAVED)
    with pytest.raises(Unusable, match="unpacks to more than the 10 KiB allowed here"):
        load_archive(engine, path, deadline=10, limit=10 << 10)
    # The file is as long as its layers and more; packed by itself, the layers alone are too long.
    sizes = sum(len(data) for data in IMAGE.layers)
    path.write_bytes(oci(ONE))
    with pytest.raises(Unusable, match="its layers together, unpacks to more than the"):
        load_archive(engine, path, deadline=10, limit=sizes - 1 if len(oci(ONE)) < sizes else sizes)


def test_documents_are_kept_in_memory_up_to_a_bound(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    more = [Entry(f"{number}.json", b"{" + b" " * 5000) for number in range(20)]
    data = tar_of(*docker_entries(), *more)
    assert load(data).id == IMAGE.id
    monkeypatch.setattr("runner.images.archive._DOCUMENTS_IN_ALL", 100_000)
    assert refusal(load, data).what == "image archive 'image.tar' holds more than 97.66 KiB of JSON"


def test_members_are_counted(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tar_of(*docker_entries(), *(Entry(f"{number}") for number in range(16)))
    monkeypatch.setattr("runner.images.members._MOST_MEMBERS", 19)
    assert load(data).id == IMAGE.id
    monkeypatch.setattr("runner.images.members._MOST_MEMBERS", 18)
    assert refusal(load, data).what == "image archive 'image.tar' has more than 18 members"


def test_a_long_reading_is_told(engine: Spying, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runner.images.archive._SAID_EVERY", 8 << 10)
    monkeypatch.setattr("runner.images.archive.BLOCK", 4 << 10)
    path, told = tmp_path / "image.tar", list[str]()
    path.write_bytes(SAVED)
    load_archive(engine, path, deadline=10, progress=told.append)
    assert told[0] == "reading image.tar: 12 KiB"
    assert told[-1].startswith("loading image.tar: ")


def test_room_for_twice_the_layers_is_asked_for_before_the_engine(engine: Spying, tmp_path: Path) -> None:
    path = tmp_path / "image.tar"
    path.write_bytes(oci(ONE))
    asked: list[int] = []

    def no_room(size: int) -> None:
        asked.append(size)
        raise HostFault("full")

    with pytest.raises(HostFault, match="full"):
        load_archive(engine, path, deadline=10, make_room=no_room)
    assert asked == [2 * sum(len(data) for data in IMAGE.layers)]
    assert engine.loaded == {}


def test_a_file_that_changes_while_it_is_read_is_the_hosts(engine: Spying, tmp_path: Path) -> None:
    path = tmp_path / "image.tar"
    path.write_bytes(SAVED)

    def change(_size: int) -> None:
        spoilt = bytearray(SAVED)
        spoilt[SAVED.index(b"two ") + 2] ^= 1
        path.write_bytes(spoilt)

    with pytest.raises(HostFault, match=r"image\.tar' changed while it was read") as caught:
        load_archive(engine, path, deadline=10, make_room=change)
    assert "proctor resume" in caught.value.remedy
    assert engine.loaded == {}


def test_a_file_that_grows_shorter_while_it_is_read_is_not_loaded(engine: Spying, tmp_path: Path) -> None:
    path = tmp_path / "image.tar"
    path.write_bytes(SAVED)

    def shorten(_size: int) -> None:
        path.write_bytes(tar_of())

    with pytest.raises((HostFault, Unusable)):
        load_archive(engine, path, deadline=10, make_room=shorten)
    assert engine.loaded == {}


def test_what_the_engine_says_is_quoted(engine: Spying, load: Load) -> None:
    engine.fail_next("load", EngineRefusal(RefusalPhase.LOAD, "json: cannot\x1b[2J unmarshal"))
    assert refusal(load, SAVED).what.endswith(r"is refused by the engine: 'json: cannot\x1b[2J unmarshal'")


@pytest.mark.parametrize("error", [EngineUnreachable("down"), HostFault("the engine's disk is full")])
def test_an_engine_that_fails_is_not_the_archives_fault(engine: Spying, load: Load, error: Exception) -> None:
    engine.fail_next("load", error)
    with pytest.raises(HostFault):
        load(SAVED)


def test_an_engine_that_makes_two_images_of_it(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Spying, "load", lambda *_, **__: ("sha256:1", "sha256:2"))
    assert refusal(load, SAVED).what.endswith("image.tar' gave 2 images")


def test_a_file_that_is_not_there_is_the_organisers(engine: Spying, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        load_archive(engine, tmp_path / "gone.tar", deadline=10, where="s.csv, line 2")
    assert str(caught.value) == f"s.csv, line 2: there is no image archive '{tmp_path}/gone.tar' (check the path)"


def test_a_disk_that_cannot_be_read_is_the_hosts(engine: Spying, tmp_path: Path) -> None:
    path = tmp_path / "image.tar"
    path.write_bytes(SAVED)

    def broken(_size: int) -> None:
        raise OSError(5, "Input/output error")

    with pytest.raises(HostFault, match=r"image\.tar' could not be read: Input/output error"):
        load_archive(engine, path, deadline=10, make_room=broken)


# The fixture's one file is written anew for every example.
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    changes=st.lists(st.tuples(st.integers(0, 1023), st.binary(min_size=1, max_size=12)), max_size=4),
    second=st.booleans(),
)
@example(changes=[(329, b"\xff" * 8)], second=True)  # a device number that cannot be written again
@example(changes=[(100, b"\xff" * 8)], second=True)
def test_any_damage_to_a_header_is_told_or_harmless(load: Load, changes: list[tuple[int, bytes]], second: bool) -> None:
    data = bytearray(tar_of(*docker_entries(), tar_format=tarfile.PAX_FORMAT))
    start = 1024 if second else 0
    for place, text in changes:
        data[start + place : start + place + len(text)] = text
    for header in (0, 1024):
        data[header : header + 512] = with_sum(data[header : header + 512])
    # Any other exception than the one that says so fails the test.
    with contextlib.suppress(Unusable):
        assert load(bytes(data)).repo_tags == ()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.integers(0, 10**9), text=st.binary(min_size=1, max_size=40), name=st.sampled_from(sorted(GOOD)))
def test_any_damage_anywhere_gives_the_same_image_or_none(load: Load, place: int, text: bytes, name: str) -> None:
    data = bytearray(GOOD[name])
    place %= len(data)
    data[place : place + len(text)] = text
    with contextlib.suppress(Unusable):
        assert load(bytes(data)).id == IMAGE.id
