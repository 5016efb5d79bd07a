"""PitVis 2023: steps and instruments of endoscopic pituitary surgery, as we read the challenge, or as published."""

from collections.abc import Mapping
from enum import StrEnum

import numpy as np

from runner.formats.contract import FrameTable
from runner.scoring import Metric
from runner.scoring.metrics import (
    AveragedOver,
    Labels,
    Undefined,
    count_sets,
    edit_score,
    f1,
    macro,
    macro_f1,
    published_instrument_f1,
    published_step_f1,
    sets_of,
)

COLUMN = "int_step"
SCORED = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14)
NOT_EVALUATED = (-1, 11, 13)
"""Frames whose reference is one of these are dropped: out of patient, and two steps that are too rare."""

INSTRUMENT_COLUMNS = ("int_instrument1", "int_instrument2")
INSTRUMENTS = range(19)
OUT_OF_PATIENT = -1
NO_SECOND = -2


class Scoring(StrEnum):
    """Whose formulas: this folder's reading of the challenge, or those of the organisers' scripts."""

    OURS = "ours"
    AS_PUBLISHED = "as-published"


class Steps:
    """Macro-F1 and edit score of one video, and their mean, which ranks.

    Args:
        scoring: ``ours``, or ``as-published``: macro-F1 over the union of the labels met.

    Raises:
        ValueError: It is neither.
    """

    metrics = (
        Metric(name="mean_f1_edit", title="Mean of macro-F1 and edit", worst=0.0, chance=None, higher_is_better=True),
        # A uniform guess among K balanced classes has an expected F1 of about 1/K.
        Metric(name="macro_f1", title="Macro-F1", worst=0.0, chance=1 / len(SCORED), higher_is_better=True),
        Metric(name="edit", title="Edit score", worst=0.0, chance=None, higher_is_better=True),
    )

    def __init__(self, *, scoring: str = "ours") -> None:
        self._scoring = Scoring(scoring)

    def score_case(self, reference: FrameTable, prediction: FrameTable) -> Mapping[str, float]:
        """Score one video.

        In our reading a predicted label outside the 12 scored steps is wrong for the reference's step and counts
        against no other.

        Raises:
            ValueError: The reference holds a label no reference may hold, or no frame that is scored.
        """
        truth, guess = reference.columns[COLUMN], prediction.columns[COLUMN]
        strangers = np.setdiff1d(truth, SCORED + NOT_EVALUATED)
        if strangers.size:
            raise ValueError(f"the reference holds {COLUMN} {strangers.tolist()}, which is the organisers' error")
        kept = ~np.isin(truth, NOT_EVALUATED)
        if not kept.any():
            raise ValueError("no frame of the reference is scored: all are out of patient, or steps 11 or 13")
        truth, guess = truth[kept], guess[kept]
        step_f1 = self._f1(truth, guess)
        edit = edit_score(truth, guess)
        return {"mean_f1_edit": (step_f1 + edit) / 2, "macro_f1": step_f1, "edit": edit}

    def _f1(self, truth: Labels, guess: Labels) -> float:
        if self._scoring is Scoring.AS_PUBLISHED:
            return published_step_f1(truth, guess)
        return macro_f1(truth, guess, labels=SCORED, averaged_over=AveragedOver.REFERENCE_OR_PREDICTION)


class Instruments:
    """F1 of the set of instruments in each frame of one video.

    Args:
        scoring: ``ours``: frames out of patient are dropped, and F1 is averaged over the classes that occur in the
            reference or the prediction. ``as-published``: they are kept, and F1 is weighted by frequency.

    Raises:
        ValueError: It is neither.
    """

    metrics = (Metric(name="instrument_f1", title="F1 of instruments", worst=0.0, chance=None, higher_is_better=True),)

    def __init__(self, *, scoring: str = "ours") -> None:
        self._scoring = Scoring(scoring)

    def score_case(self, reference: FrameTable, prediction: FrameTable) -> Mapping[str, float]:
        """Score one video.

        Raises:
            ValueError: A frame of the reference is out of patient and holds an instrument, or every one is.
        """
        truth, guess = _instruments_of(reference), _instruments_of(prediction)
        outside = (truth == OUT_OF_PATIENT).any(axis=1)
        torn = np.flatnonzero(outside & (truth >= 0).any(axis=1))
        if torn.size:
            raise ValueError(f"frame {torn[0]} of the reference is out of patient and holds an instrument")
        if outside.all():
            raise ValueError("no frame of the reference is scored: all are out of patient")
        if self._scoring is Scoring.OURS:
            truth, guess = truth[~outside], guess[~outside]
        none = (OUT_OF_PATIENT, NO_SECOND)
        theirs, ours = (sets_of(columns, labels=INSTRUMENTS, none=none) for columns in (truth, guess))
        if self._scoring is Scoring.AS_PUBLISHED:
            return {"instrument_f1": published_instrument_f1(theirs, ours)}
        counts = count_sets(theirs, ours)
        over = AveragedOver.REFERENCE_OR_PREDICTION
        return {"instrument_f1": macro(f1(counts), counts, averaged_over=over, undefined=Undefined.FAIL)}


def _instruments_of(table: FrameTable) -> Labels:
    """Both columns of instruments, shape ``(frames, 2)``."""
    return np.stack([table.columns[name] for name in INSTRUMENT_COLUMNS], axis=1)


class StepsAndInstruments:
    """The mean of tasks 1 and 2 of one video, which ranks, and what it is made of.

    Args:
        scoring: ``ours`` or ``as-published``, for both.

    Raises:
        ValueError: It is neither.
    """

    metrics = (
        Metric(
            name="mean_steps_instruments",
            title="Mean of steps and instruments",
            worst=0.0,
            chance=None,
            higher_is_better=True,
        ),
        *Steps.metrics,
        *Instruments.metrics,
    )

    def __init__(self, *, scoring: str = "ours") -> None:
        self._steps = Steps(scoring=scoring)
        self._instruments = Instruments(scoring=scoring)

    def score_case(self, reference: FrameTable, prediction: FrameTable) -> Mapping[str, float]:
        """Score one video.

        Raises:
            ValueError: As ``Steps`` and ``Instruments``.
        """
        values = {
            **self._steps.score_case(reference, prediction),
            **self._instruments.score_case(reference, prediction),
        }
        mean = (values["mean_f1_edit"] + values["instrument_f1"]) / 2
        return {"mean_steps_instruments": mean, **values}
