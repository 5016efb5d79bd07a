"""A view shows exactly the frames of its cut, as copies that say nothing of other views."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from runner import video_copies, video_cuts
from runner.challenge import InputKind
from runner.dataset import Case, Input
from runner.inputs import CaseView, VideoCopy, frames_of_view, lay_out
from runner.job import Cut, CutKind

ALTERED = CutKind.ALTERED_FUTURE


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize(
    ("cut", "shown"),
    [
        (None, ["A:0", "A:1", "A:2", "A:3"]),
        (Cut(frames=1), ["A:0"]),
        (Cut(frames=3, repeat=2), ["A:0", "A:1", "A:2"]),
        (Cut(frames=4), ["A:0", "A:1", "A:2", "A:3"]),
        (Cut(frames=9), ["A:0", "A:1", "A:2", "A:3"]),
        # A donor's frames come from half a sequence away, round and round where it is too short.
        (Cut(frames=1, kind=ALTERED), ["A:0", "B:0", "B:1", "B:0"]),
        (Cut(frames=3, kind=ALTERED), ["A:0", "A:1", "A:2", "B:0"]),
        (Cut(frames=4, kind=ALTERED), ["A:0", "A:1", "A:2", "A:3"]),
    ],
    ids=str,
)
def test_what_a_view_shows(tmp_path: Path, make_case: Callable[..., Case], cut: Cut | None, shown: list[str]) -> None:
    case, donor = make_case("A", frames=4), make_case("B", frames=2)
    lay_out(tmp_path / "view", {"n": CaseView(case=case, donor=donor, cut=cut)}, inputs=("frames",))
    names = [f"{number:03d}.png" for number in range(len(shown))]
    assert contents(tmp_path / "view" / "n") == dict(zip(names, shown, strict=True))
    assert len(list(frames_of_view(4, cut, 2))) == len(names)


def test_a_view_is_a_copy_without_a_past(tmp_path: Path, make_case: Callable[..., Case]) -> None:
    case, view = make_case(), tmp_path / "view"
    lay_out(view, {"n": CaseView(case=case)}, inputs=("frames",))
    lay_out(tmp_path / "other", {"n": CaseView(case=case)}, inputs=("frames",))
    for path in (view / "n").iterdir():
        facts = path.stat()
        assert (facts.st_nlink, facts.st_mode & 0o7777, facts.st_mtime, facts.st_atime) == (1, 0o444, 1e9, 1e9)
        assert facts.st_ino != (tmp_path / "other" / "n" / path.name).stat().st_ino
    for folder in (view, view / "n"):
        facts = folder.stat()
        assert (facts.st_mode & 0o7777, facts.st_mtime) == (0o555, 1e9)


def test_neither_the_reference_nor_the_real_name_is_in_a_view(tmp_path: Path, make_case: Callable[..., Case]) -> None:
    lay_out(tmp_path / "view", {"n": CaseView(case=make_case("PATIENT-07"))}, inputs=("frames",))
    paths = [str(path.relative_to(tmp_path)) for path in (tmp_path / "view").rglob("*")]
    assert paths
    assert not [path for path in paths if "PATIENT" in path or "csv" in path]


def test_a_view_is_laid_out_once(tmp_path: Path, make_case: Callable[..., Case]) -> None:
    case = make_case()
    lay_out(tmp_path / "view", {"n": CaseView(case=case, cut=Cut(frames=1))}, inputs=("frames",))
    with pytest.raises(FileExistsError):
        lay_out(tmp_path / "view", {"n": CaseView(case=case)}, inputs=("frames",))
    assert contents(tmp_path / "view" / "n") == {"000.png": "PATIENT-07:0"}


def given(name: str, kind: InputKind, path: Path, inside: str, frames: tuple[str, ...] = ()) -> Input:
    return Input(name=name, kind=kind, path=path, inside=inside, frames=frames)


@pytest.fixture
def several(tmp_path: Path, make_case: Callable[..., Case]) -> Case:
    """A case with frames, a table and a calibration."""
    case = make_case("A", frames=4)
    (tmp_path / "a.tsv").write_bytes(b"t\tx\n0\ta\n1\tb\n2\tc\n3\td")
    (tmp_path / "a.txt").write_text("camera")
    inputs = (
        replace(case.inputs[0], inside="record/{case}"),
        given("kinematics", InputKind.TABLE, tmp_path / "a.tsv", "{case}/kinematics.tsv"),
        given("camera", InputKind.FILE, tmp_path / "a.txt", "{case}/camera.txt"),
    )
    return replace(case, inputs=inputs)


def tree(folder: Path) -> dict[str, bytes]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_only_the_inputs_of_the_task_are_shown(tmp_path: Path, several: Case) -> None:
    lay_out(tmp_path / "view", {"n": CaseView(case=several)}, inputs=("kinematics",))
    assert list(tree(tmp_path / "view")) == ["n/kinematics.tsv"]


def test_all_inputs_are_cut_at_the_same_frame(tmp_path: Path, several: Case) -> None:
    names = ("frames", "kinematics", "camera")
    lay_out(tmp_path / "view", {"n": CaseView(case=several, cut=Cut(frames=2))}, inputs=names)
    assert tree(tmp_path / "view") == {
        "n/camera.txt": b"camera", "n/kinematics.tsv": b"t\tx\n0\ta\n1\tb\n", "record/n/000.png": b"A:0",
        "record/n/001.png": b"A:1",
    }  # fmt: skip


def test_an_altered_table_has_the_donors_rows(tmp_path: Path, several: Case) -> None:
    (tmp_path / "b.tsv").write_bytes(b"t\tx\n0\tB\n1\tB\n")
    table = several.inputs[1]
    donor = replace(several, inputs=(several.inputs[0], replace(table, path=tmp_path / "b.tsv"), several.inputs[2]))
    cut = Cut(frames=3, kind=ALTERED)
    lay_out(tmp_path / "view", {"n": CaseView(case=several, donor=donor, cut=cut)}, inputs=("kinematics",))
    assert tree(tmp_path / "view")["n/kinematics.tsv"] == b"t\tx\n0\ta\n1\tb\n2\tc\n0\tB\n"


@pytest.mark.parametrize(
    ("place", "line", "files"),
    [
        ("data/{case}.txt", "record/{case}/{frame}.png",
         {"data/m.txt": b"record/m/000.png\n", "data/n.txt": b"record/n/000.png\nrecord/n/001.png\n"}),
        ("all.txt", "{case}", {"all.txt": b"n\nm\n"}),
        ("all.txt", "{case},{frame}", {"all.txt": b"n,000\nn,001\nm,000\n"}),
    ],
)  # fmt: skip
def test_list_files(
    tmp_path: Path, make_case: Callable[..., Case], place: str, line: str, files: dict[str, bytes]
) -> None:
    shown = {"n": CaseView(case=make_case("A", frames=2)), "m": CaseView(case=make_case("B", frames=1))}
    lay_out(tmp_path / "view", shown, inputs=(), lists={place: line})
    assert tree(tmp_path / "view") == files
    assert (tmp_path / "view" / next(iter(files))).stat().st_mode & 0o7777 == 0o444


def test_earlier_predictions_are_shown_by_the_neutral_name(tmp_path: Path, several: Case) -> None:
    (tmp_path / "masks").mkdir()
    (tmp_path / "masks" / "000.png").write_bytes(b"mask")
    (tmp_path / "one.csv").write_bytes(b"answer")
    earlier = {"predictions/1/{case}.csv": tmp_path / "one.csv", "predictions/2/{case}": tmp_path / "masks"}
    lay_out(tmp_path / "view", {"n": CaseView(case=several, earlier=earlier)}, inputs=("camera",))
    assert tree(tmp_path / "view") == {
        "n/camera.txt": b"camera", "predictions/1/n.csv": b"answer", "predictions/2/n/000.png": b"mask",
    }  # fmt: skip


def test_each_case_is_cut_at_its_own_place(tmp_path: Path, make_case: Callable[..., Case]) -> None:
    shown = {
        "n": CaseView(case=make_case("A", frames=4), cut=Cut(frames=1)), "m": CaseView(case=make_case("B", frames=3)),
        "o": CaseView(case=make_case("C", frames=3), cut=Cut(frames=2, kind=CutKind.CLIP)),
    }  # fmt: skip
    lay_out(tmp_path / "view", shown, inputs=("frames",), lists={"{case}.txt": "{frame}"})
    assert [path.name for path in sorted((tmp_path / "view" / "n").iterdir())] == ["000.png"]
    assert len(list((tmp_path / "view" / "m").iterdir())) == 3
    assert len(list((tmp_path / "view" / "o").iterdir())) == 2
    assert (tmp_path / "view" / "n.txt").read_text() == "000\n"
    assert (tmp_path / "view" / "m.txt").read_text() == "000\n001\n002\n"


def test_an_altered_future_may_be_shorter_than_its_case(tmp_path: Path, several: Case) -> None:
    view = CaseView(case=several, donor=several, cut=Cut(frames=1, kind=ALTERED), length=3)
    lay_out(tmp_path / "view", {"n": view}, inputs=("frames", "kinematics"), lists={"all.txt": "{frame}"})
    assert tree(tmp_path / "view") == {
        "all.txt": b"000\n001\n002\n", "n/kinematics.tsv": b"t\tx\n0\ta\n3\td\n0\ta\n", "record/n/000.png": b"A:0",
        "record/n/001.png": b"A:3", "record/n/002.png": b"A:0",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("cut", "length", "called"),
    [
        (Cut(frames=3), None, ("cut", 3, None)),
        (Cut(frames=4, kind=CutKind.CLIP), None, ("copy", 4, None)),
        (Cut(frames=2, kind=CutKind.CLIP), None, ("cut copy", 2, None)),
        (Cut(frames=3, kind=CutKind.CLIP), None, ("whole copy", 3, None)),
        (Cut(frames=3, kind=ALTERED), None, ("copy", 3, ("B", 1))),
        (Cut(frames=1, kind=ALTERED), 3, ("copy", 1, ("B", 2))),
        (Cut(frames=4, kind=ALTERED), None, ("copy", 4, None)),
        (None, None, None),
    ],
    ids=str,
)
def test_a_video_is_cut_or_copied(
    tmp_path: Path,
    make_case: Callable[..., Case],
    monkeypatch: pytest.MonkeyPatch,
    cut: Cut | None,
    length: int | None,
    called: tuple[str, int, tuple[str, int] | None] | None,
) -> None:
    calls: list[tuple[str, int, tuple[str, int] | None]] = []

    def cut_packets(source: Path, target: Path, frames: int) -> None:
        calls.append(("cut copy" if source.stem == "copy" else "cut", frames, None))
        target.write_bytes(source.read_bytes()[:1])

    def copy(source: Path, target: Path, frames: int, *, then: tuple[Path, int] | None = None) -> None:
        calls.append(("copy", frames, (then[0].stem, then[1]) if then is not None else None))
        target.write_bytes(source.read_bytes()[:1])

    monkeypatch.setattr(video_cuts, "cut", cut_packets)
    monkeypatch.setattr(video_copies, "copy_without_loss", copy)
    cases = []
    for name in "AB":
        (tmp_path / f"{name}.mp4").write_bytes(f"{name} video".encode())
        video = given("video", InputKind.VIDEO, tmp_path / f"{name}.mp4", "{case}/video.mp4")
        cases.append(replace(make_case(name, frames=4), inputs=(video,)))
    (tmp_path / "copy.mp4").write_bytes(b"A copy of three frames")
    copies = {"video": VideoCopy(path=tmp_path / "copy.mp4", frames=3)}
    donor = cases[1] if called and called[2] else None
    view = CaseView(case=cases[0], donor=donor, cut=cut, length=length, copies=copies)
    lay_out(tmp_path / "view", {"n": view}, inputs=("video",))
    shown = tmp_path / "view" / "n" / "video.mp4"
    if called and called[0] == "whole copy":
        assert (calls, shown.read_bytes()) == ([], b"A copy of three frames")
    else:
        assert calls == ([called] if called else [])
        assert shown.read_bytes() == (b"A" if called else b"A video")
    assert (shown.stat().st_mode & 0o7777, shown.stat().st_mtime) == (0o444, 1e9)
