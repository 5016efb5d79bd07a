"""What a scorer is: it compares one case's prediction with its reference and answers numbers by name."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from runner.formats.contract import FrameTable


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
    """What an organiser writes.

    Attributes:
        metrics: Every number ``score_case`` answers, in the order of the tables.
    """

    @property
    def metrics(self) -> Sequence[Metric]: ...  # noqa: D102  described above

    def score_case(self, reference: FrameTable, prediction: FrameTable) -> Mapping[str, float]:
        """Score one case.

        Args:
            reference: The reference labels, ``(frames,)`` a column.
            prediction: The predicted labels, of the same shape; every problem of form is already excluded.

        Returns:
            A finite number for every metric, by name.

        Raises:
            ValueError: The reference cannot be scored; that is the organisers' to mend.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class CaseScore:
    """The scores of one case.

    Attributes:
        values: By metric, finite.

    Raises:
        ValueError: A value is not finite.
    """

    values: Mapping[str, float]

    def __post_init__(self) -> None:
        wrong = [name for name, value in self.values.items() if not math.isfinite(value)]
        if wrong:
            raise ValueError(f"not a finite number: {', '.join(wrong)}")


@dataclass(frozen=True, kw_only=True)
class Aggregate:
    """One metric over cases.

    Attributes:
        mean: Arithmetic mean.
        std: Standard deviation of these very cases (divided by n, not by n - 1); 0 for a single case.
        cases: How many.
    """

    mean: float
    std: float
    cases: int


def aggregate(scores: Sequence[CaseScore]) -> Mapping[str, Aggregate]:
    """Mean and standard deviation of every metric over cases.

    Raises:
        ValueError: There is no case, or the cases differ in their metrics.
    """
    if not scores:
        raise ValueError("there is no case to aggregate")
    names = list(scores[0].values)
    if any(set(score.values) != set(names) for score in scores):
        raise ValueError("the cases differ in their metrics")
    table = np.array([[score.values[name] for name in names] for score in scores], dtype=np.float64)
    means, stds = table.mean(axis=0), table.std(axis=0)
    return {
        name: Aggregate(mean=float(mean), std=float(std), cases=len(scores))
        for name, mean, std in zip(names, means, stds, strict=True)
    }
