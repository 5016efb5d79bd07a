"""What to run next: asked again after every answer, until it answers nothing.

Nothing is kept between two questions. The check (``examination``) is gone through anew each time, from its start to the
first run that is not known, so it resumes from disk. Where several runs can be made at once, it is gone on with on a
guess of what the missing ones will say, and what it asks for then is run ahead. A wrong guess wastes runs and changes
no verdict: only what the check asked for, in its own order, is looked at.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from runner.causality.answers import Answers
from runner.causality.evidence import Evidence, FullRun, Observation, Request, frames_shown
from runner.causality.examination import Ending, Examination
from runner.causality.findings import RUNS_THAT_PROVE, Finding, Leak, Standing
from runner.challenge import CausalityRule
from runner.job import Cut, CutKind


@dataclass(frozen=True, kw_only=True)
class Course:
    """How far a check has come.

    Attributes:
        findings: Cut points looked at, in order; the last may be open.
        requests: What to run next.
        ending: Why nothing is; None while there are requests.
        points: How many cut points are to be looked at.
        wholes: Answers of the whole sequence, by their repeat.
        noise: Largest share of frames in which two runs of a whole differ.
        leak: The proof; None unless there is one.
    """

    findings: tuple[Finding, ...]
    requests: tuple[Request, ...]
    ending: Ending | None
    points: int
    wholes: tuple[Answers, ...]
    noise: float
    leak: Leak | None


def next_cuts(rule: CausalityRule, evidence: Evidence, seed: int, *, width: int = 1) -> tuple[Request, ...]:
    """What to run next, in any order or at once; empty when the check is over.

    Args:
        rule: The challenge's section.
        evidence: What was observed so far; ``FullRun(repeat=0)`` is the ordinary run of the evaluation.
        seed: The organisers' secret, its own for each submission and case.
        width: At most so many requests. The first is certainly needed; the others if the missing ones say what is
            expected of them.
    """
    if rule.most_runs is not None:
        width = max(1, min(width, rule.most_runs - sum(request != FullRun() for request in evidence.by_request)))
    return _go_through(rule, evidence, seed, width).requests


def course(rule: CausalityRule, evidence: Evidence, seed: int) -> Course:
    """Follow the check through the evidence, from its start to the first thing that is not known."""
    return _go_through(rule, evidence, seed, 1)


def _go_through(rule: CausalityRule, evidence: Evidence, seed: int, width: int) -> Course:
    examination = Examination(rule, evidence, seed)
    steps, said, missing = examination.steps(), dict[Request, Observation](), list[Request]()
    ending: Ending | None = None
    try:
        request = next(steps)
        while True:
            if rule.most_runs is not None and len(said.keys() - {FullRun()}) >= rule.most_runs and request != FullRun():
                ending = Ending.LEAK if examination.leak is not None else Ending.CAP
                break
            observation = said.get(request, evidence.by_request.get(request))
            if observation is None:
                missing.append(request)
                observation = _guess(evidence, said, request) if len(missing) < width else None
            if observation is None:
                break
            said[request] = observation
            request = steps.send(observation)
    except StopIteration as stop:
        ending = stop.value
    open_point = examination.looking_at
    findings = tuple(examination.findings)
    if open_point is not None:
        view = CutKind.ALTERED_FUTURE if open_point.altered else examination.kind
        findings += (Finding(point=open_point, standing=Standing.OPEN, view=view),)
    return Course(
        findings=findings,
        requests=tuple(missing),
        ending=None if missing else ending,
        points=examination.points,
        wholes=examination.wholes(examination.kind),
        noise=examination.noise,
        leak=examination.leak,
    )


def _guess(evidence: Evidence, said: Mapping[Request, Observation], request: Request) -> Observation | None:
    """What a run will probably say: what the same view said before; that a confirmed change is a leak; else no change.

    None while no run of a whole is known.
    """
    wholes = (said.get(evidence.whole(kind, 0)) for kind in (evidence.prefix_kind, CutKind.ALTERED_FUTURE))
    whole = next((o.answers for o in wholes if o is not None and o.answers is not None), None)
    if whole is None:
        return None
    answers = whole.upto(frames_shown(request, evidence.frames))
    if isinstance(request, Cut):
        before = _answers(said, Cut(frames=request.frames, kind=request.kind))
        prefix = Cut(frames=request.frames, kind=evidence.prefix_kind, repeat=RUNS_THAT_PROVE - 1)
        shorter = _answers(said, prefix) if request.kind is CutKind.ALTERED_FUTURE else None
        if before is not None:
            answers = before
        elif shorter is not None and (shorter.columns, shorter.scored) == (whole.columns, whole.scored):
            answers = shorter.then(whole)
    return Observation(request=request, answers=answers)


def _answers(said: Mapping[Request, Observation], request: Request) -> Answers | None:
    return said[request].answers if request in said else None
