import os

from acts import write_valid

children = []
for _ in range(8):
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    children.append(pid)
assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 8
write_valid()
