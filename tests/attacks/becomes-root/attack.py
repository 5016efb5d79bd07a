import os

from acts import call, outcome, tell, write_valid

PTRACE, PIVOT, CHROOT, MOUNT, UMOUNT, REBOOT, UNSHARE, SETNS = 101, 155, 161, 165, 166, 169, 272, 308
NEW_USER, NEW_MOUNTS, ATTACH = 0x10000000, 0x20000, 16
with open("/proc/self/status") as source:
    status = dict(line.strip().split(":\t", 1) for line in source if ":\t" in line)
tell(
    setuid=outcome(os.setuid, 0),
    setgid=outcome(os.setgid, 0),
    groups=outcome(os.setgroups, [0]),
    mount=outcome(call, MOUNT, b"x", b"/tmp", b"tmpfs", 0, None),
    remount=outcome(call, MOUNT, b"x", b"/data/inputs", b"none", 32, None),
    unmount=outcome(call, UMOUNT, b"/data/outputs", 2),
    user_namespace=outcome(call, UNSHARE, NEW_USER),
    mount_namespace=outcome(call, UNSHARE, NEW_MOUNTS),
    join=outcome(lambda: call(SETNS, os.open("/proc/self/ns/mnt", os.O_RDONLY), 0)),
    pivot=outcome(call, PIVOT, b"/tmp", b"/tmp"),
    chroot=outcome(call, CHROOT, b"/tmp"),
    reboot=outcome(call, REBOOT, 0xFEE1DEAD, 672274793, 0x1234567, None),
    trace_init=outcome(call, PTRACE, ATTACH, 1, None, None),
    capabilities=status["CapEff"] + status["CapPrm"] + status["CapBnd"],
    no_new_privileges=status["NoNewPrivs"],
    filter=status["Seccomp"],
    own_user=outcome(os.setuid, os.getuid()),
    ordinary_user=os.getuid() >= 1000,
)
write_valid()
