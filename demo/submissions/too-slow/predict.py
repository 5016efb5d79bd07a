"""Never ends, and does not listen when it is told to."""

import signal
import time

signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("waiting for a licence server")
while True:
    time.sleep(60)
