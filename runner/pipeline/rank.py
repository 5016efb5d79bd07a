"""Ranks any table of scores, and says how sure each rank is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import get_args

from runner.challenge import MissingCase, RankingRule
from runner.errors import UsageError
from runner.pipeline.long_table import Columns, Frames, case_means, metrics_of, read_frames, read_long_table
from runner.ranking.between_tasks import TaskComparison, compare_tasks
from runner.ranking.combined import CombinedRanking, WeighedMetric, rank_combined
from runner.ranking.methods import rank
from runner.ranking.policy_effects import PolicyEffect, policy_effects
from runner.ranking.signed_rank import Alternative
from runner.ranking.significance import Adjustment, SignificanceMap, significance_map
from runner.ranking.stability import Influence, Pronounced, Stability, bootstrap, consensus, influences, pronounce
from runner.ranking.table import ScoreTable, apply_missing
from runner.ranking.windows import LENGTH, Window, draw_windows, window_means

METHODS: tuple[str, ...] = get_args(RankingRule.model_fields["method"].annotation)


@dataclass(frozen=True, kw_only=True)
class Combined:
    """A metric of a combined ranking.

    Attributes:
        metric: Its name in the table.
        weight: Above 0.
        higher_is_better: Its direction.
    """

    metric: str
    weight: float = 1.0
    higher_is_better: bool = True


@dataclass(frozen=True, kw_only=True)
class Questions:
    """What is asked beside the ranks.

    Attributes:
        significance: Which tests between teams; None: none.
        adjustment: For the number of tests; None: Holm between teams, none between tasks.
        compare_tasks: Compare the tasks of each team.
        policies: Rank under every policy on missing values.
        combine: Metrics that are combined to one ranking; none: no combined ranking.
    """

    significance: Alternative | None = None
    adjustment: Adjustment | None = None
    compare_tasks: bool = False
    policies: bool = False
    combine: tuple[Combined, ...] = ()


NO_QUESTIONS = Questions()


@dataclass(frozen=True, kw_only=True)
class RunsWanted:
    """Random runs of consecutive frames that are asked for.

    Attributes:
        number: How many.
        length: Frames of each.
        column: Of a table: its column of the frame's number; the value of a run is the mean over its frames.
    """

    number: int
    length: int = LENGTH
    column: str = "frame"


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
        questions: What is asked beside the ranks.
        runs: The table has a row a frame, a case's score is the mean over them, and teams are compared over random runs
            as well; None: it has a row a case.
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
    questions: Questions = NO_QUESTIONS
    runs: RunsWanted | None = None


@dataclass(frozen=True, kw_only=True)
class RandomRuns:
    """The submissions of a task compared over random runs of consecutive frames.

    Attributes:
        windows: Which frames.
        undefined: Windows that were drawn and left out, since the metric is not defined there.
        table: Scores, the windows in place of cases.
        tests: Two-sided signed-rank tests between the submissions over the windows.
    """

    windows: tuple[Window, ...]
    undefined: int
    table: ScoreTable
    tests: SignificanceMap


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
        significance: Tests between the teams; None where none were asked for.
        policies: The ranking under every policy on missing values; empty where nobody asked or nothing is missing.
        combined: The ranking over several metrics; None where none was asked for.
        random_runs: None where none were asked for.
    """

    task: str
    cases: int
    missing: int
    teams: tuple[RankedTeam, ...]
    stability: Stability | None
    influences: tuple[Influence, ...]
    significance: SignificanceMap | None = None
    policies: tuple[PolicyEffect, ...] = ()
    combined: CombinedRanking | None = None
    random_runs: RandomRuns | None = None


@dataclass(frozen=True, kw_only=True)
class RankedTable:
    """All tasks, and who is first over them.

    Attributes:
        tasks: In the order of the table.
        consensus: Rank by the mean rank over the tasks; None where there is one task, or they differ in their teams.
        comparisons: The tasks of each team, compared; empty where nobody asked.
    """

    tasks: tuple[RankedTask, ...]
    consensus: Mapping[str, float] | None
    comparisons: tuple[TaskComparison, ...] = ()


def rank_table(request: RankRequest) -> RankedTable:
    """Rank a table.

    Raises:
        UsageError: The table cannot be read, or the policy on missing values does not fit it, or tasks are to be
            compared and there is one.
    """
    combine = request.questions.combine
    if combine:
        _require_metrics(request)
        if request.metric is None:
            request = replace(request, metric=combine[0].metric, higher_is_better=combine[0].higher_is_better)
    frames: Mapping[str, Frames] = {}
    if request.runs is not None:
        frames = read_frames(request.table, request.columns, request.runs.column, metric=request.metric)
        tables: Mapping[str, ScoreTable] = {name: case_means(found) for name, found in frames.items()}
    else:
        tables = read_long_table(request.table, request.columns, metric=request.metric)
    tasks = tuple(rank_task(name, table, request) for name, table in tables.items())
    if request.runs is not None:
        tasks = tuple(
            replace(task, random_runs=_runs_of(task, frames[task.task], request, request.runs)) for task in tasks
        )
    if combine:
        tasks = _with_combined(tasks, request)
    return ranked_table(tasks, tables, request)


def _runs_of(task: RankedTask, frames: Frames, request: RankRequest, wanted: RunsWanted) -> RandomRuns:
    """The ranked teams over random runs, drawn from the cases that all of them have."""
    own = {team: cases for team, cases in frames.items() if team in {row.team for row in task.teams}}
    lengths: dict[str, int] = {}
    for case in dict.fromkeys(case for cases in own.values() for case in cases):
        if not all(case in cases for cases in own.values()):
            continue
        found = {team: len(cases[case]) for team, cases in own.items()}
        if len(set(found.values())) > 1:
            raise UsageError(
                f"the teams differ in their number of frames of case {case!r}: "
                + ", ".join(f"{team!r} has {number}" for team, number in found.items()),
                where=str(request.table),
                remedy="give a row for every frame of every team",
            )
        lengths[case] = len(next(iter(own.values()))[case])
    windows = tuple(islice(draw_windows(lengths, length=wanted.length, seed=request.seed), wanted.number))
    require_windows(task.task, windows, wanted, drawn=len(windows), where=str(request.table))
    return runs_tested(windows, window_means(own, windows), request)


def require_windows(task: str, kept: Sequence[Window], wanted: RunsWanted, *, drawn: int, where: str) -> None:
    """Refuse where there are fewer windows than are wanted.

    Raises:
        UsageError: There are.
    """
    if len(kept) < wanted.number:
        raise UsageError(
            f"task {task!r} gives {len(kept)} runs of {wanted.length} frames and not {wanted.number}: {drawn} were "
            "drawn from the cases that every submission has",
            where=where,
            remedy="ask for fewer, or for shorter ones: --random-runs N --run-length FRAMES",
        )


def runs_tested(
    windows: tuple[Window, ...], table: ScoreTable, request: RankRequest, *, undefined: int = 0
) -> RandomRuns:
    """Test the submissions over windows, two-sided; not adjusted, but where it is asked for."""
    tests = significance_map(
        table, higher_is_better=request.higher_is_better, precision=request.rule.precision,
        alternative=Alternative.TWO_SIDED, adjustment=request.questions.adjustment or Adjustment.NONE,
        alpha=request.rule.alpha,
    )  # fmt: skip
    return RandomRuns(windows=windows, undefined=undefined, table=table, tests=tests)


def ranked_table(tasks: tuple[RankedTask, ...], tables: Mapping[str, ScoreTable], request: RankRequest) -> RankedTable:
    """Ranked tasks, and what is said over all of them.

    Raises:
        UsageError: Tasks are to be compared, and there is one.
    """
    ranks = [{team.team: team.by_method[request.rule.method] for team in task.teams} for task in tasks]
    same = len(ranks) > 1 and all(one.keys() == ranks[0].keys() for one in ranks)
    questions = request.questions
    if questions.compare_tasks and len(tables) < 2:
        raise UsageError(
            f"there is one task, {next(iter(tables), '')!r}, and it cannot be compared with another",
            remedy="leave --compare-tasks out, or name the column of the task: --task NAME",
        )
    return RankedTable(
        tasks=tasks,
        consensus=consensus({team: [one[team] for one in ranks] for team in ranks[0]}) if same else None,
        comparisons=compare_tasks(
            tables, precision=request.rule.precision, adjustment=questions.adjustment or Adjustment.NONE,
            alpha=request.rule.alpha,
        )
        if questions.compare_tasks
        else (),
    )  # fmt: skip


def _require_metrics(request: RankRequest) -> None:
    known = metrics_of(request.table, request.columns)
    for one in request.questions.combine:
        if one.metric not in known:
            there = f"there are {', '.join(map(repr, known))}" if known else f"no column {request.columns.metric!r}"
            raise UsageError(
                f"there is no metric {one.metric!r} to combine; {there}",
                where=str(request.table),
                remedy="give a table with a row a team, case and metric, and name metrics that are in it",
            )


def _with_combined(tasks: tuple[RankedTask, ...], request: RankRequest) -> tuple[RankedTask, ...]:
    """The tasks with a ranking over several metrics each."""
    tables = [
        (one, read_long_table(request.table, request.columns, metric=one.metric)) for one in request.questions.combine
    ]
    done = []
    for task in tasks:
        metrics = [
            WeighedMetric(
                name=one.metric, table=found[task.task], higher_is_better=one.higher_is_better, weight=one.weight
            )
            for one, found in tables
            if task.task in found
        ]
        if len(metrics) < len(tables):
            lacking = next(one.metric for one, found in tables if task.task not in found)
            raise UsageError(
                f"task {task.task!r} has no value of {lacking!r}, which is to be combined",
                where=str(request.table),
                remedy="combine metrics that every task has",
            )
        combined = rank_combined(
            metrics, request.rule, missing=request.missing, resamples=request.resamples, seed=request.seed
        )
        done.append(replace(task, combined=combined))
    return tuple(done)


def rank_task(name: str, given: ScoreTable, request: RankRequest, *, chance: float | None = None) -> RankedTask:
    """Rank one task.

    Args:
        name: Its name.
        given: Its scores, NaN where there is none.
        request: How; its table is not read.
        chance: The value of the policy ``chance``.

    Raises:
        UsageError: The policy on missing values does not fit the scores.
    """
    table = apply_missing(given, request.missing, worst=request.worst, chance=chance)
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
        significance=_tests(table, request),
        policies=policy_effects(
            given, rule, in_force=request.missing, higher_is_better=higher, worst=request.worst, chance=chance
        )
        if request.questions.policies
        else (),
    )  # fmt: skip


def _tests(table: ScoreTable, request: RankRequest) -> SignificanceMap | None:
    questions = request.questions
    if questions.significance is None:
        return None
    return significance_map(
        table, higher_is_better=request.higher_is_better, precision=request.rule.precision,
        alternative=questions.significance, adjustment=questions.adjustment or Adjustment.HOLM,
        alpha=request.rule.alpha,
    )  # fmt: skip
