"""A case of a data folder as the frames that are streamed of it, one by one, each made when it is asked for."""

import io
from collections.abc import Iterator, Sequence
from pathlib import Path

from runner.challenge import InputKind
from runner.dataset import Case, Input, table_rows
from runner.errors import UsageError
from runner.streaming.frame import FrameInput, ImageBytes, ImageFile, StreamedFrame, TableRow
from runner.video import every_frame, video_length

_PACKED = 1
"""How hard PNG files are packed: the least, since a container waits for them."""

_END = b"\r\n"


def streamed_inputs(case: Case, names: Sequence[str]) -> tuple[Input, ...]:
    """Those of a case's inputs that have frames."""
    return tuple(one for one in case.inputs if one.name in names and one.kind is not InputKind.FILE)


def frames_of(case: Case, names: Sequence[str], *, fps: float) -> Iterator[StreamedFrame]:
    """The frames of a case.

    Args:
        case: The case.
        names: Of the inputs that are shown; those without a length are not streamed.
        fps: Frames a second of its camera.

    Raises:
        UsageError: An input cannot be read, or is not as long as the case.
        OSError: A file cannot be read.
    """
    shown = streamed_inputs(case, names)
    for one in shown:
        _require_length(case, one, _length(one))
    readers = {one.name: _frames_of_input(one) for one in shown}
    for index in range(len(case.frames)):
        found: dict[str, FrameInput] = {}
        for one in shown:
            frame = next(readers[one.name], None)
            if frame is None:
                _require_length(case, one, index)
                raise AssertionError("unreachable: it is shorter")
            found[one.name] = frame
        yield StreamedFrame(index=index, time=index / fps, inputs=found)


def _require_length(case: Case, given: Input, frames: int) -> None:
    """Each input has a frame for each of the case; which would be whose, else?"""
    if frames != len(case.frames):
        raise UsageError(
            f"case {case.name!r}: its input {given.name} has {frames} frames where the case has {len(case.frames)}",
            where=str(given.path),
            remedy="mend the data; see: proctor data check",
        )


def _length(given: Input) -> int:
    match given.kind:
        case InputKind.FRAMES:
            return len(given.frames)
        case InputKind.TABLE:
            return table_rows(given.path, header=given.header)
        case _:
            return video_length(given.path)


def _frames_of_input(given: Input) -> Iterator[FrameInput]:
    match given.kind:
        case InputKind.FRAMES:
            return (ImageFile(path=given.path / name) for name in given.frames)
        case InputKind.VIDEO:
            return _images(given.path)
        case InputKind.TABLE:
            return _rows(given.path, header=given.header)
        case InputKind.FILE:
            raise AssertionError("a file has no frames")


def _images(video: Path) -> Iterator[ImageBytes]:
    for image in every_frame(video):
        content = io.BytesIO()
        image.save(content, "PNG", compress_level=_PACKED)
        yield ImageBytes(content=content.getvalue(), suffix=".png")


def _rows(table: Path, *, header: bool) -> Iterator[TableRow]:
    with table.open("rb") as lines:
        names = _text(table, next(lines, b""), 1) if header else ""
        for number, line in enumerate(lines, 1 + header):
            yield TableRow(header=names, row=_text(table, line, number))


def _text(table: Path, line: bytes, number: int) -> str:
    try:
        return line.rstrip(_END).decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"row {number} of a table is not UTF-8", where=str(table), remedy="save the table as UTF-8"
        ) from error
