"""How a case is scored: average precision, mean over the classes that occur."""

from collections.abc import Mapping

import numpy as np

from runner.formats.contract import FrameScores
from runner.scoring import Metric
from runner.scoring.metrics import Undefined, average_precision


class Actions:
    """Mean average precision of one case."""

    metrics = (Metric(name="mean_ap", title="Mean AP", worst=0.0, chance=None, higher_is_better=True),)

    def score_case(self, reference: FrameScores, prediction: FrameScores) -> Mapping[str, float | None]:
        """Score one case; a class that never occurs is left out, and a case without any is not defined."""
        truth, guess = reference.scores > 0.5, prediction.scores
        found = [
            average_precision(truth[:, number], guess[:, number], undefined=Undefined.FAIL)
            for number in range(truth.shape[1])
            if truth[:, number].any()
        ]
        return {"mean_ap": float(np.mean(found)) if found else None}


actions = Actions()
