"""Every malformed output of the table gets exactly its sentences, by the same door as any output."""

from pathlib import Path

import pytest

from runner.confine import Confine
from runner.formats.contract import Role
from runner.formats.reading import read_output
from tests.unit.formats.malformed import DUE, MALFORMED, RULES, Malformed, page

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("one", MALFORMED, ids=lambda one: f"{one.format}: {one.name}")
def test_what_is_said_of_it(confine: Confine, tmp_path: Path, one: Malformed) -> None:
    path = tmp_path / "output"
    if isinstance(one.content, bytes):
        path.write_bytes(one.content)
    else:
        path.mkdir()
        for name, content in one.content.items():
            (path / name).write_bytes(content)
    reading = read_output(confine, RULES[one.format], path, due=DUE, role=Role.PREDICTION)
    assert reading.prediction is None
    assert tuple(problem.what for problem in reading.problems) == one.sentences
    assert reading.problem_count == len(one.sentences)


def test_there_are_sixty_and_each_is_another() -> None:
    assert len(MALFORMED) >= 60
    assert len({(one.format, one.name) for one in MALFORMED}) == len(MALFORMED)
    assert {one.format for one in MALFORMED} == set(RULES)


def test_the_page_is_the_table() -> None:
    committed = (ROOT / "docs" / "malformed.md").read_text(encoding="utf-8")
    assert committed == page(), "next: python -m tests.unit.formats.malformed > docs/malformed.md"
