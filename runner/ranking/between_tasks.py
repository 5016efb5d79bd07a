"""What a task adds to another for one and the same team: paired tests between its scores in both.

Where tasks differ in the inputs they give, this compares modalities: whether kinematics beside the video are worth it
(PETRAW 2021: Huaulmé et al., Computer Methods and Programs in Biomedicine 236:107561, 2023, Table 12, two-sided and not
adjusted).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from runner.ranking.multisets import every_case_once
from runner.ranking.signed_rank import Alternative, signed_rank
from runner.ranking.significance import Adjustment, adjusted
from runner.ranking.table import ScoreTable


@dataclass(frozen=True, kw_only=True)
class TaskComparison:
    """A team in two tasks.

    Attributes:
        team: Its name.
        first: A task.
        second: Another.
        cases: In how many cases it has a value in both; only these are compared.
        first_mean: Its mean over these cases in the first task.
        second_mean: The same in the second.
        p: Of the two-sided signed-rank test, adjusted; NaN where no case differs.
        adjustment: For the number of this team's comparisons.
        significant: p is at most alpha.
    """

    team: str
    first: str
    second: str
    cases: int
    first_mean: float
    second_mean: float
    p: float
    adjustment: Adjustment
    significant: bool


def compare_tasks(
    tables: Mapping[str, ScoreTable],
    *,
    precision: int | None,
    adjustment: Adjustment = Adjustment.NONE,
    alpha: float = 0.05,
) -> tuple[TaskComparison, ...]:
    """Compare every pair of tasks for each team that takes part in both.

    Args:
        tables: By task, in the order in which they are compared; values may be missing, and then the case is left out
            of that comparison. The tasks must measure the same on the same cases, which are known by their names.
        precision: Decimals the differences are rounded to; None: not at all.
        adjustment: Over the comparisons of one team.
        alpha: In (0, 1).

    Returns:
        By team, in the order in which they are met, then by pair of tasks; none where no case is in both.
    """
    teams = dict.fromkeys(team for table in tables.values() for team in table.submissions)
    return tuple(
        one for team in teams for one in _of_team(team, tables, precision=precision, adjustment=adjustment, alpha=alpha)
    )


def _of_team(
    team: str, tables: Mapping[str, ScoreTable], *, precision: int | None, adjustment: Adjustment, alpha: float
) -> list[TaskComparison]:
    own = {task: _values_of(team, table) for task, table in tables.items() if team in table.submissions}
    pairs, p = [], []
    for first, second in combinations(own, 2):
        both = [case for case in own[first] if case in own[second]]
        if not both:
            continue
        one, other = (np.array([own[task][case] for case in both]) for task in (first, second))
        difference = one - other if precision is None else np.round(one - other, precision)
        (found,) = signed_rank(difference, every_case_once(len(both)), alternative=Alternative.TWO_SIDED)
        pairs.append((first, second, len(both), float(one.mean()), float(other.mean())))
        p.append(float(found))
    return [
        TaskComparison(
            team=team, first=first, second=second, cases=cases, first_mean=one_mean, second_mean=other_mean,
            p=float(value), adjustment=adjustment, significant=bool(value <= alpha),
        )
        for (first, second, cases, one_mean, other_mean), value in zip(
            pairs, adjusted(np.array(p, dtype=np.float64), adjustment), strict=True
        )
    ]  # fmt: skip


def _values_of(team: str, table: ScoreTable) -> dict[str, float]:
    row = table.values[table.submissions.index(team)]
    return {case: float(value) for case, value in zip(table.cases, row, strict=True) if not np.isnan(value)}
