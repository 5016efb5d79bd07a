"""``proctor``, ended by a signal at a chosen stage: ``python stages.py STAGE SIGNAL proctor-arguments…``.

The signal is sent at a stage's first pass that belongs to a submission; each stage's first container job is a probe of
our own. SIGINT goes to the whole process group, as a terminal sends it.
"""

import importlib
import os
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
    "discard": Stage("runner.workspace", "shutil.rmtree", True, 2),
    "scoring": Stage("runner.pipeline.standings", "score_case", False, 1),
    "report": Stage("runner.pipeline.evaluate", "write_report", True, 1),
    "leaderboard": Stage("runner.pipeline.publish", "write_whole", True, 2),  # scores.csv is written, the board not
}


def send(number: int) -> None:
    """End this program, or ask it to."""
    if number == signal.SIGINT:
        os.killpg(os.getpgid(0), number)
    else:
        os.kill(os.getpid(), number)
    time.sleep(0.05)  # the handler runs in the main thread


def _about_a_result(arguments: tuple[Any, ...]) -> bool:
    return ".result.json." in str(Path(f"/proc/self/fd/{arguments[0]}").readlink())


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
        if name == "result" and not _about_a_result(arguments):
            return real(*arguments, **named)
        passes += 1
        if stage.before and passes == stage.pass_:
            send(number)
        value = real(*arguments, **named)
        if not stage.before and passes == stage.pass_:
            send(number)
        return value

    setattr(holder, last, wrapped)


if __name__ == "__main__":
    arm(sys.argv[1], int(sys.argv[2]))
    from runner.cli.boundary import run_cli

    sys.exit(run_cli(sys.argv[3:]))
