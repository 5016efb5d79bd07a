"""The one place where an error becomes a message and an exit code."""

import errno
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

import typer

from runner.cli.application import app_for, bare_command
from runner.errors import HostFault, Interrupted, RunnerError

_ROOM = "make room, or mend the disk, then the same again"
_RIGHTS = "see that this user may read and write there, then the same again"
_DISK_TROUBLE = {
    errno.ENOSPC: _ROOM, errno.EDQUOT: _ROOM, errno.EIO: _ROOM, errno.EROFS: _RIGHTS, errno.EACCES: _RIGHTS,
    errno.EPERM: _RIGHTS,
}  # fmt: skip
"""What the host, and no bug of ours, is to blame for, and what to do."""


def run_cli(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code; errors of ours are told in three lines, never as a traceback."""
    try:
        bare = bare_command(arguments)
        if bare is not None:
            bare()
            return 0
        command = typer.main.get_command(app_for(arguments))
        code = command.main(args=list(arguments), prog_name="proctor", standalone_mode=False)
    except RunnerError as error:
        tell_error(error)
        return error.exit_code
    except KeyboardInterrupt:
        tell_error(Interrupted("interrupted"))
        return Interrupted.exit_code
    except OSError as error:
        if error.errno not in _DISK_TROUBLE:
            raise
        fault = HostFault(
            f"a file of this host could not be read or written: {error.strerror}",
            where=str(error.filename or ""),
            remedy=_DISK_TROUBLE[error.errno],
        )
        tell_error(fault)
        return fault.exit_code
    except Exception as error:  # noqa: BLE001  sorted there; what is not known is raised again
        return _usage_code(error)
    return code if isinstance(code, int) else 0


def _usage_code(error: Exception) -> int:
    """Errors of the command line's own library; anything else is a bug of ours and shows as one."""
    show = getattr(error, "show", None)
    code = getattr(error, "exit_code", None)
    if code is None:
        raise error
    if callable(show):
        show()
    return int(code)


def tell_error(error: RunnerError) -> None:
    """Say what, where, and what to do next, on the error stream."""
    from runner.cli.screen import error_console, safe

    console = error_console()
    console.print(f"[bold red]error[/] {safe(error.what)}", highlight=False)
    if error.where:
        console.print(f"  [dim]where[/] {safe(error.where)}", highlight=False)
    if error.remedy:
        console.print(f"  [dim]next [/] {safe(error.remedy)}", highlight=False)


@contextmanager
def stop_on_signals() -> Iterator[threading.Event]:
    """An event that the first Ctrl-C or SIGTERM sets, so that containers are ended and removed; the second kills us."""
    stop = threading.Event()
    before = {}

    def asked(number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        stop.set()
        sys.stderr.write("stopping: ending the container that runs; once more to quit at once\n")

    for number in (signal.SIGINT, signal.SIGTERM):
        before[number] = signal.signal(number, asked)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
