"""What a drill is played with: a challenge that takes seconds, real ``proctor`` processes, and what is left after them.

Four runs a play, in this order: ``first`` on case 01 (at once), ``first`` on case 02, ``second`` on case 01 and on
case 02 (at once). On case 02 most programs hold until they are let go, so a fault is played while they run and however
long that takes: no drill counts on a machine's speed. Whoever waits for the end of a command lets them go.
"""

import contextlib
import hashlib
import importlib.util
import io
import json
import os
import re
import secrets
import shutil
import signal
import tarfile
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import docker

from runner import mounts
from runner.engine.docker import DockerEngine
from runner.judge import CaseOutcome
from runner.ownership import LABEL_OWNER
from runner.store import read_value
from tests.drills.daemon import Daemon, until
from tests.drills.warm import Process, Warm

ROOT = Path(__file__).resolve().parents[2]
BASE = "proctor-base:1"
LIMIT = 120.0
"""Seconds a program may run; one that is let go takes none."""

SETTINGS = f"""
ceiling: {{run_time: {LIMIT:g} s, memory: 256 MiB, shm: 16 MiB, output: 4 MiB, tmp: 16 MiB}}
"""
SHARED = ("images", "leases")
"""What all runners of a host keep in its workspace."""

_DEADLINE = 600.0
_HOLDING = b"holding\n"

_BEGINS = """
import os, signal, sys, time
frames = len(os.listdir(sys.argv[1]))
"""
_TRAPS = """
signal.signal(signal.SIGTERM, lambda number, frame: sys.exit({code}))
"""
# Odd is the number of frames of case 02; ``go`` is made on the host.
_HOLDS = """
if frames % 2:
    os.write(1, b"holding\\n")
    while not os.path.exists(os.path.join(os.path.dirname(sys.argv[1]), "go")):
        time.sleep(0.01)
"""
# More than a pipe and a socket hold: it waits for whoever reads the log.
_CHATS = """
if frames % 2:
    for _ in range(24):
        os.write(1, b"x" * (1 << 20))
"""
# Two megabytes, and certain that they are on the disk.
_IS_HEAVY = """
if frames % 2:
    with open(os.path.join(os.path.dirname(sys.argv[2]), "heavy"), "wb") as sink:
        sink.write(os.urandom(2 << 20))
        sink.flush()
        os.fsync(sink.fileno())
"""
_ANSWERS = """
with open(sys.argv[2], "w") as sink:
    sink.write("int_time,int_step\\n" + "".join(f"{t},{1 + t // 6}\\n" for t in range(frames)))
"""
PROGRAMS = {
    "first": _BEGINS + _HOLDS + _ANSWERS,
    "second": _BEGINS + _ANSWERS,
    "waits": _BEGINS + _HOLDS.replace("frames % 2", "True") + _ANSWERS,
    "heavy": _BEGINS + _HOLDS + _IS_HEAVY + _ANSWERS,
    "traps-0": _BEGINS + _TRAPS.format(code=0) + _HOLDS + _ANSWERS,
    "traps-1": _BEGINS + _TRAPS.format(code=1) + _HOLDS + _ANSWERS,
    "chatty": _BEGINS + _HOLDS + _CHATS + _ANSWERS,
    "floods": _BEGINS + "while frames % 2:\n    os.write(1, b'x' * 65536)\n" + _ANSWERS,
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


def make_archive(path: Path, *, megabytes: int) -> Path:
    """A ``docker save`` archive of an image with one layer of random bytes."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        info = tarfile.TarInfo("weights")
        info.size = megabytes << 20
        tar.addfile(info, io.BytesIO(os.urandom(info.size)))
    text = layer.getvalue()
    config = {
        "architecture": "amd64", "os": "linux", "config": {"Entrypoint": ["/weights"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(text).hexdigest()}"]},
    }  # fmt: skip
    manifest = [{"Config": "config.json", "RepoTags": None, "Layers": ["layer.tar"]}]
    with tarfile.open(path, mode="w") as tar:
        for name, data in (
            ("config.json", json.dumps(config).encode()),
            ("layer.tar", text),
            ("manifest.json", json.dumps(manifest).encode()),
        ):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


class Images(dict[str, str]):
    """References of the programs' images by name; each is built when it is first asked for."""

    def __init__(self, engine: DockerEngine, folder: Path) -> None:
        super().__init__()
        self._engine, self._folder = engine, folder

    def __missing__(self, name: str) -> str:
        self[name] = make_image(self._engine, self._folder / name, name)
        return self[name]


@dataclass(frozen=True)
class Ran:
    """How a command ended: its exit code, negative where a signal ended it, and what it printed."""

    code: int
    out: str
    err: str


@dataclass
class Play:
    """A command under way, in a process group of its own."""

    process: Process
    out: Path
    scene: "Scene"
    said: Path

    @property
    def err(self) -> str:
        """What it has said so far."""
        return self.said.with_suffix(".err").read_text()

    @property
    def halted(self) -> bool:
        """It stands still, by a signal."""
        assert self.process.poll() is None, self.err
        return Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"

    def signal(self, number: signal.Signals) -> None:
        """To it alone."""
        self.process.send_signal(number)

    def interrupt(self) -> None:
        """Ctrl-C: to its whole process group."""
        os.killpg(self.process.pid, signal.SIGINT)

    def wait_holding(self, *, seconds: float = _DEADLINE) -> Ran:
        """Wait for its end, which no program's end brings about."""
        code = self.process.wait(seconds)
        return Ran(code, self.said.with_suffix(".out").read_text(), self.err)

    def wait(self) -> Ran:
        """Let the programs go and wait for its end."""
        with self.scene.going():
            return self.wait_holding()


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A drill's place: the private engine, a workspace, a folder."""

    daemon: Daemon
    warm: Warm
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

    @property
    def settings(self) -> Path:
        """A settings file."""
        path = self.folder / "settings.yaml"
        path.write_text(SETTINGS)
        return path

    def submissions(self, *names: str, **images: str) -> Path:
        """A submissions file; images by name where they are not our own."""
        path = self.folder / f"teams-{secrets.token_hex(4)}.json"
        rows = {name: self.images[name] for name in names} | images
        entries = [
            {"submission": name, "team": f"Team {name}", "image": image, "tasks": ["steps"]}
            for name, image in rows.items()
        ]
        path.write_text(json.dumps({"submissions": entries}))
        return path

    def arguments(self, out: Path, *names: str, **images: str) -> list[str]:
        """``evaluate`` of some submissions; of ``first`` and ``second`` where none is named."""
        names = names or (() if images else ("first", "second"))
        return [
            "evaluate", str(self.challenge), "--data", str(self.data), "--submissions",
            str(self.submissions(*names, **images)), "--out", str(out), "--settings", str(self.settings), "--seed", "5",
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
        said = self.folder / f"said-{secrets.token_hex(4)}"
        process = self.warm.begin(
            list(arguments), environment=self.environment | drill, out=said.with_suffix(".out"),
            err=said.with_suffix(".err"),
        )  # fmt: skip
        return Play(process, out, self, said)

    def evaluate(self, out: Path, *names: str, **images: str) -> Ran:
        """Evaluate to the end."""
        return self.begin(out, *self.arguments(out, *names, **images)).wait()

    @contextlib.contextmanager
    def running(
        self, out: Path, *names: str, set_: Mapping[str, str] | None = None, patience: float = 0.0,
        back_off: float = 0.2, containers: int = 1,
    ) -> Iterator[Play]:  # fmt: skip
        """An evaluation whose programs hold; a case 01 has its verdict."""
        arguments = self.arguments(out, *names)
        for key, value in (set_ or {}).items():
            arguments += ["--set", f"{key}={value}"]
        play = self.begin(out, *arguments, patience=patience, back_off=back_off)
        with self.held(play, containers=containers):
            yield play

    @contextlib.contextmanager
    def held(self, play: Play, *, containers: int = 1) -> Iterator[None]:
        """Whatever happens once a command's programs hold; at the end it is ended."""
        with play.process:
            self.wait_holding(lambda: play.process.poll() is None, containers=containers, told=lambda: play.err)
            yield

    def wait_holding(
        self, alive: Callable[[], bool], *, containers: int = 1, told: Callable[[], str] = lambda: ""
    ) -> None:
        """Wait until so many programs hold."""
        api = self.daemon.api()

        def hold() -> bool:
            assert alive(), told()
            try:
                running = api.containers(filters={"label": LABEL_OWNER, "status": "running"})
                return sum(api.logs(container["Id"]).endswith(_HOLDING) for container in running) == containers
            except docker.errors.APIError as error:
                if error.status_code not in (404, 409):  # it ended meanwhile
                    raise
                return False

        until(hold, f"{containers} programs that hold")
        api.close()

    def let_go(self) -> None:
        """Let all programs go that hold now."""
        with contextlib.suppress(OSError):  # it ended meanwhile, and its folder is gone
            for view in self.workspace.glob("*/*/*"):
                if view.is_dir() and not view.is_mount():
                    (view / "go").touch()

    @contextlib.contextmanager
    def going(self) -> Iterator[None]:
        """Let all programs go, whenever they begin."""
        over = threading.Event()

        def let_go() -> None:
            while not over.wait(0.05):
                self.let_go()

        with ThreadPoolExecutor(max_workers=1) as pool:
            going = pool.submit(let_go)
            try:
                yield
            finally:
                over.set()
                going.result()

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
            found += [f"path {path}" for path in self.workspace.iterdir() if path.name not in SHARED]
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
    """The leaderboard and the scores, without durations and what they may be."""
    texts = [(out / name).read_text() for name in ("leaderboard.csv", "scores.csv", "leaderboard.json")]
    whole = re.sub(r'"(seconds|limit)": [\d.]+', r'"\1": 0', "\n".join(texts))
    return re.sub(r"\d+\.\d+(?= s\b)", "#", whole)


ACCEPTED = ("accepted", "nobody")
PENDING = ("host-fault", "host")
ALL_ACCEPTED = {(name, case): ACCEPTED for name in ("first", "second") for case in ("01", "02")}
