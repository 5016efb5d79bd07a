import os

from acts import FOLDER, write_valid

write_valid()
for number in range(100_000):
    os.close(os.open(f"{FOLDER}/{number}", os.O_CREAT))
