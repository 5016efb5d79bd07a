import os
import signal

from acts import outcome, tell, write_valid

for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGSEGV):
    os.kill(1, number)
tell(trace_init=outcome(lambda: os.kill(0, 0)), name=open("/proc/1/comm").read().strip())
write_valid()
