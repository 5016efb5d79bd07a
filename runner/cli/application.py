"""The commands of ``proctor`` by name."""

import typer

from runner.cli import (
    challenge,
    check,
    clean,
    doctor,
    evaluate,
    init,
    report,
    resume,
    score,
    status,
)

app = typer.Typer(
    name="proctor",
    help="Runs challenge submissions in containers on hidden data, fairly, and turns what they wrote into a ranking.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    epilog="Exit codes: 0 done · 1 rejected · 2 wrong usage · 3 host not fit · 4 scorer failed · 5 pending · 130 interrupted",
)

_ORGANISERS = "Organisers"
_PARTICIPANTS = "Participants"
_HOST = "This host"
_AUTHORS = "Challenge authors"

app.command("evaluate", rich_help_panel=_ORGANISERS)(evaluate.evaluate)
app.command("resume", rich_help_panel=_ORGANISERS)(resume.resume)
app.command("status", rich_help_panel=_ORGANISERS)(status.status)
app.command("score", rich_help_panel=_ORGANISERS)(score.score)
app.command("report", rich_help_panel=_ORGANISERS)(report.report)
app.command("init", rich_help_panel=_PARTICIPANTS)(init.init)
app.command("check", rich_help_panel=_PARTICIPANTS)(check.check)
app.command("doctor", rich_help_panel=_HOST)(doctor.doctor)
app.command("clean", rich_help_panel=_HOST)(clean.clean)
app.add_typer(challenge.app, name="challenge", rich_help_panel=_AUTHORS)


@app.callback(invoke_without_command=True)
def _options(
    version: bool = typer.Option(False, "--version", help="Print the version and end."),  # noqa: FBT001, FBT003  a flag
) -> None:
    if version:
        from runner import __version__  # noqa: PLC0415

        typer.echo(f"proctor {__version__}")
        raise typer.Exit
