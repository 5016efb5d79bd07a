"""The demo: builds eight invented submissions, makes hidden data for them, evaluates them.

``make demo`` runs this once the venv, an engine and the base image are there. Everything is invented: the frames
are coloured noise, the teams are letters. Six of the eight are bad in a way of their own.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Run as a script, this file's folder is on the path and the project is not.
sys.path.insert(0, str(ROOT))

from runner.engine import Engine  # noqa: E402
from runner.errors import RunnerError  # noqa: E402

BASE = "proctor-base:1"
CHALLENGE = "pitvis2023"
DATA, RUN = Path("demo-data"), Path("demo-run")
SUBMISSIONS, SETTINGS = Path("demo/submissions.yaml"), Path("demo/settings.yaml")
GENERATE = ("--cases", "4", "--frames", "60", "90", "--seed", "7")
BUILD_SECONDS = 300.0

METHODS = {
    "steady": "smooths with the past only",
    "quick": "takes every frame by itself",
    "peeks-ahead": "smooths with the past and the future",
    "too-slow": "sleeps, and does not listen when told to stop",
    "crashes": "stops in the middle with an error",
    "out-of-memory": "keeps asking for memory",
    "rows-missing": "leaves out every tenth row",
    "writes-nothing": "ends well, and writes nothing",
}


@contextlib.contextmanager
def step(number: int, what: str) -> Iterator[None]:
    """Say what begins, and how long it took."""
    print(f"\n{number}. {what}", flush=True)
    began = time.monotonic()
    yield
    print(f"   {time.monotonic() - began:.1f} s", flush=True)


def build(engine: Engine) -> None:
    """Build the submissions' images."""
    for name, what in METHODS.items():
        engine.build(
            ROOT / "demo" / "submissions" / name,
            reference=f"proctor-demo/{name}:1",
            arguments={"BASE_IMAGE": BASE},
            deadline=BUILD_SECONDS,
            log=lambda _line: None,
        )
        print(f"   {name:15} {what}", flush=True)


def run(*arguments: str) -> int:
    """Run a program of this interpreter's in the project's folder; its exit code, also when we are interrupted."""
    with subprocess.Popen([sys.executable, *arguments], cwd=ROOT) as child:
        while True:
            try:
                return child.wait()
            except KeyboardInterrupt:  # it got the signal too, and ends in its own way
                continue


def make_data() -> int:
    """Make the hidden cases where they are missing; the exit code."""
    if (ROOT / DATA).is_dir():
        print(f"   ./{DATA} is there already")
        return 0
    print(f"   making ./{DATA}: 4 cases of 60 to 90 frames, one a second", flush=True)
    return run(f"challenges/{CHALLENGE}/generate.py", str(DATA), *GENERATE)


def evaluate() -> int:
    """Run ``proctor evaluate``; its exit code."""
    if (ROOT / RUN).exists():
        print(f"   removing ./{RUN} of an earlier demo")
        shutil.rmtree(ROOT / RUN)
    command = [
        *("evaluate", CHALLENGE, "--data", str(DATA), "--submissions", str(SUBMISSIONS), "--out", str(RUN)),
        *("--settings", str(SETTINGS), "--allow-cpu"),
    ]
    print(f"   $ proctor {' '.join(command)}\n", flush=True)
    return run("-m", "runner.cli", *command)


def prepare() -> int:
    """Make images and data; the exit code."""
    from runner.engine.docker import connect  # noqa: PLC0415  a missing SDK is told like any other lack

    with step(1, "Building the images of eight submissions"):
        engine = connect()
        build(engine)
        engine.close()
    with step(2, "Making hidden data"):
        return make_data()


def main() -> int:
    """Run the demo; the exit code of what failed, or of the evaluation."""
    began = time.monotonic()
    try:
        code = prepare()
    except RunnerError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    if code:
        return code
    ready = time.monotonic()
    with step(3, "Evaluating them, without a GPU: the challenge asks for one, so run times prove nothing here"):
        code = evaluate()
    if code:
        return code
    now = time.monotonic()
    proctor = "proctor" if shutil.which("proctor") else os.path.relpath(Path(sys.executable).parent / "proctor")
    print(
        f"\nDone in {now - began:.0f} s, {now - ready:.0f} s of it without set-up.\n"
        f"Who is ranked, and why the others are not: {RUN / 'report.organiser.html'}\n\n"
        "Next:\n"
        f"  {proctor} status {RUN}\n"
        f"  {proctor} check demo/submissions/peeks-ahead --challenge {CHALLENGE} --task steps\n"
        f"  {proctor} init {CHALLENGE} my-method"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
