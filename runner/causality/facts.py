"""The numbers of a check, by which it is judged and put into words."""

from collections import Counter
from dataclasses import dataclass

from runner.causality.evidence import Evidence
from runner.causality.examination import Ending
from runner.causality.findings import Finding, Leak, Standing
from runner.causality.plan import Course
from runner.causality.schedule import possible_lengths
from runner.challenge import AnswersCompared, CausalityMethod, CausalityRule

CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True)
class TriedCut:
    """A cut point as the report draws it.

    Attributes:
        frames: Frames kept.
        random: Drawn from the seed.
        standing: What was found there.
    """

    frames: int
    random: bool
    standing: Standing


def upper_bound(random_clean: int, *, tested_clean: int, possible: int) -> float:
    """Largest share of leaking cut points compatible at 95 % with ``random_clean`` clean random cuts: 1 − 0.05^(1/n).

    A share q of leaking cut points stays unseen by n random cuts with probability at most (1 − q)^n, less without
    replacement, so this is on the safe side (20 of 300: 13.9 %). It never exceeds the share that was not tested at all.
    Over several cases it holds for the mean of their shares, weighted by their random cuts, since no other shares of
    the same mean stay unseen more often than equal ones.
    """
    untested = (possible - tested_clean) / possible
    if random_clean == 0:
        return untested
    return float(min(untested, 1 - (1 - CONFIDENCE) ** (1 / random_clean)))


@dataclass(frozen=True, kw_only=True)
class Facts:
    """The numbers that a verdict and its sentences need.

    Attributes:
        method: How cuts were chosen.
        last_only: Only the last answer of each prefix was compared.
        ending: Why the check is over; None where it is not.
        whole: What the whole sequence is called.
        frames: Its length.
        min_frames: The shortest prefix to be tested.
        most_runs: The challenge's cap.
        points: How many cut points were to be tested.
        findings: What was found, in order.
        possible: Number of prefixes there are.
        noise: Largest share of frames in which two runs of the whole differ.
        full_runs: How many there were.
        tolerance: Of scores; None where there are none.
        leak: The proof.
    """

    method: CausalityMethod
    last_only: bool
    ending: Ending | None
    whole: str
    frames: int
    min_frames: int
    most_runs: int | None
    points: int
    findings: tuple[Finding, ...]
    possible: int
    noise: float
    full_runs: int
    tolerance: float | None
    leak: Leak | None

    @classmethod
    def of(cls, rule: CausalityRule, evidence: Evidence, finished: Course) -> "Facts":
        """Gather them."""
        return cls(
            method=rule.method,
            last_only=rule.rule is AnswersCompared.LAST,
            ending=finished.ending,
            whole="clip" if evidence.clip else "full sequence",
            frames=evidence.frames,
            min_frames=rule.min_frames,
            most_runs=rule.most_runs,
            points=finished.points,
            findings=finished.findings,
            possible=len(possible_lengths(rule, evidence)),
            noise=finished.noise,
            full_runs=len(finished.wholes),
            tolerance=rule.tolerance if any(run.scored for run in finished.wholes) else None,
            leak=finished.leak,
        )

    @property
    def cuts(self) -> tuple[TriedCut, ...]:
        """The cut points as the report draws them."""
        return tuple(TriedCut(frames=f.point.frames, random=f.point.random, standing=f.standing) for f in self.findings)

    @property
    def tested(self) -> int:
        """Cut points that came to a result."""
        return sum(f.decided for f in self.findings)

    @property
    def random(self) -> int:
        """Of these, those drawn from the seed."""
        return sum(f.decided and f.point.random for f in self.findings)

    @property
    def bound(self) -> float:
        """Largest share of leaking cut points that a clean result leaves room for."""
        return upper_bound(self.random, tested_clean=self.tested, possible=self.possible) if self.possible else 1.0

    @property
    def dependent(self) -> Finding | None:
        """The first cut point at which answers depended on the length alone."""
        return next((f for f in self.findings if f.standing is Standing.LENGTH_DEPENDENT), None)

    @property
    def dependent_share(self) -> float | None:
        """Share of the answers there that did."""
        if self.dependent is None or self.last_only:
            return None
        return len(self.dependent.suspects) / self.dependent.point.frames

    @property
    def count(self) -> Counter[Standing]:
        """Number of cut points by where they stand."""
        return Counter(f.standing for f in self.findings)

    def standing(self, *standings: Standing) -> tuple[Finding, ...]:
        """The cut points that stand so."""
        return tuple(f for f in self.findings if f.standing in standings)
