"""An owner is dead only where that can be proved."""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from runner.ownership import Owner, current_owner, provably_dead, start_time

ME = current_owner()


@pytest.fixture(scope="module")
def live() -> Iterator[Owner]:
    """A process of this host that runs."""
    with subprocess.Popen(["sleep", "60"]) as process:
        yield replace(ME, pid=process.pid, started=start_time(process.pid))
        process.kill()


@pytest.fixture(scope="module")
def gone() -> Owner:
    """A process of this host that has ended and was waited for."""
    process = subprocess.Popen(["sleep", "60"])
    owner = replace(ME, pid=process.pid, started=start_time(process.pid))
    process.kill()
    process.wait()
    return owner


@pytest.mark.parametrize(
    ("changes", "live_is_dead", "gone_is_dead"),
    [
        ({}, False, True),
        ({"machine": "other"}, False, False),  # the engine is shared
        ({"machine": ""}, False, False),  # says nothing
        ({"machine": "other", "boot": "other"}, False, False),
        ({"boot": "other"}, True, True),  # booted since
        ({"boot": "other", "pid_namespace": "1"}, True, True),
        ({"boot": ""}, False, False),  # could not be read
        ({"pid_namespace": "1"}, False, False),  # another container of this machine
        ({"pid_namespace": ""}, False, False),
        ({"started": "1"}, True, True),  # the pid was given out again
        ({"started": ""}, False, True),  # no start time: only the pid counts
    ],
    ids=str,
)
def test_the_table(live: Owner, gone: Owner, changes: dict[str, str], live_is_dead: bool, gone_is_dead: bool) -> None:
    assert provably_dead(replace(live, **changes), ME) is live_is_dead  # type: ignore[arg-type]
    assert provably_dead(replace(gone, **changes), ME) is gone_is_dead  # type: ignore[arg-type]


def test_an_observer_without_a_boot_id_proves_nothing(gone: Owner) -> None:
    assert provably_dead(gone, replace(ME, boot="")) is False


def test_one_is_never_dead_to_oneself() -> None:
    assert provably_dead(ME, ME) is False


def test_a_zombie_is_dead() -> None:
    process = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    owner = replace(ME, pid=process.pid, started=start_time(process.pid))
    assert owner.started.isdigit()
    assert process.stdin is not None
    process.stdin.close()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert Path(f"/proc/{process.pid}/stat").read_text().split()[2] == "Z"
    assert provably_dead(owner, ME) is True
    process.wait()


def test_the_start_time_survives_a_hostile_process_name(tmp_path: Path) -> None:
    name = tmp_path / ") R 1 (x"
    name.symlink_to("/bin/sleep")
    with subprocess.Popen([str(name), "60"]) as process:
        while "sleep" in Path(f"/proc/{process.pid}/comm").read_text():
            pass
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        assert start_time(process.pid) == fields[19]
        assert provably_dead(replace(ME, pid=process.pid, started=fields[19]), ME) is False
        process.kill()


def test_the_text_of_an_owner_reads_back() -> None:
    assert Owner.parse(str(ME)) == ME
    assert ME.pid == os.getpid()
    assert ME.started == start_time(os.getpid()) != ""


@pytest.mark.parametrize(
    "text",
    ["", ":", "a:b:c:d:e", "a:b:c:1", "a:b:c:1:2:3", "a:b:c:-1:2", "a:b:c::2", "a:b:c:²:2", "a:b:c:٣:2", "a:b:c:1 :2",
     "a:b:c:" + "9" * 10 + ":2", "a:b:c:" + "9" * 5000 + ":2"],
)  # fmt: skip
def test_other_peoples_labels_are_not_owners(text: str) -> None:
    assert Owner.parse(text) is None
