"""The engine stands still for a minute. First by its name: the others' drills are played meanwhile."""

import time

import pytest

from tests.drills.scene import ACCEPTED, ALL_ACCEPTED, Scene, board, finished_files

pytestmark = [pytest.mark.engine, pytest.mark.root]


def test_an_engine_that_stands_still_for_a_minute_loses_nothing(scene: Scene, undisturbed: str) -> None:
    out = scene.folder / "run"
    with scene.running(out) as play:
        before = finished_files(out)
        assert scene.words(out) == {("first", "01"): ACCEPTED}
        with scene.daemon.paused():
            scene.let_go()
            time.sleep(62)
        ran = play.wait()
    assert ran.code == 0, ran.err
    assert scene.words(out) == ALL_ACCEPTED
    assert board(out) == undisturbed
    assert before.items() <= finished_files(out).items()
    assert scene.leftovers() == []
