"""``proctor check`` under the host's faults: no image is rejected for what the host did, and nothing is left."""

import signal
from pathlib import Path

import pytest

from tests.drills.daemon import ballast, until
from tests.drills.scene import Play, Scene, make_archive

pytestmark = [pytest.mark.engine, pytest.mark.root]


def _check(scene: Scene, image: str = "", *, retries: int = 40, patience: float = 1.0) -> Play:
    """A check of the program that holds, or of an image."""
    return scene.begin(
        scene.folder, "check", image or scene.images["first"], "--challenge", str(scene.challenge),
        "--task", "steps", "--data", str(scene.data),
        "--settings", str(scene.settings), "--set", f"host_retries={retries}", patience=patience,
    )  # fmt: skip


def _kinds(scene: Scene) -> list[str]:
    return sorted(line.split()[0] for line in scene.leftovers())


@pytest.fixture
def scratch(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where programs put what nobody else is to find."""
    folder = scene.folder / "scratch"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def test_a_check_outlives_a_killed_engine_that_comes_back(scene: Scene, scratch: Path) -> None:
    play = _check(scene)
    with scene.held(play):
        assert _kinds(scene) == ["container", "mount", "path", "path"]
        scene.daemon.kill()
        until(lambda: play.err.count("tried again") > 1, "another attempt")
        scene.daemon.start()
        ran = play.wait()
    assert (ran.code, "accepted" in ran.out) == (0, True), ran.err
    assert scene.leftovers() == []
    assert list(scratch.iterdir()) == []


def test_a_check_whose_engine_stays_away_rejects_nobody(scene: Scene, scratch: Path) -> None:
    play = _check(scene, retries=1, patience=0.5)
    with scene.held(play):
        scene.daemon.kill()
        ran = play.wait()
    assert ran.code == 5, ran.err
    assert "the host failed, not the submission" in ran.err
    assert "rejected" not in ran.out + ran.err
    assert "resume" not in ran.err
    scene.daemon.start()
    assert scene.proctor("clean").code == 0
    assert scene.leftovers() == []
    assert list(scratch.iterdir()) == []


def test_ctrl_c_ends_a_check_and_leaves_nothing(scene: Scene, scratch: Path) -> None:
    play = _check(scene)
    with scene.held(play):
        play.interrupt()
        ran = play.wait_holding()
    assert ran.code == 130, ran.err
    assert "rejected" not in ran.out + ran.err
    # There is no run folder to go on with.
    assert "resume" not in ran.err
    assert "the same check again" in ran.err
    assert scene.leftovers() == []
    assert list(scratch.iterdir()) == []


def test_a_killed_check_leaves_nothing_that_clean_does_not_find(scene: Scene, scratch: Path) -> None:
    play = _check(scene)
    with scene.held(play):
        play.signal(signal.SIGKILL)
        play.wait_holding()
    assert _kinds(scene) == ["container", "mount", "path", "path"]
    # Its verdicts and logs lie in the workspace too, not among other programs' files.
    assert [path.name for path in scene.workspace.rglob("outcome.json")] == ["outcome.json"]
    assert list(scratch.iterdir()) == []
    assert scene.proctor("clean").code == 0
    assert scene.leftovers() == []


def test_a_check_of_an_image_that_the_engine_has_no_room_for_rejects_nobody(scene: Scene, scratch: Path) -> None:
    archive = make_archive(scene.folder / "weights.tar", megabytes=20)
    before = {image["Id"] for image in scene.daemon.api().images(all=True)}
    # An engine keeps the archive beside what it makes of it.
    with ballast(scene.daemon.data, leave=24 << 20):
        ran = _check(scene, str(archive)).wait()
    assert (ran.code, "Traceback" in ran.err) == (5, False), ran.err
    assert "the engine's disk has 24 MiB free, an image needs about 40.02 MiB" in ran.err
    assert "rejected" not in ran.out + ran.err
    assert "resume" not in ran.err
    assert {image["Id"] for image in scene.daemon.api().images(all=True)} == before
    assert scene.leftovers() == []
    assert list(scratch.iterdir()) == []
