"""The system calls a container may make, for engines whose own profile leaves doors open. Pure.

Engines before 25 let a container make AF_VSOCK sockets, which reach past a virtual machine's network, and io_uring,
whose work no other filter sees. Where a probe finds either open, this profile takes the place of the engine's;
elsewhere the engine's own stays.

It is an allow-list: what ordinary programs, Python, PyTorch, CUDA and node need. Everything else answers ENOSYS, as an
older kernel would, because programs have a way around a call that is missing and none around one that is forbidden:
glibc falls back from clone3 only on ENOSYS, and without it no thread can be started. Docker 20.10 does not know
``defaultErrnoRet`` and answers EPERM to what no rule names, so the calls that programs try first have a rule of their
own. Only the processor's native calls are allowed, since the 32-bit ``socketcall`` hides a socket's family from any
filter.
"""

import json

_ALLOWED = """
accept accept4 access alarm arch_prctl bind brk capget capset chdir chmod chown clock_getres clock_gettime
clock_nanosleep close close_range connect copy_file_range creat dup dup2 dup3 epoll_create epoll_create1 epoll_ctl
epoll_pwait epoll_pwait2 epoll_wait eventfd eventfd2 execve execveat exit exit_group faccessat faccessat2 fadvise64
fallocate fchdir fchmod fchmodat fchmodat2 fchown fchownat fcntl fdatasync fgetxattr flistxattr flock fork
fremovexattr fsetxattr fstat fstatfs fsync ftruncate futex futex_requeue futex_wait futex_waitv futex_wake futimesat
get_mempolicy get_robust_list getcpu getcwd getdents getdents64 getegid geteuid getgid getgroups getitimer
getpeername getpgid getpgrp getpid getppid getpriority getrandom getresgid getresuid getrlimit getrusage getsid
getsockname getsockopt gettid gettimeofday getuid getxattr inotify_add_watch inotify_init inotify_init1
inotify_rm_watch io_cancel io_destroy io_getevents io_setup io_submit ioctl ioprio_get ioprio_set kill
landlock_add_rule landlock_create_ruleset landlock_restrict_self lchown lgetxattr link linkat listen listxattr
llistxattr lremovexattr lseek lsetxattr lstat madvise mbind membarrier memfd_create migrate_pages mincore mkdir
mkdirat mknod mknodat mlock mlock2 mlockall mmap move_pages mprotect mq_getsetattr mq_notify mq_open mq_timedreceive
mq_timedsend mq_unlink mremap msgctl msgget msgrcv msgsnd msync munlock munlockall munmap name_to_handle_at nanosleep
newfstatat open openat openat2 pause pidfd_open pidfd_send_signal pipe pipe2 pkey_alloc pkey_free pkey_mprotect poll
ppoll prctl pread64 preadv preadv2 prlimit64 process_madvise process_mrelease process_vm_readv process_vm_writev
pselect6 pwrite64 pwritev pwritev2 read readahead readlink readlinkat readv recvfrom recvmmsg recvmsg
remap_file_pages removexattr rename renameat renameat2 restart_syscall rmdir rseq rt_sigaction rt_sigpending
rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo sched_get_priority_max
sched_get_priority_min sched_getaffinity sched_getattr sched_getparam sched_getscheduler sched_rr_get_interval
sched_setaffinity sched_setattr sched_setparam sched_setscheduler sched_yield seccomp select semctl semget semop
semtimedop sendfile sendmmsg sendmsg sendto set_mempolicy set_robust_list set_tid_address setfsgid setfsuid setgid
setgroups setitimer setpgid setpriority setregid setresgid setresuid setreuid setrlimit setsid setsockopt setuid
setxattr shmat shmctl shmdt shmget shutdown sigaltstack signalfd signalfd4 socketpair splice stat statfs statx
symlink symlinkat sync sync_file_range syncfs sysinfo tee tgkill time timer_create timer_delete timer_getoverrun
timer_gettime timer_settime timerfd_create timerfd_gettime timerfd_settime times tkill truncate umask uname unlink
unlinkat utime utimensat utimes vfork vmsplice wait4 waitid waitpid write writev
"""

_TRIED_FIRST = """
cachestat clone3 fanotify_init io_uring_enter io_uring_register io_uring_setup keyctl memfd_secret perf_event_open
pidfd_getfd set_mempolicy_home_node statmount userfaultfd
"""

_FAMILIES = (1, 2, 10, 16)
"""AF_UNIX, AF_INET, AF_INET6, AF_NETLINK; without a network the middle two reach the container itself."""

_NAMESPACE_FLAGS = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET."""

_PERSONALITIES = (0x0, 0x8, 0x20000, 0x20008, 0xFFFFFFFF)
_ENOSYS = 38
_EOPNOTSUPP = 95
_ALLOCATE = "fallocate"

_Rule = dict[str, object]


def _when(name: str, value: int, *, operator: str = "SCMP_CMP_EQ", second: int = 0) -> _Rule:
    condition = {"index": 0, "value": value, "valueTwo": second, "op": operator}
    return {"names": [name], "action": "SCMP_ACT_ALLOW", "args": [condition]}


def profile(*, allocate: bool = True) -> str:
    """The profile as the engine takes it: JSON.

    Args:
        allocate: A program may ask a file system for room without writing, which takes gigabytes in milliseconds;
            else it is told that the file system cannot do that.
    """
    allowed = set(_ALLOWED.split()) - (set() if allocate else {_ALLOCATE})
    rules: list[_Rule] = [{"names": sorted(allowed), "action": "SCMP_ACT_ALLOW"}]
    if not allocate:
        rules.append({"names": [_ALLOCATE], "action": "SCMP_ACT_ERRNO", "errnoRet": _EOPNOTSUPP})
    rules += [_when("socket", family) for family in _FAMILIES]
    rules += [_when("personality", value) for value in _PERSONALITIES]
    rules.append({"names": sorted(_TRIED_FIRST.split()), "action": "SCMP_ACT_ERRNO", "errnoRet": _ENOSYS})
    rules.append(_when("clone", _NAMESPACE_FLAGS, operator="SCMP_CMP_MASKED_EQ"))
    value = {
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": _ENOSYS,
        "archMap": [
            {"architecture": "SCMP_ARCH_X86_64", "subArchitectures": []},
            {"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": []},
        ],
        "syscalls": rules,
    }
    return json.dumps(value, separators=(",", ":"))


DOORS = """
import ctypes, errno, json, os, socket, sys
output = sys.argv[2]

def opens(act):
    try:
        act()
    except OSError as error:
        return error.errno not in (errno.EPERM, errno.ENOSYS, errno.EAFNOSUPPORT)
    return True

def io_uring():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(425, 1, None) < 0:
        raise OSError(ctypes.get_errno(), "")

answer = {"vsock": opens(lambda: socket.socket(40, socket.SOCK_STREAM)), "io_uring": opens(io_uring)}
with open(output + ".json", "w") as sink:
    json.dump(answer, sink)
"""
"""A probe's script: which of the doors this profile closes are open. io_uring_setup without memory answers EFAULT."""
