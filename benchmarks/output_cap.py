"""How much of the host a container takes that writes as fast as it can, under each way of holding its output to a cap.

On the host counts: for a loop file system the blocks of its image file, for a volume the bytes it takes of memory, for
a watched folder the bytes in it. The most is told of what is seen every few milliseconds, and once all is written back
and the container is dead. ``write`` writes zeros from two processes; ``allocate`` asks the file system for room without
writing, ``allocate*`` does so under the engine's own system call filter, which a watched folder is not left to.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import statistics
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from runner import execute
from runner.engine import Engine
from runner.engine.docker import connect
from runner.engine.helper import HELPER_REFERENCE
from runner.execute import Bench
from runner.outputs import OutputPlace
from runner.pipeline.host import open_bench
from runner.probe import PROBE_BUDGET, ask
from runner.quantities import parse_bytes, show_bytes
from runner.settings import load_settings
from runner.tally import tally

WAYS = ("loop", "volume", "watch")
_PLACE = "_place"
_EVERY = 0.003
_FILES = 4096
_WRITERS = {
    "write": """
import os, sys
block, me = b"0" * (1 << 20), os.fork()
for number in range(64):
    with open(f"{sys.argv[2]}-{me}-{number}", "wb", buffering=0) as sink:
        for _ in range(64):
            if sink.write(block) < 1 << 20:
                sys.exit("full")
""",
    "allocate": """
import os, sys
for number in range(128):
    with open(f"{sys.argv[2]}-{number}", "wb") as sink:
        os.posix_fallocate(sink.fileno(), 0, 64 << 20)
""",
}
"""Each asks for 8 GiB, and ends at the first error."""


class Gauge:
    """The most of the host that an output took."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.most = 0

    @contextlib.contextmanager
    def reading(self, place: OutputPlace, bench: Bench) -> Iterator[None]:
        """Look at a place again and again until this is left, and once more then."""
        over = threading.Event()
        read = self._reader(place, bench)

        def look() -> None:
            while not over.wait(_EVERY):
                self.most = max(self.most, read())

        self.most = read()
        thread = threading.Thread(target=look)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            if isinstance(place.mounted, Path):
                subprocess.run(["sync", "-f", str(place.mounted)], check=True)
            self.most = max(self.most, read())

    def _reader(self, place: OutputPlace, bench: Bench) -> Callable[[], int]:
        mounted = place.mounted
        if isinstance(mounted, str):
            holder = self._engine.inspect(f"{mounted}-hold")
            assert holder is not None
            return lambda: _used(Path(f"/proc/{holder.pid}/root/hold"))
        if bench.watched:
            return lambda: tally(mounted, most=_FILES).bytes
        image = mounted.with_suffix(".img")
        return lambda: image.stat().st_blocks * 512


def _used(mount: Path) -> int:
    room = os.statvfs(mount)
    return (room.f_blocks - room.f_bfree) * room.f_frsize


@contextlib.contextmanager
def _gauged(gauge: Gauge) -> Iterator[None]:
    really = getattr(execute, _PLACE)

    @contextlib.contextmanager
    def place(bench: Bench, *arguments: Any, **more: Any) -> Iterator[OutputPlace]:
        with really(bench, *arguments, **more) as made, gauge.reading(made, bench):
            yield made

    setattr(execute, _PLACE, place)
    try:
        yield
    finally:
        setattr(execute, _PLACE, really)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Spread:
    """Median and most of some runs."""

    median: float
    most: float

    @classmethod
    def of(cls, values: list[float]) -> "Spread":
        """Of a list that is not empty."""
        return cls(median=statistics.median(values), most=max(values))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Held:
    """What came of one way and one writer; sizes in bytes, seconds of the container's life."""

    on_host: Spread
    overshoot: Spread
    seconds: Spread


def measure(way: str, *, cap: int, runs: int) -> dict[str, Held]:
    """Run each writer some times under one way of holding the output."""
    engine = connect(None)
    settings = load_settings(None, {"output": way}).settings
    budget = replace(PROBE_BUDGET, output_bytes=cap, output_files=_FILES, cpus=float(min(2, os.cpu_count() or 1)))
    gauge = Gauge(engine)
    found = {}
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        bench, _ = stack.enter_context(
            open_bench(engine, settings, stop=threading.Event(), observe=lambda _event: None)
        )
        stack.enter_context(_gauged(gauge))
        bench = replace(bench, cleaner=None)
        helper = engine.image(HELPER_REFERENCE)
        benches = dict.fromkeys(_WRITERS, bench)
        scripts = dict(_WRITERS)
        if bench.watched:
            benches["allocate*"], scripts["allocate*"] = replace(bench, seccomp=None), _WRITERS["allocate"]
        for writer, script in scripts.items():
            on_host: list[float] = []
            seconds: list[float] = []
            for _ in range(runs):
                result = ask(benches[writer], helper, script, scratch=scratch, budget=budget).result
                assert result.exit is not None
                assert result.exit.code != 0, "it was not stopped"
                on_host.append(gauge.most)
                seconds.append(round(result.exit.seconds, 3))
            overshoot = [max(0.0, size - cap) for size in on_host]
            found[writer] = Held(on_host=Spread.of(on_host), overshoot=Spread.of(overshoot), seconds=Spread.of(seconds))
    return found


def _line(way: str, writer: str, held: Held) -> str:
    def sizes(spread: Spread) -> str:
        return f"{show_bytes(int(spread.median))} / {show_bytes(int(spread.most))}"

    return (
        f"{way:7} {writer:9} on the host {sizes(held.on_host):24} over {sizes(held.overshoot):24} "
        f"{held.seconds.median:.3f} / {held.seconds.most:.3f} s"
    )


def main() -> None:
    """Print the measurement: median / most."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--cap", type=parse_bytes, default="100 MiB")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    options = parser.parse_args()
    result: Mapping[str, Mapping[str, Held]] = {way: measure(way, cap=options.cap, runs=options.runs) for way in WAYS}
    if options.json:
        plain = {way: {name: dataclasses.asdict(held) for name, held in all_.items()} for way, all_ in result.items()}
        print(json.dumps({"cap": options.cap, "runs": options.runs, "ways": plain}, indent=1))
        return
    for way, writers in result.items():
        for writer, held in writers.items():
            print(_line(way, writer, held))


if __name__ == "__main__":
    main()
