import os

from acts import write_valid

pid = os.fork()
if pid == 0:
    held = [b"x" * (1 << 20) for _ in range(256)]
    os._exit(0)
os.waitpid(pid, 0)
write_valid()
