"""A case of a data folder as frames: only what is shown, in order, and never more than one at a time."""

import io
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from runner.challenge import InputKind
from runner.dataset import Case, Input
from runner.errors import UsageError
from runner.streaming.frame import ImageBytes, ImageFile, TableRow
from runner.streaming.source import frames_of, streamed_inputs

HEADER = "x\ty"


def write_video(path: Path, frames: int) -> None:
    """A video in which frame n is all of one grey."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.width, stream.height, stream.pix_fmt = 32, 16, "yuv420p"
        for number in range(frames):
            image = np.full((16, 32, 3), 20 * number, np.uint8)
            for packet in stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")):
                container.mux(packet)
        for packet in stream.encode():
            container.mux(packet)


@pytest.fixture
def case(tmp_path: Path) -> Case:
    """Three frames as files, as a video and as rows, and a calibration."""
    folder = tmp_path / "frames"
    folder.mkdir()
    names = ("a.png", "b.png", "c.png")
    for name in names:
        (folder / name).write_bytes(name.encode())
    write_video(tmp_path / "video.mp4", 3)
    (tmp_path / "table.tsv").write_bytes(f"{HEADER}\r\n1\t2\r\n3\t4\n5\té".encode())
    (tmp_path / "calibration.txt").write_text("k")
    kinds = {
        "left": (InputKind.FRAMES, folder), "video": (InputKind.VIDEO, tmp_path / "video.mp4"),
        "rows": (InputKind.TABLE, tmp_path / "table.tsv"),
        "calibration": (InputKind.FILE, tmp_path / "calibration.txt"),
    }  # fmt: skip
    inputs = tuple(
        Input(name=name, kind=kind, path=path, inside="{case}", frames=names if kind is InputKind.FRAMES else ())
        for name, (kind, path) in kinds.items()
    )
    return Case(name="A", inputs=inputs, frames=names, media_seconds=0.3, references={})


def test_every_input_has_its_part_of_a_frame(case: Case) -> None:
    frames = list(frames_of(case, ("left", "video", "rows", "calibration"), fps=10.0))
    assert [(frame.index, frame.time) for frame in frames] == [(0, 0.0), (1, 0.1), (2, 0.2)]
    assert [list(frame.inputs) for frame in frames] == [["left", "video", "rows"]] * 3
    left = case.inputs[0]
    assert [frame.inputs["left"] for frame in frames] == [ImageFile(path=left.path / name) for name in left.frames]
    assert [frame.inputs["rows"] for frame in frames] == [
        TableRow(header=HEADER, row=row) for row in ("1\t2", "3\t4", "5\té")
    ]
    for number, frame in enumerate(frames):
        image = frame.inputs["video"]
        assert isinstance(image, ImageBytes)
        assert image.suffix == ".png"
        opened = Image.open(io.BytesIO(image.content))
        assert (opened.format, opened.size) == ("PNG", (32, 16))
        assert abs(int(np.asarray(opened).mean()) - 20 * number) <= 3


def test_what_a_task_is_not_shown_is_not_read(case: Case) -> None:
    for given in case.inputs[1:]:
        given.path.unlink()
    assert [list(frame.inputs) for frame in frames_of(case, ("left",), fps=10.0)] == [["left"]] * 3
    assert [one.name for one in streamed_inputs(case, ("rows", "calibration"))] == ["rows"]


def test_a_frame_is_made_only_when_it_is_asked_for(case: Case) -> None:
    case.inputs[2].path.write_bytes(b"x\n1\n2\n\xff\n")
    frames = frames_of(case, ("left", "rows"), fps=10.0)
    assert [next(frames).index, next(frames).index] == [0, 1]
    with pytest.raises(UsageError, match="row 4 of a table is not UTF-8"):
        next(frames)


@pytest.mark.parametrize("name", ["left", "video", "rows"])
def test_an_input_that_is_not_as_long_as_the_case_is_the_organisers(case: Case, name: str) -> None:
    longer = Case(name="A", inputs=case.inputs, frames=(*case.frames, "d.png"), media_seconds=0.4, references={})
    with pytest.raises(UsageError) as caught:
        list(frames_of(longer, (name,), fps=10.0))
    assert caught.value.what == f"case 'A': its input {name} has 3 frames where the case has 4"
    shorter = Case(name="A", inputs=case.inputs, frames=case.frames[:2], media_seconds=0.2, references={})
    with pytest.raises(UsageError, match=f"its input {name} has 3 frames where the case has 2"):
        next(frames_of(shorter, (name,), fps=10.0))


def test_a_table_that_is_no_text_is_the_organisers(case: Case) -> None:
    case.inputs[2].path.write_bytes(b"x\n1\n\xff\n2")
    with pytest.raises(UsageError, match="row 3 of a table is not UTF-8"):
        list(frames_of(case, ("rows",), fps=10.0))


def test_a_table_without_a_header_has_none(case: Case) -> None:
    rows = Input(name="rows", kind=InputKind.TABLE, path=case.inputs[2].path, inside="{case}", header=False)
    whole = Case(name="A", inputs=(rows,), frames=("0", "1", "2", "3"), media_seconds=0.4, references={})
    first = next(frames_of(whole, ("rows",), fps=10.0))
    assert first.inputs["rows"] == TableRow(header="", row=HEADER)
