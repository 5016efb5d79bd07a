"""Outputs in volumes in memory, each kept by a holder: what an engine's or a runner's death leaves of them."""

import signal

import pytest

from tests.drills.daemon import until
from tests.drills.scene import ACCEPTED, ALL_ACCEPTED, Scene, board, finished_files

pytestmark = [pytest.mark.engine, pytest.mark.root]

_HELD = ["container", "container", "path", "path", "volume"]
"""A participant's container and its holder, the runner's folder and its record, the volume; nothing is mounted."""


def _kinds(scene: Scene) -> list[str]:
    return sorted(line.split()[0] for line in scene.leftovers())


def test_a_volume_lost_with_a_killed_engine_costs_a_second_attempt(scene: Scene, undisturbed: str) -> None:
    """The holder dies with the engine's return, and the volume's content with the holder."""
    out = scene.folder / "run"
    with scene.running(out, set_={"output": "volume", "host_retries": "40"}, patience=1.0) as play:
        before = finished_files(out)
        assert scene.words(out) == {("first", "01"): ACCEPTED}
        assert _kinds(scene) == _HELD
        scene.daemon.kill()
        until(lambda: play.err.count("tried again") > 1, "another attempt")
        scene.daemon.start()
        ran = play.wait()
    assert ran.code == 0, ran.err
    assert scene.words(out) == ALL_ACCEPTED
    assert board(out) == undisturbed
    assert before.items() <= finished_files(out).items()
    assert scene.leftovers() == []


def test_a_killed_runners_volume_and_holder_are_swept(scene: Scene, undisturbed: str) -> None:
    out = scene.folder / "run"
    with scene.running(out, set_={"output": "volume"}) as play:
        before = finished_files(out)
        play.signal(signal.SIGKILL)
        play.wait_holding()
    assert _kinds(scene) == _HELD
    cleaned = scene.proctor("clean")
    assert (cleaned.code, cleaned.out.count("removed ")) == (0, 4), cleaned.out
    assert scene.leftovers() == []
    resumed = scene.proctor("resume", out)
    assert resumed.code == 0, resumed.err
    assert board(out) == undisturbed
    assert before.items() <= finished_files(out).items()
    assert scene.leftovers() == []
