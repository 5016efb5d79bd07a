"""What the policy on missing cases does to a ranking: the same table under every policy that can be applied to it."""

from collections.abc import Mapping
from dataclasses import dataclass

from runner.challenge import MissingCase, RankingRule
from runner.errors import UsageError
from runner.ranking.methods import rank
from runner.ranking.table import ScoreTable, apply_missing


@dataclass(frozen=True, kw_only=True)
class PolicyEffect:
    """A ranking under one policy.

    Attributes:
        policy: It.
        cases: How many cases are ranked over.
        ranks: By submission; who is not ranked under it is not there.
        moved: Rank under the policy in force and under this one, by submission, where they differ; None where it is
            not ranked under one of them.
        impossible: Why it cannot be applied, then nobody is ranked; empty where it can.
    """

    policy: MissingCase
    cases: int
    ranks: Mapping[str, float]
    moved: Mapping[str, tuple[float | None, float | None]]
    impossible: str = ""


def policy_effects(
    table: ScoreTable,
    rule: RankingRule,
    *,
    in_force: MissingCase,
    higher_is_better: bool,
    worst: float | None = None,
    chance: float | None = None,
) -> tuple[PolicyEffect, ...]:
    """Rank under every policy.

    Args:
        table: As it was handed in, with NaN where there is no value.
        rule: The ranking method.
        in_force: The policy the others are compared with.
        higher_is_better: The metric's direction.
        worst: What ``worst`` puts in; None: nobody said.
        chance: What ``chance`` puts in; None: nobody said.

    Returns:
        The policy in force first; none at all where nothing is missing, since then they are all the same.

    Raises:
        UsageError: The policy in force cannot be applied.
    """
    if not table.missing.any():
        return ()
    complete = apply_missing(table, in_force, worst=worst, chance=chance)
    before = _ranks(complete, rule, higher_is_better=higher_is_better)
    found = [PolicyEffect(policy=in_force, cases=len(complete.cases), ranks=before, moved={})]
    for policy in MissingCase:
        if policy is in_force:
            continue
        try:
            complete = apply_missing(table, policy, worst=worst, chance=chance)
        except UsageError as error:
            found.append(PolicyEffect(policy=policy, cases=0, ranks={}, moved={}, impossible=error.what))
            continue
        ranks = _ranks(complete, rule, higher_is_better=higher_is_better)
        moved = {
            name: (before.get(name), ranks.get(name))
            for name in table.submissions
            if before.get(name) != ranks.get(name)
        }
        found.append(PolicyEffect(policy=policy, cases=len(complete.cases), ranks=ranks, moved=moved))
    return tuple(found)


def _ranks(table: ScoreTable, rule: RankingRule, *, higher_is_better: bool) -> Mapping[str, float]:
    return {row.submission: row.rank for row in rank(table, rule, higher_is_better=higher_is_better).rows}
