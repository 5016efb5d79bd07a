"""The parent's side of a confined call: orders, waits, checks."""

import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from runner.confine.contract import (
    MAX_DESCRIPTORS,
    READY,
    ChildEnd,
    ConfinedFailure,
    ExitCode,
    FailureKind,
    JsonValue,
    Order,
    Privileges,
    Reply,
)
from runner.confine.wire import GarbledError, most_bytes, unpack
from runner.errors import HostFault

PRELOAD = (
    "runner.formats.frame_table", "runner.formats.frame_scores", "runner.formats.arrays", "runner.formats.answer",
    "runner.formats.label_images", "runner.formats.outside", "runner.formats.signs", "runner.scoring.child",
)  # fmt: skip
"""Modules a child finds loaded; where one has a function ``warm_up``, the server has called it."""

_TRACE_BYTES = 16_000
_START_SECONDS = 60.0
_SERVER_GRACE = 5.0
"""Seconds past a deadline after which the server itself is taken for stuck."""


class _ServerGoneError(Exception):
    """The server died, or no longer answers."""


class _Server:
    """A running server; ends when closed, when collected, and at exit."""

    def __init__(self, preload: Sequence[str]) -> None:
        self.owner = os.getpid()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "runner.confine.server", str(theirs.fileno()), *preload],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                env=_environment(),
                cwd="/",
                start_new_session=True,
            )
        self.control = ours
        self.process = process
        self.close = weakref.finalize(self, _end, ours, process, self.owner)
        ours.settimeout(_START_SECONDS)
        try:
            ready = ours.recv(1)
        except OSError:
            ready = b""
        ours.settimeout(None)
        if ready != READY:
            self.close()
            what = "the process that reads files safely did not start"
            raise HostFault(what, remedy="run proctor doctor, or install proctor again")

    def usable(self) -> bool:
        return self.close.alive and self.owner == os.getpid() and self.process.poll() is None


def _end(control: socket.socket, process: "subprocess.Popen[bytes]", owner: int) -> None:
    control.close()
    if owner != os.getpid():
        return  # a fork of ours: the server belongs to the process that started it
    try:
        process.wait(timeout=2)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _environment() -> dict[str, str]:
    """Nothing of ours but what an interpreter needs: a child could read it."""
    package_root = str(Path(__file__).resolve().parents[2])
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    return kept | {
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join([package_root, *(path for path in sys.path if path)]),
    }


class Confine:
    """Runs our own functions on untrusted bytes, each call in a child of its own; any number of threads may call.

    The server is started by the first call. Use it as a context manager, or call ``close``.
    """

    def __init__(self, preload: Sequence[str] = PRELOAD) -> None:
        self._preload = tuple(preload)
        self._lock = threading.Lock()
        self._server: _Server | None = None
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the server, and with it every child; calls that still run, or come later, are a host's fault."""
        with self._lock:
            self._closed = True
            server, self._server = self._server, None
        if server is not None:
            server.close()

    def call(
        self,
        function: str,
        request: Mapping[str, JsonValue],
        *,
        descriptors: Sequence[int] = (),
        deadline: float,
        memory: int,
        privileges: Privileges,
        array_bytes: int = 0,
    ) -> Reply:
        """Run one function in a child.

        Args:
            function: Dotted name; ours, so it starts with ``runner.``.
            request: Its first argument.
            descriptors: Open descriptors it may use; they stay open here.
            deadline: Seconds after which it is killed.
            memory: Bytes it may use beyond what our own code takes.
            privileges: ``DROP`` for a stranger's bytes.
            array_bytes: Bytes of arrays it may answer; where it answers more than that and a small header, it is killed
                before anything of it is read.

        Raises:
            ConfinedFailure: The child died, was killed, ran out of memory, or answered nonsense.
            HostFault: No child could be started.
            ValueError: The function is not ours, or the request is too large.
        """
        if not function.startswith("runner."):
            raise ValueError(f"{function!r} is not one of our own functions")
        if len(descriptors) > MAX_DESCRIPTORS:
            raise ValueError(f"{len(descriptors)} descriptors; at most {MAX_DESCRIPTORS}")
        order = Order(function=function, request=request, deadline=deadline, memory=memory, privileges=privileges)
        for _ in range(2):
            try:
                server = self._running_server()
                end, data = _exchange(server.control, order, descriptors, len(READY) + most_bytes(array_bytes))
            except _ServerGoneError:
                self._discard(server)
            except OSError as error:
                what = f"a confined process could not be started: {error.strerror}"
                raise HostFault(what, remedy="run proctor doctor") from error
            else:
                return _judge(order, end, data)
        raise HostFault("the process that reads files safely died twice", remedy="is the host out of memory?")

    def _running_server(self) -> _Server:
        with self._lock:
            if self._closed:
                raise HostFault("reading was called off: the program is ending")
            if self._server is None or not self._server.usable():
                if self._server is not None:
                    self._server.close()
                self._server = _Server(self._preload)
            return self._server

    def _discard(self, server: _Server) -> None:
        with self._lock:
            if self._server is server:
                self._server = None
        if server.process.poll() is None:
            server.process.kill()
        server.close()


@contextmanager
def _closing(*descriptors: int) -> Iterator[None]:
    try:
        yield
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _exchange(control: socket.socket, order: Order, descriptors: Sequence[int], most: int) -> tuple[ChildEnd, bytes]:
    message = order.encode()
    status, caller = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    answer, reply = os.pipe2(os.O_CLOEXEC)
    with status, _closing(answer):
        with caller, _closing(reply):
            try:
                socket.send_fds(control, [message], [caller.fileno(), reply, *descriptors], socket.MSG_NOSIGNAL)
            except ConnectionError as error:
                raise _ServerGoneError from error
        return _wait(status, answer, give_up=time.monotonic() + order.deadline + _SERVER_GRACE, most=most)


def _wait(status: socket.socket, answer: int, *, give_up: float, most: int) -> tuple[ChildEnd, bytes]:
    """Collect the answer until the server says that the child is dead; hanging up makes it so."""
    os.set_blocking(answer, False)
    data = bytearray()
    poll = select.poll()
    poll.register(status, select.POLLIN)
    poll.register(answer, select.POLLIN)
    while True:
        left = give_up - time.monotonic()
        ready = poll.poll(left * 1000) if left > 0 else []
        if not ready:
            raise _ServerGoneError
        if any(descriptor == answer for descriptor, _ in ready) and _drain(answer, data, most):
            poll.unregister(answer)
        if any(descriptor == status.fileno() for descriptor, _ in ready):
            message = status.recv(4096)
            if not message:
                raise _ServerGoneError
            _drain(answer, data, most)
            return ChildEnd.decode(message), bytes(data)


def _drain(answer: int, data: bytearray, most: int) -> bool:
    """Read what there is; true at the end of the answer."""
    while True:
        try:
            chunk = os.read(answer, 1 << 16)
        except BlockingIOError:
            return False
        data += chunk
        if len(data) > most:
            raise ConfinedFailure(FailureKind.GARBLED, f"it answered more than {most} bytes")
        if not chunk:
            return True


def _judge(order: Order, end: ChildEnd, data: bytes) -> Reply:
    if not data.startswith(READY):
        trace = data[-_TRACE_BYTES:].decode("utf-8", "backslashreplace").strip().rpartition("\n")[2]
        raise HostFault(f"a confined process could not be set up: {_ending(end)}, {trace}", remedy="run proctor doctor")
    body = data[len(READY) :]
    if end.overrun or end.code == -signal.SIGXCPU:
        raise ConfinedFailure(FailureKind.TIMED_OUT, f"it took longer than {order.deadline:g} s")
    if end.code == ExitCode.OUT_OF_MEMORY:
        raise ConfinedFailure(FailureKind.OUT_OF_MEMORY, f"it needed more than {order.memory >> 20} MiB")
    if end.code != 0:
        trace = body[-_TRACE_BYTES:].decode("utf-8", "backslashreplace")
        raise ConfinedFailure(FailureKind.DIED, _ending(end), trace=trace)
    try:
        return unpack(body)
    except GarbledError as error:
        raise ConfinedFailure(FailureKind.GARBLED, str(error)) from error


def _ending(end: ChildEnd) -> str:
    if end.code == ExitCode.RAISED:
        return "an exception was raised"
    if end.code >= 0:
        return f"it ended with code {end.code}"
    try:
        return f"it was killed by {signal.Signals(-end.code).name}"
    except ValueError:
        return f"it was killed by signal {-end.code}"
