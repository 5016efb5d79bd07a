import os

from acts import libc, outcome, tell, write, write_valid

places = ("/tmp", "/dev/shm", "/volume", "/var/tmp", "/root", "/data", "/data/outputs", "/run")
left = sum(outcome(write, f"{place}/message") == "done" for place in places)
tell(left=left, memory=libc.shmget(815, 4096, 0o1666) >= 0)
os.unlink("/data/outputs/message")
write_valid()
