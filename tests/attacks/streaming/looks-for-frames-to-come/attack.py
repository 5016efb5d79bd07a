import os
import time

from acts import answer, frames, greet, names, tell

before = names()
greet()
seen, met = os.pipe()
watcher = os.fork()
if not watcher:
    most = 0
    while os.getppid() != 1 and not os.path.exists("/tmp/over"):
        most = max(most, len(names()))
        time.sleep(0.001)
    os.write(met, str(most).encode())
    os._exit(0)
ahead = 0
for frame in frames():
    own = frame["inputs"]["frames"]["path"]
    for _ in range(3):
        ahead = max(ahead, len([path for path in names() if path != own]))
        time.sleep(0.05)
    facts = os.stat(own)
    assert (facts.st_nlink, facts.st_mtime, facts.st_size > 0) == (1, 1_000_000_000, True)
    answer(frame["index"])
open("/tmp/over", "w").close()
os.waitpid(watcher, 0)
tell(before_the_first=len(before), beside_the_open_one=ahead, at_once=int(os.read(seen, 10)))
