"""Mounts and unmounts small file systems in a file; Linux and root only."""

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

from runner.errors import HostFault

_RETRIES = 5
_UNESCAPE = {r"\040": " ", r"\011": "\t", r"\012": "\n", r"\134": "\\"}


def can_mount() -> bool:
    """True where this process may mount a loop device."""
    return sys.platform == "linux" and os.geteuid() == 0 and Path("/dev/loop-control").exists()


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command, capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HostFault(
            f"{command[0]} did not run: {error}", remedy="install e2fsprogs and mount, or set output: volume"
        ) from error


def _must(*command: str) -> None:
    done = _run(*command)
    if done.returncode:
        raise HostFault(f"{' '.join(command[:1])} failed: {done.stderr.strip() or done.returncode}", where=command[-1])


def mount_new(image: Path, folder: Path, *, size: int, inodes: int, uid: int, gid: int) -> None:
    """Make an ext4 file system of exactly ``size`` bytes in ``image`` and mount it, owned by ``uid:gid``.

    No journal and no reserved blocks: it lives for one job. Nothing in it can be a device, a setuid program or
    executed on the host.

    Raises:
        HostFault: It could not be made or mounted.
    """
    descriptor = os.open(image, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        os.ftruncate(descriptor, size)
    finally:
        os.close(descriptor)
    folder.mkdir(mode=0o755)
    options = f"root_owner={uid}:{gid},lazy_itable_init=1,nodiscard"
    _must("mkfs.ext4", "-q", "-F", "-b", "4096", "-m", "0", "-N", str(inodes), "-O", "^has_journal,^resize_inode",
          "-E", options, str(image))  # fmt: skip
    _must("mount", "-t", "ext4", "-o", "loop,rw,nosuid,nodev,noexec,noatime", str(image), str(folder))
    with contextlib.suppress(OSError):
        (folder / "lost+found").rmdir()


def unmount(folder: Path) -> None:
    """Unmount, at last lazily; silent where nothing is mounted there."""
    for attempt in range(_RETRIES):
        if not is_mounted(folder):
            return
        if _run("umount", str(folder)).returncode == 0:
            return
        time.sleep(0.02 * 2**attempt)
    _must("umount", "-l", str(folder))


def mounted_below(folder: Path) -> tuple[Path, ...]:
    """Mount points at or below a folder, the deepest first."""
    try:
        lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return ()
    folder = folder.resolve()  # as the kernel names mount points
    points = []
    for line in lines:
        text = line.split(" ")[4]
        for escaped, plain in _UNESCAPE.items():
            text = text.replace(escaped, plain)
        point = Path(text)
        if point == folder or folder in point.parents:
            points.append(point)
    return tuple(sorted(points, key=lambda p: -len(p.parts)))


def is_mounted(folder: Path) -> bool:
    """True where something is mounted at exactly this folder."""
    return folder.is_mount()
