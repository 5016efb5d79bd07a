"""A disk is full: what was there stays whole, the host is named as the cause, and with room the run goes on."""

import contextlib
import json
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.drills.daemon import ballast, until
from tests.drills.entry import LOADING
from tests.drills.scene import (
    ACCEPTED,
    ALL_ACCEPTED,
    PENDING,
    Scene,
    board,
    finished_files,
    make_archive,
    stale_files,
)

pytestmark = [pytest.mark.engine, pytest.mark.root]


@contextlib.contextmanager
def small_disk(folder: Path, *, megabytes: int) -> Iterator[Path]:
    """A file system of its own."""
    image, point = folder.with_suffix(".img"), folder
    point.mkdir()
    with image.open("wb") as file:
        file.truncate(megabytes << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-m", "0", str(image)], check=True)
    subprocess.run(["mount", "-o", "loop", str(image), str(point)], check=True)
    try:
        yield point
    finally:
        subprocess.run(["umount", str(point)], check=True)


def test_a_full_disk_under_the_run_folder_loses_nothing(scene: Scene, undisturbed: str) -> None:
    with small_disk(scene.folder / "results", megabytes=24) as disk:
        out, another = disk / "run", disk / "another"
        another.mkdir()
        with scene.running(out, patience=60.0) as play:
            before = finished_files(out)
            with ballast(disk):
                ran = play.wait()
                assert ran.code == 5, ran.err
                assert "No space left on device; nothing that was there is lost" in ran.err
                assert "next  make room, then: proctor resume RUN" in ran.err
                assert scene.words(out) == {("first", "01"): ACCEPTED}
                assert finished_files(out) == before
                assert stale_files(out) == []
                still = scene.proctor("resume", out)
                assert (still.code, "Traceback" in still.err) == (5, False), still.err
                assert "No space left on device" in still.err
                assert finished_files(out) == before
                new = scene.evaluate(another)
                assert (new.code, "Traceback" in new.err) == (5, False), new.err
                assert "No space left on device" in new.err
                assert "1 of 4 cases have a verdict" in scene.proctor("status", out).out
        assert scene.leftovers() == []
        resumed = scene.proctor("resume", out)
        assert resumed.code == 0, resumed.err
        assert board(out) == undisturbed
        assert before.items() <= finished_files(out).items()


def test_a_full_disk_while_the_board_is_written_leaves_the_old_one(scene: Scene) -> None:
    with small_disk(scene.folder / "results", megabytes=24) as disk:
        out = disk / "run"
        assert scene.evaluate(out, "second").code == 0
        names = ("leaderboard.csv", "leaderboard.json", "scores.csv", "report.organiser.html")
        before = {name: (out / name).read_bytes() for name in names}
        with ballast(disk):
            ran = scene.proctor("score", out)
            assert (ran.code, "Traceback" in ran.err) == (5, False), ran.err
            assert {name: (out / name).read_bytes() for name in names} == before
            assert stale_files(out) == []
        assert scene.proctor("score", out).code == 0
        after = {name: (out / name).read_bytes() for name in names if name != "report.organiser.html"}
        assert after.items() <= before.items()


def test_a_full_disk_under_the_workspace_is_never_the_participants_fault(scene: Scene) -> None:
    with small_disk(scene.folder / "small", megabytes=24) as disk:
        scene = replace(scene, workspace=disk / "work")
        out = scene.folder / "run"
        with scene.running(out, "heavy", patience=60.0) as play:
            before = finished_files(out)
            with ballast(disk):
                ran = play.wait()
        assert ran.code == 5, ran.err
        assert scene.words(out) == {("heavy", "01"): ACCEPTED, ("heavy", "02"): PENDING}
        assert "has no room for" in scene.outcomes(out)["heavy", "02"].verdict.sentence
        assert finished_files(out) == before
        assert scene.leftovers() == []
        resumed = scene.proctor("resume", out)
        assert resumed.code == 0, resumed.err
        assert scene.words(out) == {("heavy", "01"): ACCEPTED, ("heavy", "02"): ACCEPTED}


def test_a_data_root_that_fills_up_while_an_image_is_loaded_leaves_its_cases_pending(scene: Scene) -> None:
    out = scene.folder / "run"
    make_archive(scene.folder / "weights.tar", megabytes=20)
    arguments = scene.arguments(out, "second", weights="weights.tar")
    api = scene.daemon.api()
    before = {image["Id"] for image in api.images(all=True)}
    play = scene.begin(out, *arguments, stage=LOADING, number=signal.SIGSTOP)
    with play.process:
        until(lambda: play.halted, "the load")
        assert scene.words(out) == {}
        # The archive fits once, and not once more unpacked.
        with ballast(scene.daemon.data, leave=24 << 20):
            play.signal(signal.SIGCONT)
            ran = play.wait()
    assert (ran.code, "Traceback" in ran.err) == (5, False), ran.err
    assert "damaged" not in ran.err
    assert "the engine's disk is full" in ran.err
    second = {("second", "01"): ACCEPTED, ("second", "02"): ACCEPTED}
    assert scene.words(out) == second | {("weights", "01"): PENDING, ("weights", "02"): PENDING}
    assert not (out / "leaderboard.csv").exists()
    assert {image["Id"] for image in api.images(all=True)} == before
    assert scene.leftovers() == []
    done = finished_files(out)
    resumed = scene.proctor("resume", out)
    assert resumed.code == 0, resumed.err
    # It holds no program: that is said now, and not before.
    bad = ("bad-image", "participant")
    assert scene.words(out) == second | {("weights", "01"): bad, ("weights", "02"): bad}
    assert done.items() <= finished_files(out).items()
    api.remove_image(json.loads((out / "submissions/weights/image.json").read_text())["id"])
    api.close()


def test_a_full_data_root_while_jobs_run_leaves_cases_pending(scene: Scene, undisturbed: str) -> None:
    out = scene.folder / "run"
    with scene.running(out, patience=60.0) as play:
        before = finished_files(out)
        with scene.daemon.filled():
            ran = play.wait()
    assert ran.code == 5, ran.err
    words = scene.words(out)
    assert words.keys() == ALL_ACCEPTED.keys()
    assert set(words.values()) == {ACCEPTED, PENDING}
    assert before.items() <= finished_files(out).items()
    assert not (out / "leaderboard.csv").exists()
    resumed = scene.proctor("resume", out)
    assert resumed.code == 0, resumed.err
    assert board(out) == undisturbed
    assert scene.leftovers() == []
