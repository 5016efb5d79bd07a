import os
import signal
import time

from acts import tell, write_valid

child = os.fork()
if child == 0:
    time.sleep(60)
os.kill(-1, signal.SIGKILL)
tell(child=os.waitpid(child, 0)[1])
write_valid()
