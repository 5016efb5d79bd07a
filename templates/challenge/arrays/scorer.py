"""How a case is scored: from the mean distance between true and predicted positions."""

from collections.abc import Mapping

import numpy as np

from runner.formats.contract import Arrays
from runner.scoring import Metric


class Positions:
    """1 / (1 + mean distance) of one case, and the distance."""

    metrics = (
        Metric(name="closeness", title="Closeness", worst=0.0, chance=None, higher_is_better=True),
        Metric(name="distance", title="Mean distance", worst=4000.0, chance=None, higher_is_better=False),
    )

    def score_case(self, reference: Arrays, prediction: Arrays) -> Mapping[str, float]:
        """Score one case; another number of positions than there are counts as the worst."""
        truth, guess = reference.arrays["positions"], prediction.arrays["positions"]
        if truth.shape != guess.shape:
            return {"closeness": 0.0, "distance": 4000.0}
        distance = float(np.linalg.norm(truth.astype(float) - guess.astype(float), axis=1).mean())
        return {"closeness": 1 / (1 + distance), "distance": distance}


positions = Positions()
