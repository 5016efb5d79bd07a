from acts import connect, loopback, outcome, tell, write_valid

tell(
    ipv4=outcome(connect, "169.254.169.254", 80),
    ipv6=outcome(connect, "fd00:ec2::254", 80),
    tasks=outcome(connect, "169.254.170.2", 80),
    loopback=outcome(loopback),
)
write_valid()
