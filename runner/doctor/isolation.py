"""Proves on this host that what is forbidden fails, and that the ordinary thing beside it works.

A denied call proves nothing if everything fails; each forbidden act therefore has a control.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import JsonValue

from runner.budget import KILL_GRACE
from runner.doctor.findings import Finding, fine, note, problem
from runner.engine import ImageFacts
from runner.execute import Bench
from runner.judge import exceeded_time
from runner.probe import PROBE_BUDGET, ask, flood_stopped_at, open_doors
from runner.quantities import show_bytes

_ACTS = """
import errno, json, os, socket, sys
folder, output = sys.argv[1], sys.argv[2]

def outcome(act):
    try:
        act()
        return "done"
    except OSError as error:
        return errno.errorcode.get(error.errno, "?")

def write(path):
    with open(path, "w") as sink:
        sink.write("x")

def connect(address):
    with socket.socket() as s:
        s.settimeout(1)
        s.connect(address)

def loopback():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        connect(server.getsockname())

def fork(count):
    children, failure = [], None
    for _ in range(count):
        try:
            pid = os.fork()
        except OSError as error:
            failure = error
            break
        if pid == 0:
            import signal
            signal.pause()
        children.append(pid)
    for pid in children:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
    if failure:
        raise failure

answers = {
    "write to the image": outcome(lambda: write("/proctor")),
    "write to /tmp": outcome(lambda: write("/tmp/x")),
    "write to the input": outcome(lambda: write(folder + "/x")),
    "read the input": outcome(lambda: open(folder + "/marker.txt").read()),
    "make a device": outcome(lambda: os.mknod("/tmp/device", 0o20600, os.makedev(1, 3))),
    "make a named pipe": outcome(lambda: os.mkfifo("/tmp/pipe")),
    "connect to the outside": outcome(lambda: connect(("192.0.2.1", 9))),
    "connect to itself": outcome(loopback),
    "start 200 processes": outcome(lambda: fork(200)),
    "start 4 processes": outcome(lambda: fork(4)),
    "become root": outcome(lambda: os.setuid(0)),
    "keep its own user": outcome(lambda: os.setuid(os.getuid())),
}
with open(output + ".json", "w") as sink:
    json.dump(answers, sink)
"""

_FILL = """
import errno, json, os, sys
path, answers = sys.argv[2] + ".fill", {}
for size in (2, 16):
    try:
        with open(path, "wb") as sink:
            for _ in range(size):
                sink.write(b"x" * (1 << 20))
            sink.flush()
            os.fsync(sink.fileno())
        answers[size] = "done"
    except OSError as error:
        answers[size] = errno.errorcode.get(error.errno, "?")
    os.unlink(path)
with open(sys.argv[2] + ".json", "w") as sink:
    json.dump({f"write {size} MiB of output": answer for size, answer in answers.items()}, sink)
"""


@dataclass(frozen=True, kw_only=True)
class Promise:
    """Something a container must not be able to do, and its control.

    Attributes:
        name: The promise.
        forbidden: The act that must fail, by its name in the probe.
        errors: How it may fail.
        control: The act beside it that must work.
    """

    name: str
    forbidden: str
    errors: tuple[str, ...]
    control: str


_PROMISES = (
    Promise(
        name="image is read-only", forbidden="write to the image", errors=("EROFS", "EACCES"), control="write to /tmp"
    ),
    Promise(
        name="input is read-only", forbidden="write to the input", errors=("EROFS", "EACCES"), control="read the input"
    ),
    Promise(name="no devices", forbidden="make a device", errors=("EPERM",), control="make a named pipe"),
    Promise(
        name="no network", forbidden="connect to the outside", errors=("ENETUNREACH",), control="connect to itself"
    ),
    Promise(name="process limit", forbidden="start 200 processes", errors=("EAGAIN",), control="start 4 processes"),
    Promise(name="no root", forbidden="become root", errors=("EPERM",), control="keep its own user"),
)


_OUTPUT_LIMIT = Promise(
    name="output limit",
    forbidden="write 16 MiB of output",
    errors=("ENOSPC", "EFBIG", "EDQUOT"),
    control="write 2 MiB of output",
)


def examine_isolation(bench: Bench, helper: ImageFacts, *, scratch: Path) -> Iterator[Finding]:
    """Run the probes, one container each for acts, memory and time."""
    found = ask(bench, helper, _ACTS, scratch=scratch)
    if not isinstance(found.answer, dict):
        yield problem(
            "container", f"a container of ours did not answer: {found.log.strip()[-200:]}", "see the engine's own log"
        )
        return
    yield fine("container", f"a container runs and answers in {found.result.usage.monotonic_seconds:.2f} s")
    for promise in _PROMISES:
        yield _kept(promise, found.answer)
    yield _output(bench, helper, scratch)
    doors = open_doors(bench, helper, scratch=scratch)
    if doors:
        yield problem(
            "no side doors", f"open: {', '.join(doors)}", "update the engine; do not run strangers' images on it"
        )
    else:
        yield fine("no side doors", "vsock sockets and io_uring are refused")
    yield _memory(bench, helper, scratch)
    yield _time(bench, helper, scratch)


def _kept(promise: Promise, answers: dict[str, JsonValue]) -> Finding:
    denied, control = answers.get(promise.forbidden), answers.get(promise.control)
    if denied in promise.errors and control == "done":
        return fine(promise.name, f"{promise.forbidden}: {denied}; {promise.control}: works")
    if control != "done":
        return problem(
            promise.name,
            f"{promise.control} does not work: {control}",
            "the engine is stricter than proctor needs; see its security options",
        )
    return problem(
        promise.name, f"{promise.forbidden} gave {denied}, it must fail", "do not run strangers' images on this engine"
    )


def _output(bench: Bench, helper: ImageFacts, scratch: Path) -> Finding:
    script = _FILL.replace("(2, 16)", "(2,)") if bench.watched else _FILL
    found = ask(bench, helper, script, scratch=scratch)
    answers = found.answer if isinstance(found.answer, dict) else {}
    if not bench.watched:
        return _kept(_OUTPUT_LIMIT, answers)
    stopped_at = flood_stopped_at(bench, helper, scratch=scratch)
    control = answers.get(_OUTPUT_LIMIT.control)
    limit = show_bytes(PROBE_BUDGET.output_bytes)
    if control != "done":
        return problem(_OUTPUT_LIMIT.name, f"{_OUTPUT_LIMIT.control} does not work: {control}", "make room on the disk")
    if stopped_at is None:
        return problem(
            _OUTPUT_LIMIT.name,
            f"endless output was not stopped at the {limit} allowed",
            "do not run strangers' images on this host",
        )
    return note(
        _OUTPUT_LIMIT.name,
        f"endless output: stopped when {show_bytes(stopped_at)} of {limit} allowed were written; "
        f"{_OUTPUT_LIMIT.control}: works",
        "to hold it to its size, run proctor as root on the engine's own host",
    )


def _memory(bench: Bench, helper: ImageFacts, scratch: Path) -> Finding:
    limit = PROBE_BUDGET.memory
    hog = ask(bench, helper, _hog(limit * 2), scratch=scratch).result
    modest = ask(bench, helper, _hog(limit // 4), scratch=scratch).result
    if hog.exit is None or modest.exit is None:
        return problem("memory limit", "the probe did not start", "see the engine's own log")
    if modest.exit.code != 0:
        return problem(
            "memory limit",
            f"a quarter of the limit was not granted: exit code {modest.exit.code}",
            "free memory on this host",
        )
    if hog.exit.code == 0 or not hog.exit.oom_killed:
        return problem(
            "memory limit", f"twice the {show_bytes(limit)} allowed could be used", "enable the memory cgroup"
        )
    return fine("memory limit", f"twice {show_bytes(limit)}: killed; a quarter of it: works")


def _hog(size: int) -> str:
    return f"held = [bytearray(b'x' * (16 << 20)) for _ in range({size >> 24})]"


def _time(bench: Bench, helper: ImageFacts, scratch: Path) -> Finding:
    budget = replace(PROBE_BUDGET, run_time=1.0)
    script = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
    slow = ask(bench, helper, script, scratch=scratch, budget=budget).result
    seconds = slow.usage.monotonic_seconds
    if not exceeded_time(slow, budget.run_time) or seconds > budget.run_time + KILL_GRACE + 3:
        return problem(
            "time limit", f"a container that ignores SIGTERM ran {seconds:.1f} s of 1.0 s allowed", "restart the engine"
        )
    return fine(
        "time limit", f"a container that ignores SIGTERM: ended {seconds - budget.run_time:.1f} s after its limit"
    )
