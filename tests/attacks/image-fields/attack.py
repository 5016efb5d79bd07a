import os
import time

from acts import FOLDER, fill, outcome, tell, write_valid

time.sleep(1.5)
tell(
    root=os.getuid() == 0,
    volume=outcome(fill, "/volume/x"),
    size=os.stat("/volume/x").st_size,
    health=[*os.listdir(FOLDER), *os.listdir("/tmp")] != [],
    home=os.environ["HOME"],
    gpus=os.environ["NVIDIA_VISIBLE_DEVICES"],
)
write_valid()
