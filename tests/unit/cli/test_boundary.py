"""What the host is to blame for is told in three lines; what is a bug shows as one."""

import errno
import os
from collections.abc import Callable

import pytest

from runner.cli import boundary
from runner.errors import HostFault


def failing(number: int) -> Callable[[], None]:
    def fail() -> None:
        raise OSError(number, os.strerror(number), "/data/hidden")

    return fail


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, "make room"), (errno.EDQUOT, "make room"), (errno.EIO, "make room"),
        (errno.EROFS, "read and write there"), (errno.EACCES, "read and write there"),
        (errno.EPERM, "read and write there"),
    ],
)  # fmt: skip
def test_the_hosts_files_are_the_hosts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: int, remedy: str
) -> None:
    monkeypatch.setattr(boundary, "bare_command", lambda _arguments: failing(number))
    assert boundary.run_cli(["status", "x"]) == HostFault.exit_code
    told = capsys.readouterr().err
    for words in (f"could not be read or written: {os.strerror(number)}", "/data/hidden", remedy):
        assert words in told


def test_another_error_is_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boundary, "bare_command", lambda _arguments: failing(errno.EBADF))
    with pytest.raises(OSError, match="Bad file descriptor"):
        boundary.run_cli(["status", "x"])
