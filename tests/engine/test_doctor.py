"""The examination of this host: every promise is shown by a probe with its control, both ways of holding outputs."""

import json
import re

import pytest

from runner.doctor.examine import examine
from runner.doctor.findings import Finding, State
from runner.engine import Engine
from runner.settings import load_settings
from tests.engine.conftest import leftovers, proctor

pytestmark = [pytest.mark.engine, pytest.mark.root]

PROMISES = {
    "image is read-only": "write to the image: EROFS; write to /tmp: works",
    "input is read-only": "write to the input: EROFS; read the input: works",
    "no devices": "make a device: EPERM; make a named pipe: works",
    "no network": "connect to the outside: ENETUNREACH; connect to itself: works",
    "process limit": "start 200 processes: EAGAIN; start 4 processes: works",
    "output limit": "write 16 MiB of output: ENOSPC; write 2 MiB of output: works",
    "no root": "become root: EPERM; keep its own user: works",
    "no side doors": "vsock sockets and io_uring are refused",
    "memory limit": "twice 256 MiB: killed; a quarter of it: works",
}


@pytest.mark.parametrize("method", ["loop", "volume", "watch"])
def test_every_promise_holds_on_this_host(engine: Engine, method: str) -> None:
    settings = load_settings(None, {"output": method}, environ={}).settings
    found: dict[str, Finding] = {finding.name: finding for finding in examine(settings, lambda _url: engine)}
    promises = {name: text for name, text in PROMISES.items() if method != "watch" or name != "output limit"}
    assert {name: found[name].sentence for name in promises} == promises
    assert {name for name, finding in found.items() if finding.state is State.PROBLEM} == set()
    assert re.fullmatch(
        r"a container that ignores SIGTERM: ended \d\.\d s after its limit", found["time limit"].sentence
    )
    assert leftovers(engine) == []
    if method == "watch":
        assert (found["output"].state, found["output limit"].state) == (State.NOTE, State.NOTE)
        assert found["output"].sentence.startswith("not held to its size: a watched folder; ")
        stopped = re.fullmatch(
            r"endless output: stopped when ([\d.]+) MiB of 8 MiB allowed were written; write 2 MiB of output: works",
            found["output limit"].sentence,
        )
        assert stopped is not None, found["output limit"].sentence
        assert float(stopped[1]) > 8


def test_the_command_says_so_to_people_and_to_programs() -> None:
    ran = proctor("doctor")
    assert ran.code == 0
    assert ran.out.splitlines()[-1] == "this host is fit"
    rows = json.loads(proctor("doctor", "--json").out)
    assert {row["state"] for row in rows} <= {"fine", "note"}
    assert PROMISES.keys() <= {row["name"] for row in rows}


def test_without_an_engine_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent.sock")
    ran = proctor("doctor")
    assert ran.code == 3
    assert "nonexistent.sock" in ran.out
    assert ran.out.splitlines()[-1] == "1 to mend"
