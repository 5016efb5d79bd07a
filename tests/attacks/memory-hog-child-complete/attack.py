import os

from acts import write_valid

pid = os.fork()
if pid == 0:
    held = []
    while True:
        held.append(b"x" * (1 << 20))
os.waitpid(pid, 0)
write_valid()
