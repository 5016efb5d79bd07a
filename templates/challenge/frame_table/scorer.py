"""How a case is scored: macro-F1 over the phases."""

from collections.abc import Mapping

from runner.formats.contract import FrameTable
from runner.scoring import Metric
from runner.scoring.metrics import AveragedOver, macro_f1

PHASES = (0, 1, 2)
"""Numbers of the names in challenge.yaml, from 0."""


class Phases:
    """Macro-F1 of one case."""

    metrics = (Metric(name="macro_f1", title="Macro-F1", worst=0.0, chance=None, higher_is_better=True),)

    def score_case(self, reference: FrameTable, prediction: FrameTable) -> Mapping[str, float]:
        """Score one case; every problem of form is already excluded."""
        truth, guess = reference.columns["phase"], prediction.columns["phase"]
        f1 = macro_f1(truth, guess, labels=PHASES, averaged_over=AveragedOver.REFERENCE_OR_PREDICTION)
        return {"macro_f1": f1}


phases = Phases()
