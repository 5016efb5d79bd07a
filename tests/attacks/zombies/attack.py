import os

from acts import outcome, tell, write_valid


def spawn():
    for _ in range(200):
        if os.fork() == 0:
            os._exit(0)


write_valid()
tell(children=outcome(spawn))
