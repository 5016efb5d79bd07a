import socket

from acts import connect, loopback, outcome, tell, write_valid


def send(address):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.sendto(b"x", address)


with open("/proc/net/route") as table:
    routes = len(table.readlines()) - 1
tell(
    tcp=outcome(connect, "1.1.1.1", 443),
    tcp6=outcome(connect, "2606:4700:4700::1111", 443),
    udp=outcome(send, ("8.8.8.8", 53)),
    raw=outcome(socket.socket, socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP),
    packet=outcome(socket.socket, socket.AF_PACKET, socket.SOCK_RAW),
    name=outcome(socket.getaddrinfo, "example.org", 443),
    routes=routes,
    loopback=outcome(loopback),
)
write_valid()
