"""The engine stops, is killed, stands still: nothing is lost, nobody is blamed, what the host cost is run again."""

import time

import pytest

from tests.drills.scene import ACCEPTED, ALL_ACCEPTED, PENDING, Scene, board, finished_files

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


@pytest.mark.parametrize("way", ["stop", "kill"])
def test_an_engine_that_stays_away_leaves_cases_pending(scene: Scene, undisturbed: str, way: str) -> None:
    out = scene.folder / "run"
    with scene.running(out) as play:
        before = finished_files(out)
        getattr(scene.daemon, way)()
        ran = play.wait()
    assert ran.code == 5, ran.err
    assert "next: proctor resume" in ran.err
    assert scene.words(out) == {
        ("first", "01"): ACCEPTED, ("first", "02"): PENDING, ("second", "01"): PENDING, ("second", "02"): PENDING,
    }  # fmt: skip
    assert finished_files(out) == before
    assert not (out / "leaderboard.csv").exists()
    away = scene.proctor("resume", out)
    assert away.code == 3
    assert "no container engine answers" in away.err
    scene.daemon.start()
    resumed = scene.proctor("resume", out)
    assert resumed.code == 0, resumed.err
    assert board(out) == undisturbed
    assert before.items() <= finished_files(out).items()
    assert scene.leftovers() == []


@pytest.mark.parametrize("program", ["traps-0", "traps-1"])
def test_a_program_that_obeys_the_engines_sigterm_is_not_blamed(scene: Scene, program: str) -> None:
    out = scene.folder / "run"
    with scene.running(out, program) as play:
        scene.daemon.stop()
        scene.daemon.start()
        ran = play.wait()
    assert ran.code == 0, ran.err
    assert "tried again" in ran.err
    assert scene.words(out) == {(program, "01"): ACCEPTED, (program, "02"): ACCEPTED}
    assert scene.leftovers() == []


def test_an_engine_that_stands_still_for_seconds_costs_nothing(scene: Scene, undisturbed: str) -> None:
    out = scene.folder / "run"
    with scene.running(out) as play:
        with scene.daemon.paused():
            time.sleep(6)
        ran = play.wait()
    assert ran.code == 0, ran.err
    assert scene.words(out) == ALL_ACCEPTED
    assert board(out) == undisturbed
    assert scene.leftovers() == []
