import os

from acts import OUTPUT

os.mkfifo(OUTPUT)
