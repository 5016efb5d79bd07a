"""How scores become ranks."""

from typing import Literal

from pydantic import Field

from runner.challenge.section import Section


class RankingRule(Section):
    """The ranking method: aggregate over cases, then rank, or the other way round.

    Attributes:
        method: The two verbs in their order.
        ties: ``min``: ties take the smallest rank; ``average``: their mean.
        precision: Decimals the aggregate is rounded to before it is ranked; float noise must not split ties.
        counts: Which submissions of a team are ranked in a task: ``all``, or only the ``last`` one in the order of the
            submissions file. A team that handed in again is marked in either case.
        alpha: Of ``test_based``: a submission beats another where p is at most so much.
        adjust: Of ``test_based``: ``none``, or ``holm`` over all ordered pairs.
    """

    method: Literal["mean_then_rank", "median_then_rank", "rank_then_mean", "rank_then_median", "test_based"]
    ties: Literal["min", "average"] = "min"
    precision: int = 6
    counts: Literal["all", "last"] = "all"
    alpha: float = Field(default=0.05, gt=0, lt=1)
    adjust: Literal["none", "holm"] = "none"
