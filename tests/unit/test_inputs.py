"""A view shows exactly the frames of its cut, as copies that say nothing of other views."""

from collections.abc import Callable
from pathlib import Path

import pytest

from runner.dataset import Case
from runner.inputs import frames_of_view, lay_out
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
    lay_out(tmp_path / "view", name="n", case=case, cut=cut, donor=donor)
    names = [f"{number:03d}.png" for number in range(len(shown))]
    assert contents(tmp_path / "view" / "n") == dict(zip(names, shown, strict=True))
    assert [name for name, _ in frames_of_view(case, cut, donor)] == names


def test_a_view_is_a_copy_without_a_past(tmp_path: Path, make_case: Callable[..., Case]) -> None:
    case, view = make_case(), tmp_path / "view"
    lay_out(view, name="n", case=case, cut=None, donor=None)
    lay_out(tmp_path / "other", name="n", case=case, cut=None, donor=None)
    for path in (view / "n").iterdir():
        facts = path.stat()
        assert (facts.st_nlink, facts.st_mode & 0o7777, facts.st_mtime, facts.st_atime) == (1, 0o444, 1e9, 1e9)
        assert facts.st_ino != (tmp_path / "other" / "n" / path.name).stat().st_ino
    for folder in (view, view / "n"):
        facts = folder.stat()
        assert (facts.st_mode & 0o7777, facts.st_mtime) == (0o555, 1e9)


def test_neither_the_reference_nor_the_real_name_is_in_a_view(tmp_path: Path, make_case: Callable[..., Case]) -> None:
    lay_out(tmp_path / "view", name="n", case=make_case("PATIENT-07"), cut=None, donor=None)
    paths = [str(path.relative_to(tmp_path)) for path in (tmp_path / "view").rglob("*")]
    assert paths
    assert not [path for path in paths if "PATIENT" in path or "csv" in path]


def test_a_view_is_laid_out_once(tmp_path: Path, make_case: Callable[..., Case]) -> None:
    case = make_case()
    lay_out(tmp_path / "view", name="n", case=case, cut=Cut(frames=1), donor=None)
    with pytest.raises(FileExistsError):
        lay_out(tmp_path / "view", name="n", case=case, cut=None, donor=None)
    assert contents(tmp_path / "view" / "n") == {"000.png": "PATIENT-07:0"}
