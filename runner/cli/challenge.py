"""``proctor challenge``: what challenges there are, and what one says."""

from typing import Annotated

import typer

from runner.cli.options import Json

app = typer.Typer(no_args_is_help=True, help="What challenges there are, and what one says.")


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
    challenge: Annotated[str, typer.Argument(help="Name of a bundled challenge, or a folder with a challenge.yaml.")],
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
    for name, value in rules(loaded.challenge):
        typer.echo(for_terminal(f"{name:<14} {value}", limit=4000))
