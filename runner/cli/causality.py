"""``proctor causality``: does a method look ahead?"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from runner.cli.options import CHALLENGE_HELP, Json, Network, Set, Settings, flags_of, network_of

if TYPE_CHECKING:
    import threading

    from rich.table import Table

    from runner.pipeline.causality import CausalityPlan, CausalityReport
    from runner.pipeline.events import Event, Observer
    from runner.pipeline.looking_ahead import CausalityRecord

_MOST_ROWS = 40


def causality(
    image: Annotated[str, typer.Argument(help="An image, a docker save archive, or a folder with a Dockerfile.")],
    challenge: Annotated[str, typer.Option(help=CHALLENGE_HELP)],
    data: Annotated[
        Path | None,
        typer.Option(help="Your own data in the challenge's layout; default: the bundled sample.", metavar="DIR"),
    ] = None,
    task: Annotated[
        list[str] | None, typer.Option(help="A task to check; once for each. Default: all.", metavar="NAME")
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            help="How cuts are chosen; default: the challenge's, or targeted.",
            metavar="targeted|exhaustive|cut-run|altered-future",
        ),
    ] = None,
    cuts: Annotated[int | None, typer.Option(help="At most so many cuts a case.", metavar="N")] = None,
    cases: Annotated[
        str | None, typer.Option(help="How many cases, drawn by the seed, or all.", metavar="N|all")
    ] = None,
    clip: Annotated[int | None, typer.Option(help="Only the first so many frames of a case.", metavar="N")] = None,
    tolerance: Annotated[
        float | None, typer.Option(help="The largest difference of two scores that is none.", metavar="X")
    ] = None,
    most_runs: Annotated[
        int | None, typer.Option("--most-runs", help="At most so many runs of a container for a case.", metavar="N")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Draws cases and cuts; default: one is drawn, and said.", metavar="N")
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="Containers at the same time.", metavar="N")] = None,
    keep: Annotated[
        Path | None, typer.Option(help="Keep all runs and causality.json in this new folder.", metavar="DIR")
    ] = None,
    build_arg: Annotated[
        list[str] | None, typer.Option("--build-arg", help="For a folder's Dockerfile.", metavar="NAME=VALUE")
    ] = None,
    build_network: Network = "default",
    settings: Settings = None,
    set_: Set = None,
    json: Json = False,
) -> None:
    """Check whether a method looks ahead: answers on cut sequences are compared with those on the whole.

    Example: [bold]proctor causality my-method --challenge pitvis2023 --cuts 20 --jobs 2[/]

    Exit codes: 0 no leak was proven (the sentence says how far that goes), 1 an answer depends on later frames, or
    the image gives no valid answers, 2 wrong usage, 3 this machine cannot tell.
    """
    from runner.cli.boundary import stop_on_signals
    from runner.engine.docker import connect
    from runner.pipeline import causality as flow
    from runner.pipeline.home import HomeRequest

    given = {
        "method": method, "cuts": cuts, "on": _cases(cases), "clip": clip, "tolerance": tolerance,
        "most_runs": most_runs,
    }  # fmt: skip
    flags = flags_of(set_) | ({"jobs": str(jobs)} if jobs is not None else {})
    request = flow.CausalityRequest(
        home=HomeRequest(
            image=image, challenge=challenge, tasks=tuple(task or ()), data=data, keep=keep, settings_file=settings,
            flags=flags, build_arguments=flags_of(build_arg), build_network=network_of(build_network),
        ),
        changes={key: value for key, value in given.items() if value is not None}, seed=seed,
    )  # fmt: skip
    with stop_on_signals() as stop, _watching(stop) as (observe, tell):
        report = flow.check_causality(
            request, connect=lambda url: connect(url or None), stop=stop, observe=observe, tell=tell
        )
    _show(report, as_json=json)
    raise typer.Exit(1 if report.leaking or report.refusal is not None else 0)


def _cases(text: str | None) -> int | str | None:
    from runner.errors import UsageError

    if text is None or text == "all":
        return text
    if not text.isdecimal():
        raise UsageError(f"--cases {text!r} is neither a number nor 'all'", remedy="write it like --cases 3")
    return int(text)


@contextmanager
def _watching(stop: "threading.Event") -> "Iterator[tuple[Observer, Callable[[CausalityPlan], None]]]":
    """Says what it will cost, then shows how far it is; on a terminal as a bar with the time that is left."""
    from runner.cli.bars import progress
    from runner.cli.outcome import say_of_host
    from runner.cli.screen import error_console
    from runner.errors import Interrupted
    from runner.pipeline.events import CutEnded, Step

    err = error_console()
    planned, done = 0, 0
    with progress() as show:

        def observe(event: "Event") -> None:
            nonlocal done
            if isinstance(event, Step):
                show(done, planned, event.text)
            if isinstance(event, CutEnded):
                done += 1
                show(done, max(done, planned), f"case {event.case}: {event.run}")
            say_of_host(err, event)
            if stop.is_set():
                raise Interrupted("stopped")

        def tell(plan: "CausalityPlan") -> None:
            nonlocal planned
            planned = plan.expected
            err.print(
                f"{_count(plan.expected, 'run')} of a container if it is clean, {plan.relative:.1f} × a plain "
                f"evaluation; at most {plan.most}; {_count(len(plan.cases), 'case')}, seed {plan.seed}"
            )

        yield observe, tell


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _show(report: "CausalityReport", *, as_json: bool) -> None:
    from runner.cli.outcome import stage_lines
    from runner.cli.screen import console, safe, show_json
    from runner.pipeline.check import Stage, StageState

    if as_json:
        show_json(_value(report))
        return
    out = console()
    if report.refusal is not None:
        word, sentence, hints = report.refusal.word.value, report.refusal.sentence, report.refusal.hints
        failed = StageState.FAILED
        stage = Stage(name="not tested", state=failed, sentence=f"{word}: {sentence}", hints=hints, log=report.log)
        for line in stage_lines(stage):
            out.print(line)
    for task, record in report.records.items():
        named = f"task {safe(task)}: " if len(report.records) > 1 else ""
        for line in _lines(record):
            out.print(f"{named}{line}")
        out.print(_table(record))
    version = f"challenge {report.challenge} {report.version}, digest {report.digest[:12]}"
    seed = f", seed {report.plan.seed}" if report.plan is not None else ""
    out.print(f"[dim]{safe(version)}; method {report.rule.method.value}{seed}[/]")


_SIGNS = {"passed": "[green]✓[/]", "leaking": "[red]✗[/]"}


def _lines(record: "CausalityRecord") -> list[str]:
    from runner.cli.screen import safe

    if record.summary is None:
        return ["[yellow]?[/] no case was tested"]
    outcome = record.summary.outcome.value
    lines = [f"{_SIGNS.get(outcome, '[yellow]?[/]')} {outcome}: {safe(record.summary.detail)}"]
    if record.pace is not None:
        online = {True: "; online-compatible", False: "; not online-compatible", None: ""}[record.online_compatible]
        lines.append(
            f"  {1000 * record.pace.seconds_per_frame:.1f} ms a frame and {record.pace.start_up_seconds:.1f} s to "
            f"start, by the slope over {record.pace.runs} runs{online}"
        )
    return lines


def _table(record: "CausalityRecord") -> "Table":
    """The cuts that were tried; the first ones, where there are many."""
    from rich.table import Table

    from runner.cli.screen import safe

    rows = [(finding, cut) for finding in record.findings for cut in finding.verdict.cuts]
    left = len(rows) - _MOST_ROWS
    table = Table(header_style="bold", pad_edge=False, caption=f"{left} more: --json" if left > 0 else None)
    for name in ("case", "frames kept", "of", "chosen", "found"):
        table.add_column(name, justify="right" if name in ("frames kept", "of") else "left")
    for finding, cut in rows[:_MOST_ROWS]:
        chosen = "at random" if cut.random else "aimed"
        table.add_row(safe(finding.case), str(cut.frames), str(finding.frames), chosen, cut.standing.value)
    return table


def _value(report: "CausalityReport") -> dict[str, object]:
    from pydantic import TypeAdapter

    from runner.pipeline.looking_ahead import CausalityRecord

    record_value = TypeAdapter(CausalityRecord).dump_python
    plan, refusal = report.plan, report.refusal
    return {
        "leaking": report.leaking, "challenge": report.challenge, "version": report.version, "digest": report.digest,
        "image": report.image, "rule": report.rule.model_dump(mode="json"),
        "plan": None if plan is None else {
            "seed": str(plan.seed), "cases": list(plan.cases), "expected_runs": plan.expected, "most_runs": plan.most,
            "times_the_plain_evaluation": plan.relative,
        },
        "refusal": None if refusal is None else {"verdict": refusal.word.value, "sentence": refusal.sentence},
        "tasks": {task: record_value(record, mode="json") for task, record in report.records.items()},
    }  # fmt: skip
