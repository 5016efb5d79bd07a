"""The child of a confined call: limits itself, gives up its rights, runs one function, answers, ends.

Once its rights are gone it may not be able to import: an interpreter under a private home directory can no longer be
read. So whatever a function needs, codecs included, is loaded before, by the server (see ``warm_up`` there).
"""

import ctypes
import encodings.ascii
import encodings.latin_1  # noqa: F401  loaded while they can be; see above
import errno
import importlib
import itertools
import math
import os
import resource
import signal
import traceback
from collections.abc import Callable, Sequence
from typing import NoReturn

from runner.confine.contract import READY, ConfinedFunction, ExitCode, Order, Privileges
from runner.confine.wire import pack

_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
_TRACE_CHARACTERS = 4000
_OPEN_FILES = 64
_NOBODY = 65534
_FIRST_UID = 230_000
"""Children get uids of their own from here; far from accounts and from the uids that containers run as."""

_libc = ctypes.CDLL(None, use_errno=True)


def run(order: Order, *, reply: int, descriptors: Sequence[int], slot: int, server: int) -> NoReturn:
    """Do what was ordered and end this process.

    Args:
        order: What to do.
        reply: Pipe for the answer.
        descriptors: The function's second argument.
        slot: A small number no other live child has.
        server: Pid of the server; the child must not outlive it.
    """
    code: int = ExitCode.RAISED
    try:
        function = resolve(order.function)
        _confine(order, keep=(reply, *descriptors), slot=slot, server=server)
        _write(reply, READY)
        answer = function(order.request, descriptors)
        _write(reply, pack(answer))
        code = 0
    except MemoryError:
        code = ExitCode.OUT_OF_MEMORY
    except BaseException:  # noqa: BLE001  a fork must never run on into its parent's code
        _try_to_tell(reply)
    finally:
        os._exit(code)


def resolve(name: str) -> ConfinedFunction:
    """Find a function by its dotted name.

    Raises:
        ValueError: It is not one of ours.
    """
    module, _, attribute = name.rpartition(".")
    if not module.startswith("runner."):
        raise ValueError(f"{name!r} is not one of our own functions")
    function: ConfinedFunction = getattr(importlib.import_module(module), attribute)
    return function


def _try_to_tell(reply: int) -> None:
    try:
        text = traceback.format_exc()[-_TRACE_CHARACTERS:]
        _write(reply, text.encode("utf-8", "backslashreplace"))
    except BaseException:  # noqa: BLE001, S110  the exit code says enough
        pass


def _write(reply: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(reply, view) :]


def _confine(order: Order, *, keep: Sequence[int], slot: int, server: int) -> None:
    _close_all_but(keep)
    os.chdir("/")
    os.umask(0o077)
    _limit(order)
    _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    if order.privileges is Privileges.DROP and os.geteuid() == 0:
        _give_up_root(_FIRST_UID + slot)
    # Only now: changing the uid clears it.
    _check(_libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))
    if os.getppid() != server:
        raise OSError(errno.ESRCH, "the server ended meanwhile")


def _close_all_but(keep: Sequence[int]) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    for low, high in itertools.pairwise([2, *sorted(keep), os.sysconf("SC_OPEN_MAX")]):
        os.closerange(low + 1, high)


def _limit(order: Order) -> None:
    with open("/proc/self/statm", "rb") as file:  # noqa: PTH123  pathlib costs more than the rest of this function
        mapped = int(file.read().split()[0]) * resource.getpagesize()
    seconds = math.ceil(order.deadline) + 1
    limits = {
        resource.RLIMIT_AS: mapped + order.memory,
        resource.RLIMIT_CPU: seconds,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_CORE: 0,
    }
    if order.privileges is Privileges.DROP:
        limits[resource.RLIMIT_NPROC] = 0
        limits[resource.RLIMIT_NOFILE] = _OPEN_FILES
    for limit, value in limits.items():
        _tighten(limit, value)


def _tighten(limit: int, value: int) -> None:
    _, hard = resource.getrlimit(limit)
    new = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(limit, (new, new))


def _give_up_root(uid: int) -> None:
    os.setgroups([])
    if not _change_to(uid):
        # A user namespace that maps few ids: nobody is shared by all children, still better than root.
        _change_to(_NOBODY)
    if os.getresuid().count(0) or os.getresgid().count(0):
        raise PermissionError(errno.EPERM, "root was not given up")


def _change_to(uid: int) -> bool:
    def tried(change: Callable[[int, int, int], None]) -> bool:
        try:
            change(uid, uid, uid)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            return False
        return True

    return tried(os.setresgid) and tried(os.setresuid)


def _check(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), "prctl failed")
