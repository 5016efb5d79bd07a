"""``proctor score``: scores and ranks a run again, without containers."""

from typing import Annotated

import typer

from runner.cli.options import Json, Run


def score(
    run: Run,
    challenge: Annotated[
        str | None,
        typer.Option(help="A mended challenge folder whose scorer and rules are used in place of the run's copy."),
    ] = None,
    json: Json = False,
) -> None:
    """Score, rank and report a run again from its files; no engine is needed.

    Example: [bold]proctor score final --challenge ./pitvis2023[/]
    """
    import threading

    from runner.catalog import find_challenge, load_challenge
    from runner.cli.outcome import show_finished, watching
    from runner.pipeline import evaluate as flow
    from runner.store import RunFolder

    mended = load_challenge(find_challenge(challenge)) if challenge else None
    with watching(threading.Event()) as observe:
        finished = flow.score_again(RunFolder(root=run), observe, challenge=mended)
    raise typer.Exit(show_finished(finished, as_json=json))
