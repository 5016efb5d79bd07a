"""``proctor report``: writes a run's report again."""

from runner.cli.options import Run


def report(run: Run) -> None:
    """Write a run's report again from its files; no engine is needed.

    Example: [bold]proctor report final[/]
    """
    import threading  # noqa: PLC0415

    from runner.cli.outcome import watching  # noqa: PLC0415
    from runner.cli.screen import console, safe  # noqa: PLC0415
    from runner.pipeline import evaluate as flow  # noqa: PLC0415
    from runner.store import RunFolder  # noqa: PLC0415

    with watching(threading.Event()) as observe:
        finished = flow.score_again(RunFolder(root=run), observe)
    console().print(f"report {safe(str(finished.run.report))}")
