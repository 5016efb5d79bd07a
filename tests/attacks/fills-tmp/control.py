from acts import fill, write_valid

fill("/tmp/x", 12 << 20)
write_valid()
