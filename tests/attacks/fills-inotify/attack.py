import time

from acts import libc, tell, write_valid

write_valid()
taken = 0
while taken < 100_000 and libc.inotify_init() >= 0:
    taken += 1
tell(refused=taken < 100_000, some=taken > 10)
time.sleep(1)
