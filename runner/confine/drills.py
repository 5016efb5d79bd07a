"""Functions that misbehave on purpose: what a parser would do once a stranger has taken it over.

Tests, and whoever wants to know whether confinement holds on a host, call them like any confined function.
"""

import ctypes
import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from runner.confine.contract import JsonValue, Reply

_LOOK = 1024
"""Descriptors below this number are looked for."""


def echo(request: Mapping[str, JsonValue], descriptors: Sequence[int]) -> Reply:
    """Behave: give back the request, and the first bytes of every descriptor as an array."""
    heads = {str(number): np.frombuffer(os.pread(fd, 64, 0), np.uint8) for number, fd in enumerate(descriptors)}
    return Reply(header={"request": dict(request)}, arrays=heads)


def attempt(request: Mapping[str, JsonValue], _descriptors: Sequence[int]) -> Reply:
    """Try what must be refused, each by its name in ``tries``; answers the error of each, or ``done``."""
    tries: dict[str, Callable[[], object]] = {
        "read": lambda: Path(str(request["path"])).read_bytes(),
        "write": lambda: os.write(os.open(str(request["path"]), os.O_WRONLY | os.O_CREAT, 0o666), b"x"),
        "fork": _fork,
        "root": lambda: os.setresuid(0, 0, 0),
        "signal-parent": lambda: os.kill(os.getppid(), 0),
    }
    wanted = request["tries"]
    assert isinstance(wanted, list)
    return Reply(header={str(name): _outcome(tries[str(name)]) for name in wanted})


def _outcome(action: Callable[[], object]) -> str:
    try:
        action()
    except OSError as error:
        return type(error).__name__
    return "done"


def _fork() -> None:
    if os.fork() == 0:
        os._exit(0)


def _is_open(descriptor: int) -> bool:
    return _outcome(lambda: os.fstat(descriptor)) == "done"


def facts(_request: Mapping[str, JsonValue], descriptors: Sequence[int]) -> Reply:
    """Say who one is and what one holds."""
    status = dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text("ascii").splitlines())
    held: list[JsonValue] = [number for number in range(_LOOK) if _is_open(number)]
    return Reply(
        header={
            "uids": list(os.getresuid()),
            "gids": list(os.getresgid()),
            "groups": list(os.getgroups()),
            "capabilities": int(status["CapEff"], 16),
            "no_new_privs": int(status["NoNewPrivs"]),
            "descriptors": held,
            "given": [*descriptors],
            "environment": [*sorted(os.environ)],
            "pid": os.getpid(),
        }
    )


def sleep(request: Mapping[str, JsonValue], descriptors: Sequence[int]) -> Reply:
    """Sleep for ``seconds``, having written its pid to the first descriptor, if there is one."""
    for descriptor in descriptors[:1]:
        os.write(descriptor, f"{os.getpid()}\n".encode())
    time.sleep(float(str(request["seconds"])))
    return Reply(header={})


def spin(_request: Mapping[str, JsonValue], _descriptors: Sequence[int]) -> Reply:
    """Use the processor for ever."""
    while True:
        pass


def leave_children(_request: Mapping[str, JsonValue], descriptors: Sequence[int]) -> Reply:
    """Leave one child in the group and one that escaped from it, asleep with every descriptor open.

    Their pids are written to the first descriptor before this ends.
    """
    for leave_group in (False, True):
        told, tell = os.pipe()
        pid = os.fork()
        if pid == 0:
            if leave_group:
                os.setsid()
            os.write(tell, b"!")
            time.sleep(600)
            os._exit(0)
        os.read(told, 1)
        os.write(descriptors[0], f"{pid}\n".encode())
    return Reply(header={})


def eat_memory(_request: Mapping[str, JsonValue], _descriptors: Sequence[int]) -> Reply:
    """Take memory until there is none."""
    eaten = []
    while True:
        eaten.append(np.ones(1 << 20))


def fill_reply(request: Mapping[str, JsonValue], _descriptors: Sequence[int]) -> Reply:
    """Answer with so many ``bytes``."""
    return Reply(header={}, arrays={"much": np.zeros(int(str(request["bytes"])), np.uint8)})


def write_garbage(request: Mapping[str, JsonValue], _descriptors: Sequence[int]) -> Reply:
    """Write ``text`` to every descriptor there is, and ``again`` so many ``times``, then end as if all were well."""
    much = str(request.get("again", "")).encode("latin-1") * int(str(request.get("times", 0)))
    garbage = str(request["text"]).encode("latin-1") + much
    for descriptor in filter(_is_open, range(_LOOK)):
        _outcome(partial(os.write, descriptor, garbage))
    os._exit(0)


def write_and_fail(request: Mapping[str, JsonValue], _descriptors: Sequence[int]) -> Reply:
    """Write ``again`` so many ``times`` to every descriptor there is, then raise."""
    garbage = str(request["again"]).encode("latin-1") * int(str(request["times"]))
    for descriptor in filter(_is_open, range(_LOOK)):
        _outcome(partial(os.write, descriptor, garbage))
    raise ValueError("after all")


def leave(request: Mapping[str, JsonValue], _descriptors: Sequence[int]) -> Reply:
    """End with ``code``."""
    os._exit(int(str(request["code"])))


def crash(_request: Mapping[str, JsonValue], _descriptors: Sequence[int]) -> Reply:
    """Read from address 0."""
    ctypes.string_at(0)
    return Reply(header={})


def fail(request: Mapping[str, JsonValue], _descriptors: Sequence[int]) -> Reply:
    """Raise."""
    raise ValueError(str(request["text"]))


def not_finite(_request: Mapping[str, JsonValue], _descriptors: Sequence[int]) -> Reply:
    """Answer a number that is none."""
    return Reply(header={"score": float("nan")})
