"""What will be run, and what came of it: values between plan, execute and judge."""

from dataclasses import dataclass
from enum import StrEnum

from runner.budget import Budget, Usage
from runner.engine import Exit
from runner.tally import Tally

EXECUTION_CONTRACT = 1
"""Raised only when what a container experiences changes; part of every job's hash."""


class CutKind(StrEnum):
    """What a container is shown in place of the full sequence."""

    PREFIX = "prefix"
    ALTERED_FUTURE = "altered-future"


@dataclass(frozen=True, kw_only=True, order=True)
class Cut:
    """A view of a case that ends, or turns into something else, after ``frames`` frames.

    Attributes:
        frames: How many frames are the case's own, from the first.
        kind: Whether nothing follows, or another case's frames do.
        repeat: 0 for the first run of this view, 1, 2, … for its repetitions.
    """

    frames: int
    kind: CutKind = CutKind.PREFIX
    repeat: int = 0


@dataclass(frozen=True, kw_only=True)
class Job:
    """One container run.

    Attributes:
        submission: The submission's slug.
        task: The task's name.
        case: The case's real name; stays on our side.
        name: ``full``, ``repeat-1``, ``cut-0123``, …; unique in its case.
        cut: The view, None for the full sequence.
        frames: Frames shown.
        image_id: ``sha256:…``; never a tag.
        arguments: After the image's own entry point, with placeholders.
        input_mount: Where the input lies inside the container.
        output_mount: Where the output goes.
        expected_file: Name of the file to take out, with ``{case}`` for the neutral name.
        budget: What it may use.
        digest: Hash of everything that could change its result.
    """

    submission: str
    task: str
    case: str
    name: str
    cut: Cut | None
    frames: int
    image_id: str
    arguments: tuple[str, ...]
    input_mount: str
    output_mount: str
    expected_file: str
    budget: Budget
    digest: str


class KillReason(StrEnum):
    """Why we killed a container."""

    TIME = "time"
    OUTPUT = "output"
    STOPPED = "stopped"


class IntakeRefusal(StrEnum):
    """Why a file the container left was not taken."""

    MISSING = "missing"
    NOT_REGULAR = "not-regular"
    SEVERAL_LINKS = "several-links"
    TOO_LARGE = "too-large"


class StartRefusal(StrEnum):
    """Why an engine would not start a container that is the image's own doing; the value is our sentence."""

    NOTHING_TO_START = "the image has neither ENTRYPOINT nor CMD"
    FILE_FOR_FOLDER = "the image has a file where a folder is mounted"
    NO_ENTRY_POINT = "the image's entry point does not exist in it"
    NO_INTERPRETER = "the image's entry point, or its interpreter, does not exist in it"
    NOT_EXECUTABLE = "the image's entry point is not executable"
    OTHER_ARCHITECTURE = "the image's entry point is for another architecture"
    ENVIRONMENT = "the image's environment is too large"
    NO_FOLDER = "the image has something else where a folder is mounted, or its WORKDIR cannot be made"


class NameKind(StrEnum):
    """How the name of another entry of the output folder differs from the one that was due."""

    LETTER_CASE = "letter-case"
    EXTENSION = "extension"
    UNFINISHED = "unfinished"
    STEM = "stem"
    FOLDER = "folder"
    OTHER = "other"


@dataclass(frozen=True, kw_only=True)
class Intake:
    """What was taken out of the output folder.

    Attributes:
        file: Name of the expected file as the participant knows it, with the neutral case name.
        size: Bytes taken; 0 where it was refused.
        refusal: Why it was not taken, None where it was.
        detail: What stands in its place, in our words: ``a symbolic link``, ``a folder``.
        other_entries: How many other entries the output folder held, at its top.
        full: The output's file system was full, by bytes or by files.
        other_names: What kinds of names those other entries have, each once, sorted.
    """

    file: str
    size: int = 0
    refusal: IntakeRefusal | None = None
    detail: str = ""
    other_entries: int = 0
    full: bool = False
    other_names: tuple[NameKind, ...] = ()


@dataclass(frozen=True, kw_only=True)
class JobResult:
    """The facts of one attempt at one job; no judgement.

    Attributes:
        job: The job's name.
        digest: The job's hash.
        attempt: 1, 2, …
        exit: How the container ended; None where the engine refused to start it.
        refusal: The engine's refusal in our words, empty where it started.
        killed: Why we killed it, None where it ended by itself.
        usage: What it used.
        intake: What was taken out; None where it never started.
        log_truncated: More log was written than is kept.
        neutral_name: What the case was called inside the container.
        notes: Facts of the host worth keeping with the result.
        tree_bytes: What it was seen to write to its own tree, where that is more than it may; else 0.
        overshoot: The most that an output which is only watched was seen to hold, where that is more than it may.
        start_fault: Why its program would never be started, as far as the preflight foresaw; empty where it did not.
    """

    job: str
    digest: str
    attempt: int
    exit: Exit | None
    refusal: str = ""
    killed: KillReason | None
    usage: Usage
    intake: Intake | None
    log_truncated: bool = False
    neutral_name: str = ""
    notes: tuple[str, ...] = ()
    overshoot: Tally | None = None
    tree_bytes: int = 0
    start_fault: str = ""
