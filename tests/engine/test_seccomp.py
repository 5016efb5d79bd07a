"""Our profile on the real engine: the doors are shut, and ordinary programs do not notice it."""

import io
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import docker
import pytest

from runner.engine import Engine, ImageFacts
from runner.execute import Bench
from runner.pipeline.host import open_bench
from runner.probe import PROBE_BUDGET, ask, open_doors
from runner.seccomp import profile
from runner.settings import load_settings
from tests.engine.conftest import BASE

pytestmark = [pytest.mark.engine, pytest.mark.root]

_PYTHON = """
import concurrent.futures, ctypes, getpass, json, mmap, multiprocessing, os, shutil, socket, subprocess, sys
import tempfile, threading, time
import numpy
from PIL import Image
from multiprocessing import shared_memory

def square(number):
    return number * number

def threads():
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        return sum(pool.map(square, range(100)))

def processes():
    with multiprocessing.get_context("fork").Pool(4) as pool:
        return sum(pool.map(square, range(100)))

def child():
    return subprocess.run(["sh", "-c", "echo $((6 * 7))"], capture_output=True, text=True, check=True).stdout.strip()

def load_from_tmp():
    places = ("/lib/x86_64-linux-gnu/libz.so.1", "/lib/aarch64-linux-gnu/libz.so.1", "/usr/lib/libz.so.1")
    source = next(path for path in places if os.path.exists(path))
    shutil.copyfile(source, "/tmp/copy.so")
    return bool(ctypes.CDLL("/tmp/copy.so").zlibVersion)

def shared():
    block = shared_memory.SharedMemory(create=True, size=1 << 20)
    block.buf[0] = 7
    value = block.buf[0]
    block.close()
    block.unlink()
    return value

def algebra():
    matrix = numpy.random.default_rng(0).random((300, 300))
    return bool(numpy.allclose(numpy.linalg.inv(matrix) @ matrix, numpy.eye(300), atol=1e-6))

def lock():
    with multiprocessing.get_context("fork").Lock():
        return True

def pair():
    one, other = socket.socketpair()
    one.send(b"x")
    return other.recv(1).decode()

def picture():
    Image.new("RGB", (64, 64)).save("/tmp/x.png")
    return Image.open("/tmp/x.png").size

acts = [threads, processes, child, load_from_tmp, shared, algebra, lock, pair, picture, getpass.getuser]
answers = {}
for act in acts:
    try:
        answers[act.__name__] = act()
    except Exception as error:
        answers[act.__name__] = repr(error)
json.dump(answers, open(sys.argv[2] + ".json", "w"))
"""

_EXPECTED = {
    "threads": 328350, "processes": 328350, "child": "42", "load_from_tmp": True, "shared": 7, "algebra": True,
    "lock": True, "pair": "x", "picture": [64, 64], "getuser": "participant",
}  # fmt: skip

_NODE = """
import subprocess, sys
program = '''
const {Worker, isMainThread, parentPort} = require("worker_threads");
const fs = require("fs"), crypto = require("crypto"), child = require("child_process");
const worker = new Worker('require("worker_threads").parentPort.postMessage(6 * 7)', {eval: true});
worker.on("message", answer => {
  const hash = crypto.pbkdf2Sync("a", "b", 1000, 16, "sha256").toString("hex").length;
  const echo = child.execFileSync("echo", ["x"]).toString().trim();
  fs.writeFileSync(process.argv[1], JSON.stringify({answer, hash, echo}));
});
'''
sys.exit(subprocess.run(["node", "-e", program, sys.argv[2] + ".json"]).returncode)
"""


@dataclass(frozen=True)
class Desk:
    """Where probes are run."""

    bench: Bench
    helper: ImageFacts
    scratch: Path


@pytest.fixture(scope="module")
def desk(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    settings = load_settings(None, {}, environ={}).settings
    with open_bench(engine, settings, stop=threading.Event(), observe=lambda _event: None) as (bench, _):
        yield Desk(bench, engine.image(BASE), tmp_path_factory.mktemp("scratch"))


@pytest.fixture(scope="module")
def node(engine: Engine) -> Iterator[ImageFacts]:
    """The base image with Debian's node."""
    text = f"FROM {BASE}\nRUN apt-get update && apt-get install -y --no-install-recommends nodejs\n"
    client = docker.APIClient(version="auto", timeout=600)
    log = [
        line
        for line in client.build(
            fileobj=io.BytesIO(text.encode()), tag="proctor-test/node:1", network_mode="host", rm=True, decode=True
        )
        if "error" in line
    ]
    assert log == []
    yield engine.image("proctor-test/node:1")
    engine.remove_image("proctor-test/node:1")


def test_with_our_profile_the_doors_are_shut(desk: Desk) -> None:
    shut = replace(desk.bench, seccomp=profile())
    assert open_doors(shut, desk.helper, scratch=desk.scratch) == ()


def test_a_profile_is_passed_exactly_where_a_door_is_open(desk: Desk) -> None:
    engines_own = replace(desk.bench, seccomp=None)
    doors = open_doors(engines_own, desk.helper, scratch=desk.scratch)
    assert desk.bench.seccomp == (profile() if doors else None)


def test_python_threads_processes_shared_memory_numpy_and_libraries_from_tmp_work(desk: Desk) -> None:
    budget = replace(PROBE_BUDGET, memory=1 << 30, pids=256, shm=64 << 20, tmp=64 << 20)
    bench = replace(desk.bench, seccomp=profile())
    found = ask(bench, desk.helper, _PYTHON, scratch=desk.scratch, budget=budget)
    assert found.result.exit is not None
    assert (found.result.exit.code, found.answer) == (0, _EXPECTED), found.log


def test_node_works(desk: Desk, node: ImageFacts) -> None:
    budget = replace(PROBE_BUDGET, memory=1 << 30, pids=256)
    found = ask(replace(desk.bench, seccomp=profile()), node, _NODE, scratch=desk.scratch, budget=budget)
    assert json.loads(json.dumps(found.answer)) == {"answer": 42, "hash": 32, "echo": "x"}, found.log
