import os

from acts import OUTPUT, SECRET

os.symlink(SECRET, OUTPUT)
