"""The fork server: ``python -m runner.confine.server <descriptor> <module>...``; see the package's own page.

One thread, one loop. It hears four things: an order on the control socket, the end of the control socket
(the parent is gone: kill all, end), a caller that hung up (kill that child), and SIGCHLD (a child ended:
tell its caller). A group is killed before its leader is reaped, while its number cannot yet belong to
anybody else; and since orphans come home to the server (it is a subreaper), what a child left running is
found, killed and reaped as well.
"""

import contextlib
import ctypes
import gc
import importlib
import os
import selectors
import signal
import socket
import sys
import time
from dataclasses import dataclass

from runner.confine import child
from runner.confine.contract import MAX_DESCRIPTORS, MAX_ORDER_BYTES, READY, ChildEnd, Order

_PR_SET_CHILD_SUBREAPER = 36


@dataclass
class _Child:
    caller: socket.socket
    ends_at: float
    slot: int
    overrun: bool = False


class Server:
    """Forks a child for each order."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._children: dict[int, _Child] = {}
        self._open = True
        self._selector = selectors.DefaultSelector()
        self._wake, wake_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.set_wakeup_fd(wake_end, warn_on_full_buffer=False)
        self._selector.register(control, selectors.EVENT_READ)
        self._selector.register(self._wake, selectors.EVENT_READ)

    def run(self) -> None:
        """Serve until the parent is gone."""
        while self._open:
            for key, _ in self._selector.select(self._patience()):
                self._hear(key)
            self._kill_overdue()
        for pid in {*self._children, *_direct_children()}:
            _kill_group(pid)
        with contextlib.suppress(ChildProcessError):  # all are reaped
            while True:
                os.wait()

    def _patience(self) -> float | None:
        ends = [one.ends_at for one in self._children.values() if not one.overrun]
        return max(0.0, min(ends) - time.monotonic()) if ends else None

    def _hear(self, key: selectors.SelectorKey) -> None:
        if key.fileobj is self._control:
            self._take_order()
        elif key.fileobj == self._wake:
            os.read(self._wake, 4096)
            self._reap()
        elif key.data in self._children and self._children[key.data].caller is key.fileobj:
            self._selector.unregister(key.fileobj)
            _kill_group(key.data)

    def _kill_overdue(self) -> None:
        now = time.monotonic()
        for pid, one in self._children.items():
            if one.ends_at <= now and not one.overrun:
                one.overrun = True
                _kill_group(pid)

    def _take_order(self) -> None:
        message, received, _, _ = socket.recv_fds(
            self._control, MAX_ORDER_BYTES, MAX_DESCRIPTORS + 2, socket.MSG_CMSG_CLOEXEC
        )
        if not message:
            self._open = False
            return
        caller, reply, *descriptors = received
        self._fork(Order.decode(message), socket.socket(fileno=caller), reply, descriptors)
        for descriptor in (reply, *descriptors):
            os.close(descriptor)

    def _fork(self, order: Order, caller: socket.socket, reply: int, descriptors: list[int]) -> None:
        used = {one.slot for one in self._children.values()}
        slot = next(number for number in range(len(used) + 1) if number not in used)
        server = os.getpid()
        pid = os.fork()
        if pid == 0:
            os.setpgid(0, 0)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            child.run(order, reply=reply, descriptors=descriptors, slot=slot, server=server)
        with contextlib.suppress(OSError):  # it did so itself, and may be gone already
            os.setpgid(pid, pid)
        self._children[pid] = _Child(caller, time.monotonic() + order.deadline, slot)
        self._selector.register(caller, selectors.EVENT_READ, pid)

    def _reap(self) -> None:
        while (pid := _ended()) is not None:
            if pid in self._children:
                _kill_group(pid)
            _, status = os.waitpid(pid, 0)
            one = self._children.pop(pid, None)
            if one is not None:
                self._tell(one, os.waitstatus_to_exitcode(status))
        for pid in _direct_children() - set(self._children):
            _kill(pid)

    def _tell(self, one: _Child, code: int) -> None:
        with one.caller:
            if one.caller in self._selector.get_map():
                self._selector.unregister(one.caller)
            with contextlib.suppress(OSError):  # it hung up
                one.caller.send(ChildEnd(code=code, overrun=one.overrun).encode(), socket.MSG_NOSIGNAL)


def _ended() -> int | None:
    """A child that has ended and still waits to be reaped."""
    try:
        found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    return None if found is None else found.si_pid


def _direct_children() -> set[int]:
    me = os.getpid()
    try:
        with open(f"/proc/self/task/{me}/children", encoding="ascii") as file:  # noqa: PTH123  one read a call
            return {int(pid) for pid in file.read().split()}
    except OSError:
        return set()  # a kernel without it: orphans end with the group, or with the server


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        _kill(pid)


def main() -> None:
    """Load our modules once, say that we are ready, serve."""
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for module in sys.argv[2:]:
        warm_up = getattr(importlib.import_module(module), "warm_up", None)
        if warm_up is not None:  # a library's first call is slow, and every child would make it anew
            warm_up()
    gc.collect()
    gc.freeze()  # so that a child's collector does not touch, and thereby copy, our pages
    control.send(READY)
    Server(control).run()


if __name__ == "__main__":
    main()
