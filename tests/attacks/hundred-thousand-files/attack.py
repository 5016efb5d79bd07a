import os

from acts import FOLDER, write_valid

write_valid()
os.chdir(FOLDER)
for number in range(100_000):
    os.mknod(str(number))
