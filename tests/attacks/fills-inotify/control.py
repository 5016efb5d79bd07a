from acts import libc, write_valid

assert libc.inotify_init() >= 0
write_valid()
