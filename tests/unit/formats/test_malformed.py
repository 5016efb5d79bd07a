"""Every malformed output of the table gets exactly its sentences, by the same door as any output."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from runner.confine import Confine
from runner.formats.contract import Role
from runner.formats.reading import read_output
from tests.unit.formats.malformed import DUE, LENIENT, MALFORMED, RULES, TAKEN, Malformed, Taken, page

ROOT = Path(__file__).parents[3]


def laid_out(path: Path, content: bytes | Mapping[str, bytes]) -> Path:
    if isinstance(content, bytes):
        path.write_bytes(content)
        return path
    path.mkdir()
    for name, one in content.items():
        (path / name).write_bytes(one)
    return path


@pytest.mark.parametrize("one", MALFORMED, ids=lambda one: f"{one.format}: {one.name}")
def test_what_is_said_of_it(confine: Confine, tmp_path: Path, one: Malformed) -> None:
    path = laid_out(tmp_path / "output", one.content)
    reading = read_output(confine, RULES[one.format], path, due=DUE, role=Role.PREDICTION)
    assert reading.prediction is None
    assert tuple(problem.what for problem in reading.problems) == one.sentences
    assert reading.problem_count == len(one.sentences)


@pytest.mark.parametrize("one", TAKEN, ids=lambda one: f"{one.states}: {one.name}")
def test_what_is_noted_of_what_is_taken(confine: Confine, tmp_path: Path, one: Taken) -> None:
    path = laid_out(tmp_path / "output", one.content)
    reading = read_output(confine, LENIENT[one.states], path, due=DUE, role=Role.PREDICTION)
    assert (reading.problems, reading.notes) == ((), one.notes)
    assert reading.prediction is not None


def test_there_are_sixty_and_each_is_another() -> None:
    assert len(MALFORMED) >= 60
    assert len({(one.format, one.name) for one in MALFORMED}) == len(MALFORMED)
    assert {one.format for one in MALFORMED} == set(RULES)
    assert {one.states for one in TAKEN} == set(LENIENT)


def test_the_page_is_the_table() -> None:
    committed = (ROOT / "docs" / "malformed.md").read_text(encoding="utf-8")
    assert committed == page(), "next: python -m tests.unit.formats.malformed > docs/malformed.md"
