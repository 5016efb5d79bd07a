"""Who made a container, volume or folder of ours, and whether that process is provably gone.

A pid alone proves nothing: it is reused, and the same number means another process in another PID namespace or on
another machine that shares the engine. An owner is therefore machine, boot, PID namespace, pid and the process's
start time; it is *provably* dead only for an observer on the same machine, and in the same PID namespace unless the
machine has been booted since.
"""

import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

LABEL_OWNER = "proctor.owner"
LABEL_RUN = "proctor.run"
NAME_PREFIX = "proctor-"
_OUR_NAME = re.compile(rf"/?{NAME_PREFIX}[0-9a-f]{{16}}(-hold)?")
_PID = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, kw_only=True)
class Owner:
    """A process that makes things on a host; the text form is a label's value."""

    machine: str
    boot: str
    pid_namespace: str
    pid: int
    started: str

    def __str__(self) -> str:
        return f"{self.machine}:{self.boot}:{self.pid_namespace}:{self.pid}:{self.started}"

    @classmethod
    def parse(cls, text: str) -> "Owner | None":
        """Read a label's value; None where it is not one of ours."""
        parts = text.split(":")
        if len(parts) != 5 or not _PID.fullmatch(parts[3]):
            return None
        machine, boot, namespace, pid, started = parts
        return cls(machine=machine, boot=boot, pid_namespace=namespace, pid=int(pid), started=started)


def is_our_name(name: str) -> bool:
    """Whether a container or volume is named as ours are. A label alone proves nothing: an image can carry any."""
    return _OUR_NAME.fullmatch(name) is not None


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _pid_namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").stat().st_ino)
    except OSError:
        return ""


def start_time(pid: int) -> str:
    """Start time of a process in clock ticks since boot; empty where it is not running or not to be told."""
    text = _read(f"/proc/{pid}/stat")
    # The command's name, in parentheses, may itself hold spaces and parentheses.
    fields = text.rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 and fields[0] not in "ZX" else ""


def current_owner() -> Owner:
    """This process."""
    return Owner(
        machine=_read("/etc/machine-id") or platform.node().replace(":", "-"),
        boot=_read("/proc/sys/kernel/random/boot_id"),
        pid_namespace=_pid_namespace(),
        pid=os.getpid(),
        started=start_time(os.getpid()),
    )


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def provably_dead(owner: Owner, observer: Owner) -> bool:
    """True only where the observer can be sure that the owner no longer runs."""
    if not owner.machine or owner.machine != observer.machine:
        return False
    if owner.boot != observer.boot:
        # A boot id that could not be read proves nothing.
        return bool(owner.boot and observer.boot)
    if owner.pid_namespace != observer.pid_namespace:
        return False
    if owner.started and Path("/proc/self/stat").exists():
        return start_time(owner.pid) != owner.started
    return not _alive(owner.pid)
