"""The engine stops, is killed, stands still: nothing is lost, nobody is blamed, what the host cost is run again."""

import signal
import time

import pytest

from tests.drills.daemon import until
from tests.drills.scene import ACCEPTED, ALL_ACCEPTED, PENDING, Scene, board, finished_files

pytestmark = [pytest.mark.engine, pytest.mark.root]

_LIMIT = 5.0
"""Seconds, where a drill must outlast what a program may take."""


@pytest.mark.parametrize("program", ["traps-0", "traps-1"])
def test_an_engine_that_is_stopped_and_comes_back_costs_a_second_attempt_whatever_its_sigterm_brings_about(
    scene: Scene, program: str
) -> None:
    out = scene.folder / "run"
    with scene.running(out, program, set_={"host_retries": "40"}, patience=60.0) as play:
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
    with scene.running(out, set_={"host_retries": "40"}, patience=1.0) as play:
        before = finished_files(out)
        assert scene.words(out) == {("first", "01"): ACCEPTED}
        scene.daemon.kill()
        # The first attempt is given up, and so is the removal of its container.
        until(lambda: play.err.count("tried again") > 1, "another attempt")
        scene.daemon.start()
        ran = play.wait()
    assert ran.code == 0, ran.err
    assert board(out) == undisturbed
    assert before.items() <= finished_files(out).items()
    assert scene.leftovers() == []


def test_an_engine_that_stays_away_leaves_cases_pending(scene: Scene, undisturbed: str) -> None:
    out = scene.folder / "run"
    with scene.running(out, patience=0.5) as play:
        before = finished_files(out)
        assert scene.words(out) == {("first", "01"): ACCEPTED}
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


def test_an_engine_that_stands_still_longer_than_a_program_may_run_costs_nothing(
    scene: Scene, undisturbed: str
) -> None:
    out = scene.folder / "run"
    with scene.running(out, set_={"ceiling.run_time": f"{_LIMIT:g} s"}) as play:
        before = finished_files(out)
        with scene.daemon.paused():
            scene.let_go()
            time.sleep(_LIMIT + 1)
        ran = play.wait()
    assert ran.code == 0, ran.err
    assert "tried again" not in ran.err
    assert board(out) == undisturbed
    assert before.items() <= finished_files(out).items()
    outcome = scene.outcomes(out)["first", "02"]
    assert outcome.attempt == 1
    assert "the engine kept us waiting" in outcome.verdict.notes[0]
    # Its own time, not ours.
    assert outcome.seconds is not None
    assert outcome.seconds < _LIMIT
    assert scene.leftovers() == []


def test_a_program_that_had_to_wait_for_the_engine_to_read_its_log_is_run_again(scene: Scene) -> None:
    out = scene.folder / "run"
    with scene.running(out, "chatty", set_={"ceiling.run_time": f"{_LIMIT:g} s"}) as play:
        before = finished_files(out)
        with scene.daemon.paused():
            scene.let_go()
            time.sleep(_LIMIT + 1)
        ran = play.wait()
    assert ran.code == 0, ran.err
    assert "tried again" in ran.err
    assert scene.words(out) == {("chatty", "01"): ACCEPTED, ("chatty", "02"): ACCEPTED}
    assert before.items() <= finished_files(out).items()
    assert scene.leftovers() == []


def test_an_engine_that_stands_still_beyond_patience_leaves_cases_pending(scene: Scene) -> None:
    out = scene.folder / "run"
    with scene.running(out, "first", set_={"host_retries": "1"}, patience=1.5) as play:
        before = finished_files(out)
        play.signal(signal.SIGUSR1)
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


def test_a_killed_containerd_loses_nothing(scene: Scene, undisturbed: str) -> None:
    """By Docker's own word, a container that ended while there was no containerd goes on running."""
    out = scene.folder / "run"
    with scene.running(out, set_={"ceiling.run_time": f"{_LIMIT:g} s"}) as play:
        before = finished_files(out)
        assert scene.words(out) == {("first", "01"): ACCEPTED}
        scene.daemon.kill_containerd()
        ran = play.wait()
    assert ran.code == 0, ran.err
    assert scene.words(out) == ALL_ACCEPTED
    assert board(out) == undisturbed
    assert before.items() <= finished_files(out).items()
    assert scene.leftovers() == []
