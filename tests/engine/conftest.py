"""The real engine, the demo's submissions as images, small hidden data."""

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from runner.engine import Engine
from runner.engine.docker import connect
from runner.errors import HostUnfit
from runner.mounts import mounted_below
from runner.ownership import LABEL_OWNER, Owner, current_owner, provably_dead

ROOT = Path(__file__).resolve().parents[2]
BASE = "proctor-base:1"
SETTINGS = """
ceiling: {run_time: 3 s, memory: 512 MiB, shm: 64 MiB, output: 16 MiB, tmp: 64 MiB}
"""


@pytest.fixture(scope="session")
def engine() -> Engine:
    """The engine of this host; a missing one is a failure, not a skip."""
    try:
        found = connect(None)
        found.image(BASE)
    except HostUnfit as error:
        pytest.fail(f"engine tests need a running engine and {BASE}; next: make engine base ({error})")
    return found


@dataclass(frozen=True)
class Images:
    """Builds throw-away images; each is named once a session."""

    engine: Engine
    made: dict[str, str]

    def folder(self, name: str, folder: Path) -> str:
        """Build a folder with a Dockerfile."""
        reference = f"proctor-test/{name}:1"
        if reference not in self.made:
            self.made[reference] = self.engine.build(
                folder, reference=reference, arguments={"BASE_IMAGE": BASE}, deadline=300, log=lambda _line: None
            )
        return reference

    def script(self, name: str, folder: Path, source: str) -> str:
        """Build an image whose entry point is a Python script."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "predict.py").write_text(source)
        (folder / "Dockerfile").write_text(
            f'FROM {BASE}\nCOPY predict.py /app/predict.py\nENTRYPOINT ["python3", "/app/predict.py"]\n'
        )
        return self.folder(name, folder)


@pytest.fixture(scope="session")
def images(engine: Engine) -> Iterator[Images]:
    """Builds images and removes them at the end."""
    made: dict[str, str] = {}
    yield Images(engine, made)
    for reference in made:
        engine.remove_image(reference)


@pytest.fixture(scope="session")
def demo_image(images: Images) -> Callable[[str], str]:
    """An image of one of the demo's submissions, by name."""
    return lambda name: images.folder(name, ROOT / "demo" / "submissions" / name)


def _generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pitvis_generate", ROOT / "challenges/pitvis2023/generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def hidden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two small cases with references."""
    folder = tmp_path_factory.mktemp("hidden")
    _generator().generate(folder, cases=2, frames=(40, 50), seed=11)
    return folder


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    """Settings of a host that gives little."""
    path = tmp_path / "settings.yaml"
    path.write_text(SETTINGS)
    return path


@dataclass(frozen=True)
class Ran:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


def environment() -> dict[str, str]:
    """The environment a command runs in: no settings of the person who runs the tests."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PROCTOR_")}
    return kept | {"PYTHONPATH": str(ROOT), "XDG_CONFIG_HOME": "/nonexistent"}


def proctor(*arguments: str | Path, cwd: Path | None = None, seconds: int = 300) -> Ran:
    """Run ``proctor`` to its end."""
    command = [sys.executable, "-m", "runner.cli", *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=cwd, env=environment(), timeout=seconds
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def submissions_file(path: Path, rows: dict[str, str]) -> Path:
    """A submissions file for the task of steps: submission to image, a team each."""
    entries = [
        {"submission": name, "team": f"Team {name}", "image": image, "tasks": ["steps"]} for name, image in rows.items()
    ]
    path.write_text(json.dumps({"submissions": entries}))
    return path


def leftovers(engine: Engine) -> list[str]:
    """Whatever is still there of this process or of one that has ended: on the engine, mounted, in the workspace.

    What another proctor that is alive holds on this host is its own business.
    """
    me = current_owner()

    def left(text: str) -> bool:
        owner = Owner.parse(text)
        return owner is None or owner == me or provably_dead(owner, me)

    found = [f"container {c.name}" for c in engine.containers(LABEL_OWNER) if left(c.labels[LABEL_OWNER])]
    found += [f"volume {v.name}" for v in engine.volumes(LABEL_OWNER) if left(v.labels[LABEL_OWNER])]
    workspace = Path("/var/lib/proctor/work")
    for record in workspace.glob("*.owner"):
        if left(str(record.readlink())):
            found.append(f"folder {record.with_suffix('')}")
            found += [f"mount {point}" for point in mounted_below(record.with_suffix(""))]
    return found
