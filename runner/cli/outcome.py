"""What commands that finish a run have in common: watching it, showing what came of it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

from rich.console import Console

from runner.cli.screen import ProgressScreen, board_table, console, error_console, safe, show_json
from runner.errors import HostFault, Interrupted
from runner.pipeline.check import Stage, StageState
from runner.pipeline.evaluate import Finished
from runner.pipeline.events import Event, HostFailed, Notice, Observer, Step
from runner.pipeline.home import without_run
from runner.pipeline.publish import standings_value


@contextmanager
def watching(stop: threading.Event) -> Iterator[Observer]:
    """Shows events on the screen, and ends the run at the next event once the user has asked for it."""
    with ProgressScreen() as screen:

        def observe(event: Event) -> None:
            screen(event)
            if stop.is_set():
                raise Interrupted("stopped", remedy="go on with: proctor resume RUN")

        yield observe


def show_finished(finished: Finished, *, as_json: bool) -> int:
    """Show what came of a run; the exit code."""
    out, err = console(), error_console()
    pending = finished.standings.pending
    if finished.record.for_ensemble:
        return _show_kept(finished, as_json=as_json)
    if as_json:
        show_json(standings_value(finished.record, finished.standings))
    elif not pending:
        for board in finished.standings.boards:
            out.print(board_table(board))
    for text in pending:
        err.print(f"[yellow]pending[/] {safe(text)}")
    if pending:
        err.print(
            f"{len(pending)} pending, so there is no leaderboard yet; "
            f"next: proctor resume {safe(str(finished.run.root))}"
        )
    (err if as_json else out).print(f"report {safe(str(finished.run.report))}", soft_wrap=True)
    return HostFault.exit_code if pending else 0


def _show_kept(finished: Finished, *, as_json: bool) -> int:
    """Show what is kept for ensembles to be fitted on: nobody is ranked; the exit code."""
    out, err = console(), error_console()
    pending, root = finished.standings.pending, safe(str(finished.run.root))
    if as_json:
        show_json({"kept": str(finished.run.root), "scores": str(finished.run.scores), "pending": list(pending)})
    for text in pending:
        err.print(f"[yellow]pending[/] {safe(text)}")
    if pending:
        err.print(f"{len(pending)} pending; next: proctor resume {root}")
        return HostFault.exit_code
    told = err if as_json else out
    told.print(f"kept and scored, nobody is ranked; next: proctor ensemble RUN --fit {root}", soft_wrap=True)
    return 0


def say_of_host(err: Console, event: Event) -> None:
    """Print what is worth knowing of this host, where nobody has a run folder."""
    if isinstance(event, Notice):
        err.print(f"[dim]note[/] {safe(event.text)}")
    if isinstance(event, HostFailed):
        rest = "tried again" if event.again else "given up"
        err.print(f"[yellow]host[/] case {safe(event.case)}: {safe(without_run(event.text))}; {rest}")


@contextmanager
def checking(stop: threading.Event, *, quiet: bool) -> Iterator[tuple[Observer, Callable[[Stage], None]]]:
    """Shows the stages of a check as they end, and what the host failed at; on a terminal also what is being done."""
    out, err = console(), error_console()
    with err.status("starting") if err.is_terminal else nullcontext() as spinner:

        def observe(event: Event) -> None:
            if spinner is not None and isinstance(event, Step):
                spinner.update(safe(event.text))
            say_of_host(err, event)
            if stop.is_set():
                raise Interrupted("stopped")

        def tell(stage: Stage) -> None:
            if not quiet:
                for line in stage_lines(stage):
                    out.print(line)

        yield observe, tell


_SIGNS = {
    StageState.PASSED: "[green]✓[/]",
    StageState.FAILED: "[red]✗[/]",
    StageState.NOT_TESTED: "[yellow]?[/]",
    StageState.NOT_REACHED: "[dim]·[/]",
}
_LOG_SHOWN = 15


def stage_lines(stage: Stage) -> list[str]:
    """A stage for a terminal."""
    state = "" if stage.state in (StageState.PASSED, StageState.FAILED) else f" ({stage.state.value})"
    lines = [f"{_SIGNS[stage.state]} {stage.name:<14}{safe(stage.sentence)}{state}"]
    for hint in stage.hints:
        slug = f" [dim]({safe(hint.slug)})[/]" if hint.slug else ""
        lines.append(f"  [bold]likely[/] {safe(hint.cause)}{slug}")
        lines.append(f"  [bold]mend  [/] {safe(hint.fix)}")
    lines.extend(f"  [dim]note   {safe(note)}[/]" for note in stage.notes)
    if stage.log.strip():
        lines.append("  [dim]the end of what the container printed:[/]")
        lines.extend(f"  [dim]|[/] {safe(line)}" for line in stage.log.rstrip().splitlines()[-_LOG_SHOWN:])
    return lines
