"""What the quick commands must not import."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_SCRIPT = """
import sys
from runner.cli.boundary import run_cli
code = run_cli(sys.argv[1:])
slow = {"pandas", "altair", "docker", "distributed", "numpy", "scipy", "requests"}
print("LOADED", sorted(slow & sys.modules.keys()), code)
"""


@pytest.mark.parametrize("arguments", [["--help"], ["challenge", "list"], ["--version"], ["evaluate", "--help"]])
def test_quick_commands_load_nothing_slow(arguments: list[str]) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, *arguments], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.splitlines()[-1] == "LOADED [] 0"
