import os
import time

from acts import write_valid

if os.fork() == 0:
    os.setsid()
    time.sleep(0.3)
    while True:
        write_valid()
