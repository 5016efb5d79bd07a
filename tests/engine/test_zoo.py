"""A zoo of methods of known causality, each an image, checked by one evaluation; each outcome must be right."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from runner.engine import Engine
from tests.engine.conftest import BASE, ROOT, SETTINGS, Images, leftovers, proctor
from tests.zoo.method import METHODS
from tests.zoo.sequences import write

pytestmark = [pytest.mark.engine, pytest.mark.root]

ZOO = ROOT / "tests" / "zoo"
CAUSAL = ("frame-wise", "recurrent", "causal-smoothing", "lookback-window", "seeded-noise", "rounding", "scores-only")
LEAKING = (
    "ahead-1", "ahead-3", "ahead-15", "centred-smoothing", "median-filter", "normalised", "bidirectional", "sorting",
    "last-second",
)  # fmt: skip
ALLOWED = {
    **{(name, "labels"): {"passed"} for name in CAUSAL},
    **{(name, "labels"): {"leaking"} for name in LEAKING},
    ("batched", "labels"): {"length-dependent", "passed"},
    ("flickering", "labels"): {"passed", "not-deterministic"},
    ("length-relative", "labels"): {"length-dependent"},
    ("frame-wise", "scores"): {"passed"},
    ("rounding", "scores"): {"passed"},
    ("scores-only", "scores"): {"leaking"},
}
"""What may come of each method in each task it enters; where chance has a say, what it may say."""

FUTURE = {("ahead-1", "labels"): 1, ("ahead-3", "labels"): 3, ("ahead-15", "labels"): 15, ("scores-only", "scores"): 3}
"""How many later frames a leaking method is found to need."""


@dataclass(frozen=True)
class Zoo:
    """What came of the evaluation: what is written of each method's causality, and the rows of each board."""

    records: Mapping[tuple[str, str], Mapping[str, Any]]
    boards: Mapping[str, Mapping[str, Mapping[str, Any]]]


def _challenge(folder: Path) -> Path:
    """The challenge as a folder of its own name, with its scorer and its public cases."""
    folder.mkdir()
    for name in ("challenge.yaml", "scorer.py"):
        (folder / name).write_bytes((ZOO / name).read_bytes())
    write(folder / "sample", cases=2, frames=20, seed=1)
    return folder


@pytest.fixture(scope="module")
def zoo(engine: Engine, images: Images, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zoo]:
    folder = tmp_path_factory.mktemp("zoo")
    listed = []
    for name in METHODS:
        reference = f"proctor-test/zoo-{name}:1"
        images.made[reference] = engine.build(
            ZOO, reference=reference, arguments={"BASE_IMAGE": BASE, "METHOD": name}, deadline=300, log=lambda _: None
        )
        tasks = [task for entered, task in ALLOWED if entered == name]
        listed.append({"submission": name, "team": f"Team {name}", "image": reference, "tasks": tasks})
    (folder / "teams.yaml").write_text(json.dumps({"submissions": listed}))
    (folder / "settings.yaml").write_text(SETTINGS)
    write(folder / "hidden", cases=2, frames=110, seed=40)
    run = folder / "run"
    ran = proctor(
        "evaluate", _challenge(folder / "zoo"), "--data", folder / "hidden", "--submissions", folder / "teams.yaml",
        "--out", run, "--settings", folder / "settings.yaml", "--seed", "5", "--set", "jobs=2",
        seconds=900,
    )  # fmt: skip
    assert ran.code == 0, ran.out + ran.err
    boards = json.loads((run / "leaderboard.json").read_text())["boards"]
    yield Zoo(
        records={
            (name, task): json.loads((run / "submissions" / name / task / "causality.json").read_text())
            for name, task in ALLOWED
        },
        boards={board["task"]: {row["submission"]: row for row in board["rows"]} for board in boards},
    )
    assert leftovers(engine) == []


def test_every_method_is_known(zoo: Zoo) -> None:
    assert {name for name, _ in ALLOWED} == set(METHODS)
    assert len(METHODS) >= 16


@pytest.mark.parametrize(("name", "task"), list(ALLOWED))
def test_the_outcome_is_right(zoo: Zoo, name: str, task: str) -> None:
    record = zoo.records[name, task]
    (finding,) = record["findings"]
    verdict = finding["verdict"]
    assert record["summary"]["outcome"] == verdict["outcome"]
    assert verdict["outcome"] in ALLOWED[name, task], verdict["detail"]
    assert verdict["cuts_tested"] > 0
    if verdict["outcome"] == "passed":
        assert (verdict["cuts_tested"], verdict["first_leak"]) == (10, None)
        assert 0 < verdict["bound"] < 1
    if verdict["outcome"] == "leaking":
        leak = verdict["first_leak"]
        assert leak["full_answer"] != leak["cut_answer"]
        assert leak["frame"] < leak["cut"]["frames"] <= leak["frame"] + leak["future_frames"]
        assert leak["future_frames"] == FUTURE.get((name, task), leak["future_frames"])


@pytest.mark.parametrize(("name", "task"), list(ALLOWED))
def test_only_a_leak_costs_the_rank(zoo: Zoo, name: str, task: str) -> None:
    row = zoo.boards[task][name]
    leaks = zoo.records[name, task]["summary"]["outcome"] == "leaking"
    assert ("not-causal" in {case["verdict"] for case in row["cases"]}) == leaks
    assert (row["rank"] is None) == leaks
