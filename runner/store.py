"""Where a run keeps its files, and how they are written: whole or not at all."""

import contextlib
import os
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter

from runner.errors import HostFault, UsageError
from runner.safe_text import inert_json
from runner.submissions import slug_of

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

T = TypeVar("T")


_adapters: dict[type, TypeAdapter[Any]] = {}


def _adapter(kind: type) -> TypeAdapter[Any]:
    """The adapter of a type, made once: making one costs milliseconds."""
    if kind not in _adapters:
        _adapters[kind] = TypeAdapter(kind)
    return _adapters[kind]


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that a reader, or a crash, meets the old bytes or the new ones, never a part.

    Raises:
        HostFault: The disk is full or broken; the old file is intact.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _forget_halves(path)
        with temporary.open("xb") as sink:
            sink.write(data)
            sink.flush()
            os.fsync(sink.fileno())
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise HostFault(
            f"{path.name} could not be written: {error.strerror}; nothing that was there is lost",
            where=str(path),
            remedy="make room, then: proctor resume RUN",
        ) from error


def _forget_halves(path: Path) -> None:
    """Delete what a writer that was killed left of this file."""
    half = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{8}}")
    with os.scandir(path.parent) as entries:
        for entry in entries:
            if half.fullmatch(entry.name):
                Path(entry.path).unlink(missing_ok=True)


def write_value(path: Path, value: object) -> None:
    """Write one of our frozen values as JSON; what strangers named in it is harmless on a terminal."""
    text = _adapter(type(value)).dump_json(value, indent=1).decode()
    write_whole(path, inert_json(text).encode() + b"\n")


def read_value(path: Path, kind: type[T]) -> T:
    """Read a value that ``write_value`` wrote.

    Raises:
        UsageError: It is missing or is not such a value.
    """
    try:
        value: T = _adapter(kind).validate_json(path.read_bytes())
    except FileNotFoundError as error:
        raise UsageError(f"there is no {path.name}", where=str(path.parent), remedy="is this a run folder?") from error
    except ValueError as error:
        raise UsageError(
            f"{path.name} is damaged: {str(error).splitlines()[0]}",
            where=str(path),
            remedy="delete it, then: proctor resume RUN",
        ) from error
    return value


@dataclass(frozen=True, kw_only=True)
class RunFolder:
    """The layout of a run on disk; names of teams and cases become path parts only as slugs we make."""

    root: Path

    @property
    def record(self) -> Path:
        """What the run is: challenge, data, submissions, settings, host."""
        return self.root / "run.json"

    @property
    def private(self) -> Path:
        """The seed and the map of neutral names."""
        return self.root / "private"

    @property
    def challenge(self) -> Path:
        """A copy of the challenge as it was at the start."""
        return self.root / "challenge"

    @property
    def scores(self) -> Path:
        """Scores of every case, as a long table."""
        return self.root / "scores.csv"

    @property
    def latency(self) -> Path:
        """How fast streamed cases were answered; there only where some were."""
        return self.root / "latency.csv"

    @property
    def leaderboard_csv(self) -> Path:
        """The leaderboard, for spreadsheets."""
        return self.root / "leaderboard.csv"

    @property
    def leaderboard_json(self) -> Path:
        """The leaderboard, for programs."""
        return self.root / "leaderboard.json"

    @property
    def report(self) -> Path:
        """The organisers' report."""
        return self.root / "report.organiser.html"

    def image(self, submission: str) -> Path:
        """The pinned image of a submission, by slug."""
        return self.root / "submissions" / submission / "image.json"

    def preflight(self, submission: str) -> Path:
        """What was found in that image before it ran."""
        return self.root / "submissions" / submission / "preflight.json"

    def task(self, submission: str, task: str) -> Path:
        """Folder of a submission's task."""
        return self.root / "submissions" / submission / slug_of(task)

    def causality(self, submission: str, task: str) -> Path:
        """What was found of a submission's causality."""
        return self.task(submission, task) / "causality.json"

    def container_scores(self, submission: str, task: str) -> Path:
        """What the task's scorer gave for a submission, where it runs in a container."""
        return self.task(submission, task) / "scores.container.json"

    def case(self, submission: str, task: str, case: str) -> Path:
        """Folder of a case."""
        return self.task(submission, task) / slug_of(case)

    def outcome(self, submission: str, task: str, case: str) -> Path:
        """How a case ended; a case is done when this exists and its digest matches."""
        return self.case(submission, task, case) / "outcome.json"

    def attempt(self, submission: str, task: str, case: str, job: str, number: int) -> Path:
        """Folder of one attempt at one job."""
        return self.case(submission, task, case) / job / f"attempt-{number}"


@contextlib.contextmanager
def locked(run: RunFolder) -> Iterator[None]:
    """Hold a run folder; nobody else may work on it meanwhile.

    Raises:
        UsageError: Somebody does.
    """
    try:
        run.root.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise UsageError(
            f"the run folder cannot be made: {error.strerror}",
            where=str(run.root),
            remedy="give another folder with --out",
        ) from error
    run.root.chmod(0o700)
    descriptor = os.open(run.root / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if fcntl is not None:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "?"
                raise UsageError(
                    f"another proctor (pid {holder}) works on this run folder",
                    where=str(run.root),
                    remedy="wait for it to end, or give another folder with --out",
                ) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(descriptor)
