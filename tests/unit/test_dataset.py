"""How a data folder is read, and that everything wrong with it is named."""

from pathlib import Path

import pytest

from runner.challenge import CaseFiles
from runner.dataset import find_cases, frame_names
from runner.errors import UsageError


def files(inputs: str = "inputs/{case}", references: str = "references/{case}.csv", frames: str = "*.png") -> CaseFiles:
    return CaseFiles(inputs=inputs, references=references, frames=frames, fps=4)


def write(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("x")


@pytest.mark.parametrize(
    ("inputs", "folder"),
    [
        ("inputs/{case}", "inputs/01"),
        ("inputs/video-{case}", "inputs/video-01"),
        ("inputs/{case}.frames", "inputs/01.frames"),
        ("inputs/{case}/left", "inputs/01/left"),
        ("{case}", "01"),
        ("{case}/frames", "01/frames"),
        ("video-{case}/frames", "video-01/frames"),
        ("a/b/c-{case}-d/e", "a/b/c-01-d/e"),
    ],
)
def test_patterns(tmp_path: Path, inputs: str, folder: str) -> None:
    root = tmp_path / "data"
    write(root, f"{folder}/0.png", "references/01.csv")
    if inputs.startswith("{case}"):
        # At the top, the folder of the references would be a case itself.
        write(tmp_path, "data-references/01.csv")
        (root / "references/01.csv").unlink()
        (root / "references").rmdir()
        write(root, ".hidden/01.csv")
        (case,) = find_cases(root, files(inputs, ".hidden/{case}.csv"))
    else:
        (case,) = find_cases(root, files(inputs))
    assert (case.name, case.folder, case.frames) == ("01", root / folder, ("0.png",))


def test_cases_and_frames_come_in_order(tmp_path: Path) -> None:
    write(tmp_path, "inputs/b/2.png", "inputs/b/10.png", "inputs/a/0.png", "inputs/b/note.txt", "inputs/.git/0.png")
    write(tmp_path, "references/a.csv", "references/b.csv", "inputs/b/sub.png/x")
    first, second = find_cases(tmp_path, files())
    assert (first.name, second.name) == ("a", "b")
    assert second.frames == ("10.png", "2.png")
    assert second.reference == tmp_path / "references/b.csv"
    assert second.media_seconds == 0.5


def test_links_and_folders_are_not_frames(tmp_path: Path) -> None:
    write(tmp_path, "0.png", "1.PNG", "2.png/x")
    (tmp_path / "3.png").symlink_to(tmp_path / "0.png")
    assert frame_names(tmp_path, "*.png") == ("0.png",)


def test_everything_that_is_wrong_is_named(tmp_path: Path) -> None:
    write(tmp_path, "inputs/a/0.png", "inputs/b/0.txt", "references/b.csv", "inputs/stray.txt")
    with pytest.raises(UsageError) as caught:
        find_cases(tmp_path, files())
    assert caught.value.what == "; ".join(
        [
            f"case 'a' has no reference {tmp_path}/references/a.csv",
            f"case 'b' has no frames '*.png' in {tmp_path}/inputs/b",
            f"case 'stray.txt' has no frames '*.png' in {tmp_path}/inputs/stray.txt",
            f"case 'stray.txt' has no reference {tmp_path}/references/stray.txt.csv",
        ]
    )
    assert caught.value.where == str(tmp_path)
    assert caught.value.remedy == "mend the data folder, or the section cases of challenge.yaml"


@pytest.mark.parametrize(
    ("made", "root", "what"),
    [
        ("x", "nowhere", "there is no data folder '{0}/nowhere'"),
        ("data/x", "data", "there is no folder '{0}/data/inputs'"),
        ("data/inputs/.keep", "data", "no case matches cases.inputs: 'inputs/{{case}}'"),
    ],
)
def test_a_folder_without_cases(tmp_path: Path, made: str, root: str, what: str) -> None:
    write(tmp_path, made)
    with pytest.raises(UsageError) as caught:
        find_cases(tmp_path / root, files())
    assert caught.value.what == what.format(tmp_path)
    assert caught.value.remedy
