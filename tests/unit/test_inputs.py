"""A view shows exactly the frames of its cut, as copies that say nothing of other views."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from runner.challenge import InputKind
from runner.dataset import Case, Input
from runner.inputs import CaseView, frames_of_view, lay_out
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
    lay_out(tmp_path / "view", {"n": CaseView(case=case, donor=donor)}, inputs=("frames",), cut=cut)
    names = [f"{number:03d}.png" for number in range(len(shown))]
    assert contents(tmp_path / "view" / "n") == dict(zip(names, shown, strict=True))
    assert len(list(frames_of_view(case.frames, cut, donor.frames))) == len(names)


def test_a_view_is_a_copy_without_a_past(tmp_path: Path, make_case: Callable[..., Case]) -> None:
    case, view = make_case(), tmp_path / "view"
    lay_out(view, {"n": CaseView(case=case, donor=None)}, inputs=("frames",), cut=None)
    lay_out(tmp_path / "other", {"n": CaseView(case=case, donor=None)}, inputs=("frames",), cut=None)
    for path in (view / "n").iterdir():
        facts = path.stat()
        assert (facts.st_nlink, facts.st_mode & 0o7777, facts.st_mtime, facts.st_atime) == (1, 0o444, 1e9, 1e9)
        assert facts.st_ino != (tmp_path / "other" / "n" / path.name).stat().st_ino
    for folder in (view, view / "n"):
        facts = folder.stat()
        assert (facts.st_mode & 0o7777, facts.st_mtime) == (0o555, 1e9)


def test_neither_the_reference_nor_the_real_name_is_in_a_view(tmp_path: Path, make_case: Callable[..., Case]) -> None:
    lay_out(tmp_path / "view", {"n": CaseView(case=make_case("PATIENT-07"), donor=None)}, inputs=("frames",), cut=None)
    paths = [str(path.relative_to(tmp_path)) for path in (tmp_path / "view").rglob("*")]
    assert paths
    assert not [path for path in paths if "PATIENT" in path or "csv" in path]


def test_a_view_is_laid_out_once(tmp_path: Path, make_case: Callable[..., Case]) -> None:
    case = make_case()
    lay_out(tmp_path / "view", {"n": CaseView(case=case, donor=None)}, inputs=("frames",), cut=Cut(frames=1))
    with pytest.raises(FileExistsError):
        lay_out(tmp_path / "view", {"n": CaseView(case=case, donor=None)}, inputs=("frames",), cut=None)
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
    lay_out(tmp_path / "view", {"n": CaseView(case=several)}, inputs=names, cut=Cut(frames=2))
    assert tree(tmp_path / "view") == {
        "n/camera.txt": b"camera", "n/kinematics.tsv": b"t\tx\n0\ta\n1\tb\n", "record/n/000.png": b"A:0",
        "record/n/001.png": b"A:1",
    }  # fmt: skip


def test_an_altered_table_has_the_donors_rows(tmp_path: Path, several: Case) -> None:
    (tmp_path / "b.tsv").write_bytes(b"t\tx\n0\tB\n1\tB\n")
    table = several.inputs[1]
    donor = replace(several, inputs=(several.inputs[0], replace(table, path=tmp_path / "b.tsv"), several.inputs[2]))
    cut = Cut(frames=3, kind=ALTERED)
    lay_out(tmp_path / "view", {"n": CaseView(case=several, donor=donor)}, inputs=("kinematics",), cut=cut)
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
