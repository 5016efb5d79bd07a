import os
import sys

from acts import write_valid

write_valid()
pid = os.fork()
if pid == 0:
    held = []
    while True:
        held.append(b"x" * (1 << 20))
os.waitpid(pid, 0)
sys.exit(3)
