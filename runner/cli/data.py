"""``proctor data``: makes frames of videos, and looks whether a data folder fits its challenge."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from runner.cli.options import Challenge, Json

if TYPE_CHECKING:
    from rich.table import Table

    from runner.pipeline.data_check import CheckedCase, CheckedData
    from runner.pipeline.data_prepare import PreparedCase

app = typer.Typer(no_args_is_help=True, help="Prepare and check a challenge's data.")


@app.command()
def check(
    challenge: Challenge,
    data: Annotated[
        Path | None,
        typer.Option(help="Folder with inputs and references; default: the challenge's own sample.", metavar="DIR"),
    ] = None,
    json: Json = False,
) -> None:
    """List the cases of a data folder, and everything that does not fit.

    Example: [bold]proctor data check pitvis2023 --data hidden[/]

    Exit codes: 0 everything fits, 2 something must be mended.
    """
    from runner.catalog import find_challenge, load_challenge
    from runner.cli.bars import progress
    from runner.cli.screen import console, safe, show_json
    from runner.confine import Confine
    from runner.pipeline.data_check import check_data

    loaded = load_challenge(find_challenge(challenge))
    with Confine() as confine, progress() as advance:
        found = check_data(
            loaded, data or loaded.folder / "sample", confine=confine,
            advance=lambda done, total, case: advance(done, total, f"case {case}" if case else ""),
        )  # fmt: skip
    if json:
        show_json(_check_value(found))
    else:
        out = console()
        out.print(_check_table(found, tuple(loaded.challenge.tasks)))
        out.print(_totals(found))
        for note in found.notes:
            out.print(f"[dim]note[/] {safe(note)}")
        for problem in found.problems:
            out.print(f"[red]✗[/] {safe(problem)}")
    raise typer.Exit(0 if found.fits else 2)


@app.command()
def prepare(
    videos: Annotated[Path, typer.Argument(help="Folder that holds the videos.", metavar="VIDEOS")],
    out: Annotated[Path, typer.Argument(help="Folder that gets a folder of frames a case.", metavar="OUT")],
    fps: Annotated[str, typer.Option(help="Frames a second, such as 1, 29.97 or 30000/1001.", metavar="F")],
    pattern: Annotated[
        str, typer.Option(help="Path of a case's video below VIDEOS, with {case}.", metavar="PATTERN")
    ] = "{case}.mp4",
    format_: Annotated[str, typer.Option("--format", help="Of the frames: png or jpg.", metavar="NAME")] = "png",
    json: Json = False,
) -> None:
    """Turn videos into frames, once. Frame k is what is shown at the time k/F: the last frame at or before it.

    A case's folder is there whole or not at all. Its prepared.json names the video's hash; next time it is left alone.

    Example: [bold]proctor data prepare videos hidden/inputs --fps 1[/]

    Exit codes: 0 done, 2 a video cannot be read (the others are done), 3 the disk has no room.
    """
    from runner.cli.bars import progress
    from runner.cli.screen import console, show_json
    from runner.errors import UsageError
    from runner.pipeline import data_prepare as flow

    kind = next((one for one in flow.IMAGE_FORMATS if one == format_), None)
    if kind is None:
        raise UsageError(f"--format {format_!r} is not known", remedy=f"give one of: {', '.join(flow.IMAGE_FORMATS)}")
    request = flow.PrepareRequest(videos=videos, out=out, fps=flow.parse_fps(fps), pattern=pattern, format=kind)
    told = console()
    with progress() as advance:
        found = flow.prepare(
            request,
            advance=lambda far: advance(far.done, far.total, f"case {far.case}"),
            tell=lambda one: None if json else told.print(_prepared_line(one)),
        )
    broken = [one for one in found if one.problem]
    if json:
        show_json([_prepared_value(one) for one in found])
    else:
        frames = sum(one.record.frames for one in found if one.record)
        told.print(f"{len(found) - len(broken)} of {len(found)} cases, {frames} frames")
    raise typer.Exit(2 if broken else 0)


def _check_table(found: "CheckedData", tasks: tuple[str, ...]) -> "Table":
    from rich.table import Table

    from runner.cli.screen import safe

    table = Table(header_style="bold", pad_edge=False)
    table.add_column("case")
    table.add_column("frames", justify="right")
    table.add_column("media", justify="right")
    table.add_column("inputs")
    for task in tasks:
        table.add_column("reference" if len(tasks) == 1 else f"reference of {safe(task)}")
    for one in found.cases:
        marks = (_mark(not one.references[task]) for task in tasks)
        table.add_row(safe(one.case), *_lengths(one), _mark(not one.inputs), *marks)
    return table


def _lengths(one: "CheckedCase") -> tuple[str, str]:
    from runner.quantities import show_seconds

    if one.frames is None or one.media_seconds is None:
        return "", ""
    return str(one.frames), show_seconds(one.media_seconds)


def _mark(fits: bool) -> str:
    return "[green]ok[/]" if fits else "[red]see below[/]"


def _totals(found: "CheckedData") -> str:
    from runner.quantities import show_seconds

    frames = sum(one.frames or 0 for one in found.cases)
    seconds = sum(one.media_seconds or 0 for one in found.cases)
    count = len(found.cases)
    lengths = f", {frames} frames, {show_seconds(seconds)} of media" if frames else ""
    problems = len(found.problems)
    state = "everything fits" if found.fits else f"{problems} {'problem' if problems == 1 else 'problems'}"
    return f"{count} {'case' if count == 1 else 'cases'}{lengths}: {state}"


def _check_value(found: "CheckedData") -> dict[str, object]:
    return {
        "fits": found.fits,
        "cases": [
            {
                "case": one.case, "frames": one.frames, "media_seconds": one.media_seconds,
                "inputs": list(one.inputs), "references": dict(one.references),
            }
            for one in found.cases
        ],
        "problems": list(found.problems), "notes": list(found.notes),
    }  # fmt: skip


def _prepared_line(one: "PreparedCase") -> str:
    from runner.cli.screen import safe

    if one.record is None:
        return f"[red]✗[/] {safe(one.case)}: {safe(one.problem)}"
    how = "written" if one.made else "there already"
    return f"[green]✓[/] {safe(one.case)}: {one.record.frames} frames {how}"


def _prepared_value(one: "PreparedCase") -> dict[str, object]:
    record = one.record.model_dump() if one.record else None
    return {"case": one.case, "made": one.made, "prepared": record, "problem": one.problem}
