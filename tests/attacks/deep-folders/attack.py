import os

from acts import FOLDER, write_valid

write_valid()
os.chdir(FOLDER)
for _ in range(3000):
    os.mkdir("d")
    os.chdir("d")
