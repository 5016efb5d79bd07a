"""Files by descriptor, and one fork server for the tests of this folder."""

from collections.abc import Iterator

import pytest

from runner.confine import Confine


@pytest.fixture(scope="module")
def confine() -> Iterator[Confine]:
    with Confine(preload=("runner.formats.frame_table", "runner.confine.drills")) as confined:
        yield confined
