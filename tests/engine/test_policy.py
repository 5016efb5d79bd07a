"""The policy on the real engine: every limit read back, from the engine's account and from inside."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import docker
import pytest

from runner.engine import ContainerSpec, Engine, ImageFacts
from runner.errors import HostFault, HostUnfit
from runner.execute import Bench
from runner.job import Job, KillReason, Output
from runner.judge import judge_run
from runner.own_tree import SPARE_ROOM
from runner.pipeline.events import Event, Notice
from runner.pipeline.host import HostFacts, open_bench
from runner.policy import STRICT, PolicyName
from runner.probe import PROBE_BUDGET, ask
from runner.sandbox import Seat, container_spec
from runner.settings import load_settings
from runner.verdict import VerdictWord
from tests.engine.conftest import BASE

pytestmark = [pytest.mark.engine, pytest.mark.root]

MIB = 1 << 20


@dataclass(frozen=True)
class Desk:
    """Where probes are run."""

    bench: Bench
    host: HostFacts
    image: ImageFacts
    scratch: Path
    notices: tuple[str, ...]


@pytest.fixture(scope="module")
def desk_of(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """Make this host ready under a policy and settings."""

    def make(policy: PolicyName, **flags: str) -> Any:
        told: list[Event] = []
        opened = open_bench(
            engine, load_settings(None, flags, environ={}).settings,
            stop=threading.Event(), observe=told.append, policy=policy,
        )  # fmt: skip
        return opened, told

    return make


@pytest.fixture(scope="module", params=PolicyName)
def desk(
    request: pytest.FixtureRequest,
    desk_of: Callable[..., Any],
    engine: Engine,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Desk]:
    opened, told = desk_of(request.param)
    with opened as (bench, host):
        notices = tuple(event.text for event in told if isinstance(event, Notice))
        yield Desk(bench, host, engine.image(BASE), tmp_path_factory.mktemp("scratch"), notices)


def _job(image: ImageFacts) -> Job:
    return Job(
        submission="s", task="t", case="c", name="full", frames=1, image_id=image.id,
        arguments=("true",), input_mount="/data/inputs", output_mount="/data/outputs",
        outputs=(Output(case="c", file="{case}.csv"),), budget=PROBE_BUDGET, digest="",
    )  # fmt: skip


@pytest.fixture
def inspected(desk: Desk, engine: Engine, tmp_path: Path) -> Iterator[tuple[ContainerSpec, dict[str, Any]]]:
    """A participant's container as we describe it, created, and the engine's whole account of it."""
    (tmp_path / "view").mkdir()
    (tmp_path / "out").mkdir()
    seat = Seat(
        name="proctor-test-inspected", labels=desk.bench.labels, uid=200_007, gid=200_007, view=tmp_path / "view",
        input_name="n", output=tmp_path / "out",
    )  # fmt: skip
    spec = container_spec(policy=desk.bench.policy, job=_job(desk.image), image=desk.image, seat=seat)
    container = engine.create(spec)
    client = docker.APIClient(version="auto")
    try:
        yield spec, client.inspect_container(container)
    finally:
        client.close()
        engine.remove(container)


def test_every_limit_is_in_the_engines_own_account(
    desk: Desk, inspected: tuple[ContainerSpec, dict[str, Any]], tmp_path: Path
) -> None:
    _, answer = inspected
    host, config = answer["HostConfig"], answer["Config"]
    strict = desk.bench.policy == STRICT
    budget = PROBE_BUDGET
    seen = {
        "memory": (host["Memory"], host["MemorySwap"]),
        "shm": host["ShmSize"],
        "cpus": host["NanoCpus"],
        "pids": host["PidsLimit"],
        "ulimits": sorted((u["Name"], u["Soft"], u["Hard"]) for u in host["Ulimits"]),
        "log": host["LogConfig"],
        "tmpfs": host["Tmpfs"],
        "mounts": sorted((m["Type"], m["Source"], m["Destination"], m["RW"]) for m in answer["Mounts"]),
        "network": host["NetworkMode"],
        "ipc": host["IpcMode"],
        "pid": host["PidMode"],
        "users": host["UsernsMode"],
        "read only": host["ReadonlyRootfs"],
        "capabilities": (host["CapDrop"], sorted(host["CapAdd"] or ())),
        "privileged": host["Privileged"],
        "options": host["SecurityOpt"],
        "devices": (host["Devices"] or [], host["DeviceRequests"] or []),
        "restart": host["RestartPolicy"]["Name"],
        "auto remove": host["AutoRemove"],
        "init": host["Init"],
        "user": config["User"],
        "healthcheck": config["Healthcheck"],
        "terminal": (config["Tty"], config["OpenStdin"], config["AttachStdout"]),
        "hostname": config["Hostname"],
    }
    assert seen == {
        "memory": (budget.memory, budget.memory),
        "shm": budget.shm,
        "cpus": 1_000_000_000,
        "pids": budget.pids,
        "ulimits": [("core", 0, 0), ("fsize", 16 * MIB, 16 * MIB), ("nofile", 1024, 1024)],
        "log": {"Type": "json-file", "Config": {"max-size": "21845", "max-file": "3"}},
        "tmpfs": {"/tmp": f"rw,nosuid,nodev,exec,size={budget.tmp},nr_inodes=65536,mode=1777"},
        "mounts": [
            ("bind", str(tmp_path / "out"), "/data/outputs", True),
            ("bind", str(tmp_path / "view"), "/data/inputs", False),
        ],
        "network": "none",
        "ipc": "private",
        "pid": "",
        "users": "",
        "read only": strict,
        "capabilities": (["ALL"], [] if strict else ["CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID"]),
        "privileged": False,
        "options": ["no-new-privileges:true"],
        "devices": ([], []),
        "restart": "no",
        "auto remove": False,
        "init": True,
        "user": "200007:200007" if strict else "",
        "healthcheck": {"Test": ["NONE"]},
        "terminal": (False, False, False),
        "hostname": "worker",
    }


_INSIDE = """
import json, os, resource, sys
status = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\\t" in line)
mounts = {line.split()[1]: line.split()[3].split(",") for line in open("/proc/self/mounts")}
size = lambda path: (lambda s: s.f_blocks * s.f_frsize)(os.statvfs(path))
print(json.dumps(sorted(os.environ)))
json.dump({
    "uid": os.getuid(), "capabilities": int(status["CapEff"], 16), "bounding": int(status["CapBnd"], 16),
    "no new privileges": status["NoNewPrivs"].strip(), "seccomp": status["Seccomp"].strip(),
    "files": resource.getrlimit(resource.RLIMIT_NOFILE), "file": resource.getrlimit(resource.RLIMIT_FSIZE),
    "core": resource.getrlimit(resource.RLIMIT_CORE), "shm": size("/dev/shm"), "tmp": size("/tmp"),
    "tmp files": os.statvfs("/tmp").f_files, "root": "ro" in mounts["/"], "input": "ro" in mounts["/data/inputs"],
    "output": sorted({"nosuid", "nodev", "noexec"} & set(mounts["/data/outputs"])),
    "tmp executable": "noexec" not in mounts["/tmp"],
    "network": sorted(os.listdir("/sys/class/net")),
    "home": os.environ["HOME"], "hostname": os.uname().nodename, "output size": size("/data/outputs"),
}, open(sys.argv[2] + ".json", "w"))
"""
_FIVE = 1 << 0 | 1 << 1 | 1 << 3 | 1 << 6 | 1 << 7  # CHOWN, DAC_OVERRIDE, FOWNER, SETGID, SETUID


def test_every_limit_is_what_the_kernel_says_inside(desk: Desk) -> None:
    strict = desk.bench.policy == STRICT
    found = ask(desk.bench, desk.image, _INSIDE, scratch=desk.scratch)
    assert isinstance(found.answer, dict), found
    answer = dict(found.answer)
    uid, held, output = answer.pop("uid"), answer.pop("capabilities"), answer.pop("output size")
    assert isinstance(uid, int)
    assert (uid >= 200_000) if strict else (uid == 0)
    assert held == (0 if strict else _FIVE)
    assert isinstance(output, int)
    assert output <= PROBE_BUDGET.output_bytes
    assert answer == {
        "bounding": 0 if strict else _FIVE, "no new privileges": "1", "seccomp": "2", "files": [1024, 1024],
        "file": [16 * MIB, 16 * MIB], "core": [0, 0], "shm": PROBE_BUDGET.shm, "tmp": PROBE_BUDGET.tmp,
        "tmp files": 65536, "root": strict, "input": True, "output": ["nodev", "noexec", "nosuid"],
        "tmp executable": True, "network": ["lo"], "home": "/tmp", "hostname": "worker",
    }  # fmt: skip


_NEEDS_ROOT = """
import json, os, sys
os.makedirs("/opt/cache", exist_ok=True)
open("/opt/cache/x", "w").write("x")
os.chown("/opt/cache/x", 1000, 1000)
child = os.fork()
if child == 0:
    os.setgid(1000); os.setuid(1000)
    open("/opt/cache/x").read()
    os._exit(0)
_, state = os.waitpid(child, 0)
json.dump({"child": state}, open(sys.argv[2] + ".json", "w"))
"""


def test_an_image_that_must_be_root_and_writes_its_own_tree(desk: Desk) -> None:
    found = ask(desk.bench, desk.image, _NEEDS_ROOT, scratch=desk.scratch)
    if desk.bench.policy == STRICT:
        assert found.answer is None
        assert "Read-only file system" in found.log
    else:
        assert found.answer == {"child": 0}, found


_FLOODS_ITS_TREE = """
import os
with open("/opt/flood", "wb") as sink:
    while True:
        sink.write(bytes(1 << 20))
        if sink.tell() > 10 << 20:
            sink.seek(0)
            os.rename("/opt/flood", f"/opt/flood-{os.urandom(8).hex()}")
            sink = open("/opt/flood", "wb")
"""


def test_a_tree_that_grows_past_its_size_is_stopped(desk: Desk) -> None:
    found = ask(desk.bench, desk.image, _FLOODS_ITS_TREE, scratch=desk.scratch)
    verdict = judge_run(_job(desk.image), found.result, None, public=False)
    if desk.bench.policy == STRICT:
        assert verdict.word is VerdictWord.CRASHED
        assert found.result.tree_bytes == 0
    else:
        assert found.result.killed is KillReason.OUTPUT
        assert found.result.tree_bytes > PROBE_BUDGET.tmp
        assert verdict.word is VerdictWord.TOO_MUCH_OUTPUT
        assert "16 MiB allowed were written to the container's own tree before it was stopped" in verdict.sentence


def test_a_tree_never_takes_the_engines_last_room(desk: Desk) -> None:
    bench = replace(desk.bench, engine_room=lambda: SPARE_ROOM - 1)
    if desk.bench.policy == STRICT:
        assert ask(bench, desk.image, _WRITES_NOTHING_AT_LENGTH, scratch=desk.scratch).answer == {}
    else:
        with pytest.raises(HostFault, match="a container may write to its own tree"):
            ask(bench, desk.image, _WRITES_NOTHING_AT_LENGTH, scratch=desk.scratch)


_WRITES_NOTHING_AT_LENGTH = """
import json, sys, time
time.sleep(1.5)
json.dump({}, open(sys.argv[2] + ".json", "w"))
"""

_STILL_FORBIDDEN = """
import ctypes, errno, json, os, socket, sys
def outcome(act):
    try:
        act()
        return "done"
    except OSError as error:
        return errno.errorcode.get(error.errno, "?")
libc = ctypes.CDLL(None, use_errno=True)
def mount():
    if libc.mount(b"none", b"/mnt", b"tmpfs", 0, None):
        raise OSError(ctypes.get_errno(), "mount")
def raw():
    socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).close()
def connect():
    with socket.socket() as s:
        s.settimeout(1)
        s.connect(("192.0.2.1", 9))
acts = {
    "device": lambda: os.mknod("/tmp/d", 0o20600, os.makedev(1, 3)),
    "device in the output": lambda: os.mknod(os.path.dirname(sys.argv[2]) + "/d", 0o20600, os.makedev(1, 3)),
    "mount": mount, "raw socket": raw, "connect": connect,
    "input": lambda: open(sys.argv[1] + "/x", "w"),
    "kernel": lambda: open("/proc/sys/kernel/hostname", "w").write("x"),
    "chroot": lambda: os.chroot("/tmp"),
}
json.dump({name: outcome(act) for name, act in acts.items()}, open(sys.argv[2] + ".json", "w"))
"""


def test_neither_policy_opens_the_host(desk: Desk) -> None:
    found = ask(desk.bench, desk.image, _STILL_FORBIDDEN, scratch=desk.scratch)
    assert isinstance(found.answer, dict), found
    assert set(found.answer) == {
        "device", "device in the output", "mount", "raw socket", "connect", "input", "kernel", "chroot",
    }  # fmt: skip
    assert set(found.answer.values()) <= {"EPERM", "EACCES", "EROFS", "ENETUNREACH", "ENOSYS"}, found.answer


def test_the_difference_is_printed_and_kept(desk: Desk) -> None:
    strict = desk.bench.policy == STRICT
    assert desk.host.policy is desk.bench.policy.name
    assert len([text for text in desk.notices if text.startswith("policy compatible: ")]) == (0 if strict else 3)


def test_whole_processors_of_its_own(desk_of: Callable[..., Any], engine: Engine, tmp_path: Path) -> None:
    opened, _ = desk_of(PolicyName.STRICT, processors="cpuset")
    script = "import json, os, sys; json.dump(sorted(os.sched_getaffinity(0)), open(sys.argv[2] + '.json', 'w'))"
    with opened as (bench, _):
        found = ask(bench, engine.image(BASE), script, scratch=tmp_path)
    assert isinstance(found.answer, list)
    assert len(found.answer) == PROBE_BUDGET.cpus == 1
    assert found.result.usage.alone


def test_a_host_that_allows_only_strict_refuses_compatible(desk_of: Callable[..., Any]) -> None:
    opened, _ = desk_of(PolicyName.COMPATIBLE, **{"ceiling.policy": "strict"})
    with pytest.raises(HostUnfit, match="this host allows only 'strict'"), opened:
        pass


def test_a_runtime_the_engine_does_not_offer(desk_of: Callable[..., Any]) -> None:
    opened, _ = desk_of(PolicyName.STRICT, runtime="runsc-none")
    with pytest.raises(HostUnfit, match="no runtime 'runsc-none'; it offers"), opened:
        pass
