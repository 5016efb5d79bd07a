"""The engine stops, is killed, stands still: nothing is lost, nobody is blamed, what the host cost is run again."""

import time
from concurrent.futures import Future

import pytest

from tests.drills.scene import (
    ACCEPTED,
    ALL_ACCEPTED,
    LIMIT,
    PENDING,
    SLOW_SECONDS,
    Disturbed,
    Scene,
    board,
    finished_files,
    pause,
)

pytestmark = [pytest.mark.engine, pytest.mark.root]


@pytest.mark.parametrize("program", ["traps-0", "traps-1"])
def test_an_engine_that_is_stopped_and_comes_back_costs_a_second_attempt_whatever_its_sigterm_brings_about(
    scene: Scene, program: str
) -> None:
    out = scene.folder / "run"
    with scene.running(out, program) as play:
        before = finished_files(out)
        assert scene.words(out) == {(program, "01"): ACCEPTED}
        scene.daemon.stop()
        scene.daemon.start()
        ran = play.wait()
    assert ran.code == 0, ran.err
    assert "tried again" in ran.err
    assert scene.words(out) == {(program, "01"): ACCEPTED, (program, "02"): ACCEPTED}
    assert before.items() <= finished_files(out).items()
    assert scene.leftovers() == []


def test_an_engine_that_is_killed_and_comes_back_costs_a_second_attempt_and_keeps_no_container(
    scene: Scene, undisturbed: str
) -> None:
    out = scene.folder / "run"
    with scene.running(out, patience=1.0, back_off=1.0) as play:
        before = finished_files(out)
        scene.daemon.kill()
        time.sleep(1.5)  # the first attempt is given up, and so is the removal of its container
        scene.daemon.start()
        ran = play.wait()
    assert ran.code == 0, ran.err
    assert "tried again" in ran.err
    assert board(out) == undisturbed
    assert before.items() <= finished_files(out).items()
    assert scene.leftovers() == []


def test_an_engine_that_stays_away_leaves_cases_pending(scene: Scene, undisturbed: str) -> None:
    out = scene.folder / "run"
    with scene.running(out, patience=0.5) as play:
        before = finished_files(out)
        scene.daemon.kill()
        ran = play.wait()
    assert ran.code == 5, ran.err
    assert (ran.err.count("tried again"), ran.err.count("left pending")) == (6, 3)
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


def test_an_engine_that_stands_still_for_seconds_costs_nothing(scene: Scene, undisturbed: str) -> None:
    paused = pause(scene, 5.0)
    assert paused.ran.code == 0, paused.ran.err
    assert "tried again" not in paused.ran.err
    assert board(paused.out) == undisturbed
    outcome = scene.outcomes(paused.out)["first", "02"]
    assert outcome.attempt == 1
    assert "the engine kept us waiting" in outcome.verdict.notes[0]
    # Its own time, not ours.
    assert outcome.seconds is not None
    assert SLOW_SECONDS <= outcome.seconds < LIMIT
    assert scene.leftovers() == []


def test_a_program_that_had_to_wait_for_the_engine_to_read_its_log_is_run_again(scene: Scene) -> None:
    out = scene.folder / "run"
    with scene.running(out, "chatty") as play:
        with scene.daemon.paused():
            time.sleep(6)
        ran = play.wait()
    assert ran.code == 0, ran.err
    assert "tried again" in ran.err
    assert scene.words(out) == {("chatty", "01"): ACCEPTED, ("chatty", "02"): ACCEPTED}


def test_an_engine_that_stands_still_beyond_patience_leaves_cases_pending(scene: Scene) -> None:
    out = scene.folder / "run"
    with scene.running(out, "first", patience=1.5, retries=1) as play:
        before = finished_files(out)
        with scene.daemon.paused():
            ran = play.wait()
    assert ran.code == 5, ran.err
    assert (ran.err.count("tried again"), ran.err.count("left pending")) == (1, 1)
    assert scene.words(out) == {("first", "01"): ACCEPTED, ("first", "02"): PENDING}
    assert finished_files(out) == before
    assert not (out / "leaderboard.csv").exists()
    assert "next: proctor clean" in ran.err
    # The removals that were asked for in vain may have been done by now.
    assert scene.proctor("clean").code == 0
    assert scene.leftovers() == []
    resumed = scene.proctor("resume", out)
    assert resumed.code == 0, resumed.err
    assert scene.words(out) == {("first", "01"): ACCEPTED, ("first", "02"): ACCEPTED}


@pytest.mark.parametrize("name", ["pause", "containerd"])
def test_a_pause_of_a_minute_and_a_killed_containerd_lose_nothing(
    long_drills: dict[str, Future[Disturbed]], undisturbed: str, name: str
) -> None:
    """By Docker's own word, a container that ended while there was no containerd goes on running."""
    found = long_drills[name].result(timeout=300)
    assert found.ran.code == 0, found.ran.err
    assert found.scene.words(found.out) == ALL_ACCEPTED
    assert board(found.out) == undisturbed
    assert found.before.items() <= finished_files(found.out).items()
    assert found.scene.leftovers() == []
