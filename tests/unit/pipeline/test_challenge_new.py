"""A new challenge is written whole, under a name that is one, and nothing of the user's is touched."""

import json
from pathlib import Path

import pytest

from runner.catalog import load_challenge
from runner.challenge_schema import challenge_schema
from runner.dataset import find_cases
from runner.errors import UsageError
from runner.pipeline.challenge_new import KINDS, new_challenge


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_a_challenge_of_that_name_with_a_sample(kind: str, tmp_path: Path) -> None:
    written = new_challenge("my-toy", tmp_path, kind=kind)
    folder = tmp_path / "my-toy"
    assert sorted(written) == sorted(path for path in folder.rglob("*") if path.is_file())
    loaded = load_challenge(folder)
    assert loaded.challenge.name == "my-toy"
    assert [task.format.kind for task in loaded.challenge.tasks.values()] == [kind]
    assert len(find_cases(folder / "sample", loaded.challenge)) >= 2
    texts = [path.read_text() for path in written if path.suffix in (".yaml", ".py", ".md")]
    assert not any("@@" in text for text in texts)
    assert json.loads((folder / "challenge.schema.json").read_text()) == challenge_schema()


@pytest.mark.parametrize("name", ["", "Words", "-x", "a/b", "..", "a" * 65, "ä", "a b"])
def test_a_name_that_is_none_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no name for a challenge"):
        new_challenge(name, tmp_path, kind="answer")
    assert list(tmp_path.iterdir()) == []


def test_a_kind_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        new_challenge("x", tmp_path, kind="table")
    assert str(caught.value) == (
        "--kind 'table' is not known (give one of: frame_table, frame_scores, label_images, arrays, answer)"
    )


def test_a_folder_that_is_not_empty_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "mine").write_text("mine")
    with pytest.raises(UsageError, match="exists and is not empty"):
        new_challenge("x", tmp_path, kind="answer")
    assert [path.name for path in (tmp_path / "x").iterdir()] == ["mine"]
