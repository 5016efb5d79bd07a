import os

from acts import libc, write_valid

for place in ("/tmp", "/dev/shm", "/volume", "/var/tmp", "/root", "/data", "/data/outputs", "/run"):
    assert not os.path.exists(f"{place}/message"), place
assert libc.shmget(815, 4096, 0o666) < 0
write_valid()
