"""``proctor report``: writes a run's report again."""

from runner.cli.options import Run


def report(run: Run) -> None:
    """Write a run's report again from its files; no engine is needed.

    Example: [bold]proctor report final[/]
    """
    import threading

    from runner.cli.outcome import watching
    from runner.cli.screen import console, safe
    from runner.pipeline import evaluate as flow
    from runner.store import RunFolder

    with watching(threading.Event()) as observe:
        finished = flow.score_again(RunFolder(root=run), observe)
    console().print(f"report {safe(str(finished.run.report))}")
