import os

from acts import fill_two, tell, write_valid

tell(bytes=fill_two("/dev/shm"), left=os.statvfs("/dev/shm").f_bavail)
write_valid()
