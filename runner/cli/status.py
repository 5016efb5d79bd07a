"""``proctor status``: how far a run is, from another terminal."""

from runner.cli.options import Json, Run


def status(run: Run, json: Json = False) -> None:
    """Say how far a run is: verdicts so far by submission. Safe while the run goes on.

    Example: [bold]proctor status final[/]
    """
    from rich.table import Table

    from runner.cli.screen import console, safe, show_json
    from runner.pipeline.progress import how_far
    from runner.store import RunFolder

    rows = how_far(RunFolder(root=run))
    if json:
        value = [
            {"submission": r.submission, "done": r.done, "cases": r.cases, "verdicts": dict(r.verdicts)} for r in rows
        ]
        show_json(value)
        return
    table = Table(header_style="bold", pad_edge=False)
    for name in ("submission", "done", "verdicts"):
        table.add_column(name)
    for row in rows:
        words = ", ".join(f"{word} {count}" for word, count in row.verdicts.items())
        table.add_row(safe(row.submission), f"{row.done}/{row.cases}", words)
    console().print(table)
    done, cases = sum(r.done for r in rows), sum(r.cases for r in rows)
    console().print(f"{done} of {cases} cases have a verdict")
