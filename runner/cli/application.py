"""The commands of ``proctor`` by name; only those that are needed are loaded."""

import importlib
import inspect
import os
from collections.abc import Callable, Sequence
from typing import Annotated, NamedTuple

import typer

_ORGANISERS = "Organisers"
_PARTICIPANTS = "Participants"
_HOST = "This host"
_AUTHORS = "Challenge authors"
_COMPLETION = "_PROCTOR_COMPLETE"


class Entry(NamedTuple):
    """A command: the module that holds a function, or a group of commands, of that name; the help's panel."""

    module: str
    panel: str
    group: bool = False


COMMANDS = {
    "evaluate": Entry("runner.cli.evaluate", _ORGANISERS),
    "resume": Entry("runner.cli.resume", _ORGANISERS),
    "status": Entry("runner.cli.status", _ORGANISERS),
    "score": Entry("runner.cli.score", _ORGANISERS),
    "rank": Entry("runner.cli.rank", _ORGANISERS),
    "ensemble": Entry("runner.cli.ensemble", _ORGANISERS),
    "report": Entry("runner.cli.report", _ORGANISERS),
    "receipt": Entry("runner.cli.receipt", _ORGANISERS, group=True),
    "purge": Entry("runner.cli.purge", _ORGANISERS),
    "init": Entry("runner.cli.init", _PARTICIPANTS),
    "check": Entry("runner.cli.check", _PARTICIPANTS),
    "causality": Entry("runner.cli.causality", _PARTICIPANTS),
    "doctor": Entry("runner.cli.doctor", _HOST),
    "clean": Entry("runner.cli.clean", _HOST),
    "challenge": Entry("runner.cli.challenge", _AUTHORS, group=True),
    "data": Entry("runner.cli.data", _ORGANISERS, group=True),
}


def _options(version: Annotated[bool, typer.Option("--version", help="Print the version and end.")] = False) -> None:
    if version:
        from runner import __version__

        typer.echo(f"proctor {__version__}")
        raise typer.Exit


def build_app(names: Sequence[str] = tuple(COMMANDS)) -> typer.Typer:
    """The application with these commands."""
    app = typer.Typer(
        name="proctor",
        help="Runs challenge submissions in containers on hidden data, fairly, and turns what they wrote into a "
        "ranking.",
        no_args_is_help=True,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        epilog="Exit codes: 0 done · 1 rejected · 2 wrong usage · 3 host not fit · 4 scorer failed · 5 pending · "
        "130 interrupted",
    )
    app.callback(invoke_without_command=True)(_options)
    for name in names:
        entry = COMMANDS[name]
        module = importlib.import_module(entry.module)
        if entry.group:
            app.add_typer(module.app, name=name, rich_help_panel=entry.panel)
        else:
            app.command(name, rich_help_panel=entry.panel)(getattr(module, name))
    return app


def app_for(arguments: Sequence[str]) -> typer.Typer:
    """The application these arguments need: a single command where they name one, else all."""
    if arguments and arguments[0] in COMMANDS and _COMPLETION not in os.environ:
        return build_app(arguments[:1])
    return build_app()


def bare_command(arguments: Sequence[str]) -> Callable[[], None] | None:
    """The function of a command line that is only a command's name; None where there is more to it.

    Such a line needs no parser, and typer's loads pydantic's for every option a command could have had.
    """
    if not arguments or arguments[0] not in COMMANDS or _COMPLETION in os.environ:
        return None
    entry = COMMANDS[arguments[0]]
    module = importlib.import_module(entry.module)
    found: dict[tuple[str, ...], Callable[[], None]] = {}
    if entry.group:
        found = {(command.name,): command.callback for command in module.app.registered_commands}
    else:
        found[()] = getattr(module, arguments[0])
    function = found.get(tuple(arguments[1:]))
    if function is None or any(p.default is p.empty for p in inspect.signature(function).parameters.values()):
        return None
    return function
