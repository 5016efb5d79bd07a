import os

from acts import fill, outcome, tell, write_valid

tell(bytes=outcome(fill, "/dev/shm/x"), size=os.stat("/dev/shm/x").st_size)
write_valid()
