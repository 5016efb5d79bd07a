import os

from acts import outcome, read, tell, write, write_valid

tell(
    sysrq=outcome(write, "/proc/sysrq-trigger", "h"),
    core_pattern=outcome(write, "/proc/sys/kernel/core_pattern", "|/bin/sh"),
    modprobe=outcome(write, "/proc/sys/kernel/modprobe", "/tmp/x"),
    kcore=outcome(read, "/proc/kcore"),
    keys=outcome(read, "/proc/keys"),
    kernel_log=outcome(os.open, "/proc/kmsg", os.O_RDONLY),
    memory=outcome(read, "/dev/mem"),
    processes=sum(name.isdigit() for name in os.listdir("/proc")),
    descriptors=len(os.listdir("/proc/self/fd")) - 1,
    own_name=outcome(read, "/proc/self/comm"),
)
write_valid()
