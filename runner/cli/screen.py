"""What a person sees: consoles, progress, tables. Colour and motion only on a terminal."""

import re
import sys
import time
from collections.abc import Sequence
from types import TracebackType

from rich.console import Console, Group, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from runner.pipeline.events import (
    CaseEnded,
    CausalityBegan,
    CausalityEnded,
    CutEnded,
    Event,
    HostFailed,
    Notice,
    RunsPlanned,
    Step,
)
from runner.pipeline.publish import show_rank, team_of
from runner.pipeline.standings import Board, Row
from runner.quantities import show_seconds
from runner.safe_text import for_json, for_terminal
from runner.scoring.contract import Metric
from runner.verdict import VerdictWord

_PLAIN_WIDTH = 200
_MARKS = {VerdictWord.ACCEPTED: ("✓", "green"), VerdictWord.HOST_FAULT: ("…", "yellow")}


def console() -> Console:
    """Where results go."""
    return _console(stderr=False)


def error_console() -> Console:
    """Where progress and errors go."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    return Console(
        stderr=stderr, width=None if stream.isatty() else _PLAIN_WIDTH, highlight=False, soft_wrap=not stream.isatty(),
        emoji=False,
    )  # fmt: skip


def safe(text: str) -> str:
    """Text from outside, for a terminal: no control characters, no markup, whatever stands before and after it.

    rich's own ``escape`` leaves a bracket alone that nothing closes: the end of the next name would. And a backslash
    before a tag takes its meaning away; so one that ends the text, or stands before a bracket, gets a tag of its own.
    """
    return _BRACKET_OR_END.sub(_inert, for_terminal(text))


_BRACKET_OR_END = re.compile(r"(\\*)(\[|\Z)")


def _inert(found: re.Match[str]) -> str:
    backslashes = f"{found[1] * 2}[none][/none]" if found[1] else ""
    return backslashes + ("\\[" if found[2] else "")


def show_json(value: object) -> None:
    """A value on the standard output, for programs; harmless on a terminal."""
    sys.stdout.write(for_json(value, indent=2) + "\n")


def mark_of(word: VerdictWord) -> str:
    """A sign and a colour for a verdict."""
    sign, colour = _MARKS.get(word, ("✗", "red"))
    return f"[{colour}]{sign} {word.value}[/]"


class Countdown:
    """How long the rest will take, from what was run so far."""

    def __init__(self) -> None:
        self.total = 0
        self.done = 0
        self._run = 0
        self._seconds = 0.0
        self._since = time.monotonic()

    def planned(self, event: RunsPlanned) -> None:
        """The number of runs is known."""
        self.total, self._since = event.total, time.monotonic()

    def ended(self, event: CaseEnded) -> None:
        """A run is done; one that was done before says nothing of the time a run takes."""
        self.done += 1
        if event.seconds > 0.1:
            self._run += 1

    def left(self) -> str:
        """``about 3 min left``; empty while nothing can be said."""
        if not self._run or self.done >= self.total:
            return ""
        each = (time.monotonic() - self._since) / self._run
        return f"about {show_seconds(max(1, round(each * (self.total - self.done))), whole=True)} left"


class ProgressScreen:
    """Shows a run's events: a bar on a terminal, a line for each elsewhere."""

    def __init__(self) -> None:
        self._console = error_console()
        self._count = Countdown()
        self._tasks = 1
        self._progress: Progress | None = None
        if self._console.is_terminal:
            self._progress = Progress(
                SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=30), MofNCompleteColumn(),
                TimeElapsedColumn(), TextColumn("{task.fields[left]}"), console=self._console, transient=True,
            )  # fmt: skip
            self._task = self._progress.add_task("starting", total=None, left="")

    def __enter__(self) -> "ProgressScreen":
        if self._progress:
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress:
            self._progress.stop()

    def _line(self, text: str) -> None:
        self._console.print(text)

    def _doing(self, text: str) -> None:
        if self._progress:
            self._progress.update(self._task, description=text)
        else:
            self._line(text)

    def __call__(self, event: Event) -> None:
        """Show an event."""
        match event:
            case Step(text=text):
                self._doing(safe(text))
            case Notice(text=text):
                self._line(f"[yellow]note[/] {safe(text)}")
            case RunsPlanned():
                self._planned(event)
            case CaseEnded():
                self._case(event)
            case CausalityBegan(submission=submission, case=case, expected=expected, most=most):
                self._doing(f"{safe(submission)}, case {safe(case)}: causality, about {expected} runs, at most {most}")
            case CutEnded(submission=submission, case=case, run=run):
                if self._progress:
                    self._doing(f"{safe(submission)}, case {safe(case)}: causality, {safe(run)}")
            case CausalityEnded(submission=submission, case=case, sentence=sentence):
                self._line(f"      {safe(submission)} · case {safe(case)} · causality: {safe(sentence)}")
            case HostFailed(submission=submission, case=case, text=text, again=again):
                rest = "tried again" if again else "left pending"
                self._line(f"[yellow]host[/] {safe(submission)} · case {safe(case)}: {safe(text)}; {rest}")

    def _planned(self, event: RunsPlanned) -> None:
        self._count.planned(event)
        self._tasks = event.tasks
        done = f", {event.done} of them done before" if event.done else ""
        self._line(f"{event.total} runs{done}")
        if self._progress:
            self._progress.update(self._task, total=event.total)

    def _task_of(self, event: CaseEnded) -> str:
        """Which task, where the run has several."""
        return f"task {safe(event.task)} · " if self._tasks > 1 else ""

    def _case(self, event: CaseEnded) -> None:
        self._count.ended(event)
        left = self._count.left()
        head = f"{self._count.done:>3}/{self._count.total}"
        tail = f" [dim]· {left}[/]" if left and not self._progress else ""
        self._line(
            f"{head} {safe(event.submission)} · {self._task_of(event)}case {safe(event.case)} · "
            f"{mark_of(event.verdict.word)} {safe(event.verdict.sentence)}{tail}"
        )
        if self._progress:
            self._progress.update(self._task, completed=self._count.done, left=left, description=safe(event.submission))


_MOST_METRICS = 7
"""Columns of metrics that a terminal has room for."""


def board_table(board: Board) -> RenderableType:
    """A leaderboard for a terminal: the ranked ones, then the others with the reason."""
    table = Table(title=f"Task {safe(board.task)}", title_justify="left", header_style="bold", pad_edge=False)
    table.add_column("rank", justify="right")
    table.add_column("submission")
    table.add_column("team")
    shown = board.metrics[:_MOST_METRICS]
    for metric in shown:
        table.add_column(safe(metric.name), justify="right")
    table.add_column("accepted", justify="right")
    ranked = [row for row in board.rows if row.rank is not None]
    for row in ranked:
        table.add_row(*_cells(row, shown))
    others = [row for row in board.rows if row.rank is None]
    lines: list[RenderableType] = [table]
    if len(shown) < len(board.metrics):
        lines.append(f"{len(board.metrics) - len(shown)} more metrics: leaderboard.csv, and the report")
    if board.excluded:
        lines.append(
            f"left out for all, since a ranked submission has no valid prediction: {safe(', '.join(board.excluded))}"
        )
    if any(row.resubmitted for row in ranked):
        lines.append("* handed in again")
    if others:
        lines.append("[bold]not ranked[/]")
        lines.extend(
            f"  {safe(row.submission.submission)} ({safe(row.submission.team)}) {safe(row.reason)}" for row in others
        )
    return Group(*lines)


def _cells(row: Row, metrics: Sequence[Metric]) -> list[str]:
    values = [f"{row.values[metric.name]:.4f}" if metric.name in row.values else "" for metric in metrics]
    return [
        show_rank(row.rank), safe(row.submission.submission), safe(team_of(row)), *values,
        f"{row.accepted}/{len(row.cases)}",
    ]  # fmt: skip
