"""Whether a method may look ahead, and how that is checked."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, model_validator

from runner.challenge.section import Section


class LeakPolicy(StrEnum):
    """What a confirmed leak, or a dependence on length, does to a submission."""

    REFUSE = "refuse"
    UNRANKED = "unranked"
    REPORT = "report"


class CausalityMethod(StrEnum):
    """How cuts are chosen.

    ``targeted``: prefixes cut where the full run changes its answer, interleaved with random ones; every second of the
    former with its later frames replaced by another case's. ``exhaustive``: every prefix of a clip. ``cut-run``: each
    case is cut once, at a place of its own. ``altered-future``: as ``targeted``, but the later frames are replaced by
    another case's, and never withheld.
    """

    TARGETED = "targeted"
    EXHAUSTIVE = "exhaustive"
    CUT_RUN = "cut-run"
    ALTERED_FUTURE = "altered-future"
    OFF = "off"


class AnswersCompared(StrEnum):
    """Which answers of a prefix are compared: all, or only that for its last frame, as PETRAW did."""

    ALL = "all"
    LAST = "last"


class CausalityRule(Section):
    """How causality is checked.

    Attributes:
        method: How cuts are chosen.
        on: How many cases are checked, drawn with the organiser's secret seed, or ``all``: it is what the check costs.
        clip: Only the first so many frames of a case are looked at; None: the whole case.
        cuts: At most so many cuts a case; ``exhaustive`` makes all there are, ``cut-run`` one.
        min_frames: The shortest prefix that is tried.
        rule: Which answers of a prefix are compared; ``last`` needs ``exhaustive``.
        tolerance: The largest difference between two scores that is none; labels are compared exactly.
        most_runs: At most so many runs of a container for a case; where they do not suffice, the check ends as
            inconclusive. None: as many as it takes.
        on_leak: What a confirmed leak does.
        length_dependence: What a dependence on the length alone does.
    """

    method: CausalityMethod
    on: Annotated[int, Field(ge=1)] | Literal["all"] = Field(union_mode="left_to_right")
    clip: int | None = Field(default=None, ge=2)
    cuts: int = Field(default=20, ge=1)
    min_frames: int = Field(default=1, ge=1)
    rule: AnswersCompared = AnswersCompared.ALL
    tolerance: float = Field(default=1e-4, ge=0, allow_inf_nan=False)
    most_runs: int | None = Field(default=None, ge=2)
    on_leak: LeakPolicy
    length_dependence: LeakPolicy

    @model_validator(mode="after")
    def _fits(self) -> "CausalityRule":
        if self.rule is AnswersCompared.LAST and self.method is not CausalityMethod.EXHAUSTIVE:
            raise ValueError("rule: last is PETRAW's, for method: exhaustive; the other methods compare all answers")
        return self
