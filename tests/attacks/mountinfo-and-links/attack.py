import os
import socket

from acts import INPUT, tell, write_valid

seen = ""
for name in ("mountinfo", "environ", "cgroup", "mounts"):
    with open(f"/proc/self/{name}", errors="replace") as source:
        seen += source.read()
facts = [os.stat(os.path.join(INPUT, name)) for name in sorted(os.listdir(INPUT))]
tell(
    words=sum(word in seen for word in ("canary", "references", "mountinfo-and-links")),
    mounts=seen.count("/data/inputs"),
    links=max(f.st_nlink for f in facts),
    times=len({f.st_mtime for f in facts} - {1_000_000_000.0}),
    host=socket.gethostname(),
    frames=len(facts),
)
write_valid()
