"""A container floods its log and nobody reads it: the engine answers everybody else, and its disk does not fill."""

import contextlib
import signal
import socket
import time

import pytest

from runner.ownership import LABEL_OWNER
from tests.drills.scene import ACCEPTED, PENDING, Scene, finished_files

pytestmark = [pytest.mark.engine, pytest.mark.root]


def test_a_flooded_log_neither_stalls_the_engine_nor_fills_its_disk(scene: Scene) -> None:
    out = scene.folder / "run"
    play = scene.begin(out, *scene.arguments(out, "floods", "second"), "--set", "ceiling.run_time=5 s")
    kept = looked = 0
    api = scene.daemon.api()
    with play.process:
        while play.process.poll() is None:
            # An engine that stalls would not answer before the request's end.
            looked += bool(api.containers(filters={"label": LABEL_OWNER}))
            for file in scene.daemon.data.glob("containers/*/*-json.log*"):
                with contextlib.suppress(FileNotFoundError):  # it was rotated, or its container removed
                    kept = max(kept, file.stat().st_size)
            time.sleep(0.05)
        ran = play.wait()
    api.close()
    assert ran.code == 0, ran.err
    assert looked > 0
    assert 0 < kept < 3 << 20
    assert scene.words(out) == {
        ("floods", "01"): ACCEPTED, ("floods", "02"): ("timed-out", "participant"),
        ("second", "01"): ACCEPTED, ("second", "02"): ACCEPTED,
    }  # fmt: skip
    log = next(out.glob("submissions/floods/*/02/full/attempt-*/log.txt"))
    assert 0 < log.stat().st_size <= 3 << 20
    assert scene.leftovers() == []


def test_a_stranger_who_attaches_and_does_not_read_costs_no_verdict(scene: Scene) -> None:
    """The program waits for that reader, and Docker, told to kill it, freezes for everybody (moby #41827).

    To us it is an engine that stands still.
    """
    out = scene.folder / "run"
    api = scene.daemon.api()
    settings = {"host_retries": "0", "ceiling.run_time": "5 s"}
    with scene.running(out, "chatty", set_=settings, patience=1.5) as play:
        before = finished_files(out)
        (container,) = scene.containers("running")
        reader = api.attach_socket(container, params={"stdout": 1, "stream": 1})
        connection = reader._sock
        play.signal(signal.SIGUSR1)
        ran = play.wait()
        connection.shutdown(socket.SHUT_RDWR)
        reader.close()
        connection.close()
    assert ran.code == 5, ran.err
    assert ran.err.count("left pending") == 1
    assert scene.words(out) == {("chatty", "01"): ACCEPTED, ("chatty", "02"): PENDING}
    assert finished_files(out) == before
    assert scene.proctor("clean").code == 0
    assert scene.leftovers() == []
    resumed = scene.proctor("resume", out)
    assert resumed.code == 0, resumed.err
    assert scene.words(out) == {("chatty", "01"): ACCEPTED, ("chatty", "02"): ACCEPTED}
    api.close()
