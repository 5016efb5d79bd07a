"""The command line: one small file a command; the only place that knows typer and rich.

Modules that cost time to import (docker, pandas, numpy) are imported inside the commands that need them, so that
``proctor --help`` answers at once.
"""

import sys


def main() -> None:
    """The command ``proctor``."""
    from runner.cli.boundary import run_cli

    sys.exit(run_cli(sys.argv[1:]))
