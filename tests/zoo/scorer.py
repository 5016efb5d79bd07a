"""How often the label, or the best score, is that of the reference."""

import numpy as np

from runner.formats.contract import FrameScores, FrameTable
from runner.scoring import Metric

_AGREEMENT = Metric(name="agreement", title="Agreement", worst=0.0, chance=0.25, higher_is_better=True)


class Labels:
    """Of a table of labels."""

    metrics = (_AGREEMENT,)

    def score_case(self, reference: FrameTable, prediction: FrameTable) -> dict[str, float]:
        """Share of the frames with the same label."""
        return {"agreement": float(np.mean(reference.columns["label"] == prediction.columns["label"]))}


class Scores:
    """Of scores."""

    metrics = (_AGREEMENT,)

    def score_case(self, reference: FrameScores, prediction: FrameScores) -> dict[str, float]:
        """Share of the frames with the same best class."""
        return {"agreement": float(np.mean(reference.scores.argmax(1) == prediction.scores.argmax(1)))}
