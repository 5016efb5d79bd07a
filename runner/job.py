"""What will be run, and what came of it: values between plan, execute and judge."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from runner.budget import Budget, Usage
from runner.challenge import Stream
from runner.challenge.formats.registry import AnyFormat
from runner.engine import Exit
from runner.tally import Tally

EXECUTION_CONTRACT = 2
"""Raised only when what a container experiences changes; part of every job's hash."""


class CutKind(StrEnum):
    """What a container is shown in place of the full sequence.

    ``prefix``: its first frames. ``altered-future``: its first frames, then another case's up to its length. ``clip``:
    its first frames, where a video is copied without loss first, so that it can be cut anywhere.
    """

    PREFIX = "prefix"
    ALTERED_FUTURE = "altered-future"
    CLIP = "clip"


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


def frames_of(frames: int, cut: Cut | None, *, length: int | None = None) -> int:
    """How many frames a view of a case of ``frames`` frames shows; an altered future may end after ``length``."""
    if cut is None:
        return frames
    return min(frames, (length or frames) if cut.kind is CutKind.ALTERED_FUTURE else cut.frames)


@dataclass(frozen=True, kw_only=True)
class Output:
    """One prediction that a job is to leave.

    Attributes:
        case: Real name of the case it answers.
        file: Its path below the output folder, with ``{case}`` for the neutral name, and with ``{frame}`` where there
            is a file for each frame.
        frames: Frames of the case that are shown.
        stems: Where there is a file for each frame: the names that ``{frame}`` stands for.
        apart: Name of a folder of its own below ``predictions/``, where a job leaves predictions of several cases.
    """

    case: str
    file: str
    frames: int = 0
    stems: tuple[str, ...] = ()
    apart: str = ""

    @property
    def path(self) -> str:
        """Path of the file, or of the folder with a file a frame."""
        return self.file.rpartition("/")[0] if "{frame}" in self.file else self.file

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the files of that folder; empty where ``path`` is a file."""
        own = self.file.rpartition("/")[2]
        return tuple(own.replace("{frame}", stem) for stem in self.stems) if "{frame}" in own else ()

    @property
    def kept(self) -> str:
        """Where it is kept, below an attempt's folder ``predictions/``."""
        place = self.path.replace("{case}", "prediction")
        return f"{self.apart}/{place}" if self.apart else place

    @property
    def shown(self) -> str:
        """Its path as a participant may see it."""
        return self.path.replace("{case}", "<case>") + ("/" if self.names else "")


@dataclass(frozen=True, kw_only=True)
class Streaming:
    """How a case is streamed to a container, and what its answers are made into.

    Attributes:
        rule: How frames are released.
        fps: Frames a second of the case's camera.
        formats: Of the tasks that share the run, by task.
    """

    rule: Stream
    fps: float
    formats: Mapping[str, AnyFormat]

    def of(self, output: Output) -> Mapping[str, AnyFormat]:
        """The formats of the tasks that an output is for."""
        return {task: rule for task, rule in self.formats.items() if rule.file.replace("{task}", task) == output.file}


@dataclass(frozen=True, kw_only=True)
class Job:
    """One container run.

    Attributes:
        submission: The submission's slug.
        task: Name of the task below which its attempts are kept.
        case: Real name of the case below which they are kept; stays on our side.
        name: ``full``, ``repeat-1``, ``cut-0123``, …; unique in its case.
        cuts: Where its cases end or turn, by real name; a case that is not there is shown whole.
        frames: Frames shown, of all its cases.
        image_id: ``sha256:…``; never a tag.
        command: In place of the image's own entry point; empty: the image's own.
        arguments: After the entry point, with placeholders.
        environment: Variables of the challenge.
        told: The task, or the tasks that share the run, as ``{task}`` and ``PROCTOR_TASK``.
        places: Every input it is shown, by name, and its place below the input folder, with ``{case}``.
        whole: It is started for a data set, and not for a case.
        lists: Text files beside the inputs, and what a line of each is.
        input_mount: Where the input lies inside the container.
        output_mount: Where the output goes.
        outputs: What is taken out: for each case a prediction, or several where tasks with files of their own share
            the run.
        budget: What it may use.
        digest: Hash of everything that could change its result.
        stream: How its frames are streamed; None: they lie there when it is started.
    """

    submission: str
    task: str
    case: str
    name: str
    cuts: Mapping[str, Cut] = field(default_factory=dict)
    frames: int
    image_id: str
    command: tuple[str, ...] = ()
    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    told: str = ""
    places: Mapping[str, str] = field(default_factory=lambda: {"frames": "{case}"})
    whole: bool = False
    lists: Mapping[str, str] = field(default_factory=dict)
    input_mount: str
    output_mount: str
    outputs: tuple[Output, ...]
    budget: Budget
    digest: str
    stream: Streaming | None = None

    def of(self, place: int) -> "Job":
        """The job as far as one of its outputs goes: what is judged."""
        output = self.outputs[place]
        return replace(self, case=output.case, frames=output.frames, outputs=(output,))

    @property
    def cases(self) -> tuple[str, ...]:
        """The cases it answers."""
        return tuple(dict.fromkeys(output.case for output in self.outputs))


class KillReason(StrEnum):
    """Why we killed a container."""

    TIME = "time"
    OUTPUT = "output"
    PROTOCOL = "protocol"
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
        stray: How many files and folders the whole output held, at any depth, that are due for no task and no case of
            the run; a folder counts once, with all in it. No more than some thousands are counted.
    """

    file: str
    size: int = 0
    refusal: IntakeRefusal | None = None
    detail: str = ""
    other_entries: int = 0
    full: bool = False
    other_names: tuple[NameKind, ...] = ()
    stray: int = 0


@dataclass(frozen=True, kw_only=True)
class StreamFacts:
    """What came of a streamed case; times in seconds, latencies as ``streaming.timing`` measures them.

    Attributes:
        breach: How it broke the protocol, a word of ``streaming.protocol``; empty where it did not.
        sentence: Ours about the breach.
        released: Frames it was given.
        answered: Of them, those that were answered, in time or late.
        missed: With ``realtime``: those that were not answered before the next was released.
        over_period: Those that took longer than the camera's period.
        period: Seconds between two frames of the camera.
        start_up: Until it said hello; None where it did not.
        first_frame: Latency of the first frame; this and the following are None where no frame was answered.
        mean: Of all latencies.
        p50: Median.
        p95: 95th percentile.
        p99: 99th percentile.
        longest: The greatest.
        online_compatible: It keeps up with the camera.
        counts: Frames by latency, between the edges of ``streaming.timing``.
        way: How it wanted its images; empty where it did not say.
    """

    breach: str = ""
    sentence: str = ""
    released: int = 0
    answered: int = 0
    missed: int = 0
    over_period: int = 0
    period: float = 0.0
    start_up: float | None = None
    first_frame: float | None = None
    mean: float | None = None
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None
    longest: float | None = None
    online_compatible: bool = False
    counts: tuple[int, ...] = ()
    way: str = ""


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
        intake: What was taken out, of the first of the job's outputs; None where it never started.
        further: The same of its other outputs.
        log_truncated: More log was written than is kept.
        neutral_name: What the case was called inside the container.
        notes: Facts of the host worth keeping with the result.
        tree_bytes: What it was seen to write to its own tree, where that is more than it may; else 0.
        overshoot: The most that an output which is only watched was seen to hold, where that is more than it may.
        start_fault: Why its program would never be started, as far as the preflight foresaw; empty where it did not.
        stream: What came of the stream; None where nothing was streamed.
    """

    job: str
    digest: str
    attempt: int
    exit: Exit | None
    refusal: str = ""
    killed: KillReason | None
    usage: Usage
    intake: Intake | None
    further: tuple[Intake, ...] = ()
    log_truncated: bool = False
    neutral_name: str = ""
    notes: tuple[str, ...] = ()
    overshoot: Tally | None = None
    tree_bytes: int = 0
    start_fault: str = ""
    stream: StreamFacts | None = None

    def of(self, place: int) -> "JobResult":
        """The result as far as one of the job's outputs goes."""
        if not place or self.intake is None:
            return replace(self, further=())
        return replace(self, intake=self.further[place - 1], further=())
