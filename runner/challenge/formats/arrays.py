"""NumPy arrays for a case."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from runner.challenge.formats.section import FormatSection
from runner.challenge.section import Section

Extent = Annotated[int, Field(ge=1)] | Literal["frames", "any"]


class OneArray(Section):
    """One array.

    Attributes:
        type: Of its elements, exactly.
        shape: Its extents, up to four; ``frames`` is the case's number of frames, ``any`` is any length.
        range: Lowest and highest legal value; None: any that is finite.
    """

    type: Literal[
        "bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64",
        "float16", "float32", "float64",
    ]  # fmt: skip
    shape: tuple[Extent, ...] = Field(max_length=4)
    range: tuple[float, float] | None = None


class ArraysFormat(FormatSection):
    """An NPY file with one array, or an NPZ archive with several.

    Attributes:
        file: Ends in ``.npy`` or ``.npz``.
        arrays: By name; the one array of an NPY file has whatever name stands here.
    """

    kind: Literal["arrays"]
    arrays: dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9_]{1,64}$")], OneArray] = Field(min_length=1, max_length=60)

    @model_validator(mode="after")
    def _file_fits(self) -> "ArraysFormat":
        if not self.file.endswith((".npy", ".npz")):
            raise ValueError(f"file {self.file!r} must end in .npy or .npz")
        if self.file.endswith(".npy") and len(self.arrays) != 1:
            raise ValueError("an .npy file holds one array; name an .npz file for several")
        return self
