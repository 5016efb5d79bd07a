"""How a task is scored."""

from enum import StrEnum

from runner.challenge.section import Section


class MissingCase(StrEnum):
    """What a case without a valid prediction counts as.

    ``worst`` and ``chance`` are values the scorer states; ``exclude`` drops the case for all submissions;
    ``fail`` leaves the submission out of the ranking.
    """

    WORST = "worst"
    CHANCE = "chance"
    EXCLUDE = "exclude"
    FAIL = "fail"


class Primary(Section):
    """The metric that ranks."""

    metric: str
    higher_is_better: bool
