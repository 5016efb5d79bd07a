import os
import signal
import time

from acts import write_valid

write_valid()
ready, go = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_IGN)
        os.write(go, b"x")
        while True:
            time.sleep(60)
    os._exit(0)
os.read(ready, 1)
