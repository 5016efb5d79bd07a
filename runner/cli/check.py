"""``proctor check``: what the organisers will do, at home."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from runner.cli.options import CHALLENGE_HELP, Json, Network, Set, Settings, flags_of, network_of, profile_of

if TYPE_CHECKING:
    from runner.pipeline.check import CheckReport, Stage


def check(
    image: Annotated[str, typer.Argument(help="An image, a docker save archive, or a folder with a Dockerfile.")],
    challenge: Annotated[str, typer.Option(help=CHALLENGE_HELP)],
    task: Annotated[
        list[str] | None, typer.Option(help="A task you enter; once for each. Default: all.", metavar="NAME")
    ] = None,
    profile: Annotated[
        str, typer.Option(help="stream: your container is given its frames one by one.", metavar="default|stream")
    ] = "default",
    data: Annotated[
        Path | None,
        typer.Option(help="Your own data in the challenge's layout; default: the bundled sample.", metavar="DIR"),
    ] = None,
    keep: Annotated[
        Path | None, typer.Option(help="Keep logs and predictions in this new folder.", metavar="DIR")
    ] = None,
    build_arg: Annotated[
        list[str] | None, typer.Option("--build-arg", help="For a folder's Dockerfile.", metavar="NAME=VALUE")
    ] = None,
    build_network: Network = "default",
    require_gpu: Annotated[
        bool, typer.Option("--require-gpu", help="End with 3 where this machine has no GPU.")
    ] = False,
    settings: Settings = None,
    set_: Set = None,
    json: Json = False,
) -> None:
    """Check an image as the organisers will: same sandbox, same limits, same format, on public data.

    Example: [bold]proctor check my-method --challenge pitvis2023[/]

    Exit codes: 0 accepted, 1 rejected, 2 wrong usage, 3 this machine cannot tell.
    """
    from runner.cli.boundary import stop_on_signals
    from runner.cli.outcome import checking
    from runner.engine.docker import connect
    from runner.pipeline import check as flow
    from runner.pipeline.home import HomeRequest

    request = HomeRequest(
        image=image, challenge=challenge, tasks=tuple(task or ()), data=data, keep=keep, settings_file=settings,
        flags=flags_of(set_), require_gpu=require_gpu, build_arguments=flags_of(build_arg),
        build_network=network_of(build_network), profile=profile_of(profile),
    )  # fmt: skip
    with stop_on_signals() as stop, checking(stop, quiet=json) as (observe, tell):
        report = flow.check(request, connect=lambda url: connect(url or None), stop=stop, observe=observe, tell=tell)
    _show(report, as_json=json)
    raise typer.Exit(0 if report.accepted else 1)


def _show(report: "CheckReport", *, as_json: bool) -> None:
    from runner.cli.screen import console, safe, show_json

    out = console()
    if as_json:
        show_json(_value(report))
        return
    for lack in report.lacks:
        out.print(f"  [dim]{safe(lack)}[/]")
    version = safe(f"challenge {report.challenge} {report.version}, digest {report.digest[:12]}")
    untested = f", not tested: {safe(', '.join(report.not_tested))}" if report.not_tested else ""
    if report.accepted:
        out.print(f"[bold green]accepted[/]{untested}  [dim]{version}[/]")
    else:
        failed = [stage.name for stage in report.stages if stage.state.value == "failed"]
        out.print(f"[bold red]rejected[/] at: {', '.join(failed)}  [dim]{version}[/]")


def _value(report: "CheckReport") -> dict[str, object]:
    return {
        "accepted": report.accepted, "challenge": report.challenge, "version": report.version, "digest": report.digest,
        "image": report.image, "stages": [_stage_value(stage) for stage in report.stages],
        "not_tested": list(report.not_tested), "lacks": list(report.lacks),
    }  # fmt: skip


def _stage_value(stage: "Stage") -> dict[str, object]:
    return {
        "name": stage.name, "state": stage.state.value, "sentence": stage.sentence,
        "hints": [{"slug": hint.slug, "cause": hint.cause, "fix": hint.fix} for hint in stage.hints],
        "log": stage.log,
        "notes": list(stage.notes),
    }  # fmt: skip
