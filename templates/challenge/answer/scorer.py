"""How a case is scored: by how far the number is off."""

from collections.abc import Mapping

from runner.formats.contract import Answer
from runner.scoring import Metric


class Words:
    """1 where the number is right, and less the further it is off."""

    metrics = (Metric(name="closeness", title="Closeness", worst=0.0, chance=None, higher_is_better=True),)

    def score_case(self, reference: Answer, prediction: Answer) -> Mapping[str, float]:
        """Score one case; every problem of form is already excluded."""
        truth, guess = (int(str(answer.fields["words"])) for answer in (reference, prediction))
        return {"closeness": max(0.0, 1 - abs(guess - truth) / max(truth, 1))}


words = Words()
