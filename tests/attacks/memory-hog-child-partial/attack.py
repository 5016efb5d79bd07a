import os

from acts import OUTPUT, write

pid = os.fork()
if pid == 0:
    held = []
    while True:
        held.append(b"x" * (1 << 20))
os.waitpid(pid, 0)
write(OUTPUT, "int_time,int_step\n0,1\n1,1\n")
