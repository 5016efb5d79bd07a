"""One frame of a case as it is streamed."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias


@dataclass(frozen=True, kw_only=True)
class ImageFile:
    """An image that lies in the data folder; it is copied."""

    path: Path


@dataclass(frozen=True, kw_only=True)
class ImageBytes:
    """An image that was made for this frame, such as one of a video; ``suffix`` as ``.png``."""

    content: bytes
    suffix: str


@dataclass(frozen=True, kw_only=True)
class TableRow:
    """The row of a frame in a table, and the table's header, as they stand in it; without their ends of line."""

    header: str
    row: str


FrameInput: TypeAlias = ImageFile | ImageBytes | TableRow


@dataclass(frozen=True, kw_only=True)
class StreamedFrame:
    """What a container is given when it is a frame's turn.

    Attributes:
        index: 0, 1, 2, …
        time: Seconds since the first frame, by the camera.
        inputs: What there is of it, by the name of the input.
    """

    index: int
    time: float
    inputs: Mapping[str, FrameInput]
