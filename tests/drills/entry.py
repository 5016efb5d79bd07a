"""``proctor`` for drills: ended by a signal at a chosen stage, or with less patience. Told by the environment.

DRILL_STAGE and DRILL_SIGNAL: the signal is sent at a stage's first pass that belongs to a submission; the first
container job of a program is a probe of our own. SIGINT goes to the whole process group, as a terminal sends it.
DRILL_PATIENCE: seconds, in place of the minute for which an engine that is silent is waited for.
DRILL_BACK_OFF: seconds between attempts, where patience is told.
"""

import importlib
import os
import shutil  # noqa: F401  it looks at os.unlink when it is loaded, and must not see ours
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple


class Stage(NamedTuple):
    """Where a runner is ended: ``pass_`` counts calls of a function, ``before`` it does its work or after."""

    module: str
    name: str
    before: bool
    pass_: int


STAGES = {
    "pin": Stage("runner.pipeline.evaluate", "pin", False, 1),
    "layout": Stage("runner.execute", "lay_out", False, 2),
    "mount": Stage("runner.mounts", "_mount", False, 3),  # the blank one, the probe's, a submission's
    "create": Stage("runner.engine.docker", "DockerEngine.create", False, 2),
    "run": Stage("runner.engine.docker", "DockerEngine.start", False, 2),
    "intake": Stage("runner.outputs", "take_file", True, 2),
    "result": Stage("runner.store", "os.fsync", False, 1),  # written, not yet renamed
    "outcome": Stage("runner.pipeline.cases", "write_value", True, 1),
    "outcome-half": Stage("runner.store", "os.fsync", False, 1),
    "discard": Stage("runner.workspace", "discard", True, 3),  # the probe has two desks
    "scoring": Stage("runner.pipeline.standings", "score_case", False, 1),
    "report": Stage("runner.pipeline.evaluate", "write_report", True, 1),
    "leaderboard": Stage("runner.pipeline.publish", "write_whole", True, 2),  # scores.csv is written, the board not
    "farewell": Stage("os", "unlink", True, 1),  # the owner's file in the workspace
}
_REQUEST_SECONDS = 1.5  # a loaded host takes half a second to start a container
_ONLY: dict[str, Callable[[Any], bool]] = {
    "result": lambda first: ".result.json." in str(Path(f"/proc/self/fd/{first}").readlink()),
    "outcome-half": lambda first: ".outcome.json." in str(Path(f"/proc/self/fd/{first}").readlink()),
    "farewell": lambda first: first == "owner",
}


def send(number: int) -> None:
    """End this program, or ask it to."""
    if number == signal.SIGINT:
        os.killpg(os.getpgid(0), number)
    else:
        os.kill(os.getpid(), number)
    time.sleep(0.05)  # the handler runs in the main thread


def arm(name: str, number: int) -> None:
    """Have the signal sent at a stage."""
    stage = STAGES[name]
    holder: Any = importlib.import_module(stage.module)
    *path, last = stage.name.split(".")
    for step in path:
        holder = getattr(holder, step)
    real: Callable[..., Any] = getattr(holder, last)
    passes = 0

    def wrapped(*arguments: Any, **named: Any) -> Any:
        nonlocal passes
        if name in _ONLY and not _ONLY[name](arguments[0]):
            return real(*arguments, **named)
        passes += 1
        if stage.before and passes == stage.pass_:
            send(number)
        value = real(*arguments, **named)
        if not stage.before and passes == stage.pass_:
            send(number)
        return value

    setattr(holder, last, wrapped)


def hurry(seconds: float, back_off: float) -> None:
    """Wait for a silent engine no longer than that, and a moment between attempts."""
    for module, name, value in (
        ("runner.engine.docker_client", "REQUEST_SECONDS", _REQUEST_SECONDS),
        ("runner.engine.docker", "REQUEST_SECONDS", _REQUEST_SECONDS),
        ("runner.engine.docker", "_PING_SECONDS", _REQUEST_SECONDS),
        ("runner.execute", "PATIENCE", seconds),
        ("runner.pipeline.attempts", "_BACK_OFF", back_off),
    ):
        holder = importlib.import_module(module)
        assert hasattr(holder, name)
        setattr(holder, name, value)


if __name__ == "__main__":
    if "DRILL_STAGE" in os.environ:
        arm(os.environ["DRILL_STAGE"], int(os.environ["DRILL_SIGNAL"]))
    if "DRILL_PATIENCE" in os.environ:
        hurry(float(os.environ["DRILL_PATIENCE"]), float(os.environ["DRILL_BACK_OFF"]))
    from runner.cli.boundary import run_cli

    sys.exit(run_cli(sys.argv[1:]))
