"""Begins ``proctor`` processes quickly: one process that has loaded all of it forks for each that is asked for.

Loading takes a processor a second, and a hundred times over that is half the drills' time. What is forked is a process
as any other: a session, an environment and streams of its own; signals reach it alone, and how it ended is told by the
one that forked it, which does nothing else and has one thread.
"""

import contextlib
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from runner.cli.application import COMMANDS
from tests.drills import entry

_ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Process:
    """One that was begun."""

    pid: int
    ended: threading.Event = field(default_factory=threading.Event)
    returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit code, negative where a signal ended it; None where it runs."""
        return self.returncode if self.ended.is_set() else None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end."""
        if not self.ended.wait(timeout):
            raise subprocess.TimeoutExpired("proctor", timeout or 0.0)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        """To it alone."""
        if not self.ended.is_set():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End it, if it has not ended."""
        self.send_signal(signal.SIGKILL)
        self.wait()


class Warm:
    """The one that forks, as the drills see it."""

    def __init__(self, server: "subprocess.Popen[str]") -> None:
        self._server = server
        self._processes: dict[int, Process] = {}
        self._begun = threading.Semaphore(0)
        self._last: Process | None = None
        self._lock = threading.Lock()
        self._listener = threading.Thread(target=self._listen)
        self._listener.start()

    def close(self) -> None:
        """Begin no more."""
        assert self._server.stdin is not None
        self._server.stdin.close()
        self._server.wait()
        self._listener.join()

    def begin(self, arguments: list[str], *, environment: Mapping[str, str], out: Path, err: Path) -> Process:
        """Begin ``proctor`` with these arguments; what it prints goes to files."""
        with self._lock:
            assert self._server.stdin is not None
            self._server.stdin.write(json.dumps([arguments, dict(environment), str(out), str(err)]) + "\n")
            self._server.stdin.flush()
            assert self._begun.acquire(timeout=300.0), "no process was begun"
            assert self._last is not None
            return self._last

    def _listen(self) -> None:
        assert self._server.stdout is not None
        for line in self._server.stdout:
            pid, status = json.loads(line)
            if status is None:
                self._last = self._processes[pid] = Process(pid)
                self._begun.release()
            else:
                process = self._processes.pop(pid)
                process.returncode = os.waitstatus_to_exitcode(status)
                process.ended.set()


@contextlib.contextmanager
def warm() -> Iterator[Warm]:
    """One that forks."""
    foreign = ("PROCTOR_", "DOCKER_", "PYTHONDONTWRITEBYTECODE")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(foreign)}
    with subprocess.Popen(
        [sys.executable, "-m", "tests.drills.warm"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=environment | {"PYTHONPATH": str(_ROOT)}, start_new_session=True,
    ) as server:  # fmt: skip
        begins = Warm(server)
        try:
            yield begins
        finally:
            begins.close()


def _serve() -> int:
    for command in COMMANDS.values():
        importlib.import_module(command.module)
    for module in ("runner.cli.outcome", "runner.engine.docker", "runner.pipeline.host", "runner.report.html"):
        importlib.import_module(module)
    awake, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    signal.set_wakeup_fd(wake)
    asked = b""
    while True:
        ready, _, _ = select.select([0, awake], [], [])
        if awake in ready:
            os.read(awake, 4096)
            with contextlib.suppress(ChildProcessError):
                while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                    print(json.dumps(ended), flush=True)  # noqa: T201  the answer
        if 0 in ready:
            if not (block := os.read(0, 1 << 16)):
                return 0
            *lines, asked = (asked + block).split(b"\n")
            for line in lines:
                if not (pid := os.fork()):
                    signal.set_wakeup_fd(-1)
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    os.close(awake)
                    os.close(wake)
                    return _become(*json.loads(line))
                print(json.dumps([pid, None]), flush=True)  # noqa: T201  the answer


def _become(arguments: list[str], environment: dict[str, str], out: str, err: str) -> int:
    os.setsid()
    for path, flags, descriptor in (
        ("/dev/null", os.O_RDONLY, 0), (out, os.O_WRONLY | os.O_CREAT, 1), (err, os.O_WRONLY | os.O_CREAT, 2),
    ):  # fmt: skip
        opened = os.open(path, flags, 0o600)
        os.dup2(opened, descriptor)
        os.close(opened)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["proctor", *arguments]
    return entry.run(arguments)


if __name__ == "__main__":
    sys.exit(_serve())
