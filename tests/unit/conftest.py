"""What the unit tests of the centre share: values with every field filled, to be changed where a test wants it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from runner.budget import Budget
from runner.challenge import Challenge
from runner.dataset import Case, frames_case
from runner.job import Job, Output

# Random, but the same every time; a machine under load must not fail a test.
settings.register_profile("unit", deadline=None, database=None, derandomize=True)
settings.load_profile("unit")

BUDGET = Budget(
    run_time=60.0, memory=2 << 30, shm=64 << 20, cpus=2.0, gpus=0, pids=128, output_bytes=4 << 20, output_files=64,
    tmp=32 << 20, open_files=1024, log_bytes=3000,
)  # fmt: skip
JOB = Job(
    submission="team-1", task="steps", case="PATIENT-07", name="full", frames=4,
    image_id="sha256:" + "0" * 64, arguments=("{input}", "{output}.csv"), told="steps",
    input_mount="/data/inputs", output_mount="/data/outputs",
    outputs=(Output(case="PATIENT-07", file="{case}.csv", frames=4),), budget=BUDGET, digest="d1",
)  # fmt: skip
CHALLENGE: dict[str, Any] = {
    "name": "toy",
    "version": "1",
    "title": "Toy",
    "platform": "linux/amd64",
    "cases": {"inputs": "inputs/{case}", "references": "references/{case}.csv", "fps": 2},
    "invocation": {"args": ("{input}", "{output}.csv")},
    "limits": {"run_time": {"fixed": 60}, "memory": "2 GiB", "shm": "64 MiB", "cpus": 2},
    "causality": {"method": "off", "on": 1, "on_leak": "report", "length_dependence": "report"},
    "tasks": {
        "steps": {
            "format": {
                "kind": "frame_table",
                "file": "{case}.csv",
                "index": {"column": "t"},
                "columns": {"step": {"labels": (0, 1)}},
            },
            "scorer": "toy.steps",
            "primary": {"metric": "f1", "higher_is_better": True},
            "missing_case": "worst",
        }
    },
    "consequence": dict.fromkeys(
        (
            "crashed",
            "out-of-memory",
            "timed-out",
            "too-much-output",
            "unsafe-output",
            "missing-output",
            "bad-output",
            "not-causal",
        ),
        "case",
    ),
    "ranking": {"method": "mean_then_rank"},
    "feedback": {"metrics": "hidden"},
}


@pytest.fixture(scope="session")
def make_budget() -> Callable[..., Budget]:
    """A budget: 60 s, 2 GiB, 4 MiB of output."""
    return lambda **changes: replace(BUDGET, **changes)


@pytest.fixture(scope="session")
def make_job() -> Callable[..., Job]:
    """A job of the case ``PATIENT-07``, under that budget."""
    return lambda **changes: replace(JOB, **changes)


@pytest.fixture(scope="session")
def make_challenge() -> Callable[..., Challenge]:
    """A challenge with one task, ``steps``; sections are replaced whole."""
    return lambda **changes: Challenge.model_validate({**CHALLENGE, **changes})


@pytest.fixture
def make_case(tmp_path: Path) -> Callable[..., Case]:
    """Write a case of some frames; frame n of case c holds ``c:n``."""

    def make(name: str = "PATIENT-07", *, frames: int = 4) -> Case:
        folder = tmp_path / "data" / "inputs" / name
        folder.mkdir(parents=True)
        names = tuple(f"{number:03d}.png" for number in range(frames))
        for number, frame in enumerate(names):
            (folder / frame).write_text(f"{name}:{number}")
        reference = tmp_path / "data" / "references" / f"{name}.csv"
        reference.parent.mkdir(exist_ok=True)
        reference.write_text("SECRET")
        return frames_case(name, folder, names, fps=2.0, references={"steps": reference})

    return make
