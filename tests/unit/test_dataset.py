"""How a data folder is read, and that everything wrong with it is named."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import av
import pytest
from pydantic import ValidationError

from runner.challenge import Challenge
from runner.dataset import find_cases, frame_names, survey
from runner.errors import UsageError

Files = Callable[..., Challenge]


@pytest.fixture
def files(make_challenge: Callable[..., Challenge]) -> Files:
    """A challenge whose cases lie so."""

    def make(inputs: Any = "inputs/{case}", references: str = "references/{case}.csv", **changes: Any) -> Challenge:
        return make_challenge(cases={"inputs": inputs, "references": references, "fps": 4, **changes})

    return make


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
def test_patterns(tmp_path: Path, files: Files, inputs: str, folder: str) -> None:
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
    assert (case.name, case.inputs[0].path, case.frames) == ("01", root / folder, ("0.png",))


def test_cases_and_frames_come_in_order(tmp_path: Path, files: Files) -> None:
    write(tmp_path, "inputs/b/2.png", "inputs/b/10.png", "inputs/a/0.png", "inputs/b/note.txt", "inputs/.git/0.png")
    write(tmp_path, "references/a.csv", "references/b.csv", "inputs/b/sub.png/x")
    first, second = find_cases(tmp_path, files())
    assert (first.name, second.name) == ("a", "b")
    assert second.frames == ("10.png", "2.png")
    assert second.references["steps"] == tmp_path / "references/b.csv"
    assert second.media_seconds == 0.5


def test_links_and_folders_are_not_frames(tmp_path: Path) -> None:
    write(tmp_path, "0.png", "1.PNG", "2.png/x")
    (tmp_path / "3.png").symlink_to(tmp_path / "0.png")
    assert frame_names(tmp_path, "*.png") == ("0.png",)


def test_everything_that_is_wrong_is_named(tmp_path: Path, files: Files) -> None:
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
def test_a_folder_without_cases(tmp_path: Path, files: Files, made: str, root: str, what: str) -> None:
    write(tmp_path, made)
    with pytest.raises(UsageError) as caught:
        find_cases(tmp_path / root, files())
    assert caught.value.what == what.format(tmp_path)
    assert caught.value.remedy


KINEMATICS = {"kind": "table", "path": "kinematics/{case}.tsv"}
STEREO = {
    "left": {"kind": "frames", "path": "{case}/left"},
    "right": {"kind": "frames", "path": "{case}/right"},
    "camera": {"kind": "file", "path": "{case}/camera.txt"},
}


@pytest.mark.parametrize(
    ("text", "header", "rows"),
    [
        ("", True, 0),
        ("t\tx\n", True, 0),
        ("t\tx\n0\t1\n", True, 1),
        ("t\tx\n0\t1\n1\t2", True, 2),
        ("0\t1\n1\t2", False, 2),
        ("t\r\n0\r\n", True, 1),
    ],
)
def test_a_table_says_how_long_a_case_is(tmp_path: Path, files: Files, text: str, header: bool, rows: int) -> None:
    write(tmp_path, "kinematics/003.tsv", "references/003.csv")
    (tmp_path / "kinematics/003.tsv").write_text(text, newline="")
    cases, problems = survey(tmp_path, files({"kinematics": {**KINEMATICS, "header": header}}))
    assert (cases[0].frames, cases[0].media_seconds) == (tuple(map(str, range(rows))), rows / 4)
    empty = (f"case '003' has no frames: {tmp_path}/kinematics/003.tsv is empty",)
    assert problems == (() if rows else empty)


def test_a_video_says_how_long_a_case_is(tmp_path: Path, files: Files) -> None:
    write(tmp_path, "videos/a.mp4", "references/a.csv")
    with av.open(str(tmp_path / "videos/a.mp4"), "w") as container:
        stream = container.add_stream("mpeg4", rate=4)
        stream.width, stream.height, stream.pix_fmt = 16, 16, "yuv420p"
        for _ in range(6):
            container.mux(stream.encode(av.VideoFrame(16, 16, "yuv420p")))
        container.mux(stream.encode(None))
    (case,) = find_cases(tmp_path, files({"video": {"kind": "video", "path": "videos/{case}.mp4"}}))
    assert (len(case.frames), case.media_seconds) == (6, 1.5)


def test_several_inputs_of_a_case(tmp_path: Path, files: Files) -> None:
    write(tmp_path, "a/left/0.png", "a/left/1.png", "a/right/0.png", "a/camera.txt", "b/left/0.png", "a/labels/x")
    cases, problems = survey(tmp_path, files(STEREO, "{case}/labels"))
    assert [one.inside for one in cases[0].inputs] == ["{case}/left", "{case}/right", "{case}/camera.txt"]
    assert cases[0].frames == ("0.png", "1.png")
    assert cases[0].stems == ("0", "1")
    assert problems == (
        f"case 'b' has no frames '*.png' in {tmp_path}/b/right",
        f"case 'b' has no camera {tmp_path}/b/camera.txt",
        f"case 'b' has no reference {tmp_path}/b/labels",
    )


def test_a_case_without_length(tmp_path: Path, make_challenge: Callable[..., Challenge]) -> None:
    write(tmp_path, "texts/a.txt", "references/a.csv")
    inputs = {"text": {"kind": "file", "path": "texts/{case}.txt"}}
    challenge = make_challenge(cases={"inputs": inputs, "references": "references/{case}.csv"})
    (case,) = find_cases(tmp_path, challenge)
    assert (case.name, case.frames, case.media_seconds, case.inputs[0].inside) == ("a", (), 0.0, "{case}.txt")


@pytest.mark.parametrize(
    ("left", "right"), [("{case}", "{case}"), ("{case}", "{case}/right"), ("a/{case}/x", "a/{case}/x/y")]
)
def test_inputs_never_lie_in_each_others_place(files: Files, left: str, right: str) -> None:
    inputs = {
        "left": {"kind": "frames", "path": "{case}/left", "as": left},
        "right": {"kind": "frames", "path": "{case}/right", "as": right},
    }
    with pytest.raises(ValidationError, match="is that of another input, or holds it"):
        files(inputs)


def test_a_list_never_lies_where_an_input_does(make_challenge: Callable[..., Challenge]) -> None:
    with pytest.raises(ValidationError, match="lies where an input does"):
        make_challenge(invocation={"lists": {"{case}/list.txt": "{frame}"}})
