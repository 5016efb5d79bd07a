"""The three ways to hold an output, on the real engine: each stops an endless one and takes nothing it must not."""

import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from runner import mounts, watched
from runner.budget import Budget
from runner.engine import Engine, ImageFacts
from runner.engine.helper import helper_image
from runner.errors import HostFault
from runner.execute import Bench
from runner.job import Intake, IntakeRefusal, Job, KillReason, Output
from runner.judge import judge_run
from runner.pipeline.events import Event, Notice
from runner.pipeline.host import HostFacts, open_bench
from runner.probe import PROBE_BUDGET, ProbeAnswer, ask
from runner.settings import OutputMethod, Settings, load_settings
from runner.verdict import VerdictWord
from tests.engine.conftest import leftovers

pytestmark = [pytest.mark.engine, pytest.mark.root]

MIB = 1 << 20
WAYS = ("loop", "volume", "watch")
ROOM = replace(PROBE_BUDGET, output_files=256)

_ENDLESS = """
import os, sys
number = 0
while True:
    with open(f"{sys.argv[2]}-{number}", "wb", buffering=0) as sink:
        for _ in range(64):
            if sink.write(b"x" * (1 << 16)) < 1 << 16:
                sys.exit("full")
    number += 1
"""
_STRANGE = """
import os, socket, sys
output = sys.argv[2] + ".json"
os.chdir(os.path.dirname(output))
name = os.path.basename(output)
{act}
"""
_WRITE = 'open(name, "w").write("{}")'
KINDS = {
    "a file": _WRITE,
    "a link": 'os.symlink("/etc/hostname", name)',
    "a dead link": 'os.symlink("/nonexistent", name)',
    "a folder": "os.mkdir(name)",
    "a pipe": "os.mkfifo(name)",
    "a socket": "socket.socket(socket.AF_UNIX).bind(name)",
    "a twin after": f'{_WRITE}; os.link(name, "~")',
    "a twin before": f'{_WRITE}; os.link(name, "-")',
    "a twin in a folder": f'{_WRITE}; os.mkdir("~"); os.link(name, "~/x")',
    "a file without rights": f"{_WRITE}; os.chmod(name, 0); os.chmod('.', 0)",
    "nothing": "",
}
UNSAFE = {
    "a link": "a symbolic link", "a dead link": "a symbolic link", "a folder": "a folder", "a pipe": "a named pipe",
    "a socket": "a socket",
}  # fmt: skip


@dataclass(frozen=True)
class Held:
    """A host whose outputs are held one way."""

    way: str
    bench: Bench
    facts: HostFacts
    helper: ImageFacts
    scratch: Path
    notices: tuple[str, ...]

    def ask(self, script: str, budget: Budget = ROOM) -> ProbeAnswer:
        """Run a script where a participant's program runs."""
        return ask(self.bench, self.helper, script, scratch=self.scratch, budget=budget)

    def left(self) -> list[str]:
        """What is still in the workspace."""
        folder = self.bench.workspace.folder
        return [path.name for path in folder.iterdir() if not path.name.startswith("blank-")]


@pytest.fixture(scope="module", params=WAYS)
def held(request: pytest.FixtureRequest, engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Held]:
    settings = load_settings(None, {"output": request.param}, environ={}).settings
    told: list[Event] = []
    with open_bench(engine, settings, stop=threading.Event(), observe=told.append) as (bench, facts):
        helper = engine.image(helper_image(engine, base=None))
        notices = tuple(event.text for event in told if isinstance(event, Notice))
        yield Held(
            request.param, replace(bench, cleaner=None), facts, helper, tmp_path_factory.mktemp("scratch"), notices
        )
    assert leftovers(engine) == []


def job(budget: Budget) -> Job:
    return Job(
        submission="s", task="t", case="c", name="full", frames=1, image_id="", arguments=(),
        input_mount="/data/inputs", output_mount="/data/outputs",
        outputs=(Output(case="c", file="{case}.json"),), budget=budget, digest="",
    )  # fmt: skip


def test_the_host_says_how_outputs_are_held(held: Held) -> None:
    names = {"loop": "loop file system", "volume": "volume in memory", "watch": "watched folder"}
    assert held.facts.output == names[held.way]
    told = any("outputs are only watched on this host" in text for text in held.notices)
    assert told is (held.way == "watch")


def test_an_endless_output_is_too_much_output(held: Held) -> None:
    result = held.ask(_ENDLESS).result
    verdict = judge_run(job(ROOM), result, None, public=False)
    assert verdict.word is VerdictWord.TOO_MUCH_OUTPUT
    if held.way != "watch":
        assert (result.killed, result.overshoot) == (None, None)
        room = "8 MiB or 256 files are allowed"
        assert verdict.sentence == f"the output folder was full, {room}; the program ended with exit code 1"
        return
    assert result.killed is KillReason.OUTPUT
    assert result.overshoot is not None
    assert result.overshoot.bytes > ROOM.output_bytes
    found = re.fullmatch(
        r"([\d.]+) MiB of 8 MiB allowed were written before it was stopped; the output is only watched on this host",
        verdict.sentence,
    )
    assert found is not None, verdict.sentence
    assert float(found[1]) == pytest.approx(result.overshoot.bytes / MIB, abs=0.5)
    assert held.left() == []


@pytest.mark.parametrize("kind", KINDS)
def test_only_a_file_of_its_own_is_taken(held: Held, kind: str) -> None:
    result = held.ask(_STRANGE.format(act=KINDS[kind])).result
    intake = result.intake
    assert intake is not None
    assert result.exit is not None
    assert (result.exit.code, result.overshoot) == (0, None)
    taken = Intake(file=intake.file, other_entries=intake.other_entries, other_names=intake.other_names)
    if kind in UNSAFE:
        assert intake == replace(taken, refusal=IntakeRefusal.NOT_REGULAR, detail=UNSAFE[kind])
        assert intake.other_entries == 0
    elif "twin" in kind:
        detail = "a file with several links" if held.way == "volume" else "a file with 2 links"
        assert intake == replace(taken, refusal=IntakeRefusal.SEVERAL_LINKS, detail=detail, stray=1)
    elif kind == "nothing":
        assert intake == replace(taken, refusal=IntakeRefusal.MISSING)
    else:
        assert intake == replace(taken, size=2)
    assert held.left() == []


def test_room_is_not_had_without_writing_where_an_output_is_only_watched(held: Held) -> None:
    script = (
        "import ctypes, json, os, sys\n"
        'libc, sink = ctypes.CDLL(None, use_errno=True), open(sys.argv[2] + ".x", "wb")\n'
        "asked = libc.fallocate(sink.fileno(), 0, ctypes.c_long(0), ctypes.c_long(1 << 20))\n"
        "error = ctypes.get_errno() if asked else 0\n"
        "os.posix_fallocate(sink.fileno(), 0, 2 << 20)\n"
        'json.dump([error, os.fstat(sink.fileno()).st_size], open(sys.argv[2] + ".json", "w"))'
    )
    assert held.ask(script).answer == [95 if held.way == "watch" else 0, 2 << 20]


def test_many_files_are_too_much_output(held: Held) -> None:
    script = 'import sys, time\nfor n in range(2000): open(f"{sys.argv[2]}-{n}", "w")\ntime.sleep(20)'
    result = held.ask(script).result
    assert judge_run(job(ROOM), result, None, public=False).word is VerdictWord.TOO_MUCH_OUTPUT
    if held.way == "watch":
        assert result.killed is KillReason.OUTPUT
        assert result.overshoot is not None
        assert result.overshoot.entries == ROOM.output_files + 1


def test_folders_deep_in_one_another_are_deleted_whatever_they_come_to(held: Held) -> None:
    script = "import os, sys\nos.chdir(os.path.dirname(sys.argv[2]))\n"
    script += 'for _ in range(3000): os.mkdir("d"); os.chdir("d")'
    result = held.ask(script, replace(ROOM, output_bytes=64 << 20, output_files=4096)).result
    assert (result.overshoot is not None and result.overshoot.too_deep) is (held.way == "watch")
    assert held.left() == []


def test_an_output_that_is_filled_to_its_size_takes_nothing_of_the_memory(held: Held) -> None:
    budget = replace(ROOM, memory=128 << 20, output_bytes=96 << 20)
    script = (
        "import sys\n"
        'for n in range(6):\n  with open(f"{sys.argv[2]}-{n}", "wb") as sink: sink.write(b"x" * (15 << 20))\n'
        'held = b"x" * (90 << 20)\n'
        'open(sys.argv[2] + ".json", "w").write("{}")'
    )
    result = held.ask(script, budget).result
    assert result.exit is not None
    assert (result.exit.code, result.exit.oom_killed) == (0, False)
    assert result.intake is not None
    assert (result.intake.size, result.intake.other_entries) == (2, 6)


def test_more_than_memory_and_a_volume_together_is_too_much_memory(held: Held) -> None:
    budget = replace(ROOM, memory=128 << 20, output_bytes=96 << 20)
    result = held.ask('held = b"x" * (260 << 20)', budget).result
    assert judge_run(job(budget), result, None, public=False).word is VerdictWord.OUT_OF_MEMORY


class TestDeletedAndOpen:
    """What is in no folder and on the disk all the same."""

    @pytest.fixture
    def disk(self, tmp_path: Path) -> Iterator[Path]:
        folder = tmp_path / "disk"
        mounts.mount_new(tmp_path / "disk.img", folder, blanks=tmp_path, size=1 << 30, inodes=4096, uid=0, gid=0)
        yield folder
        mounts.unmount(folder)

    def test_the_disk_is_not_filled_and_nobody_is_charged(self, engine: Engine, disk: Path, tmp_path: Path) -> None:
        settings = Settings(workspace=disk / "work", output=OutputMethod.WATCH)
        script = (
            "import os, sys, time\nheld = []\n"
            "for n in range(80):\n"
            '  held.append(open(sys.argv[2] + ".x", "wb")); os.unlink(sys.argv[2] + ".x")\n'
            '  for _ in range(16): held[-1].write(b"x" * (1 << 20))\n'
            "time.sleep(20)"
        )
        with open_bench(engine, settings, stop=threading.Event(), observe=lambda _event: None) as (bench, _):
            helper = engine.image(helper_image(engine, base=None))
            with pytest.raises(HostFault, match="the workspace's disk has no room for an output that is only watched"):
                ask(bench, helper, script, scratch=tmp_path, budget=ROOM)
            watched.WatchedPlace(disk, ROOM).require_room(0)  # what it held is free again
