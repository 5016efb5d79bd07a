"""Marks the tests that need nothing but Python: ``make unit`` runs those, and only those, on all processors."""

from pathlib import Path

import pytest

_HERE = Path(__file__).parent
_FOLDERS = ("unit", "oracles", "contract")
_NEEDS = ("engine", "root", "browser")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the mark ``unit`` to tests of the quick folders that need no engine, root or browser; mark the drills."""
    for item in items:
        folder = item.path.relative_to(_HERE).parts[0]
        if folder == "drills":
            item.add_marker(pytest.mark.drill)
        if folder in _FOLDERS and not any(item.get_closest_marker(need) for need in _NEEDS):
            item.add_marker(pytest.mark.unit)
