import sys

from acts import answer, frames, greet

greet()
for frame in frames():
    for _ in range(1 << 9):
        sys.stdout.buffer.write(b"HOSTILE log\n" * 128)
    sys.stderr.buffer.write(b"HOSTILE error\n" * (1 << 14))
    answer(frame["index"])
