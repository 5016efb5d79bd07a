"""One JSON answer for a case."""

from typing import Literal

from pydantic import Field, model_validator

from runner.challenge.formats.section import FormatSection
from runner.challenge.section import Section


class FieldRule(Section):
    """One field of an answer.

    Attributes:
        type: ``number``, ``integer``, ``boolean``, ``text``, or ``numbers``, a list of numbers.
        range: Lowest and highest legal number, for each number.
        choices: The legal texts; required for ``text``, so that no free text is an answer.
        length: Of a list; None: any up to 10,000.
        optional: It may be left out.
    """

    type: Literal["number", "integer", "boolean", "text", "numbers"]
    range: tuple[float, float] | None = None
    choices: tuple[str, ...] = ()
    length: int | None = Field(default=None, ge=0, le=10_000)
    optional: bool = False

    @model_validator(mode="after")
    def _fits(self) -> "FieldRule":
        if (self.type == "text") != bool(self.choices):
            raise ValueError("choices are for type text, which needs them")
        if self.range is not None and self.type not in ("number", "integer", "numbers"):
            raise ValueError("range is for numbers")
        if self.length is not None and self.type != "numbers":
            raise ValueError("length is for type numbers")
        return self


class AnswerFormat(FormatSection):
    """A JSON object with named fields.

    Attributes:
        fields: By name.
        extra_fields: ``refuse`` or ``ignore`` fields that are not named here.
    """

    kind: Literal["answer"]
    fields: dict[str, FieldRule] = Field(min_length=1)
    extra_fields: Literal["refuse", "ignore"] = "refuse"
