import os

from acts import FOLDER, OUTPUT, REFERENCE

os.symlink(os.path.dirname(REFERENCE), FOLDER + "/linked")
os.symlink("linked/" + os.path.basename(REFERENCE), OUTPUT)
