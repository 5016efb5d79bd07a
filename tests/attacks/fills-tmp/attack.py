import os

from acts import fill_two, outcome, tell, write, write_valid


def files():
    for number in range(100_000):
        write(f"/tmp/{number}", "")


answers = {"bytes": fill_two("/tmp"), "left": os.statvfs("/tmp").f_bavail}
os.unlink("/tmp/x")
tell(**answers, files=outcome(files))
write_valid()
