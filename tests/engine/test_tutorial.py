"""The page on making a challenge, done as a newcomer does: its files are written and its commands run as they stand."""

import csv
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from runner.engine import Engine
from tests.engine.conftest import BASE, ROOT, environment, leftovers

pytestmark = [pytest.mark.engine, pytest.mark.root]

IMAGE = "proctor-test/tutorial-word-counter"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
# What a reader's machine has and this one may not: a registry.
EXTRA = {"docker build": f" --build-arg BASE_IMAGE={BASE}"}
# Lines that a command must print.
SAID = {
    "proctor challenge new words --kind answer": ("wrote words/challenge.yaml", "next: proctor challenge check words"),
    "proctor challenge check ./words": ("it makes sense",),
    f"proctor check {IMAGE} --challenge ./words": (
        "✓ output format 3 of 3 predictions are valid",
        "✓ score         closeness 1.0000, exact 1.0000 (over 3 cases; says nothing of the hidden data)",
    ),
    "proctor challenge show words.tar.gz": ("task words   writes {case}.json with words; ranked by closeness",),
    f"proctor check {IMAGE} --challenge words.tar.gz": ("✓ output format 3 of 3 predictions are valid",),
    "proctor data check ./words --data words/sample": ("3 cases: everything fits",),
    "proctor evaluate ./words --data words/sample --submissions teams.yaml --out final": (
        "report final/report.organiser.html",
    ),
    "proctor data prepare videos hidden/inputs --fps 1": ("✓ 01: 4 frames written", "1 of 1 cases, 4 frames"),
}


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """A newcomer's empty folder; they have a video, and ``proctor`` on their path."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "proctor"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m runner.cli "$@"\n')
    program.chmod(0o755)
    folder = tmp_path / "desk"
    (folder / "videos").mkdir(parents=True)
    shutil.copyfile(ROOT / "challenges/petraw2021/sample/videos/001.mp4", folder / "videos/01.mp4")
    return folder


def run(line: str, desk: Path) -> str:
    """Run a line of the page in a shell; what it printed."""
    line += next((extra for start, extra in EXTRA.items() if line.startswith(start)), "")
    variables = environment() | {
        "PATH": f"{desk.parent / 'bin'}:{os.environ['PATH']}",
        "XDG_CACHE_HOME": str(desk.parent / "cache"),
        "COLUMNS": "200",
    }
    done = subprocess.run(
        ["/bin/sh", "-c", line], cwd=desk, env=variables, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def test_the_page_on_making_a_challenge_tells_the_truth(engine: Engine, desk: Path) -> None:
    page = (ROOT / "docs/authoring.md").read_text(encoding="utf-8").replace("word-counter", IMAGE)
    printed: dict[str, str] = {}
    try:
        for language, text in BLOCK.findall(page):
            if language != "console":
                named = re.match(r"# (\S+)\n", text)
                assert named is not None, text
                (desk / named[1]).parent.mkdir(exist_ok=True)
                (desk / named[1]).write_text(text[named.end() :])
                continue
            for line in text.splitlines():
                assert line.startswith("$ ")
                printed[line[2:]] = run(line[2:], desk)
    finally:
        engine.remove_image(f"{IMAGE}:latest")
    assert len(printed) >= 11
    for line, said in SAID.items():
        assert set(said) <= set(printed[line].splitlines()), printed[line]
    digest = re.compile(r"digest ([0-9a-f]{12})")
    same = ("proctor challenge show words.tar.gz", *(line for line in SAID if line.startswith("proctor check ")))
    assert len({tuple(digest.findall(printed[line])) for line in same}) == 1
    assert len(digest.findall(printed[same[0]])) == 1
    with (desk / "final/leaderboard.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["task"], row["rank"], row["submission"], row["team"]) == ("words", "1", "counter", "One")
    assert (desk / "final/report.organiser.html").is_file()
    assert sorted(path.name for path in (desk / "hidden/inputs/01").iterdir()) == [
        "00000.png", "00001.png", "00002.png", "00003.png", "prepared.json",
    ]  # fmt: skip
    assert leftovers(engine) == []
