"""Two containers run at once when the fault strikes: both are put away, both are run again, nobody is blamed."""

import pytest

from tests.drills.daemon import until
from tests.drills.scene import ACCEPTED, Scene, finished_files

pytestmark = [pytest.mark.engine, pytest.mark.root]

_BEFORE = {("second", "01"): ACCEPTED, ("second", "02"): ACCEPTED}
_AFTER = _BEFORE | {("waits", "01"): ACCEPTED, ("waits", "02"): ACCEPTED}


def test_two_at_once_are_ended_by_ctrl_c_and_outlive_a_killed_engine(scene: Scene) -> None:
    out = scene.folder / "run"
    with scene.running(out, "second", "waits", set_={"jobs": "2", "host_retries": "40"}, containers=2) as play:
        before = finished_files(out)
        assert scene.words(out) == _BEFORE
        assert len(scene.containers("running")) == 2
        play.interrupt()
        ran = play.wait_holding()
    assert ran.code == 130, ran.err
    assert scene.words(out) == _BEFORE
    assert finished_files(out) == before
    assert scene.leftovers() == []
    play = scene.begin(out, "resume", str(out), patience=1.0)
    with scene.held(play, containers=2):
        assert scene.words(out) == _BEFORE
        scene.daemon.kill()
        until(lambda: play.err.count("tried again") > 2, "another attempt at both")
        scene.daemon.start()
        ran = play.wait()
    assert ran.code == 0, ran.err
    assert scene.words(out) == _AFTER
    assert before.items() <= finished_files(out).items()
    assert scene.leftovers() == []
