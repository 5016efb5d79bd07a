"""Every command of the README and of the other pages is run, in the order in which it stands there.

``make`` and ``pip`` are left to CI, which begins with them, and to ``tests/install``.
"""

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import docker
import pytest

from runner.engine import Engine
from tests.engine.conftest import ROOT, environment

pytestmark = [pytest.mark.engine, pytest.mark.root]

_LEFT_OUT = ("make", "python3 -m venv", ".venv/bin/", "git ")
# What a reader's machine has and this one may not: a GPU, and a registry.
_HERE = {"proctor evaluate": ["--allow-cpu"], "docker build": ["--build-arg", "BASE_IMAGE=proctor-base:1"]}
_CODES = {"proctor check my-method --challenge pitvis2023 --require-gpu": 3}


def _commands(page: str) -> list[str]:
    blocks = re.findall(r"```console\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    typed = [line.strip() for block in blocks for line in block.splitlines()]
    lines = [line[2:].split("  #")[0].strip() for line in typed if line.startswith("$ ")]
    return [line for line in lines if not line.startswith(_LEFT_OUT)]


def _run(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    line, _, given = line.partition(" < ")
    words = shlex.split(line)
    if words[0] == "proctor":
        words[:1] = [sys.executable, "-m", "runner.cli"]
    words += next((extra for start, extra in _HERE.items() if line.startswith(start)), [])
    return subprocess.run(
        words,
        cwd=folder,
        env=environment(),
        input=(folder / given).read_text() if given else "",
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.fixture
def desk(engine: Engine, demo_image: Callable[[str], str], hidden: Path, tmp_path: Path) -> Path:
    """A folder with what the README's reader has: data, images, an archive, a submissions file, a challenge."""
    shutil.copytree(hidden, tmp_path / "hidden")
    shutil.copytree(hidden / "references", tmp_path / "predictions" / "team-a")
    shutil.copytree(ROOT / "challenges/pitvis2023", tmp_path / "my-challenge")
    client = docker.APIClient(version="auto")
    client.tag(engine.image(demo_image("steady")).id, "team-a/method", "3", force=True)
    (tmp_path / "archives").mkdir()
    with (tmp_path / "archives/baseline.tar").open("wb") as sink:
        sink.writelines(client.get_image(demo_image("quick")))
    yaml = re.search(r"```yaml\n(submissions:.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert yaml is not None
    (tmp_path / "teams.yaml").write_text(yaml[1])
    return tmp_path


def test_the_readme_tells_the_truth(engine: Engine, desk: Path) -> None:
    commands = _commands("README.md")
    assert len(commands) > 10
    folder = desk
    try:
        for line in commands:
            if line.startswith("cd "):
                folder = folder / line[3:]
                continue
            inside = line.startswith("docker build")
            done = _run(line, folder if inside else desk)
            assert done.returncode == _CODES.get(line, 0), f"{line}\n{done.stdout}{done.stderr}"
    finally:
        for reference in ("my-method:latest", "team-a/method:3"):
            engine.remove_image(reference)
    assert (desk / "final/leaderboard.csv").read_text().splitlines()[1].startswith("steps,1,first-try,Team A")
    assert (desk / "final/report.organiser.html").is_file()


def test_the_recipes_tell_the_truth(demo_image: Callable[[str], str], tmp_path: Path) -> None:
    shutil.copytree(ROOT / "challenges/pitvis2023", tmp_path / "challenges/pitvis2023")
    commands = [line.replace("proctor-demo/quick:1", demo_image("quick")) for line in _commands("CONTRIBUTING.md")]
    assert len(commands) == 2
    for line in commands:
        done = _run(line, tmp_path)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize(("page", "count"), [("docs/causality.md", 3), ("docs/streaming.md", 5)])
def test_the_pages_tell_the_truth(engine: Engine, tmp_path: Path, page: str, count: int) -> None:
    sample = ROOT / "challenges/pitvis2023/sample/inputs"
    shutil.copytree(next(path for path in sorted(sample.iterdir()) if path.is_dir()), tmp_path / "frames")
    (tmp_path / "messages.jsonl").write_text(
        '{"type":"hello","protocol":1,"frames":["path","inline"],"task":"steps"}\n'
        '{"type":"begin","case":"3f9a","fps":1.0,"inputs":["frames"]}\n{"type":"end"}\n'
    )
    commands = _commands(page)
    assert len(commands) == count
    try:
        for line in commands:
            done = _run(line, tmp_path)
            assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    finally:
        engine.remove_image("my-method:latest")
