"""``proctor report``: writes a run's report again."""

from runner.cli.options import Run


def report(run: Run) -> None:
    """Write a run's report again from its files; no engine is needed.

    Example: [bold]proctor report final[/]
    """
    import threading

    from runner.cli.outcome import watching
    from runner.cli.screen import console, safe
    from runner.errors import UsageError
    from runner.pipeline import evaluate as flow
    from runner.pipeline.record import read_record
    from runner.store import RunFolder

    if read_record(RunFolder(root=run)).for_ensemble:
        raise UsageError(
            f"{str(run)!r} was run with --for-ensemble and has no report", remedy=f"proctor ensemble RUN --fit {run}"
        )
    with watching(threading.Event()) as observe:
        finished = flow.score_again(RunFolder(root=run), observe)
    console().print(f"report {safe(str(finished.run.report))}")
