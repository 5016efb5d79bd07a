"""Whether a method may look ahead, and how that is checked."""

from enum import StrEnum
from typing import Literal

from pydantic import Field

from runner.challenge.section import Section


class LeakPolicy(StrEnum):
    """What a confirmed leak, or a dependence on length, does to a submission."""

    REFUSE = "refuse"
    UNRANKED = "unranked"
    REPORT = "report"


class CausalityRule(Section):
    """How causality is checked.

    Attributes:
        method: ``targeted``: prefixes cut where the full run changes its answer, interleaved with random ones.
        on: How many cases are checked, drawn with the organiser's secret seed: it is what the check costs.
        cuts: At most so many prefixes a case.
        min_frames: The shortest prefix that is tried.
        on_leak: What a confirmed leak does.
        length_dependence: What a dependence on the length alone does.
    """

    method: Literal["targeted", "off"]
    on: int = Field(ge=1)
    cuts: int = Field(default=20, ge=1)
    min_frames: int = Field(default=1, ge=1)
    on_leak: LeakPolicy
    length_dependence: LeakPolicy
