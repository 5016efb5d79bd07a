"""``proctor resume``: finishes a run that was cut short."""

import typer

from runner.cli.options import Json, Run


def resume(run: Run, json: Json = False) -> None:
    """Finish a run that was cut short; nothing that was done is done again.

    Example: [bold]proctor resume final[/]
    """
    from runner.cli.boundary import stop_on_signals
    from runner.cli.outcome import show_finished, watching
    from runner.engine.docker import connect
    from runner.pipeline import evaluate as flow
    from runner.store import RunFolder

    with stop_on_signals() as stop, watching(stop) as observe:
        finished = flow.resume(
            RunFolder(root=run), connect=lambda url: connect(url or None), stop=stop, observe=observe
        )
    raise typer.Exit(show_finished(finished, as_json=json))
