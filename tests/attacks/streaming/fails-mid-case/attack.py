import sys

from acts import answer, frames, greet, say

greet()
for frame in frames():
    if frame["index"] == 2:
        say(type="error", message="HOSTILE \x1b[31m")
        sys.exit(1)
    answer(frame["index"])
