"""What a drill is played with: a challenge that takes seconds, real ``proctor`` processes, and what is left after them.

Four runs a play, in this order: ``first`` on case 01 (at once), ``first`` on case 02 (some seconds: where faults
strike), ``second`` on case 01 and on case 02 (at once).
"""

import contextlib
import importlib.util
import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from runner import mounts
from runner.engine.docker import DockerEngine
from runner.judge import CaseOutcome
from runner.ownership import LABEL_OWNER
from runner.store import read_value
from tests.drills.daemon import Daemon, until

ROOT = Path(__file__).resolve().parents[2]
BASE = "proctor-base:1"
SLOW_SECONDS = 2.0
LIMIT = 3.5
SETTINGS = f"""
ceiling: {{run_time: {LIMIT:g} s, memory: 256 MiB, shm: 16 MiB, output: 4 MiB, tmp: 16 MiB}}
"""

# Odd is the number of frames of case 02.
_ANSWER = """
import os, sys, time
frames = len(os.listdir(sys.argv[1]))
{before}
if frames % 2:
    time.sleep({seconds})
with open(sys.argv[2], "w") as sink:
    sink.write("int_time,int_step\\n" + "".join(f"{{t}},{{1 + t // 6}}\\n" for t in range(frames)))
"""
_TRAP = """
import signal
signal.signal(signal.SIGTERM, lambda number, frame: sys.exit({code}))
"""
# More than a pipe and a socket hold: it waits for whoever reads the log.
_CHAT = """
if frames % 2:
    time.sleep(1)
    for _ in range(24):
        os.write(1, b"x" * (1 << 20))
"""
# Two megabytes, and certain that they are on the disk.
_HEAVY = """
if frames % 2:
    time.sleep(1)
    with open(os.path.join(os.path.dirname(sys.argv[2]), "heavy"), "wb") as sink:
        sink.write(os.urandom(2 << 20))
        sink.flush()
        os.fsync(sink.fileno())
"""
PROGRAMS = {
    "heavy": _ANSWER.format(before=_HEAVY, seconds=0),
    "first": _ANSWER.format(before="", seconds=SLOW_SECONDS),
    "second": _ANSWER.format(before="", seconds=0),
    "traps-1": _ANSWER.format(before=_TRAP.format(code=1), seconds=SLOW_SECONDS),
    "traps-0": _ANSWER.format(before=_TRAP.format(code=0), seconds=SLOW_SECONDS),
    "chatty": _ANSWER.format(before=_CHAT, seconds=0.5),
    "floods": "import os\nwhile True:\n    os.write(1, b'x' * 65536)\n",
}


def make_challenge(folder: Path) -> Path:
    """PitVis without the check for causality, and without its GPU."""
    shutil.copytree(ROOT / "challenges/pitvis2023", folder)
    rules = folder / "challenge.yaml"
    text = rules.read_text()
    for old, new in (
        ("method: targeted", "method: off"),
        ("gpus: 1", "gpus: 0"),
        ('{per_media: "60 s / 10 min", allowance: 0 s}', f"{{fixed: {LIMIT:g} s}}"),
    ):
        assert old in text
        text = text.replace(old, new)
    rules.write_text(text)
    return folder


def make_data(folder: Path) -> Path:
    """Two cases of 12 and 13 frames."""
    spec = importlib.util.spec_from_file_location("pitvis_generate", ROOT / "challenges/pitvis2023/generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.generate(folder, cases=2, frames=(12, 13), seed=1)
    assert [len(list((folder / "inputs" / case).iterdir())) for case in ("01", "02")] == [12, 13]
    return folder


def make_image(engine: DockerEngine, folder: Path, name: str) -> str:
    """An image of one of the programs; its name."""
    folder.mkdir()
    (folder / "predict.py").write_text(PROGRAMS[name])
    (folder / "Dockerfile").write_text(
        f'FROM {BASE}\nCOPY predict.py /app/predict.py\nENTRYPOINT ["python3", "/app/predict.py"]\n'
    )
    reference = f"proctor-drill/{name}:1"
    engine.build(folder, reference=reference, arguments={}, deadline=300, log=lambda _line: None)
    return reference


@dataclass(frozen=True)
class Ran:
    """How a command ended: its exit code, negative where a signal ended it, and what it printed."""

    code: int
    out: str
    err: str


@dataclass
class Play:
    """A command under way, in a process group of its own."""

    process: subprocess.Popen[str]
    out: Path

    def signal(self, number: signal.Signals) -> None:
        """To it alone."""
        self.process.send_signal(number)

    def interrupt(self) -> None:
        """Ctrl-C: to its whole process group."""
        os.killpg(self.process.pid, signal.SIGINT)

    def wait(self, *, seconds: float = 120) -> Ran:
        """Wait for its end."""
        printed, errors = self.process.communicate(timeout=seconds)
        return Ran(self.process.returncode, printed, errors)


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A drill's place: the private engine, a workspace, a folder."""

    daemon: Daemon
    challenge: Path
    data: Path
    images: Mapping[str, str]
    folder: Path
    workspace: Path

    @property
    def environment(self) -> dict[str, str]:
        """What commands run in: no settings of the person who runs the tests."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("PROCTOR_", "DOCKER_"))}
        return kept | {
            "PYTHONPATH": str(ROOT), "XDG_CONFIG_HOME": "/nonexistent", "DOCKER_HOST": self.daemon.url,
            "PROCTOR_WORKSPACE": str(self.workspace),
        }  # fmt: skip

    def submissions(self, *names: str, **images: str) -> Path:
        """A submissions file; images by name where they are not our own."""
        path = self.folder / f"teams-{secrets.token_hex(4)}.json"
        rows = {name: self.images[name] for name in names} | images
        entries = [{"submission": name, "team": f"Team {name}", "image": image} for name, image in rows.items()]
        path.write_text(json.dumps({"submissions": entries}))
        return path

    def arguments(self, out: Path, *names: str, **images: str) -> list[str]:
        """``evaluate`` of some submissions; of ``first`` and ``second`` where none is named."""
        settings = self.folder / "settings.yaml"
        settings.write_text(SETTINGS)
        names = names or (() if images else ("first", "second"))
        return [
            "evaluate", str(self.challenge), "--data", str(self.data), "--submissions",
            str(self.submissions(*names, **images)), "--out", str(out), "--settings", str(settings), "--seed", "5",
        ]  # fmt: skip

    def begin(
        self,
        out: Path,
        *arguments: str,
        stage: str = "",
        number: int = signal.SIGKILL,
        patience: float = 0.0,
        back_off: float = 0.2,
    ) -> Play:
        """Start a command; with a stage, one that sends itself a signal there; with patience, of so many seconds."""
        drill = {"DRILL_STAGE": stage, "DRILL_SIGNAL": str(int(number))} if stage else {}
        drill |= {"DRILL_PATIENCE": str(patience), "DRILL_BACK_OFF": str(back_off)} if patience else {}
        program = [str(ROOT / "tests/drills/entry.py")] if drill else ["-m", "runner.cli"]
        process = subprocess.Popen(
            [sys.executable, *program, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, env=self.environment | drill, start_new_session=True,
        )  # fmt: skip
        return Play(process, out)

    def evaluate(self, out: Path, *names: str, **images: str) -> Ran:
        """Evaluate to the end."""
        return self.begin(out, *self.arguments(out, *names, **images)).wait()

    @contextlib.contextmanager
    def running(
        self, out: Path, *names: str, patience: float = 0.0, back_off: float = 0.2, retries: int = 2
    ) -> Iterator[Play]:
        """An evaluation whose slow container runs; case 01 has its verdict."""
        arguments = [*self.arguments(out, *names), "--set", f"host_retries={retries}"]
        play = self.begin(out, *arguments, patience=patience, back_off=back_off)
        try:
            self.wait_for_slow(play)
            yield play
        finally:
            with play.process:
                play.process.kill()

    def wait_for_slow(self, play: Play) -> None:
        """Wait until case 01 has its verdict and the container on case 02 runs."""

        def there() -> bool:
            assert play.process.poll() is None, play.wait().err
            return bool(self.outcomes(play.out)) and bool(self.containers("running"))

        until(there, "the slow container")
        time.sleep(0.3)  # its program has begun

    def proctor(self, *arguments: str | Path) -> Ran:
        """Run a command to its end."""
        return self.begin(self.folder, *map(str, arguments)).wait()

    def containers(self, *states: str) -> list[str]:
        """Names of proctor's containers on the private engine."""
        engine = self.daemon.engine()
        found = [c.name for c in engine.containers(LABEL_OWNER) if not states or c.state in states]
        engine.close()
        return found

    def leftovers(self) -> list[str]:
        """Whatever of ours is still on the engine, in the mount table or in the workspace."""
        engine = self.daemon.engine()
        found = [f"container {name}" for name in self.containers()]
        found += [f"volume {volume.name}" for volume in engine.volumes(LABEL_OWNER)]
        engine.close()
        found += [f"mount {point}" for point in mounts.mounted_below(self.workspace)]
        if self.workspace.is_dir():
            found += [f"path {path}" for path in self.workspace.iterdir() if path.name != "leases"]
        return found

    def outcomes(self, out: Path) -> dict[tuple[str, str], CaseOutcome]:
        """The verdicts on disk."""
        found = (read_value(path, CaseOutcome) for path in sorted(out.glob("submissions/*/*/*/outcome.json")))
        return {(outcome.submission, outcome.case): outcome for outcome in found}

    def words(self, out: Path) -> dict[tuple[str, str], tuple[str, str]]:
        """The verdicts' words and blame."""
        return {key: (o.verdict.word.value, o.verdict.blame.value) for key, o in self.outcomes(out).items()}


def finished_files(out: Path) -> dict[Path, tuple[int, bytes]]:
    """Every verdict that is not pending and every attempt's facts: when they were written, and what they say."""
    paths = [
        path for path in out.glob("submissions/*/*/*/outcome.json")
        if not read_value(path, CaseOutcome).verdict.pending
    ]  # fmt: skip
    paths += out.glob("submissions/*/*/*/*/attempt-*/result.json")
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in paths}


def stale_files(out: Path) -> list[str]:
    """Half-written files of a run folder."""
    return [path.name for path in out.rglob(".*") if path.name != ".lock"]


def board(out: Path) -> str:
    """The leaderboard and the scores, without durations."""
    texts = [(out / name).read_text() for name in ("leaderboard.csv", "scores.csv", "leaderboard.json")]
    whole = re.sub(r'"seconds": [\d.]+', '"seconds": 0', "\n".join(texts))
    return re.sub(r"\d+\.\d+(?= s\b)", "#", whole)


ACCEPTED = ("accepted", "nobody")
PENDING = ("host-fault", "host")
ALL_ACCEPTED = {(name, case): ACCEPTED for name in ("first", "second") for case in ("01", "02")}


@dataclass(frozen=True, kw_only=True)
class Disturbed:
    """A run whose engine was disturbed: what was finished before, how it ended."""

    scene: Scene
    out: Path
    before: dict[Path, tuple[int, bytes]]
    ran: Ran


def pause(scene: Scene, seconds: float) -> Disturbed:
    """Let an engine stand still while a container runs."""
    out = scene.folder / "run"
    with scene.running(out) as play:
        before = finished_files(out)
        with scene.daemon.paused():
            time.sleep(seconds)
        return Disturbed(scene=scene, out=out, before=before, ran=play.wait())


def lose_containerd(scene: Scene) -> Disturbed:
    """Kill what an engine starts containers with while one runs; the engine answers on, and knows nothing."""
    out = scene.folder / "run"
    with scene.running(out) as play:
        before = finished_files(out)
        scene.daemon.kill_containerd()
        return Disturbed(scene=scene, out=out, before=before, ran=play.wait())
