"""The profile as data: what it allows, what it does not, and that it is what the engine is told."""

import json

import pytest

from runner.seccomp import profile

_PROFILE = json.loads(profile())
_RULES = [rule for rule in _PROFILE["syscalls"] if rule["action"] == "SCMP_ACT_ALLOW"]
_REFUSALS = [rule for rule in _PROFILE["syscalls"] if rule["action"] != "SCMP_ACT_ALLOW"]
_FREE = {name for rule in _RULES if "args" not in rule for name in rule["names"]}


def _conditions(name: str) -> list[tuple[str, int, int]]:
    found = [rule["args"][0] for rule in _RULES if rule["names"] == [name]]
    return [(condition["op"], condition["value"], condition["valueTwo"]) for condition in found]


def test_unknown_calls_are_missing_not_forbidden() -> None:
    assert (_PROFILE["defaultAction"], _PROFILE["defaultErrnoRet"]) == ("SCMP_ACT_ERRNO", 38)
    assert {(rule["action"], rule["errnoRet"]) for rule in _REFUSALS} == {("SCMP_ACT_ERRNO", 38)}
    # Docker 20.10 answers EPERM to what no rule names, and EPERM on clone3 is the end of every thread.
    assert "clone3" in _REFUSALS[0]["names"]


@pytest.mark.parametrize(
    "name",
    [
        "clone3", "io_uring_setup", "io_uring_enter", "io_uring_register", "mount", "umount2", "unshare", "setns",
        "bpf", "perf_event_open", "userfaultfd",
        "keyctl", "add_key", "request_key", "ptrace", "init_module", "kexec_load",
        "reboot", "swapon", "clock_settime", "settimeofday", "adjtimex", "open_by_handle_at", "pivot_root", "chroot",
        "quotactl", "acct", "iopl", "ioperm", "memfd_secret", "fanotify_init", "lookup_dcookie", "syslog", "vhangup",
        "socketcall", "move_mount", "fsopen", "open_tree",
    ],
)  # fmt: skip
def test_what_reaches_the_host_is_in_no_rule(name: str) -> None:
    assert all(name not in rule["names"] for rule in _RULES)


def test_sockets_are_allowed_by_family_and_vsock_is_none_of_them() -> None:
    assert "socket" not in _FREE
    assert _conditions("socket") == [("SCMP_CMP_EQ", family, 0) for family in (1, 2, 10, 16)]


def test_a_clone_may_make_threads_and_processes_but_no_namespace() -> None:
    assert "clone" not in _FREE
    assert _conditions("clone") == [("SCMP_CMP_MASKED_EQ", 0x7E020000, 0)]


def test_only_native_calls_are_allowed() -> None:
    architectures = {entry["architecture"]: entry["subArchitectures"] for entry in _PROFILE["archMap"]}
    assert architectures == {"SCMP_ARCH_X86_64": [], "SCMP_ARCH_AARCH64": []}


def test_no_call_is_listed_twice() -> None:
    names = [name for rule in _RULES if "args" not in rule for name in rule["names"]]
    assert len(names) == len(set(names))


def test_room_can_be_refused_to_who_does_not_write_as_a_file_system_does_that_cannot_give_it() -> None:
    """glibc writes in its place where the answer is EOPNOTSUPP, and where it is anything else gives up."""
    without = json.loads(profile(allocate=False))["syscalls"]
    assert "fallocate" in _FREE
    assert {"names": ["fallocate"], "action": "SCMP_ACT_ERRNO", "errnoRet": 95} in without
    allowed = {name for rule in without if rule["action"] == "SCMP_ACT_ALLOW" for name in rule["names"]}
    assert allowed == {name for rule in _RULES for name in rule["names"]} - {"fallocate"}
