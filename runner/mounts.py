"""Mounts and unmounts small file systems in a file; Linux and root only."""

import ctypes
import errno
import logging
import os
import secrets
import struct
import subprocess
import sys
import time
from pathlib import Path

from runner.errors import HostFault

try:
    import fcntl
except ImportError:  # no loop devices there either: can_mount says so
    fcntl = None  # type: ignore[assignment]

_RETRIES = 5
_LOOP_TRIES = 20
_LOOP_CTL_GET_FREE = 0x4C82
_LOOP_CONFIGURE = 0x4C0A
_LOOP_INFO_BYTES = 232
_LOOP_FLAGS_AT = 52
_LO_FLAGS_AUTOCLEAR = 4
_MOUNT_FLAGS = 0x2 | 0x4 | 0x8 | 0x400  # nosuid, nodev, noexec, noatime
_log = logging.getLogger(__name__)
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


def mount_new(
    image: Path, folder: Path, *, blanks: Path, size: int, inodes: int, uid: int, gid: int, mode: int = 0o755
) -> None:
    """Make an ext4 file system of exactly ``size`` bytes in ``image`` and mount it, owned by ``uid:gid``.

    No journal and no reserved blocks: it lives for one job. Nothing in it can be a device, a setuid program or
    executed on the host. It is a copy of a blank one that is made once and kept in ``blanks``: that and system calls in
    place of programs take 2 ms where mkfs, mount and umount took 16.

    Raises:
        HostFault: It could not be made or mounted.
    """
    try:
        _copy_sparse(_blank(blanks, size=size, inodes=inodes), image)
        folder.mkdir(mode=0o755)
        _mount(image, folder)
        os.chown(folder, uid, gid)
        folder.chmod(mode)
    except OSError as error:
        raise HostFault(
            f"an output of {size} bytes could not be made: {error.strerror}",
            where=str(folder),
            remedy="see: proctor doctor",
        ) from error


def _blank(blanks: Path, *, size: int, inodes: int) -> Path:
    """An empty file system of a size, in a file; made by the first who needs it."""
    kept = blanks / f"blank-{size}-{inodes}"
    if kept.exists():
        return kept
    new, folder = blanks / secrets.token_hex(8), blanks / secrets.token_hex(8)
    with new.open("xb") as file:
        file.truncate(size)
    _must("mkfs.ext4", "-q", "-F", "-b", "4096", "-m", "0", "-N", str(inodes), "-O", "^has_journal,^resize_inode",
          "-E", "lazy_itable_init=1,nodiscard", str(new))  # fmt: skip
    folder.mkdir()
    _mount(new, folder)
    (folder / "lost+found").rmdir()
    unmount(folder)
    folder.rmdir()
    new.replace(kept)
    return kept


def _copy_sparse(source: Path, target: Path) -> None:
    """Copy a file and leave its holes holes."""
    with source.open("rb") as read, target.open("xb") as write:
        size = os.fstat(read.fileno()).st_size
        os.ftruncate(write.fileno(), size)
        position = 0
        while (start := _next_data(read.fileno(), position)) is not None:
            position = os.lseek(read.fileno(), start, os.SEEK_HOLE)
            os.lseek(write.fileno(), start, os.SEEK_SET)
            while start < position:
                start += os.sendfile(write.fileno(), read.fileno(), start, position - start)


def _next_data(descriptor: int, position: int) -> int | None:
    try:
        return os.lseek(descriptor, position, os.SEEK_DATA)
    except OSError as error:
        if error.errno == errno.ENXIO:  # nothing but a hole up to the end
            return None
        raise


def _mount(image: Path, folder: Path) -> None:
    try:
        _mount_by_calls(image, folder)
    except OSError as error:
        # LOOP_CONFIGURE came with Linux 5.8, and a container may lack the device nodes; mount knows other ways.
        _log.debug("mounting by system calls failed (%s); trying the program", error)
        _must("mount", "-t", "ext4", "-o", "loop,rw,nosuid,nodev,noexec,noatime", str(image), str(folder))


def _mount_by_calls(image: Path, folder: Path) -> None:
    """Bind a free loop device to a file and mount it; the device frees itself when it is unmounted."""
    with image.open("rb+", buffering=0) as file, Path("/dev/loop-control").open("rb+", buffering=0) as control:
        for _ in range(_LOOP_TRIES):
            device = f"/dev/loop{fcntl.ioctl(control, _LOOP_CTL_GET_FREE)}"
            with Path(device).open("rb+", buffering=0) as loop:
                try:
                    fcntl.ioctl(loop, _LOOP_CONFIGURE, _loop_config(file.fileno()))
                except OSError as error:
                    if error.errno == errno.EBUSY:  # somebody was quicker
                        continue
                    raise
                _system_call("mount", device.encode(), os.fsencode(folder), b"ext4", _MOUNT_FLAGS, None)
                return
    raise OSError(errno.EBUSY, "no loop device could be had")


def _loop_config(descriptor: int) -> bytes:
    """``struct loop_config``: the file, the block size, ``struct loop_info64`` with its flags, reserved."""
    info = bytearray(_LOOP_INFO_BYTES)
    struct.pack_into("I", info, _LOOP_FLAGS_AT, _LO_FLAGS_AUTOCLEAR)
    return struct.pack("II", descriptor, 0) + bytes(info) + bytes(64)


def _system_call(name: str, *arguments: object) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def unmount(folder: Path) -> None:
    """Unmount, at last lazily; silent where nothing is mounted there."""
    for attempt in range(_RETRIES):
        if not is_mounted(folder):
            return
        try:
            _system_call("umount2", os.fsencode(folder), 0)
        except OSError:
            time.sleep(0.02 * 2**attempt)
        else:
            return
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
