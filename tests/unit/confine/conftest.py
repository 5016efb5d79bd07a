"""One fork server for the tests of this folder."""

from collections.abc import Iterator

import pytest

from runner.confine import Confine

DRILLS = "runner.confine.drills"


@pytest.fixture(scope="module")
def confine() -> Iterator[Confine]:
    with Confine(preload=(DRILLS,)) as confined:
        yield confined
