"""Which differences between submissions are more than chance: a signed-rank test of every pair, and its adjustment.

One-sided, the map says who is better than whom: the significance map of challengeR, which adjusts by Holm over all
ordered pairs (Wiesenfarth et al., Scientific Reports 11:2369, 2021). Two-sided, it says who differs from whom, and each
pair is one test.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from runner.ranking.multisets import every_case_once, pairwise
from runner.ranking.signed_rank import Alternative, Values, benjamini_hochberg, holm
from runner.ranking.table import ScoreTable


class Adjustment(StrEnum):
    """How p-values are adjusted for the number of tests: not, for any false finding, for the share of false ones."""

    NONE = "none"
    HOLM = "holm"
    BENJAMINI_HOCHBERG = "benjamini-hochberg"


@dataclass(frozen=True, kw_only=True, eq=False)
class SignificanceMap:
    """The tests between the submissions of a task.

    Attributes:
        submissions: In the order of the table.
        alternative: ``greater``: the first is better than the second; ``two-sided``: they differ.
        adjustment: For the number of tests.
        alpha: A p-value of at most so much is significant.
        precision: Decimals the differences were rounded to; None: not at all.
        p: Adjusted, shape ``(submissions, submissions)``, first against second; NaN on the diagonal, and where the two
            have the same value in every case. Symmetric where two-sided.
        tests: How many tests were adjusted for.
    """

    submissions: tuple[str, ...]
    alternative: Alternative
    adjustment: Adjustment
    alpha: float
    precision: int | None
    p: Values
    tests: int

    @property
    def significant(self) -> NDArray[np.bool_]:
        """Where p is at most alpha; shape as ``p``. No difference at all is not significant."""
        return np.asarray(self.p <= self.alpha)


def significance_map(
    table: ScoreTable,
    *,
    higher_is_better: bool,
    precision: int | None,
    alternative: Alternative = Alternative.GREATER,
    adjustment: Adjustment = Adjustment.HOLM,
    alpha: float = 0.05,
) -> SignificanceMap:
    """Test every pair of submissions over the cases.

    Args:
        table: Complete.
        higher_is_better: The metric's direction.
        precision: Decimals the differences are rounded to, so that float noise splits no ties; None: not at all.
        alternative: What is tested against.
        adjustment: Over all ordered pairs where one-sided, over all pairs where two-sided.
        alpha: In (0, 1).

    Raises:
        ValueError: A value is missing.
    """
    if table.missing.any():
        raise ValueError("a table with missing values cannot be tested; apply the missing-case policy first")
    k = len(table.submissions)
    values = table.values if higher_is_better else -table.values
    if k < 2 or not table.cases:
        p = np.full((k, k), np.nan)
    else:
        (p,) = pairwise(values, every_case_once(len(table.cases)), precision=precision, alternative=alternative)
    tested = ~np.eye(k, dtype=np.bool_) if alternative is Alternative.GREATER else np.triu(np.ones((k, k), np.bool_), 1)
    done = np.full((k, k), np.nan)
    done[tested] = adjusted(p[tested], adjustment)
    if alternative is Alternative.TWO_SIDED:
        done.T[tested] = done[tested]
    done.flags.writeable = False
    return SignificanceMap(
        submissions=table.submissions, alternative=alternative, adjustment=adjustment, alpha=alpha,
        precision=precision, p=done, tests=int((~np.isnan(p[tested])).sum()),
    )  # fmt: skip


def adjusted(p: Values, adjustment: Adjustment) -> Values:
    """P-values adjusted for their number.

    Args:
        p: Shape ``(tests,)``; NaN is no test and stays.
        adjustment: How.
    """
    match adjustment:
        case Adjustment.NONE:
            return p.copy()
        case Adjustment.HOLM:
            return holm(p)
        case Adjustment.BENJAMINI_HOCHBERG:
            return benjamini_hochberg(p)
        case _:
            assert_never(adjustment)
