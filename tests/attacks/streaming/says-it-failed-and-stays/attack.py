import time

from acts import frames, greet, say

greet()
next(frames())
say(type="error", message="HOSTILE")
time.sleep(60)
