"""The page on making a challenge is true: what it shows is a challenge, and its scorer works."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runner.catalog import load_challenge
from runner.dataset import find_cases
from runner.formats.contract import Answer
from runner.pipeline.challenge_new import KINDS, new_challenge
from runner.scoring.container import check_scores, scores_of
from runner.scoring.loading import SCORER_FILE
from runner.yaml_text import parse_yaml

PAGE = Path(__file__).parents[2] / "docs" / "authoring.md"
BLOCK = re.compile(r"^```(?:yaml|python|dockerfile)\n# (\S+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def blocks() -> dict[str, str]:
    """The page's files by their path."""
    return dict(BLOCK.findall(PAGE.read_text(encoding="utf-8")))


@pytest.fixture
def words(tmp_path: Path, blocks: dict[str, str]) -> Path:
    """The page's challenge, laid out as its reader does."""
    new_challenge("words", tmp_path, kind="answer")
    for path, text in blocks.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path / "words"


def test_every_block_is_named(blocks: dict[str, str]) -> None:
    assert list(blocks) == [
        "words/challenge.yaml", "words/scorer.py", "scorer/task.yaml", "scorer/score.py", "scorer/Dockerfile",
        "method/predict.py", "method/Dockerfile", "teams.yaml",
    ]  # fmt: skip
    text = PAGE.read_text(encoding="utf-8")
    assert len(re.findall(r"^```(?!console)[a-z]", text, re.MULTILINE)) == len(blocks)


def test_its_table_names_every_kind() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert tuple(rows) == KINDS


def test_its_challenge_is_one(words: Path) -> None:
    loaded = load_challenge(words)
    cases = find_cases(words / "sample", loaded.challenge)
    assert [(case.name, case.frames, case.media_seconds) for case in cases] == [
        ("01", (), 0.0), ("02", (), 0.0), ("03", (), 0.0),
    ]  # fmt: skip


def test_its_program_answers_the_sample(words: Path, tmp_path: Path) -> None:
    for case in ("01", "02", "03"):
        text, output = words / "sample" / "inputs" / f"{case}.txt", tmp_path / "answer.json"
        subprocess.run([sys.executable, tmp_path / "method" / "predict.py", text, output], check=True)
        reference = json.loads((words / "sample" / "references" / f"{case}.json").read_text())
        assert json.loads(output.read_text()) == reference


def test_its_scorer_says_what_the_page_says(words: Path) -> None:
    names: dict[str, object] = {}
    exec((words / SCORER_FILE).read_text(), names)
    scorer = names["counted"](tolerance=0.5)  # type: ignore[operator]
    reference = Answer(fields={"words": 8})
    assert [scorer.score_case(reference, Answer(fields={"words": guess})) for guess in (8, 10, 12, 0)] == [
        {"closeness": 1.0, "exact": 1.0},
        {"closeness": 0.5, "exact": 0.0},
        {"closeness": 0.0, "exact": 0.0},
        {"closeness": 0.0, "exact": 0.0},
    ]


def _values(path: str, text: str) -> dict[str, Any]:
    found = parse_yaml(Path(path), text).value
    assert isinstance(found, dict)
    return found


def test_its_scorer_in_a_container_says_the_same(words: Path, blocks: dict[str, str], tmp_path: Path) -> None:
    whole, part = (_values(path, blocks[path]) for path in ("words/challenge.yaml", "scorer/task.yaml"))
    task = {name: value for name, value in whole["tasks"]["words"].items() if name != "options"}
    (words / "challenge.yaml").write_text(json.dumps({**whole, "tasks": {"words": {**task, **part}}}))
    rule = load_challenge(words).challenge.tasks["words"].scorer_image
    assert rule is not None
    guesses = {"01": 8, "02": 10, "03": 12}
    for case, guess in guesses.items():
        for side, number in (("prediction", guess), ("reference", 8)):
            path = tmp_path / "given" / f"{side}s" / case / f"{side}.json"
            path.parent.mkdir(parents=True)
            path.write_text(json.dumps({"words": number}))
    subprocess.run([sys.executable, tmp_path / "scorer" / "score.py", tmp_path / "given", tmp_path], check=True)
    found = json.loads((tmp_path / "scores.json").read_text())
    reading = check_scores(found, metrics=tuple(rule.metrics), primary="closeness", cases=tuple(guesses))
    assert [dict(score.values) for score in scores_of(reading).values()] == [
        {"closeness": 1.0, "exact": 1.0},
        {"closeness": 0.5, "exact": 0.0},
        {"closeness": 0.0, "exact": 0.0},
    ]


def test_the_scores_it_shows_are_sound() -> None:
    (shown,) = re.findall(r"^```\n(\{.*\})\n```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    found = json.loads(shown)
    reading = check_scores(found, metrics=("closeness", "exact"), primary="closeness", cases=("01", "02"))
    assert reading.problems == ()
