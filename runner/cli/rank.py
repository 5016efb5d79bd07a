"""``proctor rank``: ranks any table of scores, with the uncertainty of every rank."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from runner.cli.options import Json

if TYPE_CHECKING:
    from runner.pipeline.rank import RankedTable, RankedTask


def rank(
    table: Annotated[Path, typer.Argument(help="A CSV file with a row for each team and case.", metavar="SCORES.csv")],
    method: Annotated[
        str,
        typer.Option(
            help="mean_then_rank, median_then_rank, rank_then_mean, rank_then_median or test_based.", metavar="NAME"
        ),
    ] = "mean_then_rank",
    lower: Annotated[bool, typer.Option("--lower-is-better", help="The smaller the value, the better.")] = False,
    metric: Annotated[
        str | None, typer.Option(help="Which metric, where the table holds several.", metavar="NAME")
    ] = None,
    ties: Annotated[str, typer.Option(help="min or average.", metavar="NAME")] = "min",
    precision: Annotated[int, typer.Option(help="Decimals that count; float noise splits no ties.")] = 6,
    missing: Annotated[
        str, typer.Option(help="A missing value: fail, exclude or worst (with --worst).", metavar="NAME")
    ] = "fail",
    worst: Annotated[float | None, typer.Option(help="What --missing worst counts it as.")] = None,
    resamples: Annotated[int, typer.Option(help="How often cases are resampled; 0 for not at all.", min=0)] = 1000,
    seed: Annotated[int, typer.Option(help="For the random numbers; the same seed gives the same figures.")] = 0,
    challenger: Annotated[
        bool,
        typer.Option("--compat-challenger", help="Resample as challengeR 1.0.5 does, to compare with its figures."),
    ] = False,
    team: Annotated[str, typer.Option(help="Column of the team.", metavar="COLUMN")] = "team",
    case: Annotated[str, typer.Option(help="Column of the case.", metavar="COLUMN")] = "case",
    value: Annotated[str, typer.Option(help="Column of the score.", metavar="COLUMN")] = "value",
    task: Annotated[str, typer.Option(help="Column of the task; may be missing.", metavar="COLUMN")] = "task",
    json: Json = False,
) -> None:
    """Rank a table of scores, and say how sure every rank is.

    Example: [bold]proctor rank scores.csv --value ad_accuracy --case sequence[/]
    """
    from runner.errors import UsageError
    from runner.pipeline.long_table import Columns
    from runner.pipeline.rank import METHODS, RankRequest, rank_table

    if method not in METHODS:
        raise UsageError(f"--method {method!r} is not known", remedy=f"give one of: {', '.join(METHODS)}")
    from runner.challenge import MissingCase, RankingRule

    if ties not in ("min", "average"):
        raise UsageError(f"--ties {ties!r} is not known", remedy="give min or average")
    policies = (MissingCase.FAIL, MissingCase.EXCLUDE, MissingCase.WORST)
    if missing not in policies:
        raise UsageError(f"--missing {missing!r} is not known", remedy=f"give one of: {', '.join(policies)}")
    ranked = rank_table(
        RankRequest(
            table=table, columns=Columns(task=task, case=case, team=team, value=value), metric=metric,
            rule=RankingRule.model_validate({"method": method, "ties": ties, "precision": precision}),
            higher_is_better=not lower, missing=MissingCase(missing), worst=worst, resamples=resamples, seed=seed,
            challenger=challenger,
        )
    )  # fmt: skip
    if json:
        from runner.cli.screen import show_json

        show_json(_value(ranked))
        return
    _show(ranked, method)


def _show(ranked: "RankedTable", method: str) -> None:
    from runner.cli.screen import console, safe

    out = console()
    for one in ranked.tasks:
        out.print(_table(one, method))
        if one.missing:
            out.print(f"[dim]{one.missing} values were missing[/]")
        for influence in one.influences[:3]:
            moves = ", ".join(f"{safe(who)} from {a:g} to {b:g}" for who, (a, b) in influence.moved.items())
            out.print(f"without case {safe(influence.case)}: {moves}")
        if len(one.influences) > 3:
            out.print(f"and {len(one.influences) - 3} other cases that change a rank when they are left out: --json")
    if ranked.consensus:
        order = sorted(ranked.consensus.items(), key=lambda item: (item[1], item[0]))
        out.print("over all tasks, by mean rank: " + ", ".join(f"{rank:g} {safe(team)}" for team, rank in order))


def _table(one: "RankedTask", method: str) -> "object":
    from rich.table import Table

    from runner.cli.screen import safe

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


def _value(ranked: "RankedTable") -> dict[str, object]:
    tasks = []
    for one in ranked.tasks:
        rows = {row.submission: row for row in one.stability.rows} if one.stability else {}
        tasks.append(
            {
                "task": one.task, "cases": one.cases, "missing": one.missing,
                "teams": [
                    {
                        "team": team.team, "value": team.value, "rank": team.by_method,
                        "announced": team.pronounced.rank, "stable": team.pronounced.stable,
                        "resamples": {
                            "median": rows[team.team].median, "low": rows[team.team].low,
                            "high": rows[team.team].high, "first": rows[team.team].wins,
                            "frequencies": {f"{k:g}": v for k, v in rows[team.team].frequencies.items()},
                        } if team.team in rows else None,
                    }
                    for team in one.teams
                ],
                "influences": [
                    {"case": found.case, "moved": {who: list(pair) for who, pair in found.moved.items()}}
                    for found in one.influences
                ],
            }
        )  # fmt: skip
    return {"tasks": tasks, "consensus": ranked.consensus}
