import os
import time

from acts import frames, greet

greet()
next(frames())
os.close(1)
os.close(2)
time.sleep(60)
