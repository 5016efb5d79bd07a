import os

os.mkfifo("/tmp/pipe")
open("/tmp/pipe")
