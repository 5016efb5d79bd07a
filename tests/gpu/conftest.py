"""A private engine with a stand-in of NVIDIA's toolkit, and ``proctor`` commands with a stand-in of its driver."""

import contextlib
import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import docker
import pytest

from runner import mounts
from runner.engine.docker import connect
from runner.engine.helper import HELPER_REFERENCE, helper_image
from runner.errors import HostUnfit
from runner.job import JobResult
from runner.ownership import LABEL_OWNER
from runner.store import read_value
from tests.drills.daemon import Daemon, copy_helper, private_daemon, until
from tests.drills.scene import BASE, ROOT, SETTINGS, make_challenge, make_data
from tests.gpu.toolkit import Given, Toolkit

CARDS = 2
DEADLINE = 300.0

_PROGRAM = """
import json, os, sys, time
frames = len(os.listdir(sys.argv[1]))
nodes = sorted(name for name in os.listdir("/dev") if name.startswith("nvidia"))
print("SEES", json.dumps(nodes), flush=True)
if {holds} and frames % 2:
    print("HOLDS", flush=True)
    while not os.path.exists(os.path.join(os.path.dirname(sys.argv[1]), "go")):
        time.sleep(0.01)
with open(sys.argv[2], "w") as sink:
    sink.write("int_time,int_step\\n" + "".join(f"{{t}},{{1 + t // 6}}\\n" for t in range(frames)))
"""
_HOSTILE = """
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=all NVIDIA_REQUIRE_CUDA="cuda>=99" \\
    NVIDIA_DISABLE_REQUIRE=false NVIDIA_MIG_CONFIG_DEVICES=all NVIDIA_MIG_MONITOR_DEVICES=all \\
    NVIDIA_IMEX_CHANNELS=0 NVIDIA_GDS=enabled CUDA_VERSION=12.4 CUDA_VISIBLE_DEVICES=1 DOCKER_RESOURCE_GPU=all \\
    LD_AUDIT=/app/no.so LD_LIBRARY_PATH=lib:/proc/self/cwd/lib:/opt/lib
LABEL com.nvidia.volumes.needed=nvidia_driver com.nvidia.cuda.version=12.4 NVIDIA_VISIBLE_DEVICES=all \\
    com.nvidia.visible.devices=all
VOLUME /var/run/nvidia-container-devices/all
"""
IMAGES = {
    "plain": (False, ""),
    "holds": (True, ""),
    "hostile": (False, _HOSTILE),
}


@pytest.fixture(scope="session")
def toolkit(tmp_path_factory: pytest.TempPathFactory) -> Toolkit:
    """The programs on the private engine's PATH."""
    toolkit = Toolkit(tmp_path_factory.mktemp("toolkit"))
    toolkit.install({f"GPU-{number}": number for number in range(CARDS)})
    return toolkit


@pytest.fixture(scope="session")
def daemon(toolkit: Toolkit) -> Iterator[Daemon]:
    """The private engine: it finds the hook, and offers the runtime."""
    try:
        helper_image(connect(), base=BASE)
    except HostUnfit as error:
        pytest.fail(f"these tests copy an image of this host's engine; next: make engine base ({error})")
    with private_daemon("--add-runtime", f"nvidia={toolkit.runtime}", tools=toolkit.tools) as running:
        engine = running.engine()
        copy_helper(engine)
        repository, tag = BASE.split(":")
        running.api().tag(HELPER_REFERENCE, repository, tag=tag)
        engine.close()
        yield running


@pytest.fixture(scope="session")
def images(daemon: Daemon, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """References of the programs' images, by name."""
    found = {}
    with contextlib.closing(daemon.engine()) as engine:
        for name, (holds, lines) in IMAGES.items():
            folder = tmp_path_factory.mktemp(name)
            (folder / "predict.py").write_text(_PROGRAM.format(holds=holds))
            (folder / "Dockerfile").write_text(
                f'FROM {BASE}\nCOPY predict.py /app/predict.py\n{lines}ENTRYPOINT ["python3", "/app/predict.py"]\n'
            )
            found[name] = f"proctor-gpu/{name}:1"
            engine.build(folder, reference=found[name], arguments={}, deadline=DEADLINE, log=lambda _line: None)
    return found


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Hidden data: two cases, of which the second lets a program hold."""
    return make_data(tmp_path_factory.mktemp("data"))


@dataclass(frozen=True)
class Ran:
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Spell:
    """When a container ran, in nanoseconds of the engine's clock, and what it was given."""

    began: int
    ended: int
    given: Given


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A host with stand-in cards: a workspace, a folder of leases, the private engine."""

    daemon: Daemon
    toolkit: Toolkit
    images: dict[str, str]
    data: Path
    folder: Path
    began: float
    _processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def workspace(self) -> Path:
        return self.folder / "work"

    @property
    def leases(self) -> Path:
        return self.folder / "leases"

    def challenge(self, gpus: int) -> Path:
        """The drills' challenge, with so many GPUs a job."""
        folder = self.folder / f"challenge-{gpus}"
        if not folder.is_dir():
            rules = make_challenge(folder) / "challenge.yaml"
            text = rules.read_text()
            assert "gpus: 0" in text
            rules.write_text(text.replace("gpus: 0", f"gpus: {gpus}"))
        return folder

    def submissions(self, *names: str) -> Path:
        """A submissions file of images by name."""
        path = self.folder / f"teams-{secrets.token_hex(4)}.json"
        rows = [
            {"submission": name, "team": f"Team {name}", "image": self.images[name], "tasks": ["steps"]}
            for name in names
        ]
        path.write_text(json.dumps({"submissions": rows}))
        return path

    def settings(self) -> Path:
        """A settings file."""
        path = self.folder / "settings.yaml"
        path.write_text(SETTINGS)
        return path

    def begin(self, *arguments: str | Path, cards: int = CARDS, program: str = "tests/gpu/entry.py") -> "Play":
        """Start a command."""
        said = self.folder / f"said-{secrets.token_hex(4)}"
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PROCTOR_", "DOCKER_"))}
        environment = kept | {
            "PYTHONPATH": str(ROOT), "XDG_CONFIG_HOME": "/nonexistent", "DOCKER_HOST": self.daemon.url,
            "PROCTOR_WORKSPACE": str(self.workspace), "STAND_IN_CARDS": str(cards),
            "STAND_IN_LEASES": str(self.leases),
        }  # fmt: skip
        with said.with_suffix(".out").open("wb") as out, said.with_suffix(".err").open("wb") as err:
            process = subprocess.Popen(
                [sys.executable, str(ROOT / program), *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=out,
                stderr=err, env=environment, start_new_session=True,
            )  # fmt: skip
        self._processes.append(process)
        return Play(process, said)

    def evaluate(self, out: Path, *names: str, gpus: int = 1, cards: int = CARDS, **set_: str) -> "Play":
        """Start ``evaluate``."""
        flags = [part for key, value in set_.items() for part in ("--set", f"{key}={value}")]
        return self.begin(
            "evaluate", self.challenge(gpus), "--data", self.data, "--submissions", self.submissions(*names), "--out",
            out, "--settings", self.settings(), "--seed", "5", *flags, cards=cards,
        )  # fmt: skip

    def let_go(self) -> None:
        """Let all programs go that hold now."""
        with contextlib.suppress(OSError):
            for view in self.workspace.glob("*/*/*"):
                if view.is_dir() and not view.is_mount():
                    (view / "go").touch()

    def results(self, out: Path) -> dict[tuple[str, str], JobResult]:
        """The last attempt's facts, by submission and case."""
        found = {}
        for path in sorted(out.glob("submissions/*/*/*/full/attempt-*/result.json")):
            found[path.parts[-6], path.parts[-4]] = read_value(path, JobResult)
        return found

    def words(self, out: Path) -> dict[tuple[str, str], str]:
        """The verdicts, by submission and case."""
        found = {}
        for path in out.glob("submissions/*/*/*/outcome.json"):
            found[path.parts[-4], path.parts[-2]] = json.loads(path.read_text())["verdict"]["word"]
        return found

    def seen(self, out: Path) -> dict[tuple[str, str], list[str]]:
        """The device nodes each program saw."""
        found = {}
        for path in out.glob("submissions/*/*/*/full/attempt-*/log.txt"):
            line = next(line for line in path.read_text().splitlines() if line.startswith("SEES "))
            found[path.parts[-6], path.parts[-4]] = json.loads(line.removeprefix("SEES "))
        return found

    def running(self) -> list[str]:
        """Ids of our containers that run and were given a device."""
        with contextlib.closing(self.daemon.engine()) as engine:
            alive = [c.id for c in engine.containers(LABEL_OWNER) if c.state == "running"]
        given = self.toolkit.given()
        return [name for name in alive if name in given and given[name].devices]

    def holding(self) -> list[str]:
        """Those of them whose program holds on until it is let go."""
        with contextlib.closing(self.daemon.api()) as api, contextlib.suppress(docker.errors.NotFound):
            return [name for name in self.running() if b"HOLDS" in api.logs(name)]
        return []

    def spells(self) -> list[Spell]:
        """Every container that was given a device and has ended, from the engine's own record of events."""
        api = docker.APIClient(base_url=self.daemon.url, timeout=30)
        now = time.time()
        began: dict[str, int] = {}
        found = []
        given = self.toolkit.given()
        events = api.events(since=int(self.began) - 1, until=int(now) + 1, decode=True, filters={"type": "container"})
        for event in events:
            if event["Action"] == "start":
                began[event["id"]] = event["timeNano"]
            elif event["Action"] == "die" and given.get(event["id"], Given((), {})).devices:
                found.append(Spell(began[event["id"]], event["timeNano"], given[event["id"]]))
        api.close()
        return found

    def close(self) -> None:
        """End what was started, and leave nothing."""
        for process in self._processes:
            with process:
                process.kill()
        api = self.daemon.api()
        for container in api.containers(all=True):
            api.remove_container(container["Id"], force=True, v=True)
        api.close()
        for point in mounts.mounted_below(self.folder):
            mounts.unmount(point)


@dataclass(frozen=True)
class Play:
    """A command under way."""

    process: subprocess.Popen[bytes]
    said: Path

    @property
    def err(self) -> str:
        """What it has said so far."""
        return self.said.with_suffix(".err").read_text()

    def wait(self) -> Ran:
        """Wait for its end."""
        code = self.process.wait(DEADLINE)
        return Ran(code, self.said.with_suffix(".out").read_text(), self.err)

    def wait_until_held(self, stage: Stage, *, containers: int = 1) -> None:
        """Wait until so many programs hold devices, and hold on."""

        def held() -> bool:
            assert self.process.poll() is None, self.err
            return len(stage.holding()) == containers

        until(held, f"{containers} programs that hold a GPU")


@pytest.fixture
def stage(daemon: Daemon, toolkit: Toolkit, images: dict[str, str], data: Path, tmp_path: Path) -> Iterator[Stage]:
    """A fresh host."""
    toolkit.forget()
    toolkit.give("asked")
    stage = Stage(
        daemon=daemon, toolkit=toolkit, images=images, data=data, folder=tmp_path, began=time.time()
    )  # fmt: skip
    yield stage
    stage.close()
