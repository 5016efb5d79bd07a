"""A bar for work that takes long, with the time that is left; on a terminal only."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from runner.cli.screen import error_console, safe


@contextmanager
def progress() -> Iterator[Callable[[float, float, str], None]]:
    """Shows a bar, which is told how much is done, of how much, and what is at hand."""
    screen = error_console()
    bar = Progress(
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=30), TimeElapsedColumn(),
        TextColumn("left"), TimeRemainingColumn(), console=screen, transient=True, disable=not screen.is_terminal,
    )  # fmt: skip
    with bar:
        task = bar.add_task("starting", total=None)
        yield lambda done, total, text: bar.update(task, completed=done, total=total or None, description=safe(text))
