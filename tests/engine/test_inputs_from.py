"""A task that is given the prediction of an earlier task of the same submission."""

import json
from pathlib import Path
from typing import Any

import pytest

from runner.engine import Engine
from tests.engine.conftest import Images, leftovers, proctor

pytestmark = [pytest.mark.engine, pytest.mark.root]

SCORER = """
from runner.scoring import Metric


class Exact:
    metrics = (Metric(name="exact", title="Exact", worst=0.0, chance=None, higher_is_better=True),)

    @staticmethod
    def score_case(reference, prediction):
        return {"exact": float(reference.fields == prediction.fields)}


exact = Exact
"""
# The first task counts the words; the second doubles what the first answered.
GOOD = """
import json, os, pathlib, sys
text, output, case = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
earlier = pathlib.Path("/data/inputs/predictions")
if os.environ["PROCTOR_TASK"] == "a":
    assert not earlier.exists()
    answer = len(text.read_text().split())
else:
    assert os.listdir(earlier) == ["a"]
    assert os.listdir(earlier / "a") == [case + ".json"]
    answer = 2 * json.loads((earlier / "a" / (case + ".json")).read_text())["n"]
output.write_text(json.dumps({"n": answer}))
"""
MALFORMED = GOOD.replace('{"n": answer}', '{"n": "many"}')


def _task(reference: str, **more: object) -> dict[str, object]:
    return {
        "title": "Words", "references": reference, "scorer": "chain.exact", "missing_case": "worst",
        "format": {"kind": "answer", "file": "{case}.json", "fields": {"n": {"type": "integer"}}},
        "primary": {"metric": "exact", "higher_is_better": True}, **more,
    }  # fmt: skip


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    """A challenge of two tasks, the second of which is given the prediction of the first."""
    folder = tmp_path / "chain"
    sample = folder / "sample"
    for kind in ("inputs", "a", "b"):
        (sample / kind).mkdir(parents=True)
    for case, text in {"01": "a text of five words", "02": "two words"}.items():
        count = len(text.split())
        (sample / "inputs" / f"{case}.txt").write_text(text)
        (sample / "a" / f"{case}.json").write_text(json.dumps({"n": count}))
        (sample / "b" / f"{case}.json").write_text(json.dumps({"n": 2 * count}))
    bad = (
        "crashed", "out-of-memory", "timed-out", "too-much-output", "unsafe-output", "missing-output", "bad-output",
        "not-causal",
    )  # fmt: skip
    challenge: dict[str, Any] = {
        "name": "chain", "version": "1.0", "title": "A chain", "platform": "linux/amd64", "data": "hidden",
        "cases": {
            "inputs": {"text": {"kind": "file", "path": "inputs/{case}.txt"}},
            "references": "a/{case}.json",
        },
        "invocation": {"mode": "case", "args": ["{text}", "{output}.json", "{case}"]},
        "limits": {"run_time": {"fixed": "60 s"}, "memory": "256 MiB", "shm": "16 MiB", "cpus": 1},
        "causality": {"method": "off", "on": 1, "on_leak": "report", "length_dependence": "report"},
        "tasks": {"a": _task("a/{case}.json"), "b": _task("b/{case}.json", inputs_from=["a"])},
        "consequence": dict.fromkeys(bad, "case"),
        "ranking": {"method": "mean_then_rank"}, "feedback": {"metrics": "shown"},
    }  # fmt: skip
    (folder / "challenge.yaml").write_text(json.dumps(challenge))
    (folder / "scorer.py").write_text(SCORER)
    return folder


def test_a_task_is_given_the_prediction_of_an_earlier_one(
    engine: Engine, images: Images, chain: Path, settings: Path, tmp_path: Path
) -> None:
    listed = [
        {"submission": name, "team": f"Team {name}", "image": images.script(f"chain-{name}", tmp_path / name, source)}
        for name, source in (("good", GOOD), ("malformed", MALFORMED))
    ]
    (tmp_path / "teams.yaml").write_text(json.dumps({"submissions": listed}))
    ran = proctor(
        "evaluate", chain, "--data", chain / "sample", "--submissions", tmp_path / "teams.yaml",
        "--out", tmp_path / "run", "--settings", settings,
    )  # fmt: skip
    assert ran.code == 0, ran.err
    boards = json.loads((tmp_path / "run/leaderboard.json").read_text())["boards"]
    rows = {(board["task"], row["submission"]): row for board in boards for row in board["rows"]}
    for task in ("a", "b"):
        good, malformed = rows[task, "good"], rows[task, "malformed"]
        assert (good["rank"], good["values"]) == (1.0, {"exact": 1.0})
        assert [case["verdict"] for case in good["cases"]] == ["accepted", "accepted"]
        assert [case["verdict"] for case in malformed["cases"]] == ["bad-output", "bad-output"]
    for first, second in zip(rows["a", "malformed"]["cases"], rows["b", "malformed"]["cases"], strict=True):
        assert not first["sentence"].startswith("not run")
        assert second["sentence"] == (
            f"not run: its input is the prediction of task a, which ended: {first['sentence']}"
        )
    assert leftovers(engine) == []
