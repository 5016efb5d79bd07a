"""Options that several commands share."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from runner.errors import UsageError

if TYPE_CHECKING:
    from runner.images import BuildNetwork
    from runner.submissions import Profile

Settings = Annotated[
    Path | None, typer.Option("--settings", help="Settings of this host, YAML.", metavar="FILE", show_default=False)
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", help="One setting, such as jobs=2 or ceiling.memory='16 GiB'; wins over the file.", metavar="KEY=VALUE"
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout; progress stays on stderr.")]
Network = Annotated[
    str, typer.Option("--build-network", help="What a folder's build may reach.", metavar="default|none|host")
]
CHALLENGE_HELP = (
    "Name of a bundled challenge, a folder with a challenge.yaml, or an archive of one (.zip, .tar, .tar.gz)."
)
Challenge = Annotated[str, typer.Argument(help=CHALLENGE_HELP)]
Run = Annotated[Path, typer.Argument(help="The run folder.", metavar="RUN", show_default=False)]


def flags_of(pairs: Sequence[str] | None) -> dict[str, str]:
    """``key=value`` pairs from the command line.

    Raises:
        UsageError: One of them has no ``=``.
    """
    flags = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise UsageError(f"--set {pair!r} is not KEY=VALUE", remedy="write it like --set jobs=2")
        flags[key.strip()] = value.strip()
    return flags


def profile_of(text: str) -> "Profile":
    """What ``--profile`` says.

    Raises:
        UsageError: It is no profile.
    """
    from runner.submissions import Profile

    try:
        return Profile(text)
    except ValueError as error:
        words = ", ".join(profile.value for profile in Profile)
        raise UsageError(f"--profile {text!r} is not known", remedy=f"give one of: {words}") from error


def network_of(text: str) -> "BuildNetwork":
    """What ``--build-network`` says.

    Raises:
        UsageError: It is none of the three words.
    """
    from runner.images import BuildNetwork

    try:
        return BuildNetwork(text)
    except ValueError as error:
        words = ", ".join(network.value for network in BuildNetwork)
        raise UsageError(f"--build-network {text!r} is not known", remedy=f"give one of: {words}") from error
