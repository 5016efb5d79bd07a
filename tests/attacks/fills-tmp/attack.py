import os

from acts import fill, outcome, tell, write, write_valid


def files():
    for number in range(100_000):
        write(f"/tmp/{number}", "")


answers = {"bytes": outcome(fill, "/tmp/x"), "size": os.stat("/tmp/x").st_size}
os.unlink("/tmp/x")
tell(**answers, files=outcome(files))
write_valid()
