"""Runs what a check for causality asks for; every run is kept like any other, and found again on disk."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from runner.budget import judged_seconds
from runner.causality import Answers, FullRun, Observation, Request
from runner.challenge import InvocationMode
from runner.dataset import Case
from runner.inputs import CaseView, VideoCopy
from runner.job import Cut, CutKind, Job
from runner.pipeline.attempts import (
    Attempt,
    Judged,
    donor_of,
    earlier_place,
    job_folder,
    job_on,
    settled_attempts,
    views_of,
)
from runner.pipeline.context import Context, Entry
from runner.pipeline.events import CutEnded
from runner.pipeline.sequences import Examined, earlier_entry

Places = Mapping[str, int]
"""By case: after how many frames a cut-run cuts it."""


@dataclass(frozen=True, kw_only=True)
class Look:
    """One run of a container.

    Attributes:
        cases: What it is shown.
        cuts: Where they end or turn, by real name; a case that is not there is shown whole.
        length: How long an altered future is; None: as long as its case.
        repeat: Of a run in which nothing is cut.
        below: In mode ``dataset``: the case it is about; empty: all of them.
        asked: Whose requests it answers.
        copies: Copies that a clip's videos are cut from, by input.
    """

    cases: tuple[Case, ...]
    cuts: Mapping[str, Cut] = field(default_factory=dict)
    length: int | None = None
    repeat: int = 0
    below: str = ""
    asked: tuple[tuple[str, Request], ...]
    copies: Mapping[str, VideoCopy] = field(default_factory=dict)

    @property
    def ordinary(self) -> bool:
        """It is the run that is judged."""
        return not self.cuts and not self.repeat and not self.below


@dataclass(frozen=True, kw_only=True)
class Looked:
    """What came of a look.

    Attributes:
        observations: By case.
        frames: Frames that were shown.
        seconds: How long it took; None where it gave no valid answers.
    """

    observations: Mapping[str, Observation]
    frames: int = 0
    seconds: float | None = None


def looks_for(context: Context, asked: Sequence[tuple[Examined, Request]], places: Places | None) -> list[Look]:
    """The runs that answer some requests.

    In mode ``dataset`` a case is shown in a data set of its own, but for a cut-run: there all cases are shown, and
    requests that differ in nothing but the case are answered by the same run.

    Args:
        context: The run.
        asked: What is asked of which case.
        places: Where a cut-run cuts the cases; None: each request has a run of its own.
    """
    looks: dict[object, Look] = {}
    for tested, request in asked:
        name = tested.case.name
        look = _alone(context, tested, request)
        if places is not None and not _needs_copy(tested, request):
            look = _in_company(context, tested.case, request, places)
        key = (tuple(case.name for case in look.cases), look.below, tuple(look.cuts.items()), look.repeat)
        before = looks[key].asked if key in looks else ()
        looks[key] = replace(look, asked=(*before, (name, request)))
    return list(looks.values())


def _needs_copy(tested: Examined, request: Request) -> bool:
    """What is compared with a copy is shown alone, as the copy is."""
    copied = (CutKind.CLIP, CutKind.ALTERED_FUTURE) if tested.copied else (CutKind.CLIP,)
    return tested.clip or (isinstance(request, Cut) and request.kind in copied)


def _alone(context: Context, tested: Examined, request: Request) -> Look:
    name = tested.case.name
    return Look(
        cases=(tested.case,), cuts={name: request} if isinstance(request, Cut) else {},
        length=tested.frames if tested.clip else None,
        repeat=request.repeat if isinstance(request, FullRun) else 0,
        below=name if context.challenge.invocation.mode is InvocationMode.DATASET else "", asked=(),
        copies=tested.copies,
    )  # fmt: skip


def _in_company(context: Context, case: Case, request: Request, places: Places) -> Look:
    every = tuple(context.cases.values())
    if isinstance(request, FullRun):
        return Look(cases=every, repeat=request.repeat, asked=())
    if places.get(case.name) != request.frames:
        return Look(cases=every, cuts={case.name: request}, below=case.name, asked=())
    cuts = {name: Cut(frames=k, kind=request.kind, repeat=request.repeat) for name, k in places.items()}
    return Look(cases=every, cuts=cuts, asked=())


@dataclass(frozen=True, kw_only=True)
class _Ran:
    """A job and the attempts at it."""

    job: Job
    attempts: tuple[Attempt, ...]

    def counted(self, task: str, case: str) -> tuple[Attempt, Judged]:
        """The attempt that counts: an accepted one, else the last."""
        judged = [(attempt, attempt.of(task, case)) for attempt in self.attempts]
        return next((pair for pair in judged if pair[1].verdict.accepted), judged[-1])


def run_look(context: Context, entry: Entry, task: str, look: Look) -> Looked:
    """Run a look, or find it on disk; a failure of the method is an answer too.

    Raises:
        HostFault: The host failed every time.
    """
    ran = _attempted(context, entry, look)
    if isinstance(ran, str):
        return Looked(observations={name: Observation(request=one, failure=ran) for name, one in look.asked})
    observations = {}
    seconds: float | None = None
    for name, request in look.asked:
        attempt, judged = ran.counted(task, name)
        observations[name] = _observation(request, judged)
        if judged.verdict.accepted:
            seconds = judged_seconds(attempt.result.usage)
        if not look.ordinary:
            submission = entry.submission.submission
            context.observe(CutEnded(submission=submission, case=name, run=ran.job.name))
    return Looked(observations=observations, frames=ran.job.frames, seconds=seconds)


def _observation(request: Request, judged: Judged) -> Observation:
    if judged.verdict.accepted and judged.reading is not None and judged.reading.prediction is not None:
        return Observation(request=request, answers=Answers.of(judged.reading.prediction))
    return Observation(request=request, failure=judged.verdict.word.value)


def _attempted(context: Context, entry: Entry, look: Look) -> _Ran | str:
    """The attempts at a look; or why there is none, in our words: an earlier task failed on it."""
    if look.ordinary:
        views = views_of(context, entry, *look.cases)
    else:
        earlier = _earlier(context, entry, look)
        if isinstance(earlier, str):
            return earlier
        views = tuple(_view(context, look, case, earlier[case.name]) for case in look.cases)
    job = job_on(context, entry, views, repeat=look.repeat, below=look.below)
    return _Ran(job=job, attempts=tuple(settled_attempts(context, entry, job, views)))


def _view(context: Context, look: Look, case: Case, earlier: Mapping[str, Path]) -> CaseView:
    cut = look.cuts.get(case.name)
    altered = cut is not None and cut.kind is CutKind.ALTERED_FUTURE
    return CaseView(
        case=case, cut=cut, earlier=earlier, donor=donor_of(context, case) if altered else None,
        length=look.length if altered else None, copies=look.copies,
    )  # fmt: skip


def _earlier(context: Context, entry: Entry, look: Look) -> dict[str, dict[str, Path]] | str:
    """What earlier tasks predict for the same look, by case and place; or how one of them failed."""
    found: dict[str, dict[str, Path]] = {case.name: {} for case in look.cases}
    for task in entry.shared.inputs_from:
        before = earlier_entry(context, entry, task)
        ran = _attempted(context, before, look)
        if isinstance(ran, str):
            return ran
        rule = context.challenge.tasks[task].format
        for output in ran.job.outputs:
            if output.file == before.shared.files[task]:
                attempt, judged = ran.counted(task, output.case)
                if not judged.verdict.accepted:
                    return f"{judged.verdict.word.value} in task {task}"
                folder = job_folder(context, ran.job) / f"attempt-{attempt.number}"
                found[output.case][earlier_place(task, rule)] = folder / "predictions" / output.kept
    return found
