"""Scores of many classes for every frame."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from runner.challenge.formats.section import FormatSection


def _refuse_or_a_score(stated: object) -> object:
    if stated == "refuse" or type(stated) in (int, float):
        return stated
    raise ValueError("must be refuse, or the score of each class: 0")


class FrameScoresFormat(FormatSection):
    """One list of scores a frame.

    Attributes:
        layout: ``json``: an object keyed by frame id, each an object that holds the list under ``key``, or the list
            itself where ``key`` is empty. ``table``: rows without a header, the frame's number and then the scores.
        key: As above.
        classes: Length of each list.
        range: Lowest and highest legal score.
        whole: Scores are whole numbers, as in a reference of zeros and ones.
        frame_ids: ``stem``: the frame's file name without its extension; ``name``: with it; ``number``: ``first``,
            ``first + 1``, …, without leading zeros.
        first: Number of the first frame, for ``number`` and for a table.
        missing_frames: ``refuse`` a prediction that lacks a frame, or the score that each class of such a frame has;
            one without any frame is refused all the same, and so is a reference.
        extra_frames: ``refuse`` or ``ignore`` frames that are none of the case's.
        extra_keys: ``refuse`` or ``ignore`` keys beside ``key`` in a frame's object.
    """

    kind: Literal["frame_scores"]
    layout: Literal["json", "table"] = "json"
    key: str = ""
    classes: int = Field(ge=1, le=10_000)
    range: tuple[float, float] = (0.0, 1.0)
    whole: bool = False
    frame_ids: Literal["stem", "name", "number"] = "stem"
    first: int = Field(default=0, ge=0)
    missing_frames: Annotated[Literal["refuse"] | float, BeforeValidator(_refuse_or_a_score)] = "refuse"
    extra_frames: Literal["refuse", "ignore"] = "refuse"
    extra_keys: Literal["refuse", "ignore"] = "refuse"

    @model_validator(mode="after")
    def _range_rises(self) -> "FrameScoresFormat":
        if not self.range[0] < self.range[1]:
            raise ValueError("range must rise: [lowest, highest]")
        return self

    @model_validator(mode="after")
    def _fills_in_scores(self) -> "FrameScoresFormat":
        score = self.missing_frames
        if score == "refuse":
            return self
        if not self.range[0] <= score <= self.range[1]:
            raise ValueError(f"missing_frames: {score:g} is out of range")
        if self.whole and not score.is_integer():
            raise ValueError(f"missing_frames: {score:g} is not whole, as scores must be")
        return self
