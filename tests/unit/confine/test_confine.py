"""What a child that a stranger has taken over can do: cost its sender an answer, and nothing else."""

import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from runner.confine import Confine, ConfinedFailure, FailureKind, JsonValue, Privileges, Reply
from runner.confine import parent as parent_module
from runner.confine.wire import most_bytes
from runner.errors import HostFault

DRILLS = "runner.confine.drills"
AS_ROOT = os.geteuid() == 0


def run(
    confine: Confine,
    drill: str,
    request: dict[str, JsonValue] | None = None,
    *,
    descriptors: Sequence[int] = (),
    deadline: float = 10,
    memory: int = 256 << 20,
    privileges: Privileges = Privileges.DROP,
    array_bytes: int = 1000,
) -> Reply:
    return confine.call(
        f"{DRILLS}.{drill}",
        request or {},
        descriptors=descriptors,
        deadline=deadline,
        memory=memory,
        privileges=privileges,
        array_bytes=array_bytes,
    )


def server_pid(confine: Confine) -> int:
    server = confine._server
    assert server is not None
    return server.process.pid


def children_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def settle(condition: Callable[[], bool], *, seconds: float = 5.0) -> None:
    give_up = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up, "it did not come about"
        time.sleep(0.005)


def gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody may enter and write to; pytest's own are private."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Path(name)


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


def ended(pid: int) -> bool:
    """Gone, or left to init to reap: nobody else can once its parent was killed."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return "State:\tZ" in status and "PPid:\t1\n" in status


def read_pids(end: int, count: int) -> list[int]:
    text = b""
    while text.count(b"\n") < count:
        text += os.read(end, 100)
    return [int(line) for line in text.split()]


def test_an_answer_comes_back_with_what_the_descriptors_hold(confine: Confine, tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"abc")
    with path.open("rb") as file:
        file.seek(2)
        reply = run(confine, "echo", {"a": [1, None, "é"]}, descriptors=[file.fileno(), file.fileno()])
        assert file.tell() == 2
    assert reply.header == {"request": {"a": [1, None, "é"]}}
    assert {name: array.tobytes() for name, array in reply.arrays.items()} == {"0": b"abc", "1": b"abc"}


def test_a_child_holds_its_descriptors_its_answer_and_nothing_else(confine: Confine, tmp_path: Path) -> None:
    with (tmp_path / "x").open("w") as file:
        header = run(confine, "facts", descriptors=[file.fileno()]).header
    held, given = header["descriptors"], header["given"]
    assert isinstance(held, list)
    assert isinstance(given, list)
    assert len(held) == 5
    assert set(held) > {0, 1, 2, *map(int, map(str, given))}


def test_a_child_has_no_secret_of_ours_in_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGISTRY_PASSWORD", "secret")
    with Confine(preload=(DRILLS,)) as confine:
        names = run(confine, "facts").header["environment"]
    assert isinstance(names, list)
    assert set(names) <= {
        *("LANG", "LD_LIBRARY_PATH", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"),
        *("PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "LC_CTYPE"),
    }


@pytest.mark.skipif(not AS_ROOT, reason="there is nothing to give up")
def test_root_is_given_up_for_good(confine: Confine) -> None:
    header = run(confine, "facts").header
    uids = header["uids"]
    assert isinstance(uids, list)
    assert len(set(uids)) == 1
    assert uids[0] != 0
    assert header["gids"] == uids
    assert (header["groups"], header["capabilities"], header["no_new_privs"]) == ([], 0, 1)
    assert run(confine, "attempt", {"tries": ["root"], "path": ""}).header == {"root": "PermissionError"}


@pytest.mark.skipif(not AS_ROOT, reason="the file is our own")
def test_a_file_of_root_cannot_be_opened_after_the_drop(confine: Confine, open_folder: Path) -> None:
    secret = open_folder / "reference.csv"
    secret.write_text("hidden")
    secret.chmod(0o600)
    request: dict[str, JsonValue] = {"tries": ["read"], "path": str(secret)}
    assert run(confine, "attempt", request).header == {"read": "PermissionError"}
    assert run(confine, "attempt", request, privileges=Privileges.KEEP).header == {"read": "done"}
    secret.chmod(0o644)
    assert run(confine, "attempt", request).header == {"read": "done"}


@pytest.mark.skipif(not AS_ROOT, reason="one uid for all")
def test_live_children_share_no_uid(confine: Confine, pipe: tuple[int, int]) -> None:
    def sleeper() -> None:
        run(confine, "sleep", {"seconds": 0.5}, descriptors=[pipe[1]])

    threads = [threading.Thread(target=sleeper) for _ in range(3)]
    for thread in threads:
        thread.start()
    pids = read_pids(pipe[0], 3)
    assert len({_uid(pid) for pid in pids}) == 3
    for thread in threads:
        thread.join()


def _uid(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("Uid:")).split()[1])


@pytest.mark.parametrize("privileges", Privileges)
def test_no_child_can_write_a_file(confine: Confine, open_folder: Path, privileges: Privileges) -> None:
    target = open_folder / "out"
    target.touch()
    target.chmod(0o666)
    request: dict[str, JsonValue] = {"tries": ["write"], "path": str(target)}
    assert run(confine, "attempt", request, privileges=privileges).header == {"write": "OSError"}
    assert target.read_bytes() == b""


def test_a_child_can_neither_fork_nor_signal_the_server(confine: Confine) -> None:
    header = run(confine, "attempt", {"tries": ["fork", "signal-parent"], "path": ""}).header
    assert header == {"fork": "BlockingIOError", "signal-parent": "PermissionError" if AS_ROOT else "done"}


@pytest.mark.parametrize(
    ("drill", "request_", "kind", "detail"),
    [
        ("sleep", {"seconds": 60}, FailureKind.TIMED_OUT, "it took longer than 0.3 s"),
        ("spin", {}, FailureKind.TIMED_OUT, "it took longer than 0.3 s"),
        ("write_garbage", {"text": "{}"}, FailureKind.GARBLED, "the answer is too short"),
        ("write_garbage", {"text": "\xff" * 900}, FailureKind.GARBLED, "the header has more than 1048576 bytes"),
        ("write_garbage", {"text": "\x09\0\0\0{}"}, FailureKind.GARBLED, "the answer ends inside its header"),
        ("write_garbage", {"text": "\x02\0\0\0{}"}, FailureKind.GARBLED, "the header lacks its parts"),
        ("leave", {"code": 0}, FailureKind.GARBLED, "the answer is too short"),
        ("leave", {"code": 3}, FailureKind.DIED, "it ended with code 3"),
        ("leave", {"code": 71}, FailureKind.OUT_OF_MEMORY, "it needed more than 256 MiB"),
        ("crash", {}, FailureKind.DIED, "it was killed by SIGSEGV"),
        ("fail", {"text": "boo"}, FailureKind.DIED, "an exception was raised"),
        ("not_finite", {}, FailureKind.DIED, "an exception was raised"),
    ],
)
def test_each_way_to_fail_has_its_name(
    confine: Confine, drill: str, request_: dict[str, JsonValue], kind: FailureKind, detail: str
) -> None:
    before = time.monotonic()
    with pytest.raises(ConfinedFailure) as caught:
        run(confine, drill, request_, deadline=0.3)
    assert (caught.value.kind, caught.value.detail) == (kind, detail)
    assert time.monotonic() - before < 30
    assert children_of(server_pid(confine)) == []


def test_a_trace_is_kept_apart_from_our_own_words(confine: Confine) -> None:
    with pytest.raises(ConfinedFailure) as caught:
        run(confine, "fail", {"text": "bytes of a stranger"})
    assert "stranger" not in str(caught.value)
    assert caught.value.trace.endswith("ValueError: bytes of a stranger\n")


def test_memory_is_bounded(confine: Confine) -> None:
    with pytest.raises(ConfinedFailure) as caught:
        run(confine, "eat_memory", memory=64 << 20)
    assert (caught.value.kind, caught.value.detail) == (FailureKind.OUT_OF_MEMORY, "it needed more than 64 MiB")


def test_an_answer_is_bounded_and_its_child_is_killed(confine: Confine) -> None:
    much = 4 << 20
    assert run(confine, "fill_reply", {"bytes": much}, array_bytes=much).arrays["much"].size == much
    for most in (0, much // 2):
        with pytest.raises(ConfinedFailure, match=f"garbled: it answered more than {1 + most_bytes(most)} bytes"):
            run(confine, "fill_reply", {"bytes": much}, deadline=600, array_bytes=most)
        settle(lambda: children_of(server_pid(confine)) == [])


def test_a_call_that_asks_for_no_arrays_gets_none_of_any_size(confine: Confine) -> None:
    with pytest.raises(ConfinedFailure, match="garbled: it answered more than"):
        confine.call(
            f"{DRILLS}.fill_reply", {"bytes": 2 << 20}, deadline=10, memory=256 << 20, privileges=Privileges.DROP
        )


def as_text(data: bytes) -> str:
    return data.decode("latin-1")


def length(count: int) -> str:
    return as_text(struct.pack("<I", count))


def array(descr: str, shape: str, data: bytes) -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text + data


def whole(inner: str = "{}", *blobs: bytes) -> str:
    """An answer whose header holds this text."""
    sizes = [[f"x{number}", len(blob)] for number, blob in enumerate(blobs)]
    text = f'{{"header": {inner}, "arrays": {json.dumps(sizes)}}}'
    return length(len(text)) + text + as_text(b"".join(blobs))


NOT_STRICT = "the header is not strict JSON within its bounds"
NOT_OURS = "an array has a header that is not ours"
NO_FIT = "an array's shape does not fit its size"


@pytest.mark.parametrize(
    ("request_", "detail"),
    [
        (
            {"text": length(64 << 20), "again": "[", "times": 64 << 20},
            f"it answered more than {1 + most_bytes(1000)} bytes",
        ),
        ({"text": length(64 << 20) + "[" * 9000}, "the header has more than 1048576 bytes"),
        ({"text": length(1 << 20), "again": "[", "times": 1 << 20}, NOT_STRICT),
        ({"text": length(1 << 20), "again": '{"":', "times": 1 << 18}, NOT_STRICT),
        ({"text": length(1 << 20), "again": "9", "times": 1 << 20}, NOT_STRICT),
        ({"text": whole('{"a": 1, "a": 1}')}, NOT_STRICT),
        ({"text": whole('{"a": NaN}')}, NOT_STRICT),
        ({"text": whole('{"a": 1e999}')}, NOT_STRICT),
        ({"text": whole('{"a": ' + "9" * 4000 + "}")}, NOT_STRICT),
        ({"text": whole('{"a": "\xff"}')}, NOT_STRICT),
        ({"text": whole("{}", array("'|O'", "(1,)", b"\x80\4N."))}, NOT_OURS),
        ({"text": whole("{}", array("'<U2'", "(1,)", bytes(8)))}, NOT_OURS),
        ({"text": whole("{}", array("'<f1'", "(1,)", bytes(1)))}, NOT_OURS),
        ({"text": whole("{}", array("'<b8'", "(1,)", bytes(8)))}, NOT_OURS),
        ({"text": whole("{}", array("'<i8'", "(-1,)", bytes(8)))}, NOT_OURS),
        ({"text": whole("{}", array("__import__('os').abort()", "(1,)", bytes(8)))}, NOT_OURS),
        ({"text": whole("{}", array("'<i8'", "(2,)", bytes(8)))}, NO_FIT),
        ({"text": whole("{}", array("'<i8'", "(4294967296, 4294967296)", bytes(8)))}, NO_FIT),
        ({"text": whole("{}", array("'<i8'", "(0, 999999999999, 999999999999)", b""))}, NO_FIT),
        ({"text": whole("{}", array("'|b1'", "(1,)", b"\2"))}, "an array holds what is neither true nor false"),
        ({"text": whole("{}", *[array("'|u1'", "(0,)", b"")] * 65)}, "there are too many arrays"),
        ({"text": whole("{}", b"")}, "an array lacks its magic number"),
        ({"text": whole("{}") + "x"}, "the arrays do not fill the answer"),
    ],
)
def test_what_a_child_that_was_taken_over_answers_is_garbled(
    confine: Confine, request_: dict[str, JsonValue], detail: str
) -> None:
    with pytest.raises(ConfinedFailure) as caught:
        run(confine, "write_garbage", request_)
    assert (caught.value.kind, caught.value.detail) == (FailureKind.GARBLED, detail)


def test_a_forgery_that_is_whole_is_read_so_the_test_above_can_fail(confine: Confine) -> None:
    blobs = [array("'<i8'", "(1,)", bytes(8)), array("'|b1'", "(2, 1)", b"\0\1"), array("'<f2'", "()", bytes(2))]
    reply = run(confine, "write_garbage", {"text": whole('{"a": [1, {"b": 9.5}]}', *blobs)})
    assert reply.header == {"a": [1, {"b": 9.5}]}
    assert [(one.dtype.name, one.shape) for one in reply.arrays.values()] == [
        ("int64", (1,)), ("bool", (2, 1)), ("float16", ())]  # fmt: skip


def test_a_trace_is_bounded(confine: Confine) -> None:
    with pytest.raises(ConfinedFailure) as caught:
        run(confine, "write_and_fail", {"again": "x", "times": 1_000_000})
    assert caught.value.kind is FailureKind.DIED
    assert len(caught.value.trace) <= 16_000
    assert caught.value.trace.endswith("ValueError: after all\n")


def test_what_a_child_leaves_running_is_killed_and_reaped(confine: Confine, pipe: tuple[int, int]) -> None:
    before = time.monotonic()
    run(confine, "leave_children", descriptors=[pipe[1]], privileges=Privileges.KEEP)
    assert time.monotonic() - before < 30
    for pid in read_pids(pipe[0], 2):
        settle(partial(gone, pid))
    settle(lambda: children_of(server_pid(confine)) == [])


def test_a_child_that_cannot_be_set_up_is_the_hosts_fault(confine: Confine) -> None:
    with pytest.raises(HostFault, match="could not be set up: an exception was raised, AttributeError"):
        run(confine, "no_such_drill")


def test_only_our_own_functions_are_run(confine: Confine) -> None:
    for name in ("os.system", "runners.x", "__main__.x"):
        with pytest.raises(ValueError, match="not one of our own functions"):
            confine.call(name, {}, deadline=1, memory=1 << 20, privileges=Privileges.DROP)


@pytest.mark.parametrize("request_", [{"x": "x" * 200_000}, {"x": float("nan")}])
def test_a_request_that_does_not_travel_is_our_error(confine: Confine, request_: dict[str, JsonValue]) -> None:
    with pytest.raises(ValueError, match=r"too large|not JSON compliant"):
        run(confine, "echo", request_)


def test_many_threads_get_their_own_answers(confine: Confine) -> None:
    answers: dict[int, JsonValue] = {}

    def ask(number: int) -> None:
        for _ in range(5):
            answers[number] = run(confine, "echo", {"n": number}).header["request"]
            assert answers[number] == {"n": number}

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {number: {"n": number} for number in range(8)}
    assert children_of(server_pid(confine)) == []


def test_a_slow_child_does_not_hold_up_the_others(confine: Confine, pipe: tuple[int, int]) -> None:
    slow = threading.Thread(target=lambda: run(confine, "sleep", {"seconds": 0.4}, descriptors=[pipe[1]]))
    slow.start()
    read_pids(pipe[0], 1)
    run(confine, "echo")
    assert slow.is_alive()
    slow.join()


def test_a_server_that_died_is_started_again_and_closing_leaves_no_process() -> None:
    with Confine(preload=(DRILLS,)) as confine:
        run(confine, "echo")
        first = server_pid(confine)
        os.kill(first, signal.SIGKILL)
        assert run(confine, "echo", {"a": 1}).header == {"request": {"a": 1}}
        second = server_pid(confine)
        assert second != first
        assert gone(first)
    assert gone(second)


def test_a_call_whose_server_dies_is_repeated_once_and_its_child_dies_too(pipe: tuple[int, int]) -> None:
    with Confine(preload=(DRILLS,)) as confine:
        failures: list[BaseException] = []

        def call() -> None:
            try:
                run(confine, "sleep", {"seconds": 60}, descriptors=[pipe[1]], deadline=60)
            except HostFault as fault:
                failures.append(fault)

        thread = threading.Thread(target=call)
        thread.start()
        for _ in range(2):
            (child,) = read_pids(pipe[0], 1)
            os.kill(server_pid(confine), signal.SIGKILL)
            settle(partial(ended, child))
        thread.join()
        assert [str(failure) for failure in failures] == [
            "the process that reads files safely died twice (is the host out of memory?)"
        ]


def test_the_server_ends_when_its_parent_is_killed(pipe: tuple[int, int]) -> None:
    code = (
        "import os, sys; from runner.confine import Confine, Privileges\n"
        "c = Confine(preload=('runner.confine.drills',))\n"
        "def go(f, r): c.call('runner.confine.drills.' + f, r, descriptors=[int(sys.argv[1])],"
        " deadline=60, memory=1 << 28, privileges=Privileges.DROP)\n"
        "import threading; threading.Thread(target=go, args=('sleep', {'seconds': 60}), daemon=True).start()\n"
        "import time\n"
        "while c._server is None: time.sleep(0.01)\n"
        "os.write(int(sys.argv[1]), f'{c._server.process.pid}\\n'.encode()); time.sleep(60)"
    )
    root = Path(parent_module.__file__).parents[2]
    program = subprocess.Popen([sys.executable, "-c", code, str(pipe[1])], cwd=root, pass_fds=[pipe[1]])
    pids = read_pids(pipe[0], 2)
    program.kill()
    program.wait()
    for pid in pids:
        settle(partial(ended, pid))


def test_closing_calls_off_what_still_runs(pipe: tuple[int, int]) -> None:
    confine = Confine(preload=(DRILLS,))
    faults: list[HostFault] = []

    def call() -> None:
        with pytest.raises(HostFault) as caught:
            run(confine, "sleep", {"seconds": 60}, descriptors=[pipe[1]], deadline=60)
        faults.append(caught.value)

    thread = threading.Thread(target=call)
    thread.start()
    (pid,) = read_pids(pipe[0], 1)
    confine.close()
    thread.join()
    assert gone(pid)
    assert [fault.what for fault in faults] == ["reading was called off: the program is ending"]
    assert confine._server is None


def test_a_descriptor_that_is_closed_is_no_reason_to_hang(confine: Confine) -> None:
    with pytest.raises(HostFault, match="could not be started: Bad file descriptor"):
        run(confine, "echo", descriptors=[9999])


def test_nothing_is_started_before_the_first_call() -> None:
    confine = Confine()
    assert confine._server is None
    confine.close()


def test_a_server_that_cannot_start_is_the_hosts_fault() -> None:
    with Confine(preload=("runner.no_such_module",)) as confine, pytest.raises(HostFault, match="did not start"):
        run(confine, "echo")


def test_arrays_keep_their_type(confine: Confine) -> None:
    assert run(confine, "fill_reply", {"bytes": 3}).arrays["much"].dtype == np.uint8
