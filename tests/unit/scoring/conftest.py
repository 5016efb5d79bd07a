"""One fork server for the tests of this folder, and challenges with scorers of their own."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runner.catalog import LoadedChallenge, find_challenge, load_challenge
from runner.confine import Confine


@pytest.fixture(scope="module")
def confine() -> Iterator[Confine]:
    with Confine(preload=("runner.scoring.child",)) as confined:
        yield confined


@pytest.fixture
def with_scorer(tmp_path: Path) -> Callable[[str], LoadedChallenge]:
    """Make a copy of PitVis with another scorer.py, whose ``steps`` scores the steps and has no options."""

    def make(code: str) -> LoadedChallenge:
        text = (find_challenge("pitvis2023") / "challenge.yaml").read_text()
        before = "scorer: pitvis2023.Steps\n    options: {scoring: ours}\n"
        assert text.count(before) == 1
        (tmp_path / "challenge.yaml").write_text(text.replace(before, "scorer: pitvis2023.steps\n"))
        (tmp_path / "scorer.py").write_text(code)
        return load_challenge(tmp_path)

    return make
