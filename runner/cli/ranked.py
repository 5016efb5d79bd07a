"""How rankings are shown: as tables for people, and as a value for programs."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from runner.cli.screen import console, safe
from runner.ranking.stability import flips, influence_sentence

if TYPE_CHECKING:
    from runner.pipeline.rank import RandomRuns, RankedTable, RankedTask
    from runner.pipeline.rank_run import RankedRun
    from runner.ranking.between_tasks import TaskComparison
    from runner.ranking.combined import CombinedRanking
    from runner.ranking.policy_effects import PolicyEffect
    from runner.ranking.significance import SignificanceMap
    from runner.ranking.stability import Stability

_MOST_INFLUENCES = 3


def show_ranked(ranked: "RankedTable", method: str) -> None:
    """Show a ranked table."""
    for one in ranked.tasks:
        _show_task(one, method)
    _show_over_tasks(ranked)


def show_run(ranked: "RankedRun") -> None:
    """Show a ranked run; a provisional one says so before and after."""
    out = console()
    if ranked.watermark:
        out.print(f"[bold yellow]{safe(ranked.watermark)}[/]")
    for task in ranked.tasks:
        _show_task(task.ranked, ranked.method)
        if task.own_figure:
            out.print(
                f"[dim]the leaderboard ranks the scorer's own {safe(task.metric)} over all cases; these are means of "
                "the cases' figures[/]"
            )
        if task.left_out:
            out.print(f"[dim]left out for all, pending or not defined: {safe(', '.join(task.left_out))}[/]")
        if task.resubmitted:
            out.print(f"[dim]handed in again: {safe(', '.join(task.resubmitted))}[/]")
        for name, reason in task.unranked.items():
            out.print(f"not ranked: {safe(name)} {safe(reason)}")
    _show_over_tasks(ranked.table)
    if ranked.watermark:
        out.print(f"[bold yellow]{safe(ranked.watermark)}[/]")


def _show_task(one: "RankedTask", method: str) -> None:
    out = console()
    out.print(_table(one, method))
    if one.missing:
        out.print(f"[dim]{one.missing} values were missing[/]")
    for influence in one.influences[:_MOST_INFLUENCES]:
        moves = ", ".join(f"{safe(who)} from {a:g} to {b:g}" for who, (a, b) in influence.moved.items())
        out.print(f"without case {safe(influence.case)}: {moves}")
    if len(one.influences) > _MOST_INFLUENCES:
        more = len(one.influences) - _MOST_INFLUENCES
        out.print(f"and {more} other cases that change a rank when they are left out: --json")
    for effect in one.policies:
        out.print(_policy_line(effect))
    if one.combined is not None:
        out.print(_combined_table(one.combined))
    if one.significance is not None:
        out.print(_map_table(one.significance, [team.team for team in one.teams]))
    if one.random_runs is not None:
        _show_random_runs(one.random_runs)


def _show_over_tasks(ranked: "RankedTable") -> None:
    out = console()
    if ranked.consensus:
        order = sorted(ranked.consensus.items(), key=lambda item: (item[1], item[0]))
        out.print("over all tasks, by mean rank: " + ", ".join(f"{rank:g} {safe(team)}" for team, rank in order))
    if ranked.comparisons:
        out.print(_comparison_table(ranked.comparisons))


def _table(one: "RankedTask", method: str) -> Table:
    table = Table(title=f"task {safe(one.task)}, {one.cases} cases, {method}", title_justify="left", box=None)
    for name in ("rank", "team", "value"):
        table.add_column(name, justify="left" if name == "team" else "right")
    if one.stability is not None:
        table.add_column("95 % of resamples", justify="right")
        table.add_column("first in", justify="right")
    table.add_column("same rank in")
    rows = {row.submission: row for row in one.stability.rows} if one.stability else {}
    for team in one.teams:
        cells = [f"{team.by_method[method]:g}", safe(team.team), f"{team.value:.4f}"]
        if team.team in rows:
            row = rows[team.team]
            cells += [f"{row.low:g} to {row.high:g}", f"{row.wins:.1%}"]
        announced = team.pronounced
        tie = "" if announced.stable else f", not stable: announced as {announced.rank:g}"
        table.add_row(*cells, f"{announced.methods} of {len(team.by_method)} methods{tie}")
    return table


def _policy_line(effect: "PolicyEffect") -> str:
    if effect.impossible:
        return f"missing as {effect.policy.value}: not possible, {safe(effect.impossible)}"
    ranks = sorted(effect.ranks.items(), key=lambda item: (item[1], item[0]))
    told = ", ".join(f"{rank:g} {safe(name)}" for name, rank in ranks) or "nobody is ranked"
    moved = f"; {len(effect.moved)} ranks differ" if effect.moved else ""
    return f"missing as {effect.policy.value}, {effect.cases} cases: {told}{moved}"


def _combined_table(combined: "CombinedRanking") -> Table:
    table = Table(
        title=f"metrics combined, {combined.cases} cases, weighted mean of ranks", title_justify="left", box=None
    )
    names = list(combined.rows[0].by_metric) if combined.rows else []
    for name in ("rank", "team", "mean rank", *names):
        table.add_column(safe(name), justify="left" if name == "team" else "right")
    if combined.stability is not None:
        table.add_column("95 % of resamples", justify="right")
        table.add_column("first in", justify="right")
    spread = {row.submission: row for row in combined.stability.rows} if combined.stability else {}
    for row in combined.rows:
        cells = [f"{row.rank:g}", safe(row.submission), f"{row.value:.4f}", *(f"{r:g}" for r in row.by_metric.values())]
        if row.submission in spread:
            own = spread[row.submission]
            cells += [f"{own.low:g} to {own.high:g}", f"{own.wins:.1%}"]
        table.add_row(*cells)
    return table


def _how(found: "SignificanceMap") -> str:
    side = "row better than column" if found.alternative == "greater" else "row and column differ"
    held = "not adjusted" if found.adjustment == "none" else f"{found.adjustment.value} over {found.tests} tests"
    rounded = "" if found.precision is None else f", differences to {found.precision} decimals"
    return f"{side}, p of signed-rank tests, {held}{rounded}, * p ≤ {found.alpha:g}"


def _map_table(found: "SignificanceMap", order: Sequence[str]) -> Table:
    """The map, best first."""
    table = Table(title=_how(found), title_justify="left", box=None)
    table.add_column("")
    for name in order:
        table.add_column(safe(name), justify="right")
    index = {name: number for number, name in enumerate(found.submissions)}
    for name in order:
        cells = [_p(float(found.p[index[name], index[other]]), found.alpha) for other in order]
        table.add_row(safe(name), *cells)
    return table


def _p(p: float, alpha: float) -> str:
    """A p-value for people; empty where there is none."""
    if math.isnan(p):
        return ""
    shown = "< 0.001" if p < 0.001 else f"{p:.3f}"
    return f"{shown} *" if p <= alpha else shown


def _comparison_table(comparisons: "Sequence[TaskComparison]") -> Table:
    held = comparisons[0].adjustment.value
    title = f"tasks of one team, two-sided signed-rank tests, {'not adjusted' if held == 'none' else held}"
    table = Table(title=title, title_justify="left", box=None)
    for name in ("team", "tasks", "cases", "means", "p", ""):
        table.add_column(name, justify="right" if name in ("cases", "p") else "left")
    for one in comparisons:
        table.add_row(
            safe(one.team), f"{safe(one.first)}, {safe(one.second)}", str(one.cases),
            f"{one.first_mean:.4f}, {one.second_mean:.4f}", _p(one.p, 0.0), "significant" if one.significant else "",
        )  # fmt: skip
    return table


def _show_random_runs(runs: "RandomRuns") -> None:
    out = console()
    length = runs.windows[0].length
    out.print(f"{len(runs.windows)} random runs of {length} consecutive frames")
    means = dict(zip(runs.table.submissions, runs.table.values.mean(axis=1).tolist(), strict=True))
    sign = ", ".join(f"{safe(name)} {mean:.4f}" for name, mean in means.items())
    out.print(f"mean over the runs: {sign}")
    out.print(_map_table(runs.tests, runs.table.submissions))


# For programs


def ranked_value(ranked: "RankedTable") -> dict[str, object]:
    """A ranked table for programs."""
    return {
        "tasks": [_task_value(one) for one in ranked.tasks],
        "consensus": ranked.consensus,
        "task_comparisons": [
            {
                "team": one.team, "first": one.first, "second": one.second, "cases": one.cases,
                "first_mean": one.first_mean, "second_mean": one.second_mean, "p": _number(one.p),
                "adjustment": one.adjustment.value, "significant": one.significant,
            }
            for one in ranked.comparisons
        ],
    }  # fmt: skip


def run_value(ranked: "RankedRun") -> dict[str, object]:
    """A ranked run for programs."""
    return {
        "method": ranked.method,
        "provisional": bool(ranked.pending),
        "watermark": ranked.watermark,
        "pending": list(ranked.pending),
        **ranked_value(ranked.table),
        "tasks": [
            {
                **_task_value(task.ranked),
                "metric": task.metric,
                "resubmitted": list(task.resubmitted),
                "not_ranked": dict(task.unranked),
                "left_out_cases": list(task.left_out),
                "leaderboard_ranks_own_figure": task.own_figure,
            }
            for task in ranked.tasks
        ],
    }


def _task_value(one: "RankedTask") -> dict[str, object]:
    return {
        "task": one.task, "cases": one.cases, "missing": one.missing,
        "teams": [
            {
                "team": team.team, "value": team.value, "rank": team.by_method,
                "announced": team.pronounced.rank, "stable": team.pronounced.stable,
                "resamples": _spread_value(one.stability, team.team),
            }
            for team in one.teams
        ],
        "kendall_tau": _tau_value(one.stability),
        "influences": [
            {
                "case": found.case, "moved": {who: list(pair) for who, pair in found.moved.items()},
                "flips": [list(pair) for pair in flips(found)], "sentence": influence_sentence(found),
            }
            for found in one.influences
        ],
        "significance": _map_value(one.significance),
        "policies": [
            {
                "policy": effect.policy.value, "cases": effect.cases, "ranks": dict(effect.ranks),
                "moved": {who: list(pair) for who, pair in effect.moved.items()}, "impossible": effect.impossible,
            }
            for effect in one.policies
        ],
        "combined": _combined_value(one.combined),
        "random_runs": _random_runs_value(one.random_runs),
    }  # fmt: skip


def _spread_value(stability: "Stability | None", who: str) -> Mapping[str, object] | None:
    """How a rank spreads over the resamples; None where there are none of it."""
    rows = () if stability is None else stability.rows
    row = next((row for row in rows if row.submission == who), None)
    if row is None:
        return None
    return {
        "median": row.median, "low": row.low, "high": row.high, "first": row.wins,
        "frequencies": {f"{k:g}": v for k, v in row.frequencies.items()},
    }  # fmt: skip


def _tau_value(stability: "Stability | None") -> Mapping[str, object] | None:
    """Mean of Kendall's tau-b of the resamples to the full ranking, over those where it is defined."""
    if stability is None:
        return None
    defined = [tau for tau in stability.taus.tolist() if not math.isnan(tau)]
    mean = sum(defined) / len(defined) if defined else None
    return {"mean": mean, "undefined": stability.resamples - len(defined)}


def _map_value(found: "SignificanceMap | None") -> Mapping[str, object] | None:
    if found is None:
        return None
    return {
        "alternative": found.alternative.value, "adjustment": found.adjustment.value, "alpha": found.alpha,
        "precision": found.precision, "tests": found.tests, "teams": list(found.submissions),
        "p": [[_number(value) for value in row] for row in found.p.tolist()],
        "significant": found.significant.tolist(),
    }  # fmt: skip


def _combined_value(combined: "CombinedRanking | None") -> Mapping[str, object] | None:
    if combined is None:
        return None
    return {
        "cases": combined.cases,
        "teams": [
            {
                "team": row.submission, "mean_rank": row.value, "rank": row.rank, "by_metric": dict(row.by_metric),
                "resamples": _spread_value(combined.stability, row.submission),
            }
            for row in combined.rows
        ],
    }  # fmt: skip


def _random_runs_value(runs: "RandomRuns | None") -> Mapping[str, object] | None:
    if runs is None:
        return None
    return {
        "runs": [{"case": one.case, "first": one.first, "frames": one.length} for one in runs.windows],
        "undefined": runs.undefined,
        "scores": dict(zip(runs.table.submissions, runs.table.values.tolist(), strict=True)),
        "tests": _map_value(runs.tests),
    }


def _number(value: float) -> float | None:
    """JSON knows no NaN."""
    return None if math.isnan(value) else value
