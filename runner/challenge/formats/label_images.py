"""A label image for every frame."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from runner.challenge.formats.section import FormatSection
from runner.challenge.section import Section

Level = Annotated[int, Field(ge=0, le=255)]


class ImageLabel(Section):
    """A class of pixels, with its colour where images are coloured."""

    name: str = Field(min_length=1)
    colour: tuple[Level, Level, Level] | None = None


def _refuse_or_a_class(stated: object) -> object:
    if stated == "refuse" or type(stated) is int:
        return stated
    raise ValueError("must be refuse, or the number of a class: 0")


class LabelImagesFormat(FormatSection):
    """One PNG a frame; each pixel is a class.

    Attributes:
        file: Path with ``{case}`` and ``{frame}``, such as ``{case}/{frame}.png``.
        coding: ``colour``: RGB, one colour a class; ``index``: grey or palette, the value is the class.
        width: Pixels a row.
        height: Rows.
        classes: By number, 0 to 255.
        missing_frames: ``refuse`` a prediction that lacks an image, or the number of the class that such a frame is
            wholly of; one without any image is refused all the same, and so is a reference.
    """

    kind: Literal["label_images"]
    coding: Literal["colour", "index"]
    width: int = Field(ge=1, le=8192)
    height: int = Field(ge=1, le=8192)
    classes: dict[Level, ImageLabel] = Field(min_length=1)
    missing_frames: Annotated[Literal["refuse"] | int, BeforeValidator(_refuse_or_a_class)] = "refuse"

    @classmethod
    def placeholders(cls) -> tuple[str, ...]:
        """Also the frame."""
        return ("case", "task", "frame")

    @field_validator("file")
    @classmethod
    def _a_file_a_frame(cls, path: str) -> str:
        folder, _, name = path.rpartition("/")
        if (
            name.count("{frame}") != 1
            or "{frame}" in folder
            or "{case}" not in folder
            or "{task}" in name
            or not name.endswith(".png")
        ):
            raise ValueError(
                f"{path!r} must be a folder with {{case}} and a .png with {{frame}}: {{case}}/{{frame}}.png"
            )
        return path

    @model_validator(mode="after")
    def _can_be_read(self) -> "LabelImagesFormat":
        size = self.width * self.height * (3 if self.coding == "colour" else 1)
        if size > 32 << 20:
            raise ValueError(f"an image of {self.width} × {self.height} has {size} bytes of pixels; 32 MiB are read")
        return self

    @model_validator(mode="after")
    def _fills_in_a_class(self) -> "LabelImagesFormat":
        if self.missing_frames != "refuse" and self.missing_frames not in self.classes:
            raise ValueError(f"missing_frames: {self.missing_frames} is no class")
        return self

    @model_validator(mode="after")
    def _colours(self) -> "LabelImagesFormat":
        colours = [label.colour for label in self.classes.values()]
        if self.coding == "colour" and (None in colours or len(set(colours)) != len(colours)):
            raise ValueError("every class needs a colour of its own where coding is colour")
        return self
