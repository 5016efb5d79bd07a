"""How scores become ranks."""

from typing import Literal

from runner.challenge.section import Section


class RankingRule(Section):
    """The ranking method: aggregate over cases, then rank, or the other way round.

    Attributes:
        method: The two verbs in their order.
        ties: ``min``: ties take the smallest rank; ``average``: their mean.
        precision: Decimals the aggregate is rounded to before it is ranked; float noise must not split ties.
    """

    method: Literal["mean_then_rank", "median_then_rank", "rank_then_mean", "rank_then_median"]
    ties: Literal["min", "average"] = "min"
    precision: int = 6
