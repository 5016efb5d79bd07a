"""The two clients of ``templates/stream`` stream a case on the real engine, in both ways and at both paces."""

import secrets
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from runner.challenge import Stream
from runner.clock import MonotonicClock
from runner.confine import JsonValue
from runner.engine import Bind, ContainerSpec, Engine, Exit
from runner.streaming.channel import AttachedChannel
from runner.streaming.conductor import Session, StreamEnd, StreamOutcome, conduct
from runner.streaming.frame import FrameInput, ImageFile, StreamedFrame, TableRow
from tests.engine.conftest import BASE, ROOT, Images

pytestmark = pytest.mark.engine

TEMPLATE = ROOT / "templates/stream"
FRAMES = 40
REALTIME = {"pacing": "realtime", "before_first": {"bytes": 0}}

# Answers with what it was given, and prints in every way there is.
PREDICT = """
import os, subprocess
import proctor_stream

def start():
    print("a print")
    os.write(1, b"a write\\n")
    subprocess.run(["echo", "a child"], check=True)

def predict(frame):
    listed = sorted(os.listdir("/data/inputs"))
    return {"bytes": len(frame.image()), "row": frame.row("table"), "listed": listed}

proctor_stream.run(predict, start=start, reset=lambda case: print("case", case))
"""


@dataclass(frozen=True)
class Played:
    """A case that was streamed."""

    outcome: StreamOutcome
    kept: Mapping[int, Mapping[str, JsonValue]]
    log: str
    exit: Exit | None


@pytest.fixture
def play(engine: Engine, tmp_path: Path) -> Iterator[Callable[..., Played]]:
    """Stream a case of frames of 1000, 1001, … bytes to an image."""
    made: list[str] = []
    images = tmp_path / "images"
    images.mkdir()
    for index in range(FRAMES):
        (images / f"{index}.png").write_bytes(secrets.token_bytes(1000 + index))

    def frames() -> Iterator[StreamedFrame]:
        for index in range(FRAMES):
            row = TableRow(header="t", row=f'{index},"é"')
            given: dict[str, FrameInput] = {"frames": ImageFile(path=images / f"{index}.png"), "table": row}
            yield StreamedFrame(index=index, time=index / 25, inputs=given)

    def play(image: str, **rule: Any) -> Played:
        view, staging = tmp_path / "view", tmp_path / "staging"
        for folder in (view, staging):
            folder.mkdir()
        container = engine.create(
            ContainerSpec(
                image_id=engine.image(image).id,
                name=f"proctor-test-stream-{secrets.token_hex(4)}",
                labels={"proctor.test": "streaming-core"},
                binds=(Bind(source=view, target="/data/inputs", read_only=True),),
                stdin=True,
            )
        )
        made.append(container)
        clock = MonotonicClock()
        attached = engine.attach(container)
        channel = AttachedChannel(attached, clock=clock, longest=1 << 20, log_bytes=1 << 16)
        try:
            engine.start(container)
            kept: dict[int, Mapping[str, JsonValue]] = {}
            session = Session(
                rule=Stream(**{"answer": 20.0, "start_up": 60.0, **rule}), task="steps", case="k7", fps=25.0,
                inputs=("frames", "table"), view=view, staging=staging, mount="/data/inputs", seconds=120.0,
                longest_line=1 << 20, most_bytes=1 << 20,
            )  # fmt: skip
            outcome = conduct(channel, frames(), session, keep=kept.__setitem__, clock=clock, stop=threading.Event())
        finally:
            channel.close()
        engine.await_exit(container, seconds=20)
        facts = engine.inspect(container)
        assert facts is not None
        return Played(outcome, kept, channel.log().decode(), facts.exit)

    yield play
    for container in made:
        engine.remove(container)


@pytest.fixture(scope="session")
def python_client(images: Images, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("stream") / "python"
    shutil.copytree(TEMPLATE, folder)
    (folder / "predict.py").write_text(PREDICT)
    return images.folder("stream-python", folder)


@pytest.fixture(scope="session")
def cpp_client(images: Images, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Compiled on this host, since the base image has no compiler; its own Dockerfile fetches one."""
    folder = tmp_path_factory.mktemp("stream")
    shutil.copy(TEMPLATE / "cpp/client.cpp", folder)
    flags = ["-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", "-static"]
    subprocess.run(["g++", *flags, "-o", folder / "client", folder / "client.cpp"], check=True)
    (folder / "Dockerfile").write_text(f'FROM {BASE}\nCOPY client /app/client\nENTRYPOINT ["/app/client"]\n')
    return images.folder("stream-cpp", folder)


def _bytes(played: Played) -> list[JsonValue]:
    assert list(played.kept) == list(range(FRAMES))
    return [answer["bytes"] for answer in played.kept.values()]


@pytest.mark.parametrize("way", ["path", "inline"])
def test_python_client_answers_each_frame_by_what_it_was_given(
    play: Callable[..., Played], python_client: str, way: str
) -> None:
    played = play(python_client, frames=(way,))
    assert (played.outcome.end, played.outcome.broken, played.outcome.way) == (StreamEnd.FINISHED, None, way)
    assert _bytes(played) == [1000 + index for index in range(FRAMES)]
    assert [answer["row"] for answer in played.kept.values()] == [f'{index},"é"' for index in range(FRAMES)]
    there = [[f"0-{index:08d}.png"] if way == "path" else [] for index in range(FRAMES)]
    assert [answer["listed"] for answer in played.kept.values()] == there
    assert played.exit is not None
    assert played.exit.code == 0
    assert sorted(played.log.splitlines()) == ["a child", "a print", "a write", "case k7"]
    assert played.outcome.start_up is not None
    assert played.outcome.start_up > 0


@pytest.mark.parametrize("way", ["path", "inline"])
def test_cpp_client_answers_each_frame_by_what_it_was_given(
    play: Callable[..., Played], cpp_client: str, way: str
) -> None:
    played = play(cpp_client, frames=(way,))
    assert (played.outcome.end, played.outcome.broken, played.outcome.way) == (StreamEnd.FINISHED, None, way)
    assert _bytes(played) == [1000 + index for index in range(FRAMES)]
    assert played.exit is not None
    assert played.exit.code == 0
    assert played.log == "case k7\n"


def test_at_the_cameras_rate_every_frame_is_released_and_answered(play: Callable[..., Played], cpp_client: str) -> None:
    played = play(cpp_client, **REALTIME)
    assert played.outcome.end is StreamEnd.FINISHED
    frames = list(played.outcome.timings)
    assert [frame.index for frame in frames] == list(range(FRAMES))
    # A busy host may be late, and what is late is missed; what is kept is what was not, with its own answer.
    assert list(played.kept) == [frame.index for frame in frames if not frame.missed]
    assert [answer["bytes"] for answer in played.kept.values()] == [1000 + index for index in played.kept]


def test_what_predict_raises_ends_the_case_and_is_in_the_log(
    play: Callable[..., Played], images: Images, tmp_path: Path
) -> None:
    folder = tmp_path / "raises"
    shutil.copytree(TEMPLATE, folder)
    (folder / "predict.py").write_text(
        "import proctor_stream\n\ndef predict(frame):\n    return {'x': 1 // (3 - frame.index)}\n\n"
        "proctor_stream.run(predict)\n"
    )
    played = play(images.folder("stream-raises", folder))
    assert played.outcome.broken is not None
    assert played.outcome.broken.sentence == "it said that it cannot go on"
    assert list(played.kept) == [0, 1, 2]
    assert '"message": "ZeroDivisionError: integer division or modulo by zero"' in played.log
    assert "predict.py" in played.log
