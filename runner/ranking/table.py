"""What is ranked: a value for each submission and case, and what a missing one counts as."""

from dataclasses import dataclass
from typing import Self, assert_never

import numpy as np
from numpy.typing import ArrayLike, NDArray

from runner.challenge import MissingCase
from runner.errors import UsageError


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoreTable:
    """The primary metric of a task.

    Attributes:
        submissions: Rows, each name once.
        cases: Columns, each name once.
        values: Shape ``(submissions, cases)``, read-only; NaN where there is no valid prediction.
    """

    submissions: tuple[str, ...]
    cases: tuple[str, ...]
    values: NDArray[np.float64]

    def __post_init__(self) -> None:
        if self.values.shape != (len(self.submissions), len(self.cases)):
            raise ValueError(
                f"values of shape {self.values.shape} for {len(self.submissions)} × {len(self.cases)} names"
            )
        if len(set(self.submissions)) < len(self.submissions) or len(set(self.cases)) < len(self.cases):
            raise ValueError("a submission or a case is named twice")
        if np.isinf(self.values).any():
            raise ValueError("a score is infinite")

    @classmethod
    def of(cls, submissions: tuple[str, ...], cases: tuple[str, ...], values: ArrayLike) -> Self:
        """A table of a copy of ``values``."""
        copy = np.array(values, dtype=np.float64).reshape(len(submissions), len(cases))
        copy.flags.writeable = False
        return cls(submissions=submissions, cases=cases, values=copy)

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Where there is no value; shape as ``values``."""
        return np.asarray(np.isnan(self.values))


def apply_missing(
    table: ScoreTable, policy: MissingCase, *, worst: float | None = None, chance: float | None = None
) -> ScoreTable:
    """A table without missing values.

    Args:
        table: The scores.
        policy: ``worst`` and ``chance`` put a value in; ``exclude`` drops a case that anybody misses for everybody;
            ``fail`` drops a submission that misses any case.
        worst: The scorer's worst value.
        chance: The scorer's value of guessing.

    Raises:
        UsageError: The policy needs a value the scorer does not state, or leaves no case to rank over.
    """
    match policy:
        case MissingCase.WORST:
            return _filled(table, worst, policy)
        case MissingCase.CHANCE:
            return _filled(table, chance, policy)
        case MissingCase.EXCLUDE:
            return _without_cases(table)
        case MissingCase.FAIL:
            return _rows(table, ~np.asarray(table.missing.any(axis=1)))
        case _:
            assert_never(policy)


def _filled(table: ScoreTable, value: float | None, policy: MissingCase) -> ScoreTable:
    if not table.missing.any():
        return table
    if value is None or not np.isfinite(value):
        raise UsageError(
            f"missing_case: {policy} needs a value, and the scorer states {value!r}",
            where="challenge.yaml",
            remedy="choose another missing_case, or let the scorer state it",
        )
    return ScoreTable.of(table.submissions, table.cases, np.where(table.missing, value, table.values))


def _without_cases(table: ScoreTable) -> ScoreTable:
    keep = ~np.asarray(table.missing.any(axis=0))
    if table.cases and not keep.any():
        empty = [name for name, row in zip(table.submissions, table.missing, strict=True) if row.all()]
        raise UsageError(
            "missing_case: exclude leaves no case that every submission has",
            where="challenge.yaml",
            remedy=f"leave out {', '.join(map(repr, empty))}" if empty else "choose another missing_case",
        )
    cases = tuple(name for name, kept in zip(table.cases, keep, strict=True) if kept)
    return ScoreTable.of(table.submissions, cases, table.values[:, keep])


def _rows(table: ScoreTable, keep: NDArray[np.bool_]) -> ScoreTable:
    submissions = tuple(name for name, kept in zip(table.submissions, keep, strict=True) if kept)
    return ScoreTable.of(submissions, table.cases, table.values[keep])
