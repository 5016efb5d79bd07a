"""A template is copied whole, with its tokens filled."""

from pathlib import Path

import pytest

from runner import template
from runner.errors import UsageError
from runner.template import write_template

VALUES = {"title": "Toy", "heading": "Toy", "challenge": "toy", "rules": "| a | b |"}


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A template with a token, a folder and litter."""
    source = tmp_path / "templates" / "toy"
    (source / "sub").mkdir(parents=True)
    (source / "__pycache__").mkdir()
    (source / "README.md").write_text("# @@TITLE@@, @@TITLE@@ @@OTHER@@ @title@\n")
    (source / "sub" / "a.py").write_text("x = 'é'\n", encoding="utf-8")
    (source / "__pycache__" / "a.pyc").write_bytes(b"\xff")
    monkeypatch.setattr(template, "bundled", lambda kind: tmp_path / kind)
    return source


def test_tokens_are_filled_and_litter_stays_behind(toy: Path, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "method"
    assert write_template("toy", folder, values=VALUES) == (folder / "README.md", folder / "sub" / "a.py")
    assert (folder / "README.md").read_text() == "# Toy, Toy @@OTHER@@ @title@\n"
    assert (folder / "sub" / "a.py").read_text(encoding="utf-8") == "x = 'é'\n"
    assert sorted(path.name for path in folder.rglob("*")) == ["README.md", "a.py", "sub"]


def test_an_empty_folder_will_do(toy: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert len(write_template("toy", tmp_path / "empty", values={})) == 2


def test_nothing_of_the_users_is_touched(toy: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "x").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for name in ("mine", "file"):
        with pytest.raises(UsageError) as caught:
            write_template("toy", tmp_path / name, values=VALUES)
        assert str(caught.value) == f"'{tmp_path}/{name}' exists and is not empty (give a new folder)"
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["x"]
    with pytest.raises(UsageError, match="cannot be written: Not a directory"):
        write_template("toy", tmp_path / "file" / "below", values=VALUES)


@pytest.mark.parametrize(("kind", "own"), [("batch", "requirements.txt"), ("stream", "proctor_stream.py")])
def test_a_template_that_ships_has_no_token_left_over(kind: str, own: str, tmp_path: Path) -> None:
    written = write_template(kind, tmp_path / "m", values={**VALUES, "answers": "{}"})
    assert {path.name for path in written} >= {"Dockerfile", "predict.py", "README.md", own}
    assert not [path.name for path in written if "@@" in path.read_text(encoding="utf-8")]
    assert "`toy`" in (tmp_path / "m" / "README.md").read_text(encoding="utf-8")
