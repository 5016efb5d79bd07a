"""What a prediction looks like."""

import re
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator

from runner.challenge.section import Section

_RANGE = re.compile(r"\s*([+-]?\d+)\s*\.\.\s*([+-]?\d+)\s*")

_LONGEST_RANGE = 10_000


def _spread(labels: object) -> object:
    """Turn ``[-1..14]`` or ``-1..14`` into the list of whole numbers it stands for."""
    items = labels if isinstance(labels, (list, tuple)) else [labels]
    spread: list[object] = []
    for item in items:
        match = _RANGE.fullmatch(item) if isinstance(item, str) else None
        if match is None:
            spread.append(item)
            continue
        first, last = int(match[1]), int(match[2])
        if last < first:
            raise ValueError(f"{item!r}: the range ends before it begins")
        if last - first >= _LONGEST_RANGE:
            raise ValueError(f"{item!r}: the range is longer than {_LONGEST_RANGE}")
        spread.extend(range(first, last + 1))
    return spread


class IndexRule(Section):
    """The column that numbers the frames: ``first``, ``first + step``, …, one row a frame, in order."""

    column: str
    first: int = 0
    step: int = Field(default=1, gt=0)


class ColumnRule(Section):
    """A column of labels.

    Attributes:
        labels: The legal ids; ``[-1..14]`` stands for -1, 0, …, 14.
        reference_only: Labels that occur in references but are not legal predictions.
        prediction_only: Legal predictions that never occur in a reference; there they are the organiser's error.
    """

    labels: Annotated[tuple[int, ...], BeforeValidator(_spread)] = Field(min_length=1)
    reference_only: Annotated[tuple[int, ...], BeforeValidator(_spread)] = ()
    prediction_only: Annotated[tuple[int, ...], BeforeValidator(_spread)] = ()


class FrameTableFormat(Section):
    """A text table with one row a frame: an index column and columns of labels.

    Attributes:
        file: Name of the file a container must write, with ``{case}``.
        separator: Between the fields of a row.
        index: The column that numbers the frames.
        columns: The columns that are predicted, by name.
        extra_columns: ``refuse`` or ``ignore`` columns that are not named here.
    """

    kind: Literal["frame_table"]
    file: str
    separator: Literal[",", ";", "\t"] = ","
    index: IndexRule
    columns: dict[str, ColumnRule] = Field(min_length=1)
    extra_columns: Literal["refuse", "ignore"] = "refuse"

    @field_validator("file")
    @classmethod
    def _plain_name(cls, name: str) -> str:
        if name.count("{case}") != 1 or "/" in name or name.startswith("."):
            raise ValueError(f"{name!r} must be a file name that holds {{case}} once and no '/'")
        return name
