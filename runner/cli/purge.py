"""``proctor purge``: deletes what a finished run need not keep, and records it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from runner.cli.options import Json, Run

if TYPE_CHECKING:
    from runner.pipeline.purge import PurgePlan
    from runner.receipt.contents import Purge


def purge(
    run: Run,
    images: Annotated[
        bool, typer.Option("--images", help="The submissions' images that proctor brought to the engine.")
    ] = False,
    inputs: Annotated[
        bool,
        typer.Option(
            "--inputs", help="Copies of inputs that dead runners left in the workspace; never the data folder."
        ),
    ] = False,
    predictions: Annotated[
        bool, typer.Option("--predictions", help="What containers wrote; the run cannot be scored again then.")
    ] = False,
    key: Annotated[
        Path | None, typer.Option(help="The organisers' key; needed where the receipt is signed.", metavar="FILE")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    json: Json = False,
) -> None:
    """Delete what a finished run need not keep; purged.json says what, and the receipt still verifies the rest.

    Example: [bold]proctor purge final --images --predictions --key organisers.key[/]
    """
    import datetime as dt

    from runner.cli.screen import show_json
    from runner.engine.docker import connect
    from runner.pipeline.purge import PurgeRequest
    from runner.pipeline.purge import purge as delete
    from runner.store import RunFolder

    request = PurgeRequest(
        run=RunFolder(root=run), images=images, inputs=inputs, predictions=predictions, key=key,
        at=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
    )  # fmt: skip
    done = delete(request, connect=lambda url: connect(url or None), confirm=(lambda _: True) if yes else _asked)
    if json:
        show_json(_value(done))
    else:
        _show(done)


def _asked(plan: "PurgePlan") -> bool:
    import sys

    from runner.cli.screen import error_console
    from runner.errors import UsageError
    from runner.quantities import show_bytes

    if not sys.stdin.isatty():
        raise UsageError("nobody is there to be asked, so nothing was deleted", remedy="add --yes")
    out = error_console()
    if plan.images:
        out.print(f"{len(plan.images)} images, as far as proctor brought them to the engine and nobody uses them")
    if plan.files:
        out.print(f"{len(plan.files)} files of predictions, {show_bytes(plan.size)}; they cannot be scored again")
    if plan.inputs:
        out.print("copies of inputs that dead runners left in the workspace; the data folder stays")
    return typer.confirm("Delete them for good?", err=True)


def _show(done: "Purge") -> None:
    from runner.cli.screen import console, safe

    out = console()
    for image in done.images:
        out.print(f"image {safe(image.id[:19])} of {safe(image.submission)}: {safe(image.fate)}")
    for text in done.inputs:
        out.print(f"removed {safe(text)}")
    out.print(f"{len(done.files)} files of predictions were deleted; purged.json says what went")


def _value(done: "Purge") -> dict[str, object]:
    return {
        "at": done.at,
        "images": [
            {"submission": one.submission, "id": one.id, "origin": one.origin, "fate": one.fate} for one in done.images
        ],
        "inputs": list(done.inputs),
        "files": {path: {"sha256": one.sha256, "bytes": one.size} for path, one in done.files.items()},
    }
