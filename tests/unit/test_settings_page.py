"""docs/settings.md names every setting with its default, and its example is one."""

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from runner.settings import Ceiling, Settings
from runner.yaml_text import parse_model

PAGE = Path(__file__).resolve().parents[2] / "docs" / "settings.md"
ROWS = dict(re.findall(r"^\| `([a-z_.]+)` \|\s*`?([^|`]*?)`?\s*\|", PAGE.read_text(encoding="utf-8"), re.MULTILINE))


def _keys() -> dict[str, object]:
    models: tuple[tuple[str, type[BaseModel]], ...] = (("", Settings), ("ceiling.", Ceiling))
    return {
        f"{prefix}{name}": field.default
        for prefix, model in models
        for name, field in model.model_fields.items()
        if name != "ceiling"
    }


def test_it_names_every_setting_and_no_other() -> None:
    assert set(ROWS) == set(_keys())


@pytest.mark.parametrize("key", sorted(_keys()))
def test_it_tells_the_default(key: str) -> None:
    default, told = _keys()[key], ROWS[key].strip()
    if key == "workspace" or default is None or default == "":
        assert told == ""
    elif "." in key:
        assert (
            getattr(Ceiling.model_validate({key.removeprefix("ceiling."): told}), key.removeprefix("ceiling."))
            == default
        )
    else:
        assert getattr(Settings.model_validate({key: told}), key) == default


def test_its_example_is_one(tmp_path: Path) -> None:
    example = re.search(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert example is not None
    settings = parse_model(tmp_path / "settings.yaml", example[1], Settings)
    assert (settings.processors, settings.ceiling.memory) == ("cpuset", 16 << 30)
