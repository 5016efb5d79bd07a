"""A table with one row a frame."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, StrictInt, StrictStr, model_validator

from runner.challenge.formats.labels import spread
from runner.challenge.formats.section import FormatSection
from runner.challenge.section import Section

Label = StrictInt | StrictStr
"""A label as a column writes it: by number or by name."""


def _refuse_or_labels(stated: object) -> object:
    if stated == "refuse":
        return stated
    if isinstance(stated, dict) and all(type(label) in (int, str) for label in stated.values()):
        return stated
    raise ValueError("must be refuse, or a label by column: {phase: idle}")


LabelPolicy = Annotated[Literal["refuse"] | dict[str, Label], BeforeValidator(_refuse_or_labels)]
"""``refuse``, or by column the label that stands for what lacks or is unknown."""


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

    def number_of(self, label: Label) -> int | None:
        """The number of a legal label, written as the column writes it; None where it is none."""
        if isinstance(label, str):
            return self.names.index(label) if label in self.names else None
        return label if label in self.labels else None


class FrameTableFormat(FormatSection):
    """A text table with one row a frame: an index column and columns of labels.

    Attributes:
        file: Path of the file a container must write, with ``{case}``.
        separator: Between the fields of a row.
        index: The column that numbers the frames.
        columns: The columns that are predicted, by name.
        extra_columns: ``refuse`` or ``ignore`` columns that are not named here.
        missing_frames: ``refuse`` a table that lacks a frame's row, or the label that each column has for such a frame;
            a table without the row of any frame is refused all the same.
        extra_frames: ``refuse`` a table with rows of no frame, or ``ignore`` these rows, whatever else is in them.
        unknown_label: ``refuse`` what is no label, or the label that it counts as, by column. That is a whole number,
            or a name in a column of names; what cannot be read, and a label that is written otherwise, are refused.

    The last three are for predictions; a reference is held to ``refuse``. Where nobody knows a case's number of frames,
    none is missing or too many, so that a table with a gap, or with a row of no frame, is refused.
    """

    kind: Literal["frame_table"]
    separator: Literal[",", ";", "\t"] = ","
    index: IndexRule
    columns: dict[str, ColumnRule] = Field(min_length=1)
    extra_columns: Literal["refuse", "ignore"] = "refuse"
    missing_frames: LabelPolicy = "refuse"
    extra_frames: Literal["refuse", "ignore"] = "refuse"
    unknown_label: LabelPolicy = "refuse"

    @model_validator(mode="after")
    def _something_is_due(self) -> "FrameTableFormat":
        if all(column.missing == "allow" for column in self.columns.values()) and len(self.columns) == 1:
            raise ValueError("the only column must not be missing: allow")
        return self

    @model_validator(mode="after")
    def _labels_stand_for_what_lacks(self) -> "FrameTableFormat":
        for policy, stated in (("missing_frames", self.missing_frames), ("unknown_label", self.unknown_label)):
            for name, label in ({} if stated == "refuse" else stated).items():
                if name not in self.columns:
                    raise ValueError(f"{policy}: {name!r} is none of the columns: {', '.join(self.columns)}")
                if self.columns[name].number_of(label) is None:
                    raise ValueError(f"{policy}: {label!r} is no label of {name}")
        open_ones = [] if self.missing_frames == "refuse" else self.columns.keys() - self.missing_frames.keys()
        if open_ones:
            raise ValueError(f"missing_frames: a label for {', '.join(sorted(open_ones))} is not stated")
        return self

    @property
    def filled_in(self) -> Mapping[str, int] | None:
        """By column, the number of the label that a frame without a row has; None where it is refused."""
        return None if self.missing_frames == "refuse" else self._numbers(self.missing_frames)

    @property
    def stand_ins(self) -> Mapping[str, int]:
        """By column, the number of the label that an unknown one counts as; a column that refuses is not there."""
        return {} if self.unknown_label == "refuse" else self._numbers(self.unknown_label)

    def _numbers(self, stated: Mapping[str, Label]) -> Mapping[str, int]:
        found = ((name, self.columns[name].number_of(label)) for name, label in stated.items())
        return {name: number for name, number in found if number is not None}
