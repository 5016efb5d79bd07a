"""A table with one row a frame."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from runner.challenge.formats.labels import spread
from runner.challenge.formats.section import FormatSection
from runner.challenge.section import Section


class IndexRule(Section):
    """The column that numbers the frames: ``first``, ``first + step``, …, one row a frame, in order."""

    column: str
    first: int = 0
    step: int = Field(default=1, gt=0)


class ColumnRule(Section):
    """A column of labels: by number, or by name.

    Attributes:
        labels: The legal numbers; ``[-1..14]`` stands for -1, 0, …, 14.
        names: In place of ``labels``: the legal names, written exactly so; label k is the k-th of them, from 0.
        reference_only: Labels that occur in references but are not legal predictions.
        prediction_only: Legal predictions that never occur in a reference; there they are the organiser's error.
        missing: A table without this column is refused, or (``allow``) is one without predictions for it; the scorer
            states what such a component counts.
    """

    labels: Annotated[tuple[int, ...], BeforeValidator(spread)] = ()
    names: tuple[Annotated[str, Field(min_length=1, max_length=200)], ...] = ()
    reference_only: Annotated[tuple[int, ...], BeforeValidator(spread)] = ()
    prediction_only: Annotated[tuple[int, ...], BeforeValidator(spread)] = ()
    missing: Literal["refuse", "allow"] = "refuse"

    @model_validator(mode="after")
    def _one_kind(self) -> "ColumnRule":
        if bool(self.labels) == bool(self.names):
            raise ValueError("a column needs either labels (numbers) or names")
        if len(set(self.names)) != len(self.names):
            raise ValueError("a name stands twice in names")
        return self

    @property
    def ids(self) -> tuple[int, ...]:
        """The legal labels as numbers."""
        return self.labels or tuple(range(len(self.names)))


class FrameTableFormat(FormatSection):
    """A text table with one row a frame: an index column and columns of labels.

    Attributes:
        file: Path of the file a container must write, with ``{case}``.
        separator: Between the fields of a row.
        index: The column that numbers the frames.
        columns: The columns that are predicted, by name.
        extra_columns: ``refuse`` or ``ignore`` columns that are not named here.
    """

    kind: Literal["frame_table"]
    separator: Literal[",", ";", "\t"] = ","
    index: IndexRule
    columns: dict[str, ColumnRule] = Field(min_length=1)
    extra_columns: Literal["refuse", "ignore"] = "refuse"

    @model_validator(mode="after")
    def _something_is_due(self) -> "FrameTableFormat":
        if all(column.missing == "allow" for column in self.columns.values()) and len(self.columns) == 1:
            raise ValueError("the only column must not be missing: allow")
        return self
