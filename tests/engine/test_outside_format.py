"""A format from outside the package, in a challenge from outside, from the image to the leaderboard."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from runner.engine import Engine
from tests.engine.conftest import ROOT, Images, environment, leftovers

pytestmark = [pytest.mark.engine, pytest.mark.root]

FORMAT = """
from enum import StrEnum
from typing import Literal

from runner.challenge.formats import FormatSection
from runner.formats.contract import Answer


class CountFormat(FormatSection):
    kind: Literal["count"]


class Fault(StrEnum):
    NO_NUMBER = "line {line} is not a number of dots"


class Count:
    rule = CountFormat
    faults = Fault

    @staticmethod
    def read(rule, file, due, say):
        total = 0
        for number, line in enumerate(file.read().splitlines(), 1):
            if line.strip(b"."):
                say(Fault.NO_NUMBER, row=number, value=ascii(line), line=number)
            total += len(line)
        return Answer(fields={"words": total})
"""
SCORER = """
from runner.scoring import Metric


class Counted:
    metrics = (Metric(name="exact", title="Exact", worst=0.0, chance=None, higher_is_better=True),)

    @staticmethod
    def score_case(reference, prediction):
        return {"exact": float(reference.fields == prediction.fields)}


counted = Counted
"""
GOOD = """
import pathlib, sys
shown, output = map(pathlib.Path, sys.argv[1:])
output.write_text("." * len(shown.read_text().split()))
"""
MALFORMED = 'import sys\nopen(sys.argv[2], "w").write("..\\nthree")\n'


def challenge_of(task_format: dict[str, object]) -> dict[str, object]:
    """A challenge.yaml whose container is shown a text a case."""
    bad = (
        "crashed", "out-of-memory", "timed-out", "too-much-output", "unsafe-output", "missing-output", "bad-output",
        "not-causal",
    )  # fmt: skip
    return {
        "name": "dots", "version": "1.0", "title": "Dots", "platform": "linux/amd64", "data": "hidden",
        "cases": {
            "inputs": {"text": {"kind": "file", "path": "inputs/{case}.txt"}},
            "references": "references/{case}.txt",
        },
        "invocation": {"mode": "case", "args": ["{text}", "{output}.txt"]},
        "limits": {"run_time": {"fixed": "60 s"}, "memory": "256 MiB", "shm": "16 MiB", "cpus": 1},
        "causality": {"method": "off", "on": 1, "on_leak": "report", "length_dependence": "report"},
        "tasks": {
            "words": {
                "title": "Words", "format": task_format, "scorer": "dots.counted",
                "primary": {"metric": "exact", "higher_is_better": True}, "missing_case": "worst",
            }
        },
        "consequence": dict.fromkeys(bad, "case"),
        "ranking": {"method": "mean_then_rank"}, "feedback": {"metrics": "shown"},
    }  # fmt: skip


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """An installed package that brings the format."""
    folder = tmp_path / "site"
    dist = folder / "count_format-1.0.dist-info"
    dist.mkdir(parents=True)
    (folder / "count_format.py").write_text(FORMAT)
    (dist / "METADATA").write_text("Metadata-Version: 2.1\nName: count-format\nVersion: 1.0\n")
    (dist / "entry_points.txt").write_text("[proctor.formats]\ncount = count_format:Count\n")
    return folder


@pytest.fixture
def dots(tmp_path: Path) -> Path:
    """The challenge's folder with two cases in its sample."""
    folder = tmp_path / "dots"
    sample = folder / "sample"
    for kind in ("inputs", "references"):
        (sample / kind).mkdir(parents=True)
    for case, text in {"01": "a text of five words", "02": "two words"}.items():
        (sample / "inputs" / f"{case}.txt").write_text(text)
        (sample / "references" / f"{case}.txt").write_text("." * len(text.split()))
    (folder / "challenge.yaml").write_text(json.dumps(challenge_of({"kind": "count", "file": "{case}.txt"})))
    (folder / "scorer.py").write_text(SCORER)
    return folder


def test_a_format_from_outside_end_to_end(
    engine: Engine, images: Images, site: Path, dots: Path, settings: Path, tmp_path: Path
) -> None:
    listed = [
        {"submission": name, "team": f"Team {name}", "image": images.script(f"outside-{name}", tmp_path / name, source)}
        for name, source in (("good", GOOD), ("malformed", MALFORMED))
    ]
    (tmp_path / "teams.yaml").write_text(json.dumps({"submissions": listed}))
    command = [
        sys.executable, "-m", "runner.cli", "evaluate", dots, "--data", dots / "sample", "--submissions", "teams.yaml",
        "--out", "run", "--settings", settings,
    ]  # fmt: skip
    variables = environment() | {"PYTHONPATH": f"{ROOT}:{site}"}
    done = subprocess.run(
        list(map(str, command)), cwd=tmp_path, env=variables, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    (board,) = json.loads((tmp_path / "run/leaderboard.json").read_text())["boards"]
    rows = {row["submission"]: row for row in board["rows"]}
    assert (rows["good"]["rank"], rows["good"]["values"]) == (1.0, {"exact": 1.0})
    assert [case["verdict"] for case in rows["good"]["cases"]] == ["accepted", "accepted"]
    assert [case["verdict"] for case in rows["malformed"]["cases"]] == ["bad-output", "bad-output"]
    for case in rows["malformed"]["cases"]:
        assert "line 2 is not a number of dots" in case["sentence"]
        assert "three" not in case["sentence"]
    assert leftovers(engine) == []
