import sys

from acts import write_valid

write_valid()
for _ in range(1024):
    sys.stdout.write("x" * (1 << 16))
