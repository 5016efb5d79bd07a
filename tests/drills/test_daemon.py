"""The engine stops, is killed, stands still: nothing is lost, nobody is blamed, what the host cost is run again."""

import pytest

from tests.drills.scene import (
    ACCEPTED,
    ALL_ACCEPTED,
    LIMIT,
    PENDING,
    SLOW_SECONDS,
    Scene,
    board,
    finished_files,
)

pytestmark = [pytest.mark.engine, pytest.mark.root]


@pytest.mark.parametrize("way", ["stop", "kill"])
def test_an_engine_that_comes_back_soon_costs_a_second_attempt(scene: Scene, undisturbed: str, way: str) -> None:
    out = scene.folder / "run"
    with scene.running(out) as play:
        before = finished_files(out)
        assert scene.words(out) == {("first", "01"): ACCEPTED}
        getattr(scene.daemon, way)()
        scene.daemon.start()
        ran = play.wait()
    assert ran.code == 0, ran.err
    assert "tried again" in ran.err
    assert scene.words(out) == ALL_ACCEPTED
    assert board(out) == undisturbed
    assert before.items() <= finished_files(out).items()
    assert scene.leftovers() == []
