import ctypes

from acts import call, outcome, tell, write_valid

GETPID, MODULE, KEXEC, ADD_KEY, KEYCTL, PERF, BPF, USERFAULTFD, SETUP, MEMFD_SECRET = (
    39, 175, 246, 248, 250, 298, 321, 323, 425, 447,
)  # fmt: skip
room = ctypes.create_string_buffer(256)
tell(
    io_uring=outcome(call, SETUP, 4, room),
    bpf=outcome(call, BPF, 0, room, 128),
    add_key=outcome(call, ADD_KEY, b"user", b"x", b"x", 1, -3),
    keyctl=outcome(call, KEYCTL, 0, -3, 1),
    perf=outcome(call, PERF, room, 0, -1, -1, 0),
    userfaultfd=outcome(call, USERFAULTFD, 0),
    kexec=outcome(call, KEXEC, 0, 0, 0, 0),
    module=outcome(call, MODULE, room, 128, b""),
    secret_memory=outcome(call, MEMFD_SECRET, 0),
    getpid=outcome(call, GETPID),
)
write_valid()
