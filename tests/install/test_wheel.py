"""The wheel alone, in an empty environment, away from the checkout: init, docker build, check."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.engine


def _run(*command: str | Path, cwd: Path, code: int = 0) -> str:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PROCTOR_", "PYTHONPATH"))}
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment's ``proctor``."""
    folder = tmp_path_factory.mktemp("wheel")
    _run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    (wheel,) = folder.glob("*.whl")
    _run(sys.executable, "-m", "venv", folder / "venv", cwd=folder)
    _run(folder / "venv/bin/python", "-m", "pip", "install", "--quiet", wheel, cwd=folder)
    return folder / "venv/bin/proctor"


def test_a_participant_needs_nothing_but_the_wheel(installed: Path, tmp_path: Path) -> None:
    where = _run(installed.parent / "python", "-c", "import runner; print(runner.__file__)", cwd=tmp_path)
    assert str(ROOT) not in where
    assert "pitvis2023" in _run(installed, "challenge", "list", cwd=tmp_path)
    _run(installed, "init", "pitvis2023", "my-method", cwd=tmp_path)
    image = "proctor-test/from-wheel:1"
    _run("docker", "build", "--build-arg", "BASE_IMAGE=proctor-base:1", "-t", image, "my-method", cwd=tmp_path)
    try:
        screen = _run(installed, "check", image, "--challenge", "pitvis2023", cwd=tmp_path)
    finally:
        _run("docker", "image", "rm", "--force", image, cwd=tmp_path)
    assert "accepted, not tested: GPU, run time" in screen
