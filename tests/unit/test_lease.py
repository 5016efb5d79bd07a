"""A lease is held by one process of the host, freed however that ends, and leaves a trace of when."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from runner.errors import HostUnfit
from runner.lease import Leases

ROOT = Path(__file__).resolve().parents[2]
HOLD = """
import sys
from pathlib import Path
from runner.lease import Leases
with Leases(folder=Path(sys.argv[1])).first_free(iter(sys.argv[2:])) as name:
    print(name, flush=True)
    sys.stdin.read()
"""


@contextmanager
def other_process(folder: Path, *names: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Another runner that takes the first free of some names; ends when its stdin is closed."""
    command = [sys.executable, "-c", HOLD, str(folder), *names]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
        process.kill()


def later() -> int:
    """A moment after every file time given out so far: those have the grain of the kernel's tick."""
    time.sleep(0.011)
    now = time.time_ns()
    time.sleep(0.011)
    return now


def test_two_processes_never_hold_the_same(tmp_path: Path) -> None:
    leases = Leases(folder=tmp_path)
    with other_process(tmp_path, "a", "b", "c") as (_, first), other_process(tmp_path, "a", "b", "c") as (_, second):
        assert (first, second) == ("a", "b")
        with leases.first_free(iter("abc")) as mine:
            assert mine == "c"
            with pytest.raises(HostUnfit) as caught, leases.first_free(iter("abc")):
                pass
    assert str(tmp_path) in caught.value.what
    assert caught.value.exit_code == 3


def test_a_lease_is_freed_when_its_holder_is_killed(tmp_path: Path) -> None:
    with other_process(tmp_path, "a") as (process, held):
        assert held == "a"
        process.send_signal(signal.SIGKILL)
        process.wait()
        with Leases(folder=tmp_path).first_free(iter("a")) as mine:
            assert mine == "a"


def test_a_lease_is_freed_when_its_block_raises(tmp_path: Path) -> None:
    leases = Leases(folder=tmp_path)
    with pytest.raises(ZeroDivisionError), leases.first_free(iter("a")):
        raise ZeroDivisionError
    with leases.first_free(iter("a")) as mine:
        assert mine == "a"


def test_names_are_taken_no_further_than_needed(tmp_path: Path) -> None:
    with Leases(folder=tmp_path / "leases").first_free(iter("abc")) as mine:
        assert mine == "a"
        assert sorted(path.name for path in (tmp_path / "leases").iterdir()) == ["a"]
        assert (tmp_path / "leases").stat().st_mode & 0o777 == 0o700
        assert (tmp_path / "leases" / "a").stat().st_mode & 0o777 == 0o600


def test_a_lease_is_not_inherited_by_a_child(tmp_path: Path) -> None:
    leases = Leases(folder=tmp_path)
    with ExitStack() as stack:
        with leases.first_free(iter("a")):
            child = stack.enter_context(subprocess.Popen(["sleep", "60"], close_fds=False))
        with leases.first_free(iter("a")) as mine:
            assert mine == "a"
        child.kill()


class TestTakenSince:
    def test_nothing_was_taken_where_there_is_no_folder(self, tmp_path: Path) -> None:
        assert Leases(folder=tmp_path / "none").taken_since(0, but=()) is False

    def test_ones_own_do_not_count(self, tmp_path: Path) -> None:
        leases, began = Leases(folder=tmp_path), time.time_ns() - 10**9
        with leases.first_free(iter("a")), leases.first_free(iter(["gpu"])):
            assert leases.taken_since(began, but=("a", "gpu")) is False
            assert leases.taken_since(began, but=("a",)) is True

    def test_one_held_all_the_while_counts(self, tmp_path: Path) -> None:
        leases = Leases(folder=tmp_path)
        with leases.first_free(iter("b")):
            assert leases.taken_since(later(), but=("a",)) is True

    def test_one_held_by_another_process_counts(self, tmp_path: Path) -> None:
        with other_process(tmp_path, "b"):
            assert Leases(folder=tmp_path).taken_since(later(), but=("a",)) is True

    def test_one_taken_and_given_back_meanwhile_counts(self, tmp_path: Path) -> None:
        leases, began = Leases(folder=tmp_path), later()
        with leases.first_free(iter("b")):
            pass
        assert leases.taken_since(began, but=("a",)) is True

    def test_one_taken_before_and_given_back_meanwhile_counts(self, tmp_path: Path) -> None:
        leases = Leases(folder=tmp_path)
        with leases.first_free(iter("b")):
            began = later()
        assert leases.taken_since(began, but=("a",)) is True

    def test_one_given_back_before_does_not_count(self, tmp_path: Path) -> None:
        leases = Leases(folder=tmp_path)
        with leases.first_free(iter("b")):
            pass
        began = later()
        assert leases.taken_since(began, but=("a",)) is False
        os.utime(tmp_path / "b")
        assert leases.taken_since(began, but=("a",)) is True

    def test_looking_does_not_take(self, tmp_path: Path) -> None:
        leases = Leases(folder=tmp_path)
        with leases.first_free(iter("a")):
            pass
        for _ in range(3):
            assert leases.taken_since(later(), but=()) is False
        with leases.first_free(iter("a")) as mine:
            assert mine == "a"


class TestShared:
    """A folder that the runners of all users share."""

    def test_it_can_be_used_by_everybody(self, tmp_path: Path) -> None:
        folder = tmp_path / "gpus"
        lease = Leases(folder=folder, shared=True).hold("GPU-1")
        assert lease is not None
        assert folder.stat().st_mode & 0o7777 == 0o1777
        assert lease.path.stat().st_mode & 0o777 == 0o666
        lease.release()

    @pytest.mark.root
    def test_another_users_file_is_taken_as_it_is(self, tmp_path: Path) -> None:
        """Where fs.protected_regular is on, Linux refuses even root to open a stranger's file there with O_CREAT."""
        folder = tmp_path / "gpus"
        leases = Leases(folder=folder, shared=True)
        first = leases.hold("GPU-1")
        assert first is not None
        first.release()
        os.chown(folder / "GPU-1", 12345, 12345)
        again = leases.hold("GPU-1")
        assert again is not None
        assert leases.hold("GPU-1") is None
        again.release()

    def test_a_link_is_not_followed(self, tmp_path: Path) -> None:
        folder = tmp_path / "gpus"
        folder.mkdir()
        (tmp_path / "secret").write_text("x")
        (folder / "GPU-1").symlink_to(tmp_path / "secret")
        with pytest.raises(OSError, match="symbolic links"):
            Leases(folder=folder, shared=True).hold("GPU-1")

    def test_nor_is_one_in_place_of_the_folder(self, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "gpus").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(HostUnfit, match="is a link"):
            Leases(folder=tmp_path / "gpus", shared=True).hold("GPU-1")
        assert list((tmp_path / "elsewhere").iterdir()) == []
