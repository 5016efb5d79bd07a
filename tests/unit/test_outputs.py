"""A file is taken out of an output whole, once, by its name; what a volume's tar says is not trusted."""

import io
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from runner.budget import Budget
from runner.clock import SimulatedClock
from runner.engine import FileFacts, FileKind
from runner.engine.fake import FakeEngine
from runner.errors import HostFault
from runner.job import Intake, IntakeRefusal, NameKind
from runner.outputs import (
    HOLDER_MOUNT,
    LoopPlace,
    VolumePlace,
    Wanted,
    holder_spec,
    kind_of_name,
    take_file,
    volume_place,
)

MIB = 1 << 20
NAME = "n.csv"


def without_names(intake: Intake) -> Intake:
    """The rest of an intake; the kinds of names have a test of their own."""
    return replace(intake, other_names=())


class TestTakeFile:
    def take(self, folder: Path, *, cap: int = 100, full: bool = False) -> Intake:
        return without_names(take_file(folder / "out", Wanted(path=NAME), folder / "taken", cap=cap, full=full))

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        (tmp_path / "out").mkdir()
        return tmp_path

    @pytest.mark.parametrize("data", [b"", b"x", b"x" * 100, bytes(range(100))])
    @pytest.mark.parametrize("full", [False, True])
    def test_a_regular_file(self, folder: Path, data: bytes, full: bool) -> None:
        (folder / "out" / NAME).write_bytes(data)
        assert self.take(folder, full=full) == Intake(file=NAME, size=len(data), full=full)
        assert (folder / "taken").read_bytes() == data

    def test_larger_than_a_block(self, folder: Path) -> None:
        data = b"0123456789abcdef" * (3 << 16)
        (folder / "out" / NAME).write_bytes(data)
        assert self.take(folder, cap=len(data)).size == 3 * MIB
        assert (folder / "taken").read_bytes() == data

    def test_larger_than_the_cap(self, folder: Path) -> None:
        (folder / "out" / NAME).write_bytes(b"x" * 101)
        assert self.take(folder) == Intake(
            file=NAME, refusal=IntakeRefusal.TOO_LARGE, detail="101 bytes of 100 allowed"
        )
        assert not (folder / "taken").exists()

    @pytest.mark.parametrize("others", [0, 1, 3])
    def test_other_entries_are_counted(self, folder: Path, others: int) -> None:
        for number in range(others):
            (folder / "out" / f"{number}").mkdir()
        assert self.take(folder) == Intake(file=NAME, refusal=IntakeRefusal.MISSING, other_entries=others)
        (folder / "out" / NAME).write_bytes(b"x")
        assert self.take(folder) == Intake(file=NAME, size=1, other_entries=others)

    def test_a_target_is_never_written_over(self, folder: Path) -> None:
        (folder / "out" / NAME).write_bytes(b"new")
        (folder / "taken").write_bytes(b"old")
        with pytest.raises(FileExistsError):
            self.take(folder)
        assert (folder / "taken").read_bytes() == b"old"

    def test_nothing_is_left_open(self, folder: Path) -> None:
        (folder / "out" / NAME).write_bytes(b"x")
        before = len(list(Path("/proc/self/fd").iterdir()))
        for number in range(20):
            take_file(folder / "out", Wanted(path=NAME), folder / f"taken-{number}", cap=9, full=False)
            take_file(folder / "out", Wanted(path="none"), folder / "none", cap=9, full=False)
            take_file(folder / "out", Wanted(path=NAME), folder / "large", cap=0, full=False)
        assert len(list(Path("/proc/self/fd").iterdir())) == before


class Entry(NamedTuple):
    """A member of a tar."""

    name: str
    data: bytes = b""
    kind: bytes = tarfile.REGTYPE
    link: str = ""


ROOT = Entry("hold", kind=tarfile.DIRTYPE)
FILE = Entry(f"hold/{NAME}", b"good")


def tar_of(*entries: Entry) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, data, kind, link in entries:
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.size = kind, link, len(data)
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


class TarEngine(FakeEngine):
    """A fake whose every folder is one tar."""

    def __init__(self, tar: bytes) -> None:
        super().__init__(SimulatedClock())
        self.tar = tar
        self.sent = 0
        self.there: FileFacts | None = None
        self.asked: list[str] = []

    def read_file(self, container: str, path: str, *, max_bytes: int) -> FileFacts | None:
        assert (container, max_bytes) == ("holder", 0)
        self.asked.append(path)
        return self.there

    def read_tree(self, container: str, path: str) -> Iterator[bytes]:
        assert (container, path) == ("holder", HOLDER_MOUNT)
        for start in range(0, len(self.tar), 10_000):
            self.sent += 1
            yield self.tar[start : start + 10_000]


@pytest.fixture
def take(tmp_path: Path, make_budget: Callable[..., Budget]) -> Callable[..., Intake]:
    """Take the expected file out of a volume whose tar this is."""

    def take(*entries: Entry, cap: int = MIB, files: int = 64, data: bytes | None = None) -> Intake:
        (tmp_path / "taken").unlink(missing_ok=True)
        engine = TarEngine(tar_of(*entries) if data is None else data)
        place = VolumePlace(engine, "v", "holder", make_budget(output_bytes=cap, output_files=files))
        return without_names(place.take(Wanted(path=NAME), tmp_path / "taken"))

    return take


class TestVolumes:
    @pytest.mark.parametrize(
        ("entries", "others"),
        [
            ([ROOT, FILE], 0),
            ([ROOT, FILE, Entry("hold/other"), Entry("hold/d", kind=tarfile.DIRTYPE)], 2),
            ([ROOT, Entry("hold/other", b"x" * 5000), FILE], 1),
            ([Entry("hold/", kind=tarfile.DIRTYPE), FILE], 0),
            ([ROOT, Entry("hold/sub", kind=tarfile.DIRTYPE), Entry(f"hold/sub/{NAME}", b"evil"), FILE], 2),
            ([ROOT, FILE, Entry("hold/a\nb"), Entry("hold/\udcff"), Entry("hold/" + "x" * 250)], 3),
            # Whatever the engine says besides, a name is only compared, never opened.
            ([ROOT, Entry("/etc/passwd", b"evil"), Entry("../../etc/shadow", b"evil"), FILE], 2),
            ([ROOT, Entry("hold/link", kind=tarfile.SYMTYPE, link="/"), Entry(f"hold/link/{NAME}", b"evil"), FILE], 2),
            # The first of several wins.
            ([ROOT, FILE, FILE._replace(data=b"evil")], 1),
            ([ROOT, FILE, FILE._replace(data=b"", kind=tarfile.SYMTYPE, link="/etc/shadow")], 1),
            ([ROOT, FILE, Entry("hold/b", b"x"), Entry("hold/twin", kind=tarfile.LNKTYPE, link="hold/b")], 2),
            ([ROOT, FILE, Entry("hold/to", kind=tarfile.SYMTYPE, link=f"hold/{NAME}")], 1),
        ],
    )
    def test_a_file_is_taken(
        self, tmp_path: Path, take: Callable[..., Intake], entries: list[Entry], others: int
    ) -> None:
        assert take(*entries) == Intake(file=NAME, size=4, other_entries=others)
        assert (tmp_path / "taken").read_bytes() == b"good"

    @pytest.mark.parametrize(
        ("entries", "refusal", "detail", "others"),
        [
            ([ROOT], IntakeRefusal.MISSING, "", 0),
            ([], IntakeRefusal.MISSING, "", 0),
            ([ROOT, Entry("hold/N.CSV", b"x"), Entry("hold/n.csv.txt")], IntakeRefusal.MISSING, "", 2),
            ([ROOT, Entry(f"hold/sub/{NAME}", b"x"), Entry(NAME, b"x")], IntakeRefusal.MISSING, "", 1),
            ([ROOT, Entry(f"hold/./{NAME}", b"x"), Entry(f"hold//{NAME}", b"x")], IntakeRefusal.MISSING, "", 2),
            ([ROOT, Entry(f"hold/{NAME}", kind=tarfile.SYMTYPE, link="/etc/shadow"), FILE],
             IntakeRefusal.NOT_REGULAR, "a symbolic link", 1),
            ([ROOT, Entry("hold/a", b"x"), Entry(f"hold/{NAME}", kind=tarfile.LNKTYPE, link="hold/a")],
             IntakeRefusal.SEVERAL_LINKS, "a file with several links", 1),
            ([ROOT, Entry(f"hold/{NAME}", kind=tarfile.LNKTYPE, link="/etc/shadow")],
             IntakeRefusal.SEVERAL_LINKS, "a file with several links", 0),
            # The twin sorts after it, so it is the one that the stream holds as a file.
            ([ROOT, FILE, Entry("hold/twin", kind=tarfile.LNKTYPE, link=f"hold/{NAME}")],
             IntakeRefusal.SEVERAL_LINKS, "a file with several links", 1),
            ([ROOT, FILE, Entry("hold/o", b"x"), Entry("hold/z/a/t", kind=tarfile.LNKTYPE, link=f"hold/{NAME}")],
             IntakeRefusal.SEVERAL_LINKS, "a file with several links", 2),
            ([ROOT, Entry(f"hold/{NAME}", kind=tarfile.DIRTYPE)], IntakeRefusal.NOT_REGULAR, "a folder", 0),
            ([ROOT, Entry(f"hold/{NAME}", kind=tarfile.FIFOTYPE)], IntakeRefusal.NOT_REGULAR, "a named pipe", 0),
            ([ROOT, Entry(f"hold/{NAME}", kind=tarfile.CHRTYPE)], IntakeRefusal.NOT_REGULAR, "a device", 0),
            ([ROOT, Entry(f"hold/{NAME}", kind=tarfile.BLKTYPE)], IntakeRefusal.NOT_REGULAR, "a device", 0),
        ],
    )  # fmt: skip
    def test_a_file_is_refused(
        self,
        tmp_path: Path,
        take: Callable[..., Intake],
        entries: list[Entry],
        refusal: IntakeRefusal,
        detail: str,
        others: int,
    ) -> None:
        assert take(*entries) == Intake(file=NAME, refusal=refusal, detail=detail, other_entries=others)
        assert not (tmp_path / "taken").exists()

    def test_a_file_larger_than_the_cap(self, tmp_path: Path, take: Callable[..., Intake]) -> None:
        intake = take(ROOT, FILE._replace(data=b"x" * (MIB + 1)))
        assert intake == Intake(
            file=NAME, refusal=IntakeRefusal.TOO_LARGE, detail="1048577 bytes of 1048576 allowed", full=True
        )
        assert not (tmp_path / "taken").exists()

    @pytest.mark.parametrize(
        ("sizes", "full"),
        [
            ([MIB - 8192], False),
            ([MIB - 8191], False),  # the last page is free still
            ([MIB - 4096], False),
            ([MIB - 4095], True),
            ([MIB], True),
            ([1] * 50, False),
            ([4096] * 60 + [MIB - 61 * 4096], False),
            ([4097] * 60 + [MIB - 121 * 4096], False),
            ([4097] * 60 + [MIB - 120 * 4096], True),  # each small file takes two pages
        ],
    )
    def test_full_by_bytes_is_counted_in_pages(self, take: Callable[..., Intake], sizes: list[int], full: bool) -> None:
        assert take(ROOT, *(Entry(f"hold/{n}", b"x" * size) for n, size in enumerate(sizes)), files=99).full is full

    @pytest.mark.parametrize(("entries", "full"), [(62, False), (63, True), (64, True)])
    def test_full_by_files(self, take: Callable[..., Intake], entries: int, full: bool) -> None:
        # A volume's own root is one of its 64 files.
        intake = take(ROOT, *(Entry(f"hold/{number}") for number in range(entries)))
        assert (intake.full, intake.other_entries) == (full, entries)

    def test_an_output_of_a_megabyte_that_is_nearly_empty_is_not_full(self, take: Callable[..., Intake]) -> None:
        assert take(ROOT, FILE, cap=MIB).full is False

    def test_reading_ends_where_there_is_more_than_can_be(
        self, tmp_path: Path, make_budget: Callable[..., Budget]
    ) -> None:
        for flood in (tar_of(Entry("hold/x"))[:512] * 5000, tar_of(Entry("hold/x", b"x" * (6 * MIB)))[: -(10 << 10)]):
            engine = TarEngine(flood + tar_of(FILE))
            place = VolumePlace(engine, "v", "holder", make_budget(output_bytes=MIB, output_files=64))
            intake = place.take(Wanted(path=NAME), tmp_path / "taken")
            assert (intake.refusal, intake.full) == (IntakeRefusal.MISSING, True)
            assert intake.other_entries <= 65
            assert engine.sent * 10_000 < len(engine.tar) / 2

    def test_what_is_there_but_not_in_the_stream_is_a_socket(
        self, tmp_path: Path, make_budget: Callable[..., Budget]
    ) -> None:
        engine = TarEngine(tar_of(ROOT, Entry("hold/other")))
        place = VolumePlace(engine, "v", "holder", make_budget())
        engine.there = FileFacts(kind=FileKind.OTHER, mode=0o755)
        assert without_names(place.take(Wanted(path=NAME), tmp_path / "taken")) == Intake(
            file=NAME, refusal=IntakeRefusal.NOT_REGULAR, detail="a socket", other_entries=1
        )
        assert engine.asked == ["/hold/n.csv"]

    @pytest.mark.parametrize("kind", [FileKind.FILE, FileKind.FOLDER, FileKind.LINK])
    def test_a_stream_that_leaves_out_what_it_must_hold_is_the_hosts_fault(
        self, tmp_path: Path, make_budget: Callable[..., Budget], kind: FileKind
    ) -> None:
        engine = TarEngine(tar_of(ROOT))
        engine.there = FileFacts(kind=kind, mode=0o644)
        with pytest.raises(HostFault, match="what the engine read of the output is not whole"):
            VolumePlace(engine, "v", "holder", make_budget()).take(Wanted(path=NAME), tmp_path / "taken")

    def test_a_file_in_the_stream_is_not_asked_for(self, tmp_path: Path, make_budget: Callable[..., Budget]) -> None:
        engine = TarEngine(tar_of(ROOT, FILE))
        VolumePlace(engine, "v", "holder", make_budget()).take(Wanted(path=NAME), tmp_path / "taken")
        assert engine.asked == []

    @pytest.mark.parametrize("before", [False, True])
    def test_a_file_beside_more_than_can_be_is_refused_since_a_twin_may_follow(
        self, tmp_path: Path, make_budget: Callable[..., Budget], before: bool
    ) -> None:
        holes, twin = Entry("hold/o", b"x" * (2 * MIB)), Entry("hold/t", kind=tarfile.LNKTYPE, link=f"hold/{NAME}")
        engine = TarEngine(tar_of(ROOT, *([holes, FILE] if before else [FILE, holes]), twin))
        engine.there = FileFacts(kind=FileKind.FILE, mode=0o644, size=4)
        place = VolumePlace(engine, "v", "holder", make_budget(output_bytes=MIB, output_files=64))
        intake = place.take(Wanted(path=NAME), tmp_path / "taken")
        assert (intake.refusal, intake.full) == (IntakeRefusal.TOO_LARGE, True)
        assert intake.detail == "more than the 1048576 bytes or 64 files allowed beside it"
        assert not (tmp_path / "taken").exists()

    def test_many_files_are_looked_through_where_they_are_allowed(self, take: Callable[..., Intake]) -> None:
        data = tar_of(Entry("hold/x"))[:512] * 10_001 + tar_of(FILE)
        assert take(data=data, files=20_000) == Intake(file=NAME, size=4, other_entries=10_001)

    @pytest.mark.parametrize(
        ("size", "too_large"),
        [(b"77777777777\0", True), (b"\x80" + (1 << 60).to_bytes(11, "big"), True), (b"\xff" * 12, False),
         (b"00000100000\0", False)],
        ids=["8 GiB", "2^60", "negative", "more than there is"],
    )  # fmt: skip
    def test_a_size_that_lies(self, tmp_path: Path, take: Callable[..., Intake], size: bytes, too_large: bool) -> None:
        data = bytearray(tar_of(ROOT, FILE))
        header = data[512:1024]
        header[124:136] = size
        header[148:156] = b" " * 8
        header[148:156] = f"{sum(header) & 0o777777:06o}\0 ".encode()
        data[512:1024] = header
        if too_large:
            assert take(data=bytes(data)).refusal is IntakeRefusal.TOO_LARGE
            assert not (tmp_path / "taken").exists()
        else:
            with pytest.raises(HostFault, match="what the engine read of the output is damaged: ") as caught:
                take(data=bytes(data))
            assert caught.value.where == "v"

    @pytest.mark.parametrize("data", [b"garbage" * 1000, b"\0" * 100, tar_of(ROOT, FILE)[:1026]])
    def test_a_damaged_tar_is_the_hosts_fault(self, take: Callable[..., Intake], data: bytes) -> None:
        with pytest.raises(HostFault, match="what the engine read of the output is damaged: "):
            take(data=data)

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(place=st.integers(0, 2047), text=st.binary(min_size=1, max_size=12), checked=st.booleans())
    @example(place=512 + 124, text=b"\xff" * 12, checked=True)
    @example(place=512 + 156, text=b"x", checked=True)
    def test_any_damage_is_the_hosts_fault_or_harmless(
        self, take: Callable[..., Intake], place: int, text: bytes, checked: bool
    ) -> None:
        data = bytearray(tar_of(ROOT, FILE))
        data[place : place + len(text)] = text
        for start in (0, 512) if checked else ():
            data[start + 148 : start + 156] = b" " * 8
            data[start + 148 : start + 156] = f"{sum(data[start : start + 512]) & 0o777777:06o}\0 ".encode()
        try:
            intake = take(data=bytes(data))
        except HostFault:
            return
        assert intake.refusal is not None or intake.size <= MIB


class TestVolumePlace:
    def test_volume_and_holder_are_made_and_gone(self, make_budget: Callable[..., Budget]) -> None:
        engine = FakeEngine(SimulatedClock())
        helper = engine.add_image("helper", lambda _: None)
        labels = {"proctor.owner": "me"}
        with volume_place(engine, helper=helper, name="v", labels=labels, budget=make_budget(), uid=7, gid=8) as place:
            assert place.mounted == "v"
            assert [(volume.name, volume.labels) for volume in engine.volumes("proctor.owner")] == [("v", labels)]
            assert [(c.name, c.labels, c.state) for c in engine.containers("proctor.owner")] == [
                ("v-hold", labels, "running")
            ]
        assert engine.created == [holder_spec(image=helper, name="v-hold", volume="v", labels=labels, uid=7, gid=8)]
        assert (engine.volumes("proctor.owner"), engine.containers("proctor.owner")) == ((), ())

    def test_both_are_gone_after_an_error(self, make_budget: Callable[..., Budget]) -> None:
        engine = FakeEngine(SimulatedClock())
        helper, labels = engine.add_image("helper", lambda _: None), {"proctor.owner": "me"}
        with (
            pytest.raises(ZeroDivisionError),
            volume_place(engine, helper=helper, name="v", labels=labels, budget=make_budget(), uid=7, gid=8),
        ):
            raise ZeroDivisionError
        assert (engine.volumes("proctor.owner"), engine.containers("proctor.owner")) == ((), ())

    def test_the_holder_is_confined_like_a_participant_and_reads_only(self) -> None:
        spec = holder_spec(image="sha256:1", name="h", volume="v", labels={}, uid=7, gid=8)
        assert (spec.user, spec.network, spec.read_only, spec.cap_drop) == ("7:8", "none", True, ("ALL",))
        assert spec.entrypoint == ("python3", "-c", "import signal; signal.pause()")
        assert [(mount.volume, mount.target, mount.read_only) for mount in spec.volumes] == [("v", "/hold", True)]
        assert (spec.memory, spec.pids, spec.binds) == (64 * MIB, 16, ())


class TestOtherNames:
    @pytest.mark.parametrize(
        ("name", "kind"),
        [
            ("N.csv", NameKind.LETTER_CASE), ("n.CSV", NameKind.LETTER_CASE), ("n", NameKind.EXTENSION),
            ("n.txt", NameKind.EXTENSION), ("n.csv.gz", NameKind.EXTENSION), ("n.csv.partial", NameKind.UNFINISHED),
            (".n.csv.swp", NameKind.UNFINISHED), ("m.tmp", NameKind.OTHER), ("n1.csv", NameKind.STEM),
            ("predictions.csv", NameKind.STEM), ("n1.txt", NameKind.OTHER), ("csv", NameKind.OTHER),
        ],
    )  # fmt: skip
    def test_a_name_is_one_of_a_kind(self, name: str, kind: NameKind) -> None:
        assert kind_of_name(name, NAME) is kind

    def test_a_due_name_without_an_extension_has_no_namesakes(self) -> None:
        assert kind_of_name("other", "n") is NameKind.OTHER

    def test_a_folder_and_a_volume_tell_the_same(self, tmp_path: Path, make_budget: Callable[..., Budget]) -> None:
        out = tmp_path / "out"
        (out / "sub").mkdir(parents=True)
        for name in (NAME, "n.json", "N.CSV", "sub/m.csv"):
            (out / name).write_bytes(b"x")
        tar = tar_of(
            ROOT, FILE, Entry("hold/sub", kind=tarfile.DIRTYPE), Entry("hold/sub/m.csv"), Entry("hold/n.json"),
            Entry("hold/N.CSV"),
        )  # fmt: skip
        kinds = (NameKind.EXTENSION, NameKind.FOLDER, NameKind.LETTER_CASE)
        assert take_file(out, Wanted(path=NAME), tmp_path / "1", cap=9, full=False).other_names == kinds
        place = VolumePlace(TarEngine(tar), "v", "holder", make_budget())
        assert place.take(Wanted(path=NAME), tmp_path / "2").other_names == kinds

    def test_a_link_to_a_folder_is_no_folder(self, tmp_path: Path) -> None:
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "x").symlink_to(tmp_path)
        assert take_file(tmp_path / "out", Wanted(path=NAME), tmp_path / "1", cap=9, full=False).other_names == (
            NameKind.OTHER,
        )


@pytest.mark.parametrize(
    ("blocks", "free", "inodes", "full"),
    [
        (2040, 255, 9, True), (2040, 207, 9, True), (2040, 256, 9, False), (2040, 2040, 0, True),
        (51_200, 800, 9, True), (51_200, 801, 9, False), (256, 32, 9, True), (256, 33, 9, False),
    ],
)  # fmt: skip
def test_a_loop_is_full_where_a_large_write_no_longer_fits(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    make_budget: Callable[..., Budget],
    blocks: int,
    free: int,
    inodes: int,
    full: bool,
) -> None:
    (tmp_path / "image").write_bytes(b"")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / NAME).write_bytes(b"x")
    room = SimpleNamespace(f_blocks=blocks, f_bavail=free, f_ffree=inodes, f_frsize=4096)
    monkeypatch.setattr("runner.outputs.os.statvfs", lambda _folder: room)
    place = LoopPlace(tmp_path / "image", tmp_path / "out", make_budget())
    assert place.take(Wanted(path=NAME), tmp_path / "taken").full is full
