import os

from acts import LISTENER, connect, loopback, outcome, tell, write_valid

address, port = LISTENER.split(":")
tell(
    service=outcome(connect, address, int(port)),
    engine=outcome(connect, address, 2375),
    socket=outcome(os.stat, "/var/run/docker.sock"),
    loopback=outcome(loopback),
)
write_valid()
