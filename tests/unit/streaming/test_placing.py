"""A frame's images wait beside the view, and are in it from its release to its answer only."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.challenge import FrameWay
from runner.streaming.frame import ImageBytes, ImageFile, StreamedFrame, TableRow
from runner.streaming.placing import Ahead, Placing, Prepared


@pytest.fixture
def frame(tmp_path: Path) -> StreamedFrame:
    source = tmp_path / "real-name-0007.PNG"
    source.write_bytes(b"picture")
    return StreamedFrame(
        index=7,
        time=0.28,
        inputs={
            "frames": ImageFile(path=source),
            "masks": ImageBytes(content=b"mask", suffix=".png"),
            "kinematics": TableRow(header="t,x", row="7,0.5"),
        },
    )


@pytest.fixture
def placing(tmp_path: Path) -> Placing:
    (tmp_path / "view").mkdir()
    (tmp_path / "staging").mkdir()
    return Placing(view=tmp_path / "view", staging=tmp_path / "staging", mount="/data/inputs/")


def _names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_by_path_a_frame_is_a_copy_of_its_own_that_says_nothing(
    tmp_path: Path, placing: Placing, frame: StreamedFrame
) -> None:
    prepared = placing.prepare(frame, way=FrameWay.PATH)
    assert json.loads(prepared.message) == {
        "type": "frame",
        "index": 7,
        "time": 0.28,
        "inputs": {
            "frames": {"path": "/data/inputs/0-00000007.png"},
            "masks": {"path": "/data/inputs/1-00000007.png"},
            "kinematics": {"header": "t,x", "row": "7,0.5"},
        },
    }
    assert _names(tmp_path / "view") == []
    placing.place(7, prepared)
    assert _names(tmp_path / "staging") == []
    image = tmp_path / "view/0-00000007.png"
    assert image.read_bytes() == b"picture"
    facts = image.stat()
    assert (facts.st_mtime, facts.st_nlink, facts.st_mode & 0o777) == (1_000_000_000, 1, 0o444)
    assert facts.st_ino != (tmp_path / "real-name-0007.PNG").stat().st_ino
    assert (tmp_path / "view/1-00000007.png").read_bytes() == b"mask"


def test_inline_a_frame_is_in_its_message_only(tmp_path: Path, placing: Placing, frame: StreamedFrame) -> None:
    prepared = placing.prepare(frame, way=FrameWay.INLINE)
    inputs = json.loads(prepared.message)["inputs"]
    assert base64.b64decode(inputs["frames"]["image"]) == b"picture"
    assert base64.b64decode(inputs["masks"]["image"]) == b"mask"
    assert inputs["kinematics"] == {"header": "t,x", "row": "7,0.5"}
    placing.place(7, prepared)
    assert _names(tmp_path / "view") == _names(tmp_path / "staging") == []


def test_an_answer_takes_its_frame_away_and_those_before_it(tmp_path: Path, placing: Placing) -> None:
    for index in range(4):
        given = {"frames": ImageBytes(content=b"x", suffix=".png")}
        placing.place(index, placing.prepare(StreamedFrame(index=index, time=0.0, inputs=given), way=FrameWay.PATH))
    placing.remove_to(1)
    assert _names(tmp_path / "view") == ["0-00000002.png", "0-00000003.png"]
    placing.remove_to(3)
    assert _names(tmp_path / "view") == []


def test_a_frame_that_is_left_out_is_forgotten(tmp_path: Path, placing: Placing, frame: StreamedFrame) -> None:
    placing.discard(placing.prepare(frame, way=FrameWay.PATH))
    assert _names(tmp_path / "view") == _names(tmp_path / "staging") == []


def _frames(read: list[int], count: int) -> Iterator[StreamedFrame]:
    for index in range(count):
        read.append(index)
        yield StreamedFrame(index=index, time=0.0, inputs={})


@pytest.mark.parametrize("depth", [1, 3])
def test_frames_are_read_no_further_ahead_than_that(depth: int) -> None:
    read: list[int] = []
    with Ahead(_frames(read, 9), lambda frame: Prepared(message=b"%d" % frame.index, names=()), depth=depth) as ahead:
        for index in range(9):
            assert ahead.ready(seconds=10)
            prepared = ahead.take()
            assert prepared is not None
            assert prepared.message == b"%d" % index
            assert len(read) <= index + depth
            ahead.go_on()
        assert ahead.ready(seconds=10)
        assert ahead.take() is None


def test_what_a_source_raises_is_raised_when_its_frame_is_taken() -> None:
    def broken() -> Iterator[StreamedFrame]:
        yield StreamedFrame(index=0, time=0.0, inputs={})
        raise TimeoutError("the disk does not answer")

    with Ahead(broken(), lambda _: Prepared(message=b"", names=()), depth=2) as ahead:
        assert ahead.ready(seconds=10)
        ahead.take()
        assert ahead.ready(seconds=10)
        with pytest.raises(TimeoutError, match="the disk does not answer"):
            ahead.take()
