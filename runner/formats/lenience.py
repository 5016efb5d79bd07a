"""What a task takes although it is not quite what is due: counted by the child, told by the parent.

challenge.yaml may state what a frame without an answer counts as, that an answer to no frame is left out, and what an
unknown label counts as. A reader notes here how often it did so. The child's counts are held to what it answers, and
the sentences are made of numbers and of challenge.yaml's own words.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from runner.challenge.formats import FrameScoresFormat, FrameTableFormat
from runner.formats.contract import Role
from runner.formats.readers.confined import garbled
from runner.formats.readers.csv_table import CsvCaps


@dataclass(kw_only=True)
class TableLenience:
    """How a table is taken, and how often that was needed.

    Attributes:
        fill: By column, the label of a frame without a row; None where a missing row is a problem.
        drops: Rows of no frame are left out.
        stand_ins: By column, what an unknown label counts as; in other columns it is a problem.
        filled: Frames without a row.
        dropped: Rows of no frame.
        unknown: Unknown labels, by column.
    """

    fill: Mapping[str, int] | None = None
    drops: bool = False
    stand_ins: Mapping[str, int] = field(default_factory=dict)
    filled: int = 0
    dropped: int = 0
    unknown: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, rule: FrameTableFormat, *, frames: int | None, role: Role) -> "TableLenience":
        """Of a task: which frames lack, or are none, can be told only where somebody knows how many there are."""
        if role is Role.REFERENCE:
            return cls()
        return cls(
            fill=None if frames is None else rule.filled_in,
            drops=frames is not None and rule.extra_frames == "ignore",
            stand_ins=rule.stand_ins,
        )

    @property
    def counts(self) -> tuple[int, ...]:
        """How often it was needed; empty where nothing is taken so."""
        if self.fill is None and not self.drops and not self.stand_ins:
            return ()
        return (self.filled, self.dropped, *(self.unknown.get(name, 0) for name in self.stand_ins))

    def believe(
        self, counts: Sequence[int], columns: Mapping[str, NDArray[np.int64]], *, frames: int, caps: CsvCaps
    ) -> None:
        """Take a child's counts.

        Raises:
            ConfinedFailure: They do not fit what it answers; ``GARBLED``.
        """
        if not counts:
            return
        self.filled, self.dropped, *unknown = counts
        self.unknown = dict(zip(self.stand_ins, unknown, strict=True))
        alike = [columns[name] == label for name, label in (self.fill or {}).items() if name in columns]
        rows = int(np.count_nonzero(np.logical_and.reduce(alike))) if alike else 0
        most = {
            name: int(np.count_nonzero(columns[name] == label)) if name in columns else 0
            for name, label in self.stand_ins.items()
        }
        if (
            self.filled > min(rows, frames - 1)
            or self.dropped > (caps.rows if self.drops else 0)
            or any(self.unknown[name] > most[name] for name in most)
        ):
            raise garbled("its answer counts more than it holds")

    def notes(self, rule: FrameTableFormat, there: Sequence[str], frames: int) -> tuple[str, ...]:
        """What is told of it, in our words."""
        found = []
        if self.filled and self.fill is not None:
            labels = ", ".join(f"{name} {_label(rule, name, self.fill[name])}" for name in there)
            found.append(filled_note(self.filled, frames, "row", labels))
        found += dropped_notes(self.dropped)
        for name, count in self.unknown.items():
            label = _label(rule, name, self.stand_ins[name])
            if count:
                found.append(
                    f"{count} {'label' if count == 1 else 'labels'} of {name} {'is' if count == 1 else 'are'} unknown "
                    f"and {'counts' if count == 1 else 'count'} as {label}"
                )
        return tuple(found)


@dataclass(kw_only=True)
class ScoreLenience:
    """How scores are taken, and how often that was needed.

    Attributes:
        fill: Each score of a frame that has none; None where it is a problem.
        drops: Scores of no frame are left out.
        filled: Frames without scores.
        dropped: Scores of no frame.
    """

    fill: float | None = None
    drops: bool = False
    filled: int = 0
    dropped: int = 0

    @classmethod
    def of(cls, rule: FrameScoresFormat, *, frames: int | None, role: Role) -> "ScoreLenience":
        """Of a task; a missing frame can be told only where somebody knows how many there are."""
        filled = role is Role.PREDICTION and frames is not None and rule.missing_frames != "refuse"
        return cls(fill=float(rule.missing_frames) if filled else None, drops=rule.extra_frames == "ignore")

    @property
    def counts(self) -> tuple[int, ...]:
        """How often it was needed; empty where nothing is taken so."""
        return () if self.fill is None and not self.drops else (self.filled, self.dropped)

    def believe(self, counts: Sequence[int], scores: NDArray[np.float64], *, most_dropped: int) -> None:
        """Take a child's counts.

        Raises:
            ConfinedFailure: They do not fit what it answers; ``GARBLED``.
        """
        if not counts:
            return
        self.filled, self.dropped = counts
        alike = 0 if self.fill is None else int(np.count_nonzero((scores == self.fill).all(axis=1)))
        if self.filled > min(alike, len(scores) - 1) or self.dropped > (most_dropped if self.drops else 0):
            raise garbled("its answer counts more than it holds")

    def notes(self, frames: int) -> tuple[str, ...]:
        """What is told of it, in our words."""
        filled = (
            [] if self.fill is None else [filled_note(self.filled, frames, "scores", f"{self.fill:g} in each class")]
        )
        return (*(filled if self.filled else ()), *dropped_notes(self.dropped))


def filled_note(count: int, frames: int, lacks: str, stands_for: str) -> str:
    """How many frames count as something that nobody answered."""
    have, they = ("has", "counts") if count == 1 else ("have", "count")
    return f"{count} of {frames} frames {have} no {lacks} and {they} as {stands_for}"


def dropped_notes(count: int) -> tuple[str, ...]:
    """How many answers were left out, if any."""
    if not count:
        return ()
    return (
        "1 answer is to no frame and was left out"
        if count == 1
        else f"{count} answers are to no frame and were left out",
    )


def _label(rule: FrameTableFormat, name: str, number: int) -> str:
    names = rule.columns[name].names
    return names[number] if names else str(number)
