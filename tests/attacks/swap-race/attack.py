import os

from acts import FOLDER, OUTPUT, REFERENCE, write_valid

while True:
    write_valid(FOLDER + "/file")
    os.replace(FOLDER + "/file", OUTPUT)
    os.symlink(REFERENCE, FOLDER + "/link")
    os.replace(FOLDER + "/link", OUTPUT)
