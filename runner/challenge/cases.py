"""How a data folder is read."""

from typing import Literal

from pydantic import Field, field_validator

from runner.challenge.section import Section


def _one_case_placeholder(pattern: str) -> str:
    if pattern.count("{case}") != 1:
        raise ValueError(f"{pattern!r} must name {{case}} exactly once")
    if pattern.startswith("/") or ".." in pattern.split("/"):
        raise ValueError(f"{pattern!r} must stay inside the data folder")
    return pattern


class CaseFiles(Section):
    """Where the inputs and the references of a case lie in a data folder.

    Attributes:
        inputs: Pattern of a case's folder of frames, with ``{case}``.
        references: Pattern of a case's reference file, with ``{case}``; never mounted.
        frames: Which files of the folder are frames, as a shell pattern; their sorted names are their order.
        fps: Frames a second; the media time of a case is its number of frames divided by this.
    """

    inputs: str
    references: str
    frames: str = "*.png"
    fps: float = Field(gt=0)
    kind: Literal["frame_folder"] = "frame_folder"

    _patterns = field_validator("inputs", "references")(_one_case_placeholder)
