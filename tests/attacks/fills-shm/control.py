from acts import fill, write_valid

fill("/dev/shm/x", 12 << 20)
write_valid()
