"""``proctor init``: writes a folder to start from."""

from pathlib import Path
from typing import Annotated

import typer


def init(
    challenge: Annotated[str, typer.Argument(help="Name of a bundled challenge, or a folder with a challenge.yaml.")],
    folder: Annotated[Path, typer.Argument(help="A new folder.", metavar="DIR")],
) -> None:
    """Write a submission to start from: it builds and passes at once.

    Example: [bold]proctor init pitvis2023 my-method[/]
    """
    from runner.catalog import find_challenge, load_challenge
    from runner.cli.rules import rules
    from runner.template import write_template

    loaded = load_challenge(find_challenge(challenge))
    written = write_template(
        "batch", folder, values={"challenge": challenge, **_values(rules(loaded.challenge), loaded.challenge.title)}
    )
    for path in written:
        typer.echo(f"wrote {path}")
    name = folder.resolve().name.lower()
    typer.echo(f"\nnext\n  docker build -t {name} {folder}\n  proctor check {name} --challenge {challenge}")


def _values(rows: list[tuple[str, str]], title: str) -> dict[str, str]:
    from runner.safe_text import for_markdown, for_plain

    table = "\n".join(f"| {for_markdown(name)} | {for_markdown(value)} |" for name, value in rows)
    return {"title": for_plain(title), "heading": for_markdown(title), "rules": f"| what | rule |\n|---|---|\n{table}"}
