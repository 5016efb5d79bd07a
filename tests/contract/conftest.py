"""The two engines the contract is run on, and programs that do the same on both."""

import secrets
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from runner.clock import Clock, MonotonicClock, SimulatedClock
from runner.engine import ContainerFacts, ContainerSpec, Engine, Exit, ImageMissing
from runner.engine.docker import connect
from runner.engine.fake import FakeBox, FakeEngine, FakeExit, FakeProgram, FakeTalk
from runner.errors import HostUnfit

BASE = "proctor-base:1"
OUT = "/data/outputs"


class Program(NamedTuple):
    """What a container runs: Python for a real one, and its twin for the fake."""

    source: str
    twin: FakeProgram


def _print_lines(box: FakeBox) -> int:
    for number in range(1, 2001):
        box.print(f"line {number:04d} {'x' * 50}")
    return 0


def _write_and_wait(box: FakeBox) -> FakeExit:
    box.path(f"{OUT}/answer.txt").write_text("42")
    return FakeExit(seconds=100)


def _list_and_wait(box: FakeBox) -> FakeExit:
    box.print(",".join(sorted(entry.name for entry in box.path(OUT).iterdir())))
    return FakeExit(seconds=100)


def _write_own_tree(box: FakeBox) -> int:
    box.tree_bytes = 3 << 20
    return 0


def _tell(box: FakeBox) -> int:
    box.print(f"{box.arguments[-1]} {box.environment['WORD']} {box.path('/data/inputs/word.txt').read_text()}")
    return 0


_TALK = """
import sys
print("a note", file=sys.stderr, flush=True)
print("ready", flush=True)
for line in sys.stdin:
    print(f"heard {line.strip()}", flush=True)
print("no more", flush=True)
raise SystemExit(4)
"""


def _talk(box: FakeBox) -> FakeTalk:
    box.print("a note")
    read, answer = bytearray(), b"ready\n"
    while data := (yield answer):
        *lines, rest = bytes(read + data).split(b"\n")
        read[:] = rest
        answer = b"".join(b"heard " + line + b"\n" for line in lines)
    yield b"no more\n"
    return 4


PROGRAMS = {
    "talk": Program(_TALK, _talk),
    "exit 3": Program("raise SystemExit(3)", lambda _: 3),
    "exit 137": Program("raise SystemExit(137)", lambda _: 137),
    "half a second": Program("import time; time.sleep(0.5)", lambda _: FakeExit(seconds=0.5)),
    "stubborn": Program(
        "import signal, time\nfor n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)\n"
        "print('deaf', flush=True); time.sleep(100)",
        lambda _: FakeExit(seconds=100),
    ),
    "lines": Program("for n in range(1, 2001): print(f'line {n:04d} ' + 'x' * 50)", _print_lines),
    "hungry": Program(
        "held = []\nwhile True: held.append(bytearray(16 << 20))",
        lambda _: FakeExit(code=137, seconds=0.2, oom_killed=True),
    ),
    "write and wait": Program(
        f"open('{OUT}/answer.txt', 'w').write('42'); import time; time.sleep(100)", _write_and_wait
    ),
    "list and wait": Program(
        f"import os, time; print(','.join(sorted(os.listdir('{OUT}'))), flush=True); time.sleep(100)",
        _list_and_wait,
    ),
    "write own tree": Program("with open('/root/x', 'wb') as sink: sink.write(bytes(3 << 20))", _write_own_tree),
    "tell": Program(
        "import os, sys; print(sys.argv[-1], os.environ['WORD'], open('/data/inputs/word.txt').read())",
        _tell,
    ),
}


def _run_twin(box: FakeBox) -> FakeExit | int | FakeTalk | None:
    twins = {program.source: program.twin for program in PROGRAMS.values()}
    return twins[box.arguments[2]](box)


class Bench:
    """An engine on a bench: makes things of their own names, and clears them away."""

    def __init__(self, engine: Engine, clock: Clock, image_id: str) -> None:
        self.engine = engine
        self.clock = clock
        self.image_id = image_id
        self.label = f"proctor.contract.{secrets.token_hex(4)}"
        self.images: list[str] = []

    def name(self) -> str:
        """A name nobody else has."""
        return f"proctor-contract-{secrets.token_hex(4)}"

    def spec(self, program: str, *arguments: str, **changes: Any) -> ContainerSpec:
        """What to run a program with."""
        fields: dict[str, Any] = {
            "image_id": self.image_id,
            "name": self.name(),
            "labels": {self.label: "1"},
            # Podman's own limit is higher than some services may set.
            "open_files": 1024,
            "command": ("python3", "-c", PROGRAMS[program].source, *arguments),
        }
        return ContainerSpec(**{**fields, **changes})

    def started(self, program: str, *arguments: str, **changes: Any) -> str:
        """Start a program; its container."""
        container = self.engine.create(self.spec(program, *arguments, **changes))
        self.engine.start(container)
        return container

    def facts(self, container: str) -> ContainerFacts:
        """What there is to know of a container that is there."""
        facts = self.engine.inspect(container)
        assert facts is not None
        return facts

    def wait(self, container: str) -> Exit:
        """Wait for a container's end."""
        self.until(lambda: self.facts(container).exit is not None)
        ended = self.facts(container).exit
        assert ended is not None
        return ended

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something holds, ten seconds at most."""
        ends = self.clock.now() + 10
        while not condition():
            assert self.clock.now() < ends, "it did not come to hold within 10 s"
            self.clock.sleep(0.01)

    def ran(self, program: str, *arguments: str, **changes: Any) -> Exit:
        """Run a program to its end."""
        return self.wait(self.started(program, *arguments, **changes))

    def clear(self) -> None:
        """Remove what was made."""
        for container in self.engine.containers(self.label):
            self.engine.remove(container.id)
        for volume in self.engine.volumes(self.label):
            self.engine.remove_volume(volume.name)
        for image in self.images:
            self.engine.remove_image(image)


def connected() -> Engine:
    """The real engine, or a failed test that says what to do; never a skipped one."""
    try:
        return connect()
    except HostUnfit as unfit:
        pytest.fail(f"{unfit}\nrun: make engine base", pytrace=False)


@pytest.fixture(scope="session")
def real_engine() -> Iterator[Engine]:
    engine = connected()
    yield engine
    engine.close()


@pytest.fixture(params=["fake", pytest.param("docker", marks=pytest.mark.engine)])
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    if request.param == "fake":
        clock = SimulatedClock()
        fake = FakeEngine(clock)
        bench = Bench(fake, clock, fake.add_image(BASE, _run_twin))
    else:
        engine: Engine = request.getfixturevalue("real_engine")
        bench = Bench(engine, MonotonicClock(), base_image_id(engine))
    yield bench
    bench.clear()
    if isinstance(bench.engine, FakeEngine):
        bench.engine.close()


@pytest.fixture
def docker_bench(real_engine: Engine) -> Iterator[Bench]:
    bench = Bench(real_engine, MonotonicClock(), base_image_id(real_engine))
    yield bench
    bench.clear()


def base_image_id(engine: Engine) -> str:
    """The base image's ID, or a failed test that says what to do."""
    try:
        return engine.image(BASE).id
    except ImageMissing as missing:
        pytest.fail(f"{missing}\nrun: make engine base", pytrace=False)
