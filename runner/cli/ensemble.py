"""``proctor ensemble``: makes one prediction of several submissions', and scores it outside the competition."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from runner.cli.options import Json, Run

if TYPE_CHECKING:
    from runner.ensembles import Method
    from runner.pipeline.ensemble_files import Ensembles

_MOST_METRICS = 7
"""Columns of metrics that a terminal has room for."""


def ensemble(
    run: Run,
    of: Annotated[list[str], typer.Option(help="A member, by its submission's name; may be repeated.", metavar="NAME")],
    method: Annotated[
        list[str],
        typer.Option(
            help="mean, soft-vote, majority, weighted, learned, learned-per-class or network; may be repeated.",
            metavar="NAME",
        ),
    ],
    fit: Annotated[
        Path | None,
        typer.Option(
            help="A run of the same submissions on other data, for weighted, learned and network.", metavar="RUN"
        ),
    ] = None,
    task: Annotated[str | None, typer.Option(help="Which task, where the members share several.")] = None,
    metric: Annotated[
        str | None, typer.Option(help="By which a member weighs in weighted; else the one that ranks.", metavar="NAME")
    ] = None,
    seed: Annotated[int, typer.Option(help="For network: the same seed gives the same figures.", min=0)] = 0,
    out: Annotated[
        Path | None, typer.Option(help="A new folder for what comes of it; else the run's.", metavar="DIR")
    ] = None,
    json: Json = False,
) -> None:
    """Make ensembles of the predictions that a finished run keeps, and score them; no engine is needed.

    They take part outside the competition, and change nothing of the run's scores. What is fitted is fitted on other
    data: a run that shares a case with the test is refused.

    Example: [bold]proctor ensemble final --method mean --of team-1 --of team-2[/]
    """
    import threading

    from runner.cli.outcome import watching
    from runner.confine import Confine
    from runner.pipeline.ensemble import EnsembleRequest, make_ensembles

    request = EnsembleRequest(
        run=run, methods=_methods(method), members=tuple(of), fit=fit, task=task, metric=metric, out=out, seed=seed
    )
    with watching(threading.Event()) as observe, Confine() as confine:
        made = make_ensembles(request, confine, observe)
    if json:
        from dataclasses import asdict

        from runner.cli.screen import show_json

        show_json(asdict(made))
        return
    _show(made, out or run)


def _methods(words: list[str]) -> "tuple[Method, ...]":
    from runner.ensembles import Method
    from runner.errors import UsageError

    for word in words:
        if word not in list(Method):
            raise UsageError(f"--method {word!r} is not known", remedy=f"give one of: {', '.join(Method)}")
    return tuple(dict.fromkeys(map(Method, words)))


def _show(made: "Ensembles", folder: Path) -> None:
    from rich.table import Table

    from runner.cli.screen import console, safe
    from runner.pipeline.ensemble_files import CSV_NAME

    table = Table(title=f"Task {safe(made.rows[0].task)}, outside the competition", title_justify="left", box=None)
    table.add_column("ensemble")
    shown = list(made.rows[0].values)[:_MOST_METRICS]
    for name in shown:
        table.add_column(safe(name), justify="right")
    for row in made.rows:
        values = [row.values[name] for name in shown]
        table.add_row(safe(row.name), *("" if value is None else f"{value:.4f}" for value in values))
    out = console()
    out.print(table)
    if len(shown) < len(made.rows[0].values):
        out.print(f"{len(made.rows[0].values) - len(shown)} more metrics: {CSV_NAME}")
    out.print(f"scores {safe(str(folder / CSV_NAME))}", soft_wrap=True)
