import os

from acts import OUTPUT, outcome, tell, write_valid

tell(
    zero=outcome(os.mknod, OUTPUT, 0o20666, os.makedev(1, 5)),
    disk=outcome(os.mknod, OUTPUT, 0o60666, os.makedev(8, 0)),
    pipe=outcome(os.mkfifo, "/tmp/pipe"),
)
write_valid()
