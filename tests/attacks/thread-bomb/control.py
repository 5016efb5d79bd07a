import threading
import time

from acts import write_valid

threads = [threading.Thread(target=time.sleep, args=(0.05,)) for _ in range(16)]
for thread in threads:
    thread.start()
write_valid()
