"""Images are pinned by digest, and a hostile or damaged archive is refused without reaching what is not its own."""

import bz2
import contextlib
import gzip
import hashlib
import io
import json
import lzma
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from runner.clock import SimulatedClock
from runner.engine import EngineRefusal, EngineUnreachable, ImageFacts, RefusalPhase
from runner.engine.fake import FakeEngine
from runner.errors import HostFault, UsageError
from runner.images import PinnedImage, SourceKind, load_archive, pin, source_kind

CONFIG = json.dumps({"os": "linux", "architecture": "amd64", "config": {"Entrypoint": ["run"]}}).encode()
CONFIG_NAME = f"{hashlib.sha256(CONFIG).hexdigest()}.json"
IMAGE_ID = f"sha256:{hashlib.sha256(CONFIG).hexdigest()}"
LAYER = b"layer" * 1000
SAVE_AGAIN = "write it again with: docker save IMAGE -o FILE"


class Spying(FakeEngine):
    """A fake that keeps what it is given to load."""

    def __init__(self) -> None:
        super().__init__(SimulatedClock())
        self.loaded: dict[str, bytes | str] = {}

    def load(self, archive: Iterable[bytes], *, deadline: float) -> tuple[str, ...]:
        data = b"".join(archive)
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            members = tar.getmembers()
            self.loaded = {m.name: m.linkname if m.issym() else read(tar, m) for m in members}
            assert len(members) == len(self.loaded), "a name stands there twice"
        return super().load([data], deadline=deadline)


def read(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(member)
    assert file is not None, f"{member.name} is no file"
    return file.read()


@pytest.fixture
def engine() -> Spying:
    return Spying()


class Entry(NamedTuple):
    """A member of a tar."""

    name: str
    data: bytes = b""
    kind: bytes = tarfile.REGTYPE
    link: str = ""


def manifest(**changes: Any) -> bytes:
    one = {"Config": CONFIG_NAME, "RepoTags": ["team:1"], "Layers": ["l1/layer.tar"], **changes}
    return json.dumps([{key: value for key, value in one.items() if value is not None}]).encode()


GOOD = (Entry(CONFIG_NAME, CONFIG), Entry("l1/layer.tar", LAYER), Entry("manifest.json", manifest()))
CLEAN = {
    "manifest.json": json.dumps([{"Config": CONFIG_NAME, "RepoTags": None, "Layers": ["l1/layer.tar"]}]).encode(),
    CONFIG_NAME: CONFIG,
    "l1/layer.tar": LAYER,
}


def tar_of(*entries: Entry, tar_format: int = tarfile.GNU_FORMAT) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tar_format) as tar:
        for name, data, kind, link in entries:
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.size = kind, link, len(data)
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


@pytest.fixture
def load(engine: Spying, tmp_path: Path) -> Callable[[bytes], ImageFacts]:
    """Load an archive of these bytes."""

    def load(data: bytes) -> ImageFacts:
        path = tmp_path / "image.tar"
        path.write_bytes(data)
        return load_archive(engine, path, deadline=10, where="s.csv, line 2")

    return load


def plain(data: bytes) -> bytes:
    return data


class TestGoodArchives:
    @pytest.mark.parametrize("compress", [plain, gzip.compress, bz2.compress, lzma.compress])
    def test_every_compression(
        self, engine: Spying, load: Callable[[bytes], ImageFacts], compress: Callable[[bytes], bytes]
    ) -> None:
        facts = load(compress(tar_of(*GOOD)))
        assert (facts.id, facts.entrypoint, facts.repo_tags) == (IMAGE_ID, ("run",), ())
        assert engine.loaded == CLEAN

    @pytest.mark.parametrize("tar_format", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
    def test_every_tar(self, engine: Spying, load: Callable[[bytes], ImageFacts], tar_format: int) -> None:
        assert load(tar_of(*GOOD, tar_format=tar_format)).id == IMAGE_ID
        assert engine.loaded == CLEAN

    def test_the_order_does_not_matter(self, engine: Spying, load: Callable[[bytes], ImageFacts]) -> None:
        assert load(tar_of(*reversed(GOOD))).id == IMAGE_ID
        assert engine.loaded == CLEAN

    def test_names_that_begin_with_a_dot(self, engine: Spying, load: Callable[[bytes], ImageFacts]) -> None:
        assert load(tar_of(*(entry._replace(name=f"./{entry.name}") for entry in GOOD))).id == IMAGE_ID
        assert engine.loaded == CLEAN

    def test_a_layer_that_is_a_link_to_an_equal_one(self, engine: Spying, load: Callable[[bytes], ImageFacts]) -> None:
        """``docker save`` before 25 writes equal layers once."""
        layers = ["l1/layer.tar", "l2/layer.tar"]
        link = Entry("l2/layer.tar", kind=tarfile.SYMTYPE, link="../l1/layer.tar")
        assert load(tar_of(*GOOD[:2], link, Entry("manifest.json", manifest(Layers=layers)))).id == IMAGE_ID
        assert engine.loaded["l2/layer.tar"] == "../l1/layer.tar"

    def test_a_layer_named_twice_is_written_once(self, engine: Spying, load: Callable[[bytes], ImageFacts]) -> None:
        layers = ["l1/layer.tar", "l1/layer.tar"]
        assert load(tar_of(*GOOD[:2], Entry("manifest.json", manifest(Layers=layers)))).id == IMAGE_ID
        assert sorted(engine.loaded) == sorted(CLEAN)

    def test_an_image_without_layers(self, load: Callable[[bytes], ImageFacts]) -> None:
        assert load(tar_of(GOOD[0], Entry("manifest.json", manifest(Layers=[])))).id == IMAGE_ID


EVIL = manifest(RepoTags=["proctor-helper:1"])


class TestNames:
    """An archive says which tags of the engine it takes; the engine would believe it."""

    @pytest.mark.parametrize(
        "entries",
        [
            (*GOOD[:2], Entry("manifest.json", EVIL)),
            (*GOOD, Entry("manifest.json", EVIL)),
            (Entry("manifest.json", manifest()), *GOOD[:2], Entry("./manifest.json", EVIL)),
            (*GOOD, Entry(".//manifest.json", EVIL)),
            (*GOOD, Entry("x/../manifest.json", EVIL)),
            (*GOOD, Entry("/manifest.json", EVIL)),
            (*GOOD, Entry("../manifest.json", EVIL)),
            (*GOOD, Entry("d", kind=tarfile.SYMTYPE, link="."), Entry("d/manifest.json", EVIL)),
            (*GOOD, Entry("manifest.json", kind=tarfile.SYMTYPE, link="evil.json"), Entry("evil.json", EVIL)),
            (*GOOD, Entry("evil.json", EVIL), Entry("manifest.json", kind=tarfile.LNKTYPE, link="evil.json")),
            (*GOOD, Entry("repositories", b'{"proctor-helper": {"1": "l1"}}')),
            (*GOOD, Entry("./repositories", b'{"proctor-helper": {"1": "l1"}}')),
            (*GOOD, Entry("index.json", b"{}"), Entry("oci-layout", b"{}"), Entry("blobs/sha256/x", b"x")),
            (*GOOD, Entry("../../etc/x", b"x"), Entry("/etc/x", b"x"), Entry("dev", kind=tarfile.CHRTYPE)),
            (*GOOD, Entry("l1", kind=tarfile.DIRTYPE), Entry("l9", kind=tarfile.SYMTYPE, link="/"), Entry("f", b"x")),
        ],
    )  # fmt: skip
    def test_nothing_but_the_image_itself_reaches_the_engine(
        self, engine: Spying, load: Callable[[bytes], ImageFacts], entries: tuple[Entry, ...]
    ) -> None:
        helper = engine.add_image("proctor-helper:1", lambda _: 0)
        facts = load(tar_of(*entries))
        assert (facts.id, facts.repo_tags) == (IMAGE_ID, ())
        assert engine.loaded == CLEAN
        assert engine.image("proctor-helper:1").id == helper

    def test_a_pax_header_cannot_rename_what_is_written(
        self, engine: Spying, load: Callable[[bytes], ImageFacts]
    ) -> None:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for name, data, _, _ in (*GOOD, Entry("other", EVIL)):
                info = tarfile.TarInfo(name)
                info.size = len(data)
                info.pax_headers = {"path": "./manifest.json"} if name == "other" else {"comment": "x"}
                tar.addfile(info, io.BytesIO(data))
        assert load(buffer.getvalue()).repo_tags == ()
        assert engine.loaded == CLEAN


NOT_ONE = "does not hold exactly one image"


class TestManifests:
    @pytest.mark.parametrize(
        "text",
        [
            b"", b"{", b"null", b"7", b"{}", b"[]", b"[7]", b"[[]]", b'"x"', b"[null]", b"[" * 100_000,
            manifest()[:-1] + b"," + manifest()[1:],
            manifest(Config=None), manifest(Layers=None), manifest(Config=7), manifest(Config=""), manifest(Layers=7),
            manifest(Layers=[7]), manifest(Layers=[None]), manifest(Layers=[""]),
            manifest(Config="../../etc/passwd"), manifest(Config="/etc/passwd"), manifest(Config="manifest.json"),
            manifest(Layers=["../l1/layer.tar"]), manifest(Layers=["/etc/shadow"]), manifest(Layers=["a/../../b"]),
            manifest(Layers=["./manifest.json"]), manifest(Layers=["x/../repositories"]),
            manifest(Layers=["index.json"]), manifest(Layers=["oci-layout"]), manifest(Layers=["."]),
            manifest(Config=["x"]), b"\xff\xfe",
        ],
        ids=lambda text: text[:60].decode("latin-1"),
    )  # fmt: skip
    def test_a_manifest_that_is_not_of_one_image(
        self, engine: Spying, load: Callable[[bytes], ImageFacts], text: bytes
    ) -> None:
        with pytest.raises(UsageError) as caught:
            load(tar_of(*GOOD[:2], Entry("manifest.json", text)))
        assert caught.value.what.endswith(NOT_ONE)
        assert caught.value.remedy == "save one image a file: docker save IMAGE -o FILE"
        assert engine.loaded == {}

    @pytest.mark.parametrize(
        "entries",
        [
            GOOD[:2],
            (*GOOD[:2], Entry("manifest.json", kind=tarfile.DIRTYPE)),
            (*GOOD[:2], Entry("manifest.json", kind=tarfile.SYMTYPE, link="/etc/passwd")),
            (*GOOD[:2], Entry("manifest.json", b" " * (1 << 20) + manifest())),
            (Entry("only.txt", b"x"),),
            (),
        ],
        ids=["none", "folder", "link", "too large", "another tar", "empty tar"],
    )
    def test_no_manifest(self, load: Callable[[bytes], ImageFacts], entries: tuple[Entry, ...]) -> None:
        with pytest.raises(UsageError) as caught:
            load(tar_of(*entries))
        assert caught.value.what.endswith("image.tar' has no manifest.json")
        assert caught.value.remedy == "write it with: docker save IMAGE -o FILE"

    @pytest.mark.parametrize(
        "names",
        [["l1/layer.tar", "l1"], ["l1/layer.tar", "l1/layer.tar/manifest.json"], ["a", "a/b/c"]],
    )
    def test_a_file_below_a_file_of_the_image(self, load: Callable[[bytes], ImageFacts], names: list[str]) -> None:
        """The upper one could be a link that the lower one is written through."""
        entries = [Entry(name, kind=tarfile.SYMTYPE, link=".") for name in names]
        with pytest.raises(UsageError, match="is damaged: a file of the image lies below another"):
            load(tar_of(GOOD[0], *entries, Entry("manifest.json", manifest(Layers=names))))


def symlink(target: str) -> Entry:
    return Entry("l1/layer.tar", kind=tarfile.SYMTYPE, link=target)


def damaged(load: Callable[[bytes], ImageFacts], data: bytes) -> str:
    with pytest.raises(UsageError) as caught:
        load(data)
    assert (caught.value.where, caught.value.remedy) == ("s.csv, line 2", SAVE_AGAIN)
    head, _, reason = caught.value.what.partition("image.tar' is damaged: ")
    assert head.startswith("image archive '/")
    return reason


class TestDamagedArchives:
    @pytest.mark.parametrize(
        "data", [b"", b"\0", b"garbage" * 1000, b"<!DOCTYPE html>404" * 50, b"\x1f\x8b\x08" + b"\xff" * 500,
                 b"BZh9" + b"\xff" * 500, b"\xfd7zXZ\0" + b"\xff" * 500, b"PK\3\4" * 400],
        ids=lambda data: data[:6].hex(),
    )  # fmt: skip
    def test_what_is_no_archive_at_all(self, load: Callable[[bytes], ImageFacts], data: bytes) -> None:
        assert damaged(load, data) != ""

    @pytest.mark.parametrize("compress", [plain, gzip.compress, bz2.compress, lzma.compress])
    @pytest.mark.parametrize("share", [0.02, 0.2, 0.5, 0.8])
    def test_a_truncated_archive(
        self, load: Callable[[bytes], ImageFacts], compress: Callable[[bytes], bytes], share: float
    ) -> None:
        layer = Entry("l1/layer.tar", bytes(hashlib.shake_128(b"x").digest(200_000)))
        data = compress(tar_of(GOOD[2], GOOD[0], layer))
        assert damaged(load, data[: int(len(data) * share)]) != ""

    @pytest.mark.parametrize(
        ("entry", "reason"),
        [
            (None, "'l1/layer.tar' is missing"),
            (Entry("l1/layer.tar", kind=tarfile.DIRTYPE), "'l1/layer.tar' is not a plain file"),
            (Entry("l1/layer.tar", kind=tarfile.LNKTYPE, link="/etc/shadow"), "'l1/layer.tar' is not a plain file"),
            (Entry("l1/layer.tar", kind=tarfile.FIFOTYPE), "'l1/layer.tar' is not a plain file"),
            (symlink("/etc/shadow"), "'l1/layer.tar' is a link to something else"),
            (symlink("../../etc/shadow"), "'l1/layer.tar' is a link to something else"),
            (symlink("../manifest.json"), "'l1/layer.tar' is a link to something else"),
            (Entry("l1/layer.tar", kind=tarfile.CHRTYPE), "'l1/layer.tar' is not a plain file"),
        ],
    )
    def test_a_layer_that_is_not_there_as_a_file(
        self, load: Callable[[bytes], ImageFacts], entry: Entry | None, reason: str
    ) -> None:
        assert damaged(load, tar_of(GOOD[0], *([entry] if entry else []), GOOD[2])) == reason

    def test_a_sparse_layer_is_not_blown_up(self, load: Callable[[bytes], ImageFacts]) -> None:
        """A kilobyte that says it is a terabyte."""
        data = bytearray(tar_of(GOOD[2], GOOD[0], Entry("l1/layer.tar", b"x" * 512)))
        start = data.rindex(b"l1/layer.tar")
        header = data[start : start + 512]
        header[156:157] = b"S"
        header[257:265] = b"ustar  \0"
        header[386:410] = b"00000000000\x0000000001000\0"
        header[483:495] = b"\x80" + (1 << 40).to_bytes(11, "big")
        data[start : start + 512] = checked(header)
        assert damaged(load, bytes(data)) == "'l1/layer.tar' is not a plain file"

    @pytest.mark.parametrize(
        "size",
        [b"77777777777\0", b"\x80" + (1 << 60).to_bytes(11, "big"), b"\xff" * 12, b"00000100000\0", b"not a size!\0"],
        ids=["8 GiB", "2^60", "negative", "a little more", "no number"],
    )
    def test_a_size_that_lies(self, load: Callable[[bytes], ImageFacts], size: bytes) -> None:
        data = bytearray(tar_of(GOOD[2], GOOD[0], GOOD[1]))
        start = data.rindex(b"l1/layer.tar")
        header = data[start : start + 512]
        header[124:136] = size
        data[start : start + 512] = checked(header)
        assert damaged(load, bytes(data)) != ""

    # The fixture's one file is written anew for every example.
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        changes=st.lists(st.tuples(st.integers(0, 1023), st.binary(min_size=1, max_size=12)), max_size=4),
        second=st.booleans(),
    )
    @example(changes=[(329, b"\xff" * 8)], second=True)  # a device number that cannot be written again
    @example(changes=[(100, b"\xff" * 8)], second=True)
    def test_any_damage_to_a_header_is_told_or_harmless(
        self, load: Callable[[bytes], ImageFacts], changes: list[tuple[int, bytes]], second: bool
    ) -> None:
        data = bytearray(tar_of(*GOOD, tar_format=tarfile.PAX_FORMAT))
        start = 1024 if second else 0
        for place, text in changes:
            data[start + place : start + place + len(text)] = text
        for header in (0, 1024):
            data[header : header + 512] = checked(data[header : header + 512])
        # Any other exception than the one that says so fails the test.
        with contextlib.suppress(UsageError):
            assert load(bytes(data)).repo_tags == ()

    def test_what_the_engine_says_is_quoted(self, engine: Spying, load: Callable[[bytes], ImageFacts]) -> None:
        engine.fail_next("load", EngineRefusal(RefusalPhase.LOAD, "invalid diffID for layer 0"))
        assert damaged(load, tar_of(*GOOD)) == "the engine refused to load: invalid diffID for layer 0"

    def test_an_engine_that_does_not_answer_is_not_the_archives_fault(
        self, engine: Spying, load: Callable[[bytes], ImageFacts]
    ) -> None:
        engine.fail_next("load", EngineUnreachable("down"))
        with pytest.raises(HostFault):
            load(tar_of(*GOOD))

    def test_an_engine_that_makes_two_images_of_it(
        self, load: Callable[[bytes], ImageFacts], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Spying, "load", lambda *_, **__: ("sha256:1", "sha256:2"))
        with pytest.raises(UsageError, match=r"image\.tar' gave 2 images \(save exactly one image\)"):
            load(tar_of(*GOOD))


def checked(header: bytes | bytearray) -> bytes:
    """A header with the sum that fits it."""
    blank = bytes(header[:148]) + b" " * 8 + bytes(header[156:])
    return blank[:148] + f"{sum(blank) & 0o777777:06o}\0 ".encode() + blank[156:]


class TestPin:
    def pin(self, engine: FakeEngine, source: str, base: Path, told: list[str] | None = None) -> PinnedImage:
        progress = (told if told is not None else []).append
        return pin(engine, source, base=base, deadline=10, progress=progress, where="s.csv, line 2")

    def test_an_archive(self, engine: Spying, tmp_path: Path) -> None:
        (tmp_path / "a.tar").write_bytes(tar_of(*GOOD))
        pinned = self.pin(engine, "a.tar", tmp_path)
        assert pinned == PinnedImage(
            source="a.tar", kind=SourceKind.ARCHIVE, id=IMAGE_ID, digests=(), facts=engine.image(IMAGE_ID)
        )
        assert self.pin(engine, str(tmp_path / "a.tar"), Path("/elsewhere")).id == IMAGE_ID

    def test_an_image_of_the_engine_is_not_pulled(self, engine: Spying, tmp_path: Path) -> None:
        here = engine.add_image("team:1", lambda _: 0, repo_digests=("team@sha256:1",))
        engine.add_remote("team:1", lambda _: 0, id="sha256:newer")
        told: list[str] = []
        pinned = self.pin(engine, "team:1", tmp_path, told)
        assert (pinned.kind, pinned.id, pinned.digests, told) == (SourceKind.LOCAL, here, ("team@sha256:1",), [])
        assert self.pin(engine, here, tmp_path).kind is SourceKind.LOCAL

    def test_a_registrys_image_is_pulled(self, engine: Spying, tmp_path: Path) -> None:
        there, told = engine.add_remote("registry.example/team:1", lambda _: 0), list[str]()
        pinned = self.pin(engine, "registry.example/team:1", tmp_path, told)
        assert (pinned.kind, pinned.id, told) == (SourceKind.REGISTRY, there, ["Pulling from registry.example/team"])

    def test_docker_and_two_slashes_always_pulls(self, engine: Spying, tmp_path: Path) -> None:
        engine.add_image("team:1", lambda _: 0)
        newer = engine.add_remote("team:1", lambda _: 0, id="sha256:newer")
        pinned = self.pin(engine, "docker://team:1", tmp_path)
        assert (pinned.source, pinned.kind, pinned.id) == ("docker://team:1", SourceKind.REGISTRY, newer)

    def test_a_folder_is_refused(self, engine: Spying, tmp_path: Path) -> None:
        (tmp_path / "method").mkdir()
        with pytest.raises(UsageError) as caught:
            self.pin(engine, "method", tmp_path)
        assert str(caught.value) == (
            "s.csv, line 2: image 'method' is a folder (building runs strangers' code with network beside the data: "
            "build it elsewhere and give the image)"
        )

    @pytest.mark.parametrize("name", ["gone.tar", "gone.tar.gz", "gone.tgz", "gone.tar.xz", "gone.tar.bz2"])
    def test_an_archive_that_is_not_there(self, engine: Spying, tmp_path: Path, name: str) -> None:
        with pytest.raises(UsageError) as caught:
            self.pin(engine, name, tmp_path)
        assert str(caught.value) == (f"s.csv, line 2: there is no image archive '{tmp_path}/{name}' (check the path)")

    def test_an_image_that_is_nowhere(self, engine: Spying, tmp_path: Path) -> None:
        with pytest.raises(UsageError) as caught:
            self.pin(engine, "team:9", tmp_path)
        assert str(caught.value) == (
            "s.csv, line 2: image 'team:9' could not be had: manifest for team:9 not found: manifest unknown "
            "(check the name; it is neither on the engine nor in a registry that answers)"
        )

    @pytest.mark.parametrize("prefix", ["sha256:", "", "docker://sha256:"])
    def test_an_id_that_the_engine_does_not_hold_is_not_pulled(
        self, engine: Spying, tmp_path: Path, prefix: str
    ) -> None:
        source = prefix + "0" * 64
        with pytest.raises(UsageError) as caught:
            self.pin(engine, source, tmp_path)
        assert str(caught.value) == (
            f"s.csv, line 2: the engine holds no image '{source}' (see: docker images --no-trunc)"
        )

    @pytest.mark.parametrize("method", ["image", "pull"])
    def test_an_engine_that_does_not_answer(self, engine: Spying, tmp_path: Path, method: str) -> None:
        engine.fail_next(method, EngineUnreachable("down"))
        with pytest.raises(HostFault):
            self.pin(engine, "team:9", tmp_path)

    @pytest.mark.parametrize("source", ["x" * 5000, "a/" * 3000], ids=["a name", "a path"])
    def test_a_text_too_long_for_a_path_is_a_name(self, engine: Spying, tmp_path: Path, source: str) -> None:
        with pytest.raises(UsageError, match="could not be had"):
            self.pin(engine, source, tmp_path)


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
def test_what_an_images_text_means(engine: Spying, tmp_path: Path, source: str, kind: SourceKind) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder.tar").mkdir()
    (tmp_path / "method").mkdir()
    engine.add_image("here:1", lambda _: 0)
    engine.add_image("method:latest", lambda _: 0)
    assert source_kind(engine, source, base=tmp_path) is kind
