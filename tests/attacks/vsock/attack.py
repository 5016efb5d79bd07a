import socket

from acts import loopback, outcome, tell, write_valid

tell(
    vsock=outcome(socket.socket, socket.AF_VSOCK, socket.SOCK_STREAM),
    unix=outcome(socket.socket, socket.AF_UNIX, socket.SOCK_STREAM),
    loopback=outcome(loopback),
)
write_valid()
