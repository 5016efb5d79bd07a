"""``proctor clean``: removes what dead runners left."""

from typing import Annotated

import typer

from runner.cli.options import Set, Settings, flags_of


def clean(
    force: Annotated[bool, typer.Option("--force", help="Remove also what cannot be proved to be left over.")] = False,
    settings: Settings = None,
    set_: Set = None,
) -> None:
    """Remove containers, volumes, mounts and folders whose runner is provably gone; list the rest.

    Example: [bold]proctor clean[/]
    """
    from runner.cli.screen import console, safe
    from runner.engine.docker import connect
    from runner.ownership import current_owner
    from runner.pipeline.host import sweep
    from runner.settings import load_settings

    chosen = load_settings(settings, flags_of(set_)).settings
    found = sweep(connect(chosen.engine or None), chosen, current_owner(), force=force)
    out = console()
    for text in found.removed:
        out.print(f"removed {safe(text)}")
    for text in found.kept:
        out.print(f"kept    {safe(text)}: its runner may be alive")
    if found.kept:
        out.print("if no other proctor runs on this host or against this engine: proctor clean --force")
    if not found.removed and not found.kept:
        out.print("nothing is left over")
