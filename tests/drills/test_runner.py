"""The runner is ended at any stage: what it leaves is provably its own, is cleaned up, and nothing is run twice.

Exit codes: Ctrl-C and SIGTERM both end it with 130, "interrupted"; a second one ends it by the signal itself. Once
nothing but scoring and writing is left to do, it finishes that, and ends with 0.
"""

import signal

import pytest

from runner import follow
from tests.drills.daemon import until
from tests.drills.entry import STAGES
from tests.drills.scene import (
    ACCEPTED,
    ALL_ACCEPTED,
    SHARED,
    Scene,
    board,
    finished_files,
    stale_files,
)

pytestmark = [pytest.mark.engine, pytest.mark.root]

_LEFT = {
    "claim": "", "pin": "", "layout": "", "mount": "mount", "create": "container mount", "run": "container mount",
    "intake": "container mount", "scoring": "", "report": "", "leaderboard": "", "farewell": "",
}  # fmt: skip
"""What a runner killed at a stage leaves on the engine and in the mount table; of others it depends on the moment."""


def test_killed_at_every_stage_in_a_row_it_is_resumed_and_repeats_nothing(scene: Scene, undisturbed: str) -> None:
    out = scene.folder / "run"
    before = finished_files(out)
    for stage in STAGES:
        arguments = ["resume", str(out)] if (out / "run.json").exists() else scene.arguments(out)
        ran = scene.begin(out, *arguments, stage=stage, number=signal.SIGKILL).wait()
        assert ran.code == -signal.SIGKILL, (stage, ran.err)
        left = scene.leftovers()
        assert "path" in {line.split()[0] for line in left}, stage
        kinds = [line.split()[0] for line in left if not line.startswith("path ")]
        assert " ".join(kinds) == _LEFT.get(stage, " ".join(kinds)), stage
        if stage in ("claim", "farewell"):
            assert [path.suffix for path in scene.workspace.iterdir() if path.name not in SHARED] == [".owner"]
        after = finished_files(out)
        assert before.items() <= after.items(), stage
        before = after
        if stage == "create":
            cleaned = scene.proctor("clean")
            assert cleaned.code == 0
            assert cleaned.out.count("removed ") == 2, stage  # its container, its folder with the mount
            assert scene.leftovers() == []
    resumed = scene.proctor("resume", out)
    assert resumed.code == 0, resumed.err
    assert "removed what a dead runner had left" in resumed.err
    assert scene.words(out) == ALL_ACCEPTED
    assert board(out) == undisturbed
    assert before.items() <= finished_files(out).items()
    assert stale_files(out) == []
    assert scene.leftovers() == []
    assert scene.proctor("clean").out == "nothing is left over\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_asked_to_stop_at_any_stage_it_leaves_nothing(scene: Scene, undisturbed: str, number: int) -> None:
    out = scene.folder / "run"
    stages = ["pin", "run", "outcome", "scoring"] if number == signal.SIGTERM else ["layout", "intake", "report"]
    before = finished_files(out)
    for stage in stages:
        arguments = ["resume", str(out)] if (out / "run.json").exists() else scene.arguments(out)
        ran = scene.begin(out, *arguments, stage=stage, number=number).wait()
        assert ran.code == (0 if stage in ("scoring", "report") else 130), (stage, ran.err)
        assert "stopping: " in ran.err
        assert "Traceback" not in ran.err
        assert scene.leftovers() == [], stage
        assert before.items() <= finished_files(out).items(), stage
        assert (out / "leaderboard.csv").exists() == (ran.code == 0)
        before = finished_files(out)
    assert board(out) == undisturbed
    assert stale_files(out) == []


def test_ctrl_c_while_a_container_runs_ends_it_and_leaves_nothing(scene: Scene, undisturbed: str) -> None:
    out = scene.folder / "run"
    with scene.running(out) as play:
        before = finished_files(out)
        play.interrupt()
        ran = play.wait_holding()
    assert ran.code == 130, ran.err
    assert "next  go on with: proctor resume RUN" in ran.err
    assert scene.words(out) == {("first", "01"): ACCEPTED}
    assert finished_files(out) == before
    assert scene.leftovers() == []
    resumed = scene.proctor("resume", out)
    assert resumed.code == 0, resumed.err
    assert board(out) == undisturbed


def test_a_second_ctrl_c_ends_it_at_once_and_clean_removes_the_rest(scene: Scene, undisturbed: str) -> None:
    out = scene.folder / "run"
    with scene.running(out) as play:
        before = finished_files(out)
        with scene.daemon.paused():
            play.interrupt()
            until(lambda: "stopping: " in play.err, "its word")
            assert play.process.poll() is None
            play.interrupt()
            # The engine stands still, so whoever waited for it would wait on.
            ran = play.wait_holding(seconds=follow.PATIENCE)
    assert ran.code == -signal.SIGINT
    assert scene.words(out) == {("first", "01"): ACCEPTED}
    assert {line.split()[0] for line in scene.leftovers()} == {"container", "mount", "path"}
    assert scene.proctor("clean").code == 0
    assert scene.leftovers() == []
    resumed = scene.proctor("resume", out)
    assert resumed.code == 0, resumed.err
    assert board(out) == undisturbed
    assert before.items() <= finished_files(out).items()
