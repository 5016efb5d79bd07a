"""``proctor challenge``: what challenges there are, what one says, and how to make one."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from runner.cli.options import Challenge, Json

if TYPE_CHECKING:
    from rich.table import Table

    from runner.pipeline.challenge_check import CheckedChallenge

app = typer.Typer(no_args_is_help=True, help="What challenges there are, what one says, and how to make one.")


@app.command("list")
def list_(json: Json = False) -> None:
    """List the bundled challenges.

    Example: [bold]proctor challenge list[/]
    """
    from runner.safe_text import for_json, for_terminal
    from runner.shelf import list_challenges, read_label

    found = [read_label(folder) for folder in list_challenges()]
    if json:
        rows = [{"name": c.name, "version": c.version, "title": c.title, "digest": c.digest} for c in found]
        typer.echo(for_json(rows, indent=1))
        return
    for label in found:
        typer.echo(for_terminal(f"{label.name:<20} {label.version:<8} {label.title}"))


@app.command()
def show(
    challenge: Challenge,
    json: Json = False,
) -> None:
    """Say what a challenge asks of a container.

    Example: [bold]proctor challenge show pitvis2023[/]
    """
    from runner.catalog import find_challenge, load_challenge
    from runner.safe_text import for_terminal, inert_json

    loaded = load_challenge(find_challenge(challenge))
    if json:
        typer.echo(inert_json(loaded.challenge.model_dump_json(indent=1, by_alias=True)))
        return
    from runner.cli.rules import rules

    typer.echo(for_terminal(loaded.challenge.title))
    typer.echo(for_terminal(f"{loaded.challenge.name} {loaded.challenge.version}, digest {loaded.digest[:12]}") + "\n")
    lines = rules(loaded.challenge)
    width = max(len(name) for name, _ in lines)
    for name, value in lines:
        typer.echo(for_terminal(f"{name:<{width}} {value}", limit=4000))


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="Lower-case letters, digits and dashes.", metavar="NAME")],
    folder: Annotated[
        Path, typer.Option("--dir", help="Folder that gets the new one.", metavar="DIR", show_default="here")
    ] = Path(),
    kind: Annotated[
        str,
        typer.Option(
            help="What a container writes: frame_table, frame_scores, label_images, arrays or answer.", metavar="KIND"
        ),
    ] = "frame_table",
) -> None:
    """Write a challenge to start from: it passes its own check at once.

    Example: [bold]proctor challenge new my-challenge --kind answer[/]
    """
    from runner.pipeline.challenge_new import new_challenge
    from runner.safe_text import for_terminal

    written = new_challenge(name, folder, kind=kind)
    for path in written:
        if "sample" not in path.parts:
            typer.echo(for_terminal(f"wrote {path}"))
    samples = sum("sample" in path.parts for path in written)
    typer.echo(for_terminal(f"wrote {samples} files of a sample below {folder / name / 'sample'}"))
    typer.echo(for_terminal(f"next: proctor challenge check {folder / name}"))


@app.command()
def check(challenge: Challenge, json: Json = False) -> None:
    """Read a challenge, and try its scorer and its formats on its own sample.

    Example: [bold]proctor challenge check ./my-challenge[/]

    Exit codes: 0 it makes sense, 1 its scores do not, 2 it cannot be read.
    """
    from runner.catalog import find_challenge, load_challenge
    from runner.cli.bars import progress
    from runner.cli.screen import console, safe, show_json
    from runner.confine import Confine
    from runner.pipeline.challenge_check import check_challenge

    loaded = load_challenge(find_challenge(challenge))
    with Confine() as confine, progress() as advance:
        found = check_challenge(loaded, confine=confine, advance=advance)
    if json:
        show_json({
            "challenge": loaded.challenge.name, "version": loaded.challenge.version, "digest": loaded.digest,
            **_value(found),
        })  # fmt: skip
    else:
        out = console()
        label = f"{loaded.challenge.name} {loaded.challenge.version}, digest {loaded.digest[:12]}"
        out.print(safe(f"{label}: {found.cases} cases in its sample"))
        out.print(_table(found))
        for task in found.tasks:
            for note in task.notes:
                out.print(f"[dim]note[/] {safe(task.task)}: {safe(note)}")
            for problem in task.problems:
                out.print(f"[red]✗[/] {safe(task.task)}: {safe(problem)}")
        out.print("[bold green]it makes sense[/]" if found.sensible else "[bold red]it does not make sense yet[/]")
    raise typer.Exit(0 if found.sensible else 1)


@app.command()
def schema() -> None:
    """Print the JSON schema of challenge.yaml, for editors.

    Example: [bold]proctor challenge schema > challenge.schema.json[/]
    """
    from runner.challenge_schema import challenge_schema
    from runner.cli.screen import show_json

    show_json(challenge_schema())


def _table(found: "CheckedChallenge") -> "Table":
    from rich.table import Table

    from runner.cli.screen import safe
    from runner.pipeline.trials import Trial

    table = Table(header_style="bold", pad_edge=False)
    table.add_column("task")
    table.add_column("metric")
    for trial in Trial:
        table.add_column(trial.value, justify="right")
    table.add_column("malformed")
    table.add_column("makes sense")
    for one in found.tasks:
        values = (one.values.get(trial) for trial in Trial)
        table.add_row(
            safe(one.task), safe(one.metric), *("" if value is None else f"{value:.4f}" for value in values),
            f"{one.refused} of {one.malformed} refused", "[red]no[/]" if one.problems else "[green]yes[/]",
        )  # fmt: skip
    return table


def _value(found: "CheckedChallenge") -> dict[str, object]:
    return {
        "sensible": found.sensible, "cases": found.cases,
        "tasks": [
            {
                "task": one.task, "metric": one.metric,
                "values": {trial.value: value for trial, value in one.values.items()},
                "refused": one.refused, "malformed": one.malformed,
                "problems": list(one.problems), "notes": list(one.notes),
            }
            for one in found.tasks
        ],
    }  # fmt: skip
