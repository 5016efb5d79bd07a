"""What of a case a check for causality tests: which frames, where they may be cut, in which company they are shown."""

import functools
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from runner.causality import Evidence
from runner.challenge import CausalityMethod, Challenge, InputKind, InvocationMode
from runner.dataset import Case, Input, table_rows
from runner.errors import HostFault, UsageError
from runner.inputs import VideoCopy
from runner.pipeline.context import Context, Entry
from runner.plan import Shared, entered_tasks, shared_runs
from runner.video import video_length
from runner.video_copies import copy_without_loss
from runner.video_cuts import cut_points
from runner.workspace import neutral_name


@dataclass(frozen=True, kw_only=True)
class Examined:
    """The sequence that is tested of a case.

    Attributes:
        case: The case.
        frames: Its length.
        possible: Lengths at which it may be cut, ascending; None: every length.
        clip: It is a copy of the case's first frames.
        copied: Altered futures are laid out in a copy, since that is the only way to join videos.
        can_alter: Another case can lend its frames.
        videos: Those that are cut.
        copies: Copies of them that clips are cut from, by input.
    """

    case: Case
    frames: int
    possible: tuple[int, ...] | None = None
    clip: bool = False
    copied: bool = False
    can_alter: bool = True
    videos: tuple[Input, ...] = ()
    copies: Mapping[str, VideoCopy] = field(default_factory=dict)

    @property
    def evidence(self) -> Evidence:
        """What is known before anything was run."""
        return Evidence(
            frames=self.frames, can_alter=self.can_alter, possible=self.possible, clip=self.clip, copied=self.copied
        )


def drawn_cases(context: Context) -> tuple[str, ...]:
    """The cases that are checked: the same for everybody, drawn with the organisers' seed."""
    names = sorted(context.cases)
    wanted = context.challenge.causality.on
    if wanted == "all":
        return tuple(names)
    rng = np.random.default_rng(seed_of(context, "cases"))
    return tuple(sorted(str(name) for name in rng.choice(names, size=min(wanted, len(names)), replace=False)))


def seed_of(context: Context, *parts: str) -> int:
    """A seed of its own for each use, from the organisers' secret."""
    text = "\0".join([str(context.seed), *parts])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def earlier_entry(context: Context, entry: Entry, task: str) -> Entry:
    """The same submission in an earlier task, with the tasks that share its runs."""
    runs = shared_runs(context.challenge, entered_tasks(context.challenge, entry.submission))
    return Entry(
        submission=entry.submission, shared=next(one for one in runs if task in one.names), image=entry.image,
        findings=entry.findings,
    )  # fmt: skip


def sequence_of(context: Context, shared: Shared, case: Case) -> Examined:
    """What is tested of a case in the tasks that share a run.

    Raises:
        UsageError: Its inputs do not have the same number of frames, or a video cannot be read.
    """
    rule, frames = context.challenge.causality, len(case.frames)
    met = _inputs_met(context.challenge, shared)
    timed = [one for one in case.inputs if one.name in met and one.kind is not InputKind.FILE]
    _require_same_length(case, timed)
    videos = tuple(one for one in timed if one.kind is InputKind.VIDEO)
    shorter = rule.clip is not None and rule.clip < frames
    clip = shorter or (bool(videos) and rule.method is CausalityMethod.EXHAUSTIVE)
    possible = None
    if videos and not clip:
        common = set.intersection(*(set(_points_of(one.path)) for one in videos))
        possible = tuple(sorted(k for k in common if k < frames))
    return Examined(
        case=case, frames=rule.clip if shorter and rule.clip is not None else frames, possible=possible, clip=clip,
        copied=bool(videos), can_alter=len(context.cases) > 1, videos=videos,
    )  # fmt: skip


def with_copies(tested: Examined, folder: Path) -> Examined:
    """The same with a copy without loss of each video of a clip, from which the clip and its prefixes are cut.

    A copy that cannot be cut after each frame is of no use; then each clip is copied by itself, which gives the same.

    Raises:
        HostFault: A copy could not be written.
        UsageError: A video cannot be copied without loss.
    """
    copies = {}
    for number, one in enumerate(tested.videos if tested.clip else ()):
        path = folder / f"{neutral_name()}-{number}{one.path.suffix}"
        try:
            copy_without_loss(one.path, path, tested.frames)
        except OSError as error:
            raise HostFault(
                f"a video could not be copied: {error.strerror or error}", where=str(path), remedy="make room"
            ) from error
        if cut_points(path) == tuple(range(1, tested.frames)):
            copies[one.name] = VideoCopy(path=path, frames=tested.frames)
    return replace(tested, copies=copies)


def _inputs_met(challenge: Challenge, shared: Shared) -> frozenset[str]:
    """Inputs that a run depends on: what it is shown, and what the tasks were shown whose predictions it is given."""
    met = set(shared.inputs)
    for name in shared.inputs_from:
        (earlier,) = shared_runs(challenge, (name,))
        met |= _inputs_met(challenge, earlier)
    return frozenset(met)


def _require_same_length(case: Case, timed: Sequence[Input]) -> None:
    """Frame t must be frame t of every input: only then can they be cut at the same place."""
    for one in timed:
        count = _length_of(one)
        if count != len(case.frames):
            raise UsageError(
                f"causality cannot be checked on case {case.name!r}: it has {len(case.frames)} frames, but its "
                f"{one.name} has {count}, so that they cannot be cut at the same frame",
                where=str(one.path),
                remedy="give inputs with the same number of frames, or set causality.method: off in challenge.yaml",
            )


def _length_of(given: Input) -> int:
    if given.kind is InputKind.FRAMES:
        return len(given.frames)
    if given.kind is InputKind.TABLE:
        return table_rows(given.path, header=given.header)
    return _video_length(*_version(given.path))


def _version(path: Path) -> tuple[Path, int, int]:
    """A file as long as nobody changes it."""
    facts = path.stat()
    return path, facts.st_size, facts.st_mtime_ns


@functools.lru_cache(maxsize=4096)
def _video_length(path: Path, _size: int, _time: int) -> int:
    return video_length(path)


def _points_of(path: Path) -> tuple[int, ...]:
    return _video_points(*_version(path))


@functools.lru_cache(maxsize=4096)
def _video_points(path: Path, _size: int, _time: int) -> tuple[int, ...]:
    return cut_points(path)


def runs_together(context: Context) -> bool:
    """Whether all cases are cut in one run: a cut-run where one container has them all."""
    challenge = context.challenge
    return (
        challenge.invocation.mode is InvocationMode.DATASET
        and challenge.causality.method is CausalityMethod.CUT_RUN
    )  # fmt: skip
