"""``proctor doctor``: is this host fit."""

import typer

from runner.cli.options import Json, Set, Settings, flags_of


def doctor(settings: Settings = None, set_: Set = None, json: Json = False) -> None:
    """Examine this host: engine, limits proved by probes, disk, GPUs; each finding with its remedy.

    Example: [bold]proctor doctor[/]

    Exit codes: 0 fit, 3 something must be mended.
    """
    from runner.cli.screen import console, safe, show_json
    from runner.doctor.examine import examine
    from runner.doctor.findings import Finding, State
    from runner.engine.docker import connect
    from runner.settings import load_settings

    signs = {State.FINE: "[green]✓[/]", State.NOTE: "[yellow]![/]", State.PROBLEM: "[red]✗[/]"}
    out = console()
    found: list[Finding] = []
    for finding in examine(load_settings(settings, flags_of(set_)).settings, lambda url: connect(url or None)):
        found.append(finding)
        if not json:
            out.print(f"{signs[finding.state]} {finding.name:<20}{safe(finding.sentence)}")
            if finding.remedy:
                out.print(f"  {'':<20}[bold]mend[/] {safe(finding.remedy)}")
    problems = sum(finding.state is State.PROBLEM for finding in found)
    if json:
        rows = [{"name": f.name, "state": f.state.value, "sentence": f.sentence, "remedy": f.remedy} for f in found]
        show_json(rows)
    else:
        out.print("[bold green]this host is fit[/]" if not problems else f"[bold red]{problems} to mend[/]")
    raise typer.Exit(3 if problems else 0)
