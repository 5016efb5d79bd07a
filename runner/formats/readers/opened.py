"""Opens a file that somebody wrote, for a reader: a regular file and nothing else, and never by a link."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

from runner.formats.contract import Problem, Reading


def read_file(path: Path, read: Callable[[int], Reading]) -> Reading:
    """Open a file, let ``read`` have its descriptor, and close it; what cannot be opened is a problem."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return single(f"the file cannot be opened: {error.strerror}")
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return single("this is no regular file")
        return read(descriptor)
    finally:
        os.close(descriptor)


def single(what: str) -> Reading:
    """A reading with one problem, about the whole file."""
    return Reading(prediction=None, problems=(Problem(what=what),), problem_count=1)
