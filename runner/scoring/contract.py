"""What a scorer is: it compares one case's prediction with its reference and answers numbers by name.

A scorer that needs one kind of prediction says so by its annotations; the task's format is what makes it so.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from pydantic import JsonValue

from runner.formats.contract import Prediction


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One number a scorer answers.

    Attributes:
        name: As challenge.yaml and the tables name it.
        title: As people call it.
        worst: What a case counts as under ``missing_case: worst``.
        chance: What guessing at random is worth, for ``missing_case: chance``; None where nobody can say.
        higher_is_better: Its direction.
    """

    name: str
    title: str
    worst: float
    chance: float | None
    higher_is_better: bool


class Scorer(Protocol):
    """What an organiser writes: an object, or a class (or function) that makes one of the task's ``options``.

    Attributes:
        metrics: Every number ``score_case`` answers, in the order of the tables.
    """

    @property
    def metrics(self) -> Sequence[Metric]: ...  # noqa: D102  described above

    def score_case(self, reference: Prediction, prediction: Prediction) -> "Mapping[str, float | None] | CaseScore":
        """Score one case.

        Args:
            reference: The reference, as the task's ``reference_format`` or ``format`` reads it.
            prediction: The prediction, as the task's ``format`` reads it; every problem of form is already excluded.

        Returns:
            A finite number for every metric, by name, or None where the metric is not defined for this case. With
            ``details``, as a ``CaseScore``, where ``aggregate`` needs more than the numbers.

        Raises:
            ValueError: The reference cannot be scored; that is the organisers' to mend.
        """
        ...


class Aggregating(Scorer, Protocol):
    """A scorer whose figures over all cases are not the means of the cases' figures."""

    def aggregate(self, cases: "Sequence[CaseScore]") -> Mapping[str, float | None]:
        """The figures over cases, such as a mean over classes of means over videos.

        Args:
            cases: In the order of the data. A case without a valid prediction has the worst or chance values, as the
                task's ``missing_case`` says, and no details; under ``exclude`` it is not there.

        Returns:
            A finite number for every metric, by name, or None where it is not defined.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class CaseScore:
    """The scores of one case.

    Attributes:
        values: By metric: finite, or None where the metric is not defined for this case.
        details: What ``aggregate`` needs beside them, as plain JSON values; None where there is nothing.
        frames: Frames of the case; filled in by proctor.

    Raises:
        ValueError: A value is not finite.
    """

    values: Mapping[str, float | None]
    details: JsonValue = None
    frames: int = 0

    def __post_init__(self) -> None:
        wrong = [name for name, value in self.values.items() if value is not None and not math.isfinite(value)]
        if wrong:
            raise ValueError(f"not a finite number: {', '.join(wrong)}")


@dataclass(frozen=True, kw_only=True)
class Aggregate:
    """One metric over the cases for which it is defined.

    Attributes:
        mean: Arithmetic mean; None where it is defined for no case.
        std: Standard deviation of these very cases (divided by n, not by n - 1); 0 for a single case.
        cases: How many.
    """

    mean: float | None
    std: float
    cases: int


def aggregate(scores: Sequence[CaseScore]) -> Mapping[str, Aggregate]:
    """Mean and standard deviation of every metric over the cases for which it is defined.

    Raises:
        ValueError: There is no case, or the cases differ in their metrics.
    """
    if not scores:
        raise ValueError("there is no case to aggregate")
    names = list(scores[0].values)
    if any(set(score.values) != set(names) for score in scores):
        raise ValueError("the cases differ in their metrics")
    return {name: _over_cases([score.values[name] for score in scores]) for name in names}


def _over_cases(values: Sequence[float | None]) -> Aggregate:
    defined = np.array([value for value in values if value is not None], dtype=np.float64)
    if not defined.size:
        return Aggregate(mean=None, std=0.0, cases=0)
    return Aggregate(mean=float(defined.mean()), std=float(defined.std()), cases=int(defined.size))
