"""How long proctor itself takes of a frame's round trip: a container that answers at once, against its bare pipe.

The pipe's floor is measured in the same run and on the same attachment, before the case and after it: a line written by
the one thread that also reads the answer, with no file, no check and no second thread. The case is streamed as any is:
1280×720 PNG by path, the strict protocol, frames copied ahead. What is told as *added* is the difference of the two
medians, and of the two 99th percentiles. Every answer holds its frame's index, so a lost or exchanged one is seen.
"""

import argparse
import gc
import json
import os
import secrets
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from PIL import Image

from runner.challenge import Stream
from runner.clock import MonotonicClock
from runner.confine import JsonValue
from runner.engine import Attached, Bind, ContainerSpec, Engine, Output
from runner.engine.docker import connect
from runner.streaming.channel import AttachedChannel
from runner.streaming.conductor import Session, StreamEnd, conduct
from runner.streaming.frame import ImageFile, StreamedFrame
from runner.streaming.timing import percentile

BASE = "proctor-base:1"
MOUNT = "/data/inputs"
CLIENT = rb"""
import os, sys
read = sys.stdin.buffer.readline
while line := read():
    at = line.find(b'"index":')
    if at >= 0:
        index = line[at + 8 : line.index(b",", at)]
        os.write(1, b'{"type":"answer","index":' + index + b',"answer":{"index":' + index + b"}}\n")
    elif line.startswith(b'{"type":"hello"'):
        os.write(1, b'{"type":"hello","protocol":1,"frames":"path"}\n')
    elif line.startswith(b'{"type":"end"'):
        break
"""
PINGS = 5_000
BARS = {"median": 0.001, "p99": 0.003}


def pictures(folder: Path, count: int) -> list[Path]:
    """A few PNG files of the size that a camera's have."""
    random = np.random.default_rng(6)
    slope = np.linspace(0, 200, 1280)[None, :, None] + np.zeros((720, 1280, 3))
    made = []
    for number in range(count):
        noisy = (slope + random.integers(0, 16, slope.shape)).astype(np.uint8)
        made.append(folder / f"{number}.png")
        Image.fromarray(noisy).save(made[-1])
    return made


def floor(attached: Attached, count: int) -> list[float]:
    """Seconds of round trips over the bare pipe."""
    took = []
    for index in range(count):
        line = (
            f'{{"type":"frame","index":{index},"time":0.0,"inputs":{{"frames":{{"path":"{MOUNT}/x.png"}}}}}}\n'.encode()
        )
        began = time.monotonic()
        attached.write(line, seconds=10)
        answer = b""
        while not answer.endswith(b"\n"):
            piece = attached.read()
            if piece is None:
                sys.exit("the container ended")
            answer += piece.content if piece.output is Output.STDOUT else b""
        took.append(time.monotonic() - began)
    return took


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Keeper:
    """Takes the answers: each must be its frame's, and the next."""

    def __init__(self, early: int) -> None:
        self.count = 0
        self.at_early = 0
        self._early = early

    def __call__(self, index: int, answer: Mapping[str, JsonValue]) -> None:
        """Take one."""
        if index != self.count or answer["index"] != index:
            sys.exit(f"frame {index} was answered by {answer}, after {self.count} frames")
        self.count += 1
        if self.count == self._early:
            gc.collect()
            self.at_early = resident()


def started(engine: Engine, view: Path) -> tuple[str, Attached]:
    """A container of the client, and its streams."""
    container = engine.create(
        ContainerSpec(
            image_id=engine.image(BASE).id,
            name=f"proctor-benchmark-{secrets.token_hex(4)}",
            labels={"proctor.benchmark": "streaming"},
            command=("python3", "-c", CLIENT.decode()),
            binds=(Bind(source=view, target=MOUNT, read_only=True),),
            stdin=True,
        )
    )
    attached = engine.attach(container)
    engine.start(container)
    return container, attached


def measured_floor(engine: Engine, folder: Path) -> list[float]:
    """The floor, in a container of its own."""
    container, attached = started(engine, folder)
    try:
        floor(attached, 200)
        return floor(attached, PINGS)
    finally:
        attached.close()
        engine.remove(container)


def streamed(engine: Engine, folder: Path, frames: int) -> tuple[list[float], Keeper, float]:
    """Seconds of each frame of a case, who took the answers, and seconds of the whole case."""
    view, staging = folder / "view", folder / "staging"
    view.mkdir()
    staging.mkdir()
    images = pictures(folder, 8)

    def source() -> Iterator[StreamedFrame]:
        for index in range(frames):
            given = ImageFile(path=images[index % len(images)])
            yield StreamedFrame(index=index, time=index / 25, inputs={"frames": given})

    clock, keeper = MonotonicClock(), Keeper(early=min(1000, frames))
    session = Session(
        rule=Stream(), task="benchmark", case="case", fps=25.0, inputs=("frames",), view=view, staging=staging,
        mount=MOUNT, seconds=3600.0, longest_line=1 << 20, most_bytes=1 << 30,
    )  # fmt: skip
    container, attached = started(engine, view)
    channel = AttachedChannel(attached, clock=clock, longest=session.longest_line, log_bytes=1 << 20)
    try:
        outcome = conduct(channel, source(), session, keep=keeper, clock=clock, stop=threading.Event())
    finally:
        channel.close()
        engine.remove(container)
    if outcome.end is not StreamEnd.FINISHED or keeper.count != frames:
        sys.exit(f"{outcome.end}: {outcome.broken}; {keeper.count} of {frames} frames were answered")
    took = [(frame.answered or 0) - (frame.released or 0) for frame in outcome.timings]
    return [nanoseconds / 1e9 for nanoseconds in took], keeper, outcome.seconds


def figures(seconds: list[float]) -> dict[str, float]:
    """Median and percentiles."""
    ascending = sorted(seconds)
    return {
        "median": statistics.median(ascending),
        **{f"p{percent}": percentile(ascending, percent, of=len(ascending)) or 0.0 for percent in (95, 99)},
        "longest": ascending[-1],
    }


def main() -> None:
    """Measure, print, and say whether the bars were met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=10_000)
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    arguments = parser.parse_args()
    engine = connect()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        pings = measured_floor(engine, Path(folder))
        took, keeper, seconds = streamed(engine, Path(folder), arguments.frames)
        pings += measured_floor(engine, Path(folder))
    gc.collect()
    pipe, frame = figures(pings), figures(took)
    print(
        f"{arguments.frames} frames of 1280x720 PNG by path; load before: {load:.1f} on {os.cpu_count()} processors\n"
    )
    print("| ms | bare pipe | streamed | added |\n|---|---:|---:|---:|")
    for name in pipe:
        print(f"| {name} | {1e3 * pipe[name]:.3f} | {1e3 * frame[name]:.3f} | {1e3 * (frame[name] - pipe[name]):.3f} |")
    grown = resident() - keeper.at_early
    print(f"\n{arguments.frames / seconds:.0f} frames/s in all; no answer lost or exchanged")
    print(f"memory: {keeper.at_early / 1e6:.1f} MB after 1000 frames, {grown / 1e6:+.1f} MB at the end")
    for name, bar in BARS.items():
        print(f"{name} added: {'met' if frame[name] - pipe[name] <= bar else 'MISSED'} (at most {1e3 * bar:g} ms)")
    if arguments.json:
        arguments.json.write_text(json.dumps({"pipe": pipe, "streamed": frame, "grown": grown, "load": load}))


if __name__ == "__main__":
    main()
