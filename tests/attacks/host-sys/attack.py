import glob
import os

from acts import outcome, read, tell, write, write_valid

names = ("memory.limit_in_bytes", "memory.max", "pids.max")
limits = [path for name in names for path in glob.glob(f"/sys/fs/cgroup/**/{name}", recursive=True)]
tell(
    power=outcome(write, "/sys/power/state", "mem"),
    helper=outcome(write, "/sys/kernel/uevent_helper", "/tmp/x"),
    firmware=len(os.listdir("/sys/firmware")),
    limits=sorted({outcome(write, path, "max") for path in limits} - {"EROFS", "EACCES"}) == [],
    new_group=outcome(os.mkdir, os.path.dirname(limits[0]) + "/x"),
    own_limit=outcome(read, limits[0])[-5:],
)
write_valid()
