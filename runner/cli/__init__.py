"""The command line: one small file a command; the only place that knows typer and rich.

Modules that cost time to import (docker, pandas, numpy) are imported inside the commands that need them, so that
``proctor --help`` answers at once.
"""

import sys

from runner.cli.application import app
from runner.cli.boundary import run_cli

__all__ = ["app", "main"]


def main() -> None:
    """The command ``proctor``."""
    sys.exit(run_cli(app, sys.argv[1:]))
