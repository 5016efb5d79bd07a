import ctypes
import os

from acts import call, libc, outcome, tell, write_valid

NEWUSER, NEWNS, MOUNT, UMOUNT, UNSHARE, SETNS, PIVOT, CHROOT, REBOOT, PTRACE = (
    0x10000000,
    0x20000,
    165,
    166,
    272,
    308,
    155,
    161,
    169,
    101,
)
with open("/proc/self/status") as source:
    status = dict(line.strip().split(":\t", 1) for line in source if ":\t" in line)
tell(
    setuid=outcome(os.setuid, 0),
    setgid=outcome(os.setgid, 0),
    groups=outcome(os.setgroups, [0]),
    mount=outcome(call, MOUNT, b"x", b"/tmp", b"tmpfs", 0, None),
    remount=outcome(call, MOUNT, b"x", b"/data/inputs", b"none", 32, None),
    unmount=outcome(call, UMOUNT, b"/data/outputs", 2),
    user_namespace=outcome(call, UNSHARE, NEWUSER),
    mount_namespace=outcome(call, UNSHARE, NEWNS),
    join=outcome(lambda: call(SETNS, os.open("/proc/1/ns/mnt", os.O_RDONLY), 0)),
    pivot=outcome(call, PIVOT, b"/tmp", b"/tmp"),
    chroot=outcome(call, CHROOT, b"/tmp"),
    reboot=outcome(call, REBOOT, 0xFEE1DEAD, 672274793, 0x1234567, None),
    capabilities=status["CapEff"] + status["CapPrm"] + status["CapBnd"],
    no_new_privileges=status["NoNewPrivs"],
    filter=status["Seccomp"],
    own_user=outcome(os.setuid, os.getuid()),
    ordinary_user=os.getuid() >= 1000,
)
write_valid()
