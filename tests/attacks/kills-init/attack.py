import os
import signal

from acts import outcome, tell, write_valid

for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGSEGV):
    os.kill(1, number)
with open("/proc/1/comm") as source:
    name = source.read().strip()
tell(lives=outcome(os.kill, 1, 0), name=name)
write_valid()
