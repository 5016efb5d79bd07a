"""``proctor`` for drills: ended by a signal at a chosen stage, or with less patience. Told by the environment.

DRILL_STAGE and DRILL_SIGNAL: the signal is sent at a stage's first pass that belongs to a submission; the first
container jobs of a program are probes of our own. SIGINT goes to the whole process group, as a terminal sends it.
DRILL_PATIENCE: seconds, in place of the minute for which an engine that is silent is waited for.
DRILL_BACK_OFF: seconds between attempts, where patience is told.
SIGUSR1: from now on, the engine has a moment to answer in. It is sent when the fault is to be played, not before: a
loaded machine's engine may take long for what it does well.
"""

import importlib
import os
import shutil  # noqa: F401  it looks at os.unlink when it is loaded, and must not see ours
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from runner.cli.boundary import run_cli


class Stage(NamedTuple):
    """Where a runner is ended: ``pass_`` counts calls of a function, ``before`` it does its work or after.

    Calls are counted from when submissions are run; with ``early``, from the beginning.
    """

    module: str
    name: str
    before: bool
    pass_: int = 1
    early: bool = False


STAGES = {
    "claim": Stage("os", "symlink", False, early=True),  # the workspace has its owner's record, and no folder
    "pin": Stage("runner.pipeline.pinning", "pin", False, early=True),
    "layout": Stage("runner.execute", "lay_out", False),
    "mount": Stage("runner.mounts", "_mount", False, 2),  # the blank one, a submission's
    "create": Stage("runner.engine.docker", "DockerEngine.create", False),
    "run": Stage("runner.engine.docker", "DockerEngine.start", False),
    "intake": Stage("runner.outputs", "take_file", True),
    "result": Stage("runner.store", "os.fsync", False),  # written, not yet renamed
    "outcome": Stage("runner.pipeline.cases", "write_value", True),
    "outcome-half": Stage("runner.store", "os.fsync", False),
    "discard": Stage("runner.workspace", "discard", True),
    "scoring": Stage("runner.pipeline.standings", "score_case", False),
    "report": Stage("runner.pipeline.evaluate", "write_report", True),
    "leaderboard": Stage("runner.pipeline.publish", "write_whole", True, 2),  # scores.csv is written, the board not
    "farewell": Stage("os", "unlink", True, early=True),  # the workspace's folder is gone, its owner's record not
}
LOADING = "loading"
_HALT = Stage("runner.engine.docker", "DockerEngine.load", True, early=True)  # it was seen that there is room
_BEGINS = ("runner.pipeline.evaluate", "_settle_all")
_REQUEST_SECONDS = 1.5
_ONLY: dict[str, Callable[[Any], bool]] = {
    "claim": lambda first: str(first).count(":") == 4,
    "result": lambda first: ".result.json." in str(Path(f"/proc/self/fd/{first}").readlink()),
    "outcome-half": lambda first: ".outcome.json." in str(Path(f"/proc/self/fd/{first}").readlink()),
    "farewell": lambda first: str(first).endswith(".owner"),
}


def send(number: int) -> None:
    """End this program, or ask it to."""
    if number == signal.SIGINT:
        os.killpg(os.getpgid(0), number)
    else:
        os.kill(os.getpid(), number)
    time.sleep(0.05)  # the handler runs in the main thread


def _wrap(module: str, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    holder: Any = importlib.import_module(module)
    *path, last = name.split(".")
    for step in path:
        holder = getattr(holder, step)
    setattr(holder, last, make(getattr(holder, last)))


def arm(name: str, number: int) -> None:
    """Have the signal sent at a stage."""
    stage = _HALT if name == LOADING else STAGES[name]
    begun = stage.early
    passes = 0

    def begins(real: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **named: Any) -> Any:
            nonlocal begun
            begun = True
            return real(*arguments, **named)

        return wrapped

    def strikes(real: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **named: Any) -> Any:
            nonlocal passes
            if not begun or (name in _ONLY and not _ONLY[name](arguments[0])):
                return real(*arguments, **named)
            passes += 1
            if stage.before and passes == stage.pass_:
                send(number)
            value = real(*arguments, **named)
            if not stage.before and passes == stage.pass_:
                send(number)
            return value

        return wrapped

    _wrap(*_BEGINS, begins)
    _wrap(stage.module, stage.name, strikes)


def _set(module: str, name: str, value: float) -> None:
    holder = importlib.import_module(module)
    assert hasattr(holder, name)
    setattr(holder, name, value)


def hurry(seconds: float, back_off: float) -> None:
    """Wait for a silent engine no longer than that, and a moment between attempts; for an answer, once told to."""
    told = False

    def tell(_number: int, _frame: object) -> None:
        nonlocal told
        told = True
        _set("runner.engine.docker", "_PING_SECONDS", _REQUEST_SECONDS)

    def sends(real: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(client: Any, request: Any, **named: Any) -> Any:
            if told:
                named["timeout"] = min(named.get("timeout") or _REQUEST_SECONDS, _REQUEST_SECONDS)
            return real(client, request, **named)

        return wrapped

    _set("runner.follow", "PATIENCE", seconds)
    _set("runner.pipeline.attempts", "_BACK_OFF", back_off)
    _wrap("runner.engine.docker_client", "Client.send", sends)
    signal.signal(signal.SIGUSR1, tell)


def run(arguments: list[str]) -> int:
    """Run ``proctor``, as the environment says; its exit code."""
    if "DRILL_STAGE" in os.environ:
        arm(os.environ["DRILL_STAGE"], int(os.environ["DRILL_SIGNAL"]))
    if "DRILL_PATIENCE" in os.environ:
        hurry(float(os.environ["DRILL_PATIENCE"]), float(os.environ["DRILL_BACK_OFF"]))
    return run_cli(arguments)
