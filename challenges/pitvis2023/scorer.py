"""PitVis 2023, task 1: steps of endoscopic pituitary surgery."""

from collections.abc import Mapping

import numpy as np

from runner.formats.contract import FrameTable
from runner.scoring import Metric
from runner.scoring.metrics import AveragedOver, edit_score, macro_f1

COLUMN = "int_step"
SCORED = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14)
NOT_EVALUATED = (-1, 11, 13)
"""Frames whose reference is one of these are dropped: out of patient, and two steps that are too rare."""


class Steps:
    """Macro-F1 and edit score of one video, and their mean, which ranks."""

    metrics = (
        Metric(name="mean_f1_edit", title="Mean of macro-F1 and edit", worst=0.0, chance=None, higher_is_better=True),
        # A uniform guess among K balanced classes has an expected F1 of about 1/K.
        Metric(name="macro_f1", title="Macro-F1", worst=0.0, chance=1 / len(SCORED), higher_is_better=True),
        Metric(name="edit", title="Edit score", worst=0.0, chance=None, higher_is_better=True),
    )

    def score_case(self, reference: FrameTable, prediction: FrameTable) -> Mapping[str, float]:
        """Score one video.

        A predicted label outside the 12 scored steps is wrong for the reference's step and counts against no other.

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
        f1 = macro_f1(truth, guess, labels=SCORED, averaged_over=AveragedOver.REFERENCE_OR_PREDICTION)
        edit = edit_score(truth, guess)
        return {"mean_f1_edit": (f1 + edit) / 2, "macro_f1": f1, "edit": edit}


steps = Steps()
