"""What to run next: asked again after every answer, until it answers nothing.

The course of a check
---------------------
1. The full sequence is run a second time. If more than 1 % of the frames differ, nothing can be told: stop.
2. Cut points are taken one at a time in the order of ``schedule``. All k answers of a prefix are compared.
3. A difference is confirmed: the prefix until three runs, then the full sequence until three (see ``findings``).
4. A confirmed difference is tried with an altered future at the same k. Changed too: the method *leaks*, stop. Not
   changed: it *depends on length* there.
5. From then on prefixes are of no more use, since this method may differ on each of them. The remaining cut points are
   tested with altered futures in place of prefixes: same length as the full run, so a dependence on length can neither
   mask a leak nor be taken for one. A method that does both is still caught, and each further cut costs one run.
6. Three candidates that could not be confirmed, the noise, or a row of failures end the check early.

Nothing is kept between two questions. Each answer is worked out anew from the evidence, so a check resumes from disk.
"""

from dataclasses import dataclass
from enum import StrEnum

from runner.causality.evidence import Evidence, FullRun, Request
from runner.causality.findings import RUNS_THAT_PROVE, Finding, Standing, look_at, look_at_view
from runner.causality.schedule import cut_points, cuts_possible
from runner.challenge import CausalityRule
from runner.job import CutKind

MOST_NOISE = 0.01
MOST_UNCONFIRMED = 3
MOST_FAILURES = 3
"""In a row for prefixes, in all for the full sequence."""


class Ending(StrEnum):
    """Why nothing more is to be run."""

    OFF = "off"
    NO_FULL_RUN = "no-full-run"
    NO_CUT = "no-cut"
    FULL_RUN_FAILS = "full-run-fails"
    NOISE = "noise"
    LEAK = "leak"
    UNPROVEN = "unproven"
    UNCONFIRMED = "unconfirmed"
    BROKEN_OFF = "broken-off"
    FAILURES = "failures"
    ALL_CUTS = "all-cuts"


@dataclass(frozen=True, kw_only=True)
class Course:
    """How far a check has come.

    Attributes:
        findings: Cut points looked at, in order; the last may be open.
        requests: What to run next.
        ending: Why nothing is; None while there are requests.
    """

    findings: tuple[Finding, ...] = ()
    requests: tuple[Request, ...] = ()
    ending: Ending | None = None


def next_cuts(rule: CausalityRule, evidence: Evidence, seed: int) -> tuple[Request, ...]:
    """What to run next, in any order; empty when the check is over.

    Args:
        rule: The challenge's section.
        evidence: What was observed so far; ``FullRun(repeat=0)`` is the ordinary run of the evaluation.
        seed: The organisers' secret, its own for each submission and case.
    """
    return course(rule, evidence, seed).requests


def course(rule: CausalityRule, evidence: Evidence, seed: int) -> Course:
    """Follow the check through the evidence, from its start to the first thing that is not known."""
    start = _before_cuts(rule, evidence)
    if start is not None:
        return start
    findings: tuple[Finding, ...] = ()
    for point in cut_points(rule, evidence.full[0], seed):
        if any(f.standing is Standing.LENGTH_DEPENDENT for f in findings):
            finding = look_at_view(evidence, point, CutKind.ALTERED_FUTURE)
        else:
            finding = look_at(evidence, point)
        findings += (finding,)
        if finding.request is not None:
            return Course(findings=findings, requests=(finding.request,))
        ending = _ending(findings)
        if ending is not None:
            return Course(findings=findings, ending=ending)
    return Course(findings=findings, ending=Ending.ALL_CUTS)


def _before_cuts(rule: CausalityRule, evidence: Evidence) -> Course | None:
    """The check up to the second full run; None once the cuts can begin."""
    runs, good = len(evidence.full_observations), len(evidence.full)
    ending: Ending | None = None
    if rule.method == "off":
        ending = Ending.OFF
    elif runs > 0 and evidence.full_observations[0].answers is None:
        ending = Ending.NO_FULL_RUN
    elif cuts_possible(rule, evidence.frames) == 0:
        ending = Ending.NO_CUT
    elif runs - good >= MOST_FAILURES:
        ending = Ending.FULL_RUN_FAILS
    elif evidence.noise > MOST_NOISE:
        ending = Ending.NOISE
    elif good < 2:
        return Course(requests=(FullRun(repeat=runs),))
    return None if ending is None else Course(ending=ending)


def _ending(findings: tuple[Finding, ...]) -> Ending | None:
    standings = [f.standing for f in findings]
    unconfirmed = standings.count(Standing.UNCONFIRMED)
    row = [standing is Standing.FAILED for standing in standings[-MOST_FAILURES:]]
    if standings[-1] is Standing.LEAKING:
        return Ending.LEAK
    if standings[-1] is Standing.UNPROVEN:
        return Ending.UNPROVEN
    if unconfirmed >= MOST_UNCONFIRMED:
        return Ending.UNCONFIRMED
    if unconfirmed + standings.count(Standing.BROKEN_OFF) >= MOST_UNCONFIRMED:
        return Ending.BROKEN_OFF
    return Ending.FAILURES if len(row) == MOST_FAILURES and all(row) else None


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Container runs a check of one case adds to its ordinary run.

    Attributes:
        clean: For a method that never disagrees with itself.
        most: Never more than this.
    """

    clean: int
    most: int


def estimate(rule: CausalityRule, frames: int, *, can_alter: bool = True) -> Cost:
    """What a check of a case of ``frames`` frames costs, in extra container runs.

    The most: the full sequence to three good runs with two failed ones between, each cut once, and three cut points
    that are confirmed as far as possible (two more prefixes, three altered futures).
    """
    cuts = min(rule.cuts, cuts_possible(rule, frames))
    if rule.method == "off" or cuts == 0:
        return Cost(clean=0, most=0)
    repeats = RUNS_THAT_PROVE - 1
    confirmation = repeats + (RUNS_THAT_PROVE if can_alter else 0)
    full = repeats + MOST_FAILURES - 1
    return Cost(clean=1 + cuts, most=full + cuts + min(cuts, MOST_UNCONFIRMED) * confirmation)
