"""Everything a report shows, as plain values: names as they were given, words and numbers; no escaping, no markup.

Whoever builds a view decides what may be shown; the page shows all it is given. The organisers' edition is the only one
that may hold references, and ``banner`` is then not empty.
"""

from dataclasses import dataclass
from enum import StrEnum


class Tone(StrEnum):
    """How a chip looks; its word says the same without colour."""

    GOOD = "good"
    BAD = "bad"
    WARNING = "warning"
    WAITING = "waiting"
    NEUTRAL = "neutral"


@dataclass(frozen=True, kw_only=True)
class Chip:
    """A word from a closed list (a verdict, an outcome, a status), shown with a symbol for its tone."""

    word: str
    tone: Tone


@dataclass(frozen=True, kw_only=True)
class Fact:
    """A name and a value: ``engine``, ``Docker 27.1``."""

    name: str
    value: str


@dataclass(frozen=True, kw_only=True)
class Label:
    """What a label number stands for.

    Attributes:
        number: As in the predictions.
        name: As organisers call it; the number as text where it has no name.
    """

    number: int
    name: str


@dataclass(frozen=True, kw_only=True)
class Segment:
    """Frames ``start`` … ``stop − 1`` that carry one label."""

    label: int
    start: int
    stop: int


@dataclass(frozen=True, kw_only=True)
class Ribbon:
    """Labels over time, the reference above the prediction, on one axis.

    Attributes:
        title: The column: ``step``.
        frames: Length of the axis.
        fps: Frames a second, for the times in the tooltips.
        labels: The legend, in a fixed order: the position decides the colour.
        reference: Segments; None where it may not be shown.
        prediction: Segments; None where there is no valid prediction.
    """

    title: str
    frames: int
    fps: float
    labels: tuple[Label, ...]
    reference: tuple[Segment, ...] | None
    prediction: tuple[Segment, ...] | None


class CutState(StrEnum):
    """What was found at a cut."""

    CLEAN = "clean"
    CHANGED = "changed"
    UNDECIDED = "undecided"


@dataclass(frozen=True, kw_only=True)
class CutMark:
    """A tested cut.

    Attributes:
        frames: Frames that were kept.
        random: Drawn from the seed, not aimed at a change.
        state: What was found.
    """

    frames: int
    random: bool
    state: CutState


@dataclass(frozen=True, kw_only=True)
class ViewRibbon:
    """What was answered on one view of the sequence, in the column of the full run above it.

    Attributes:
        kind: What was shown: ``First 120 frames``, ``Other frames from 120 on``.
        cut: Frames that are those of the full run; only they are compared with it.
        frames: Frames that were shown, ``cut`` or more: where its band ends.
        answers: Segments; none where the view has no valid answers.
        state: What was found.
    """

    kind: str
    cut: int
    frames: int
    answers: tuple[Segment, ...]
    state: CutState


@dataclass(frozen=True, kw_only=True)
class CausalityPicture:
    """One column of the full run with the cuts tested.

    Attributes:
        full: The prediction on the full sequence; its reference is not shown.
        cuts: In the order of testing.
        leak_frame: The first frame that changed; None where none did.
        views: Answers to be drawn below the full run, from the top; the picture leaves some out where they are many.
        full_answer: What the full run answers for ``leak_frame``; empty where it may not be shown.
        view_answer: What the view that proves the leak answers for it; empty where it may not be shown.
        future_frames: How many frames after ``leak_frame`` its answer needed; None where that is not known.
    """

    full: Ribbon
    cuts: tuple[CutMark, ...]
    leak_frame: int | None = None
    views: tuple[ViewRibbon, ...] = ()
    full_answer: str = ""
    view_answer: str = ""
    future_frames: int | None = None


@dataclass(frozen=True, kw_only=True)
class CausalitySection:
    """The check of one case.

    Attributes:
        case: Name of the case.
        outcome: One of the closed list.
        text: What was tested and what it proves.
        facts: The numbers: cuts, noise, bound.
        pictures: One a column, or those where something was found.
        summary: What the checks of all cases of an entry say together, shown above; its first section carries it.
        pace: Run time of a frame by the slope over the views, a sentence: reported, never judged.
        online: Whether that pace keeps up with the frames; None where it cannot be told.
    """

    case: str
    outcome: Chip
    text: str
    facts: tuple[Fact, ...] = ()
    pictures: tuple[CausalityPicture, ...] = ()
    summary: str = ""
    pace: str = ""
    online: Chip | None = None


@dataclass(frozen=True, kw_only=True)
class Histogram:
    """How many answers took how long.

    Attributes:
        edges_ms: Rising, one more than there are bins; the first may be 0, the last infinity. Bins are drawn equally
            wide, so edges with a constant ratio give a logarithmic axis.
        counts: Answers in each bin.
    """

    edges_ms: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class LatencySection:
    """How fast one case was answered frame by frame; durations in seconds, None where nothing was measured.

    Attributes:
        case: Name of the case.
        online: Whether the answers keep up with the frames; None where it cannot be told.
        text: A sentence about it; empty for none.
        start_up: Until the container said hello.
        first_frame: Of the first answer.
        mean: Of all answers.
        p50: Median.
        p95: 95th percentile.
        p99: 99th percentile.
        longest: The slowest answer.
        period: From one frame to the next, 1 / fps.
        over_period: Frames that took longer than the period, or were never answered.
        missed: In real time: frames without an answer before the next was shown; None where nothing can be missed.
        over_time: Latency of each frame that was shown, None where it has no answer; empty for no time line.
        frames: Frames that were shown.
        histogram: Of the answers; None for no picture.
    """

    case: str
    online: Chip | None = None
    text: str = ""
    start_up: float | None = None
    first_frame: float | None = None
    mean: float | None = None
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None
    longest: float | None = None
    period: float | None = None
    over_period: int | None = None
    missed: tuple[int, ...] | None = None
    over_time: tuple[float | None, ...] = ()
    frames: int
    histogram: Histogram | None = None


@dataclass(frozen=True, kw_only=True)
class HintLine:
    """The likely cause and the fix."""

    cause: str
    fix: str


@dataclass(frozen=True, kw_only=True)
class ProblemLine:
    """What is wrong with a file and where: ``line 41, int_step``."""

    place: str
    what: str


@dataclass(frozen=True, kw_only=True)
class CaseRow:
    """One case of one submission.

    Attributes:
        case: Name of the case.
        verdict: The verdict's word.
        blame: Whose doing: ``participant``, ``organiser``, ``host``, ``nobody``.
        sentence: Why.
        notes: Facts that change nothing.
        hints: Likely causes and fixes.
        problems: Of the prediction file, the first ones.
        problem_count: How many there are in all.
        run_seconds: Judged run time; None where nothing ran.
        limit_seconds: What it may have been; None where there is no limit.
        used: What it used besides, a sentence each.
        scores: One for each of the section's metrics; None where there is none.
        ribbons: One a column.
    """

    case: str
    verdict: Chip
    blame: str
    sentence: str
    notes: tuple[str, ...] = ()
    hints: tuple[HintLine, ...] = ()
    problems: tuple[ProblemLine, ...] = ()
    problem_count: int = 0
    run_seconds: float | None = None
    limit_seconds: float | None = None
    used: tuple[str, ...] = ()
    scores: tuple[float | None, ...] = ()
    ribbons: tuple[Ribbon, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TaskSection:
    """The cases of a submission for one task.

    Attributes:
        title: The task.
        metrics: Names of the columns of scores.
        cases: In a fixed order.
    """

    title: str
    metrics: tuple[str, ...]
    cases: tuple[CaseRow, ...]


@dataclass(frozen=True, kw_only=True)
class SubmissionSection:
    """Everything about one submission.

    Attributes:
        submission: Its name, unique.
        team: The team's name.
        status: ``competing``, ``baseline``, …
        standing: One chip a reader takes in first: ``accepted``, ``rejected``, ``pending``.
        facts: Image digest, received, …
        tasks: Its cases, by task.
        causality: The cases that were checked.
        latency: The cases that were answered frame by frame.
    """

    submission: str
    team: str
    status: str
    standing: Chip
    facts: tuple[Fact, ...] = ()
    tasks: tuple[TaskSection, ...] = ()
    causality: tuple[CausalitySection, ...] = ()
    latency: tuple[LatencySection, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RankedLine:
    """A line of the leaderboard.

    Attributes:
        rank: From 1; .5 where ties are averaged.
        team: The team.
        submission: The submission.
        value: What was ranked.
        metrics: Means, one for each of the leaderboard's metrics.
        cases: The primary metric case by case, for the strip; empty for none.
    """

    rank: float
    team: str
    submission: str
    value: float
    metrics: tuple[float | None, ...] = ()
    cases: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True)
class UnrankedLine:
    """A submission that is shown beside the ranking, and why it is not in it."""

    team: str
    submission: str
    reason: str
    value: float | None = None
    metrics: tuple[float | None, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Leaderboard:
    """The ranking of one task.

    Attributes:
        title: The task.
        value_name: What ``value`` is: ``mean F1-edit``.
        value_decimals: Decimals of ``value``; those of the rounding before the ranking, or fewer.
        better: ``higher is better`` or ``lower is better``.
        method: One sentence: how scores became ranks.
        metrics: Names of the further columns.
        strip: Lower and upper end of the axis of the per-case strip; None for no strip.
        ranked: Best first.
        unranked: Shown below, with the reason.
        provisional: Ranked over pending cases: watermarked.
    """

    title: str
    value_name: str
    value_decimals: int = 4
    better: str
    method: str
    metrics: tuple[str, ...] = ()
    strip: tuple[float, float] | None = None
    ranked: tuple[RankedLine, ...] = ()
    unranked: tuple[UnrankedLine, ...] = ()
    provisional: bool = False


@dataclass(frozen=True, kw_only=True)
class PendingCase:
    """A case that the host still owes a verdict."""

    submission: str
    case: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class ReportView:
    """The whole report.

    Attributes:
        title: The challenge's title.
        challenge: Its short name.
        version: Its version.
        digest: Digest of the challenge folder.
        banner: What a reader must know before anything else; empty for none.
        run: Facts of the run: started, host, engine, GPUs, runner version.
        leaderboards: One a task.
        submissions: In the order of the leaderboard, unranked ones after it.
        assumptions: What was assumed where definitions leave a choice, a sentence each.
        pending: Cases without a verdict.
    """

    title: str
    challenge: str
    version: str
    digest: str
    banner: str = ""
    run: tuple[Fact, ...] = ()
    leaderboards: tuple[Leaderboard, ...] = ()
    submissions: tuple[SubmissionSection, ...] = ()
    assumptions: tuple[str, ...] = ()
    pending: tuple[PendingCase, ...] = ()
