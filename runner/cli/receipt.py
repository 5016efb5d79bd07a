"""``proctor receipt``: vouches for a finished run, and finds what was changed since."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from runner.cli.options import Json, Run

if TYPE_CHECKING:
    from runner.pipeline.receipt import Verified

_MOST_SHOWN = 40

app = typer.Typer(no_args_is_help=True, help="Vouch for a finished run, and find what was changed since.")


@app.command()
def key(
    file: Annotated[Path, typer.Argument(help="New file of the key; its public half is FILE.pub.", metavar="FILE")],
) -> None:
    """Make the organisers' key: a private file, and its public half to give to whoever is to verify.

    Example: [bold]proctor receipt key organisers.key[/]
    """
    from runner.cli.screen import console, safe
    from runner.receipt.keys import hex_of, make_key, read_public

    public = make_key(file)
    out = console()
    out.print(f"wrote {safe(str(file))}: keep it; who has it can sign in your name")
    out.print(f"wrote {safe(str(public))}: publish it; it is key {hex_of(read_public(public))[:16]}…")


@app.command()
def write(
    run: Run,
    key: Annotated[
        Path | None, typer.Option(help="The organisers' key; without it, the receipt is not signed.", metavar="FILE")
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="An older receipt may go.")] = False,
    json: Json = False,
) -> None:
    """Write a finished run's receipt: digests of all its files and data, signed.

    Example: [bold]proctor receipt write final --key organisers.key[/]
    """
    from runner.cli.screen import console, safe, show_json
    from runner.pipeline.receipt import write_receipt
    from runner.store import RunFolder

    written = write_receipt(RunFolder(root=run), key=key, replace=replace)
    if json:
        show_json({"receipt": str(written.path), "files": written.files, "public_key": written.public_key})
        return
    out = console()
    out.print(f"receipt {safe(str(written.path))} of {written.files} files")
    if written.public_key:
        out.print(f"signed with key {written.public_key[:16]}…")
    else:
        out.print("[yellow]not signed[/]: whoever can change a file can write another receipt; sign it with --key FILE")


@app.command()
def verify(
    run: Run,
    public: Annotated[
        Path | None, typer.Option(help="The organisers' public key, which it must be signed with.", metavar="FILE")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="The data folder, where it is not where it was.", metavar="DIR")
    ] = None,
    skip_data: Annotated[bool, typer.Option("--skip-data", help="Do not read the data, which can take long.")] = False,
    json: Json = False,
) -> None:
    """Find every byte of a run and its data that is not as its receipt says, and what that makes doubtful.

    Example: [bold]proctor receipt verify final --public organisers.key.pub[/]

    Exit codes: 0 all is as it was, 1 something differs, 2 there is no receipt or no key.
    """
    from runner.cli.screen import show_json
    from runner.pipeline.receipt import VerifyRequest, verify_receipt
    from runner.store import RunFolder

    found = verify_receipt(VerifyRequest(run=RunFolder(root=run), public=public, data=data, skip_data=skip_data))
    if json:
        show_json(_value(found))
    else:
        _show(found)
    raise typer.Exit(0 if found.whole else 1)


def _show(found: "Verified") -> None:
    from runner.cli.screen import console, safe

    out = console()
    for one in found.findings[:_MOST_SHOWN]:
        out.print(f"[red]✗[/] {safe(one.sentence)}")
        out.print(f"  [dim]next[/] {safe(one.remedy)}")
    if len(found.findings) > _MOST_SHOWN:
        out.print(f"and {len(found.findings) - _MOST_SHOWN} more: --json")
    for note in found.notes:
        out.print(f"[yellow]note[/] {safe(note)}")
    purged = f", {found.purged} of them purged" if found.purged else ""
    data = f"the data of {found.cases} cases" if found.cases else "the data not read"
    covered = f"{found.files} files{purged}, {data}"
    seal = f"signed with key {found.public_key[:16]}…" if found.public_key else "not signed"
    if found.whole:
        out.print(f"[bold green]all is as it was[/]: {covered}, {safe(seal)}")
    else:
        count = len(found.findings)
        things = "1 thing is not as it was" if count == 1 else f"{count} things are not as they were"
        out.print(f"[bold red]{things}[/]: {covered}, {safe(seal)}")


def _value(found: "Verified") -> dict[str, object]:
    return {
        "whole": found.whole, "files": found.files, "purged": found.purged, "cases": found.cases,
        "public_key": found.public_key, "notes": list(found.notes),
        "findings": [
            {
                "path": one.path, "what": one.what.value, "step": one.step.value,
                "dependents": [step.value for step in one.dependents], "sentence": one.sentence, "remedy": one.remedy,
            }
            for one in found.findings
        ],
    }  # fmt: skip
