"""Start-up of the quick commands against the least that could do their job, in turns."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from runner.cli.application import build_app

_IMPORTS = "import typer, rich, yaml, pydantic"


def _bare_program() -> str:
    """A typer and rich program with the same commands, options and help, and nothing behind them."""
    lines = ["import typer", "from typing import Annotated", "from pathlib import Path", "import rich.console"]
    lines += ["app = typer.Typer(no_args_is_help=True, rich_markup_mode='rich', pretty_exceptions_enable=False)"]
    for info in build_app().registered_commands:
        assert info.callback is not None
        text = (info.callback.__doc__ or "").replace('"""', "")
        lines += [
            f"@app.command({info.name!r}, rich_help_panel={info.rich_help_panel!r})",
            f"def {info.name}(run: Annotated[Path, typer.Argument(help='x')],",
            "    json: Annotated[bool, typer.Option('--json')] = False):",
            f'    """{text}"""',
        ]
    lines += ["challenge = typer.Typer(help='x')", "app.add_typer(challenge, name='challenge')"]
    lines += ["@challenge.command('list')", "def list_(): 'x'", "@challenge.command()", "def show(): 'x'", "app()"]
    return "\n".join(lines)


def _once(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ)
    return time.perf_counter() - began


def measure(runs: int) -> dict[str, float]:
    """Medians in seconds, and the two ratios."""
    with tempfile.TemporaryDirectory() as folder:
        bare = Path(folder) / "bare.py"
        bare.write_text(_bare_program())
        commands = {
            "proctor --help": [sys.executable, "-m", "runner.cli", "--help"],
            "bare --help": [sys.executable, str(bare), "--help"],
            "proctor challenge list": [sys.executable, "-m", "runner.cli", "challenge", "list"],
            "imports": [sys.executable, "-c", _IMPORTS],
        }
        seconds: dict[str, list[float]] = {name: [] for name in commands}
        for number in range(runs + 1):
            for name, command in commands.items():
                found = _once(command)
                if number:
                    seconds[name].append(found)
    medians = {name: round(statistics.median(found), 4) for name, found in seconds.items()}
    medians["ratio --help"] = round(medians["proctor --help"] / medians["bare --help"], 3)
    medians["ratio challenge list"] = round(medians["proctor challenge list"] / medians["imports"], 3)
    return medians


def main() -> None:
    """Print the measurement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--json", action="store_true", help="print JSON only")
    options = parser.parse_args()
    result = measure(options.runs)
    if options.json:
        print(json.dumps(result, indent=1))
        return
    for name, value in result.items():
        print(f"{name:25} {value}")


if __name__ == "__main__":
    main()
