import threading
import time

from acts import tell, write_valid

write_valid()
started = 0
try:
    for _ in range(1000):
        threading.Thread(target=time.sleep, args=(0.5,), daemon=True).start()
        started += 1
    answer = "done"
except RuntimeError:
    answer = f"refused after {started}"
tell(threads=answer)
