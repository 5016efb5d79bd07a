"""What a metric does where its formula has no value. Libraries disagree, so every caller says it."""

from enum import StrEnum


class AveragedOver(StrEnum):
    """The classes whose value enters a mean."""

    REFERENCE = "reference"
    REFERENCE_OR_PREDICTION = "reference or prediction"
    ALL = "all"


class Undefined(StrEnum):
    """What a class, a frame or a video without a value (0 / 0) counts as."""

    LEFT_OUT = "left out"
    ZERO = "zero"
    ONE = "one"
    FAIL = "fail"


STANDS_FOR = {Undefined.LEFT_OUT: float("nan"), Undefined.ZERO: 0.0, Undefined.ONE: 1.0}
"""The number of each policy that has one; NaN inside our arrays means left out."""


def settled(undefined: Undefined, what: str) -> float:
    """The number an undefined value stands for, NaN for left out.

    Raises:
        ValueError: The policy is ``FAIL``; ``what`` begins the sentence.
    """
    if undefined is Undefined.FAIL:
        raise ValueError(f"{what} is undefined, and the policy for undefined values is {Undefined.FAIL.value!r}")
    return STANDS_FOR[undefined]
