"""Ranks any table of scores, and says how sure each rank is."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from runner.challenge import MissingCase, RankingRule
from runner.pipeline.long_table import Columns, read_long_table
from runner.ranking.methods import rank
from runner.ranking.stability import Influence, Pronounced, Stability, bootstrap, consensus, influences, pronounce
from runner.ranking.table import ScoreTable, apply_missing

METHODS: tuple[str, ...] = get_args(RankingRule.model_fields["method"].annotation)


@dataclass(frozen=True, kw_only=True)
class RankRequest:
    """What ``proctor rank`` is asked for.

    Attributes:
        table: A long table of scores.
        columns: What its columns are called.
        metric: Which one is ranked; None: the only one.
        rule: The ranking method.
        higher_is_better: Direction of the metric.
        missing: What a missing value counts as.
        worst: The value of ``worst``.
        resamples: How often cases are resampled; 0: not at all.
        seed: For the random numbers.
        challenger: Resample as challengeR 1.0.5 does.
    """

    table: Path
    columns: Columns
    metric: str | None
    rule: RankingRule
    higher_is_better: bool
    missing: MissingCase
    worst: float | None
    resamples: int
    seed: int
    challenger: bool


@dataclass(frozen=True, kw_only=True)
class RankedTeam:
    """A team in a task.

    Attributes:
        team: Its name.
        value: The aggregate that was ranked.
        by_method: Its rank under every method.
        pronounced: Its rank as it is announced.
    """

    team: str
    value: float
    by_method: Mapping[str, float]
    pronounced: Pronounced


@dataclass(frozen=True, kw_only=True)
class RankedTask:
    """A task's ranking.

    Attributes:
        task: Its name.
        cases: Over how many cases.
        missing: How many values were missing.
        teams: Best first.
        stability: Over resampled cases; None where none was asked for.
        influences: Cases that change a rank when they are left out.
    """

    task: str
    cases: int
    missing: int
    teams: tuple[RankedTeam, ...]
    stability: Stability | None
    influences: tuple[Influence, ...]


@dataclass(frozen=True, kw_only=True)
class RankedTable:
    """All tasks, and who is first over them; no consensus where the tasks differ in their teams."""

    tasks: tuple[RankedTask, ...]
    consensus: Mapping[str, float] | None


def rank_table(request: RankRequest) -> RankedTable:
    """Rank a table.

    Raises:
        UsageError: The table cannot be read, or the policy on missing values does not fit it.
    """
    tables = read_long_table(request.table, request.columns, metric=request.metric)
    tasks = tuple(_task(name, table, request) for name, table in tables.items())
    ranks = [{team.team: team.by_method[request.rule.method] for team in task.teams} for task in tasks]
    same = len(ranks) > 1 and all(one.keys() == ranks[0].keys() for one in ranks)
    return RankedTable(
        tasks=tasks,
        consensus=consensus({team: [one[team] for one in ranks] for team in ranks[0]}) if same else None,
    )


def _task(name: str, given: ScoreTable, request: RankRequest) -> RankedTask:
    table = apply_missing(given, request.missing, worst=request.worst)
    rule, higher = request.rule, request.higher_is_better
    order = [rule.method, *(method for method in METHODS if method != rule.method)]
    rankings = {
        method: rank(table, rule.model_copy(update={"method": method}), higher_is_better=higher) for method in order
    }
    by_team = {team: [rankings[method].rank_of(team) for method in order] for team in table.submissions}
    announced = {one.submission: one for one in pronounce(by_team)}
    return RankedTask(
        task=name,
        cases=len(table.cases),
        missing=int(given.missing.sum()),
        teams=tuple(
            RankedTeam(
                team=row.submission, value=row.value, by_method=dict(zip(order, by_team[row.submission], strict=True)),
                pronounced=announced[row.submission],
            )
            for row in rankings[rule.method].rows
        ),
        stability=bootstrap(
            table, rule, higher_is_better=higher, resamples=request.resamples, seed=request.seed,
            challenger=request.challenger,
        )
        if request.resamples and table.submissions
        else None,
        influences=influences(table, rule, higher_is_better=higher) if len(table.cases) > 1 else (),
    )  # fmt: skip
