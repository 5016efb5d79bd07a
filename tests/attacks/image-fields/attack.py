import os
import time

from acts import FOLDER, fill_two, tell, write_valid

time.sleep(1.5)
tell(
    root=os.getuid() == 0,
    volume=fill_two("/volume"),
    left=os.statvfs("/volume").f_bavail,
    health=[*os.listdir(FOLDER), *os.listdir("/tmp")] != [],
    home=os.environ["HOME"],
    gpus=os.environ["NVIDIA_VISIBLE_DEVICES"],
)
write_valid()
