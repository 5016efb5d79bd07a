"""What the quick commands print, whole. After a wanted change: ``python -m tests.cli.test_screens``."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ORACLES = ROOT / "tests" / "oracles"
GOLDEN = Path(__file__).parent / "golden"
COMMANDS = (
    "evaluate", "resume", "status", "score", "rank", "report", "init", "check", "causality", "doctor", "clean",
    "challenge", "data", "receipt", "purge", "ensemble",
)  # fmt: skip
GROUPS = {
    "challenge": ("list", "show", "new", "check", "schema"),
    "data": ("check", "prepare"),
    "receipt": ("key", "write", "verify"),
}
SCREENS: dict[str, tuple[str, ...]] = {
    "version": ("--version",),
    "challenge-list": ("challenge", "list"),
    "challenge-show": ("challenge", "show", "pitvis2023"),
    "rank": ("rank", str(ORACLES / "petraw_results.csv"), "--value", "ad_accuracy", "--case", "sequence"),
    "init": ("init", "pitvis2023", "my-method"),
    "challenge-new": ("challenge", "new", "words", "--kind", "answer"),
    "challenge-check": ("challenge", "check", "pitvis2023"),
    "data-check": ("data", "check", "pitvis2023"),
}


def screen(arguments: tuple[str, ...]) -> str:
    """What a command prints on a pipe, 100 columns wide; digests replaced."""
    environment = {**os.environ, "COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1", "PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-m", "runner.cli", *arguments],
            capture_output=True, text=True, check=True, env=environment, cwd=folder,
        )  # fmt: skip
    text = re.sub(r"digest [0-9a-f]{12}", "digest ############", done.stdout)
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


@pytest.mark.parametrize("name", SCREENS)
def test_the_screen_is_as_it_was(name: str) -> None:
    assert screen(SCREENS[name]) == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_an_example(name: str) -> None:
    # Not word for word: its frame is drawn by libraries that are free to draw it anew.
    text = screen((name, "--help"))
    assert f"Usage: proctor {name}" in text
    assert name in GROUPS or f"Example: proctor {name}" in text


@pytest.mark.parametrize(("group", "name"), [(group, name) for group, names in GROUPS.items() for name in names])
def test_help_of_a_command_in_a_group_has_an_example(group: str, name: str) -> None:
    assert f"Example: proctor {group} {name}" in screen((group, name, "--help"))


def test_the_help_names_every_command() -> None:
    text = screen(("--help",))
    assert [name for name in COMMANDS if name not in text] == []


if __name__ == "__main__":
    for name, arguments in SCREENS.items():
        (GOLDEN / f"{name}.txt").write_text(screen(arguments), encoding="utf-8")
