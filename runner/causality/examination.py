"""The course of a check: a program that asks for runs one at a time, and is told what came of each.

1. The whole sequence is run a second time (not in a cut-run). If more than 1 % of the frames differ, nothing can be
   told: stop.
2. Cut points are taken one at a time in the order of ``schedule``. The answers of a prefix, or where the order says so
   of an altered future, are compared with those of the whole.
3. A difference is confirmed: the prefix until three runs, then the whole until three (see ``findings``).
4. A confirmed difference is tried with an altered future at the same k, which takes the length out of the question.
   Changed too: the method *leaks*. Not changed: it *depends on length* there, and a single run says so.
5. From then on prefixes are of no more use, since this method may differ on each of them. The remaining cut points are
   tested with altered futures in place of prefixes: same length as the whole, so a dependence on length can neither
   mask a leak nor be taken for one. A method that does both is still caught, and each further cut costs one run.
6. Three candidates that could not be confirmed, the noise, or a row of failures end the check early.
7. After a leak a search tells how many future frames the first leaking frame needed.

``altered-future`` begins at step 5. PETRAW's rule (``rule: last``) compares the last answer of each prefix and knows no
altered future. Where a case can lend frames, one is asked for all the same, and ``length_dependence: refuse`` makes the
verdict PETRAW's; where none can, a confirmed difference is a leak, as PETRAW had it.

Being asked for one run after the other, a check consumes the same runs whatever else has been run meanwhile, so that
runs made ahead on a guess change no verdict.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeVar

from runner.causality.answers import Answers, differences, differing
from runner.causality.evidence import Evidence, FullRun, Observation, Request
from runner.causality.findings import RUNS_THAT_PROVE, Finding, Leak, Standing, Suspects, suspects_of
from runner.causality.schedule import CutPoint, cut_points, possible_lengths
from runner.challenge import AnswersCompared, CausalityMethod, CausalityRule
from runner.job import Cut, CutKind

MOST_NOISE = 0.01
MOST_UNCONFIRMED = 3
MOST_FAILURES = 3
"""In a row for cuts, in all for the whole sequence."""

Result = TypeVar("Result")
Steps = Generator[Request, Observation, Result]
"""Asks for runs, is sent what came of each, and comes to a result."""


class Ending(StrEnum):
    """Why nothing more is to be run."""

    OFF = "off"
    NO_FULL_RUN = "no-full-run"
    NO_CUT = "no-cut"
    NO_DONOR = "no-donor"
    FULL_RUN_FAILS = "full-run-fails"
    NOISE = "noise"
    LEAK = "leak"
    UNPROVEN = "unproven"
    UNCONFIRMED = "unconfirmed"
    BROKEN_OFF = "broken-off"
    FAILURES = "failures"
    CAP = "cap"
    ALL_CUTS = "all-cuts"


@dataclass
class _Wholes:
    """Runs of one whole sequence: how many were asked for, and the answers of those that gave some."""

    asked: int = 0
    good: list[Answers] = field(default_factory=list)


class Examination:
    """One pass through a check.

    Attributes:
        findings: Cut points that came to an end, in order.
        looking_at: The cut point being looked at.
        points: How many cut points are to be looked at.
        noise: Largest share of frames in which two runs of a whole differ.
        leak: The proof, once there is one.
    """

    def __init__(self, rule: CausalityRule, evidence: Evidence, seed: int) -> None:
        """Take a case to be examined; what was observed of it is left aside."""
        self._rule, self._seed = rule, seed
        self._case = replace(evidence, observations=())
        self._wholes: dict[Request, _Wholes] = {}
        self._trouble: Ending | None = None
        self._view: list[Answers] = []
        self._dependent = False
        self.findings: list[Finding] = []
        self.looking_at: CutPoint | None = None
        self.points = 0
        self.noise = 0.0
        self.leak: Leak | None = None

    @property
    def kind(self) -> CutKind:
        """The kind of view that cut points are looked at with next."""
        if self._dependent or self._rule.method is CausalityMethod.ALTERED_FUTURE:
            return CutKind.ALTERED_FUTURE
        return self._case.prefix_kind

    def wholes(self, kind: CutKind) -> tuple[Answers, ...]:
        """Answers of the whole sequence that views of this kind are compared with, by their repeat."""
        return tuple(self._runs(kind).good)

    def steps(self) -> Steps[Ending]:
        """The check, from its start to its end."""
        rule, lengths = self._rule, possible_lengths(self._rule, self._case)
        impossible = self._impossible(lengths)
        if impossible is not None:
            return impossible
        yield from self._run_whole(self.kind, 1 if rule.method is CausalityMethod.CUT_RUN else 2)
        if self._trouble is not None:
            return self._trouble
        alter = rule.method is CausalityMethod.TARGETED and self._case.can_alter and not self._case.copied
        points = cut_points(rule, lengths, self.wholes(self.kind)[0], self._seed, alter=alter)
        self.points = len(points)
        for point in points:
            self.looking_at = point
            finding = yield from self._look_at(point)
            if self._trouble is not None:
                return self._trouble
            self.looking_at = None
            self.findings.append(finding)
            self._dependent |= finding.standing is Standing.LENGTH_DEPENDENT
            ending = _ending(self.findings)
            if ending is Ending.LEAK:
                self.leak = self._leak(finding)
                future = yield from self._search(finding)
                self.leak = replace(self.leak, future_frames=future)
            if ending is not None:
                return ending
        return Ending.ALL_CUTS

    def _impossible(self, lengths: tuple[int, ...]) -> Ending | None:
        if self._rule.method is CausalityMethod.OFF:
            return Ending.OFF
        if not lengths:
            return Ending.NO_CUT
        alters = self._rule.method is CausalityMethod.ALTERED_FUTURE
        return Ending.NO_DONOR if alters and not self._case.can_alter else None

    def _runs(self, kind: CutKind) -> _Wholes:
        return self._wholes.setdefault(self._case.whole(kind, 0), _Wholes())

    def _run_whole(self, kind: CutKind, wanted: int) -> Steps[None]:
        """Run the whole that views of this kind are compared with until there are so many answers, or trouble."""
        runs = self._runs(kind)
        while len(runs.good) < wanted and self._trouble is None:
            request = self._case.whole(kind, runs.asked)
            answers = (yield request).answers
            runs.asked += 1
            if answers is not None:
                apart = [
                    differing(one, answers, self._case.frames, tolerance=self._rule.tolerance) for one in runs.good
                ]
                self.noise = max(self.noise, *(float(frames.mean()) for frames in apart), 0.0)
                runs.good.append(answers)
                if self.noise > MOST_NOISE:
                    self._trouble = Ending.NOISE
            elif request == FullRun():
                self._trouble = Ending.NO_FULL_RUN
            elif runs.asked - len(runs.good) >= MOST_FAILURES:
                self._trouble = Ending.FULL_RUN_FAILS

    def _look_at(self, point: CutPoint) -> Steps[Finding]:
        """Judge a cut point by one view and, where the length could have made the difference, by an altered future."""
        kind = CutKind.ALTERED_FUTURE if point.altered else self.kind
        finding = yield from self._look_at_view(point, kind)
        if finding.standing is not Standing.LEAKING or kind is CutKind.ALTERED_FUTURE:
            return finding
        if not self._case.can_alter:
            literal = self._rule.rule is AnswersCompared.LAST
            return finding if literal else replace(finding, standing=Standing.UNPROVEN)
        altered = yield from self._look_at_view(point, CutKind.ALTERED_FUTURE)
        match altered.standing:
            case Standing.CLEAN:
                return replace(finding, standing=Standing.LENGTH_DEPENDENT)
            case Standing.FAILED:
                return replace(altered, standing=Standing.BROKEN_OFF)
            case _:
                return altered

    def _look_at_view(self, point: CutPoint, kind: CutKind) -> Steps[Finding]:
        """Judge one view at one cut point; ``leaking`` means here that the view provably changes answers."""
        yield from self._run_whole(kind, 1)
        view = self._view = list[Answers]()
        finding = Finding(point=point, standing=Standing.OPEN, view=kind)
        suspects = Suspects()
        while self._trouble is None:
            if len(view) < RUNS_THAT_PROVE:
                said = yield Cut(frames=point.frames, kind=kind, repeat=len(view))
                if said.answers is None:
                    standing = Standing.BROKEN_OFF if view else Standing.FAILED
                    return replace(finding, standing=standing, failure=said.failure)
                view.append(said.answers)
            elif len(self.wholes(kind)) < RUNS_THAT_PROVE:
                yield from self._run_whole(kind, len(self.wholes(kind)) + 1)
            else:
                return replace(finding, standing=Standing.LEAKING, suspects=suspects.frames, columns=suspects.columns)
            suspects = suspects_of(self._rule, self.wholes(kind), view, point.frames)
            if not suspects.frames:
                return replace(finding, standing=Standing.CLEAN if len(view) == 1 else Standing.UNCONFIRMED)
        return finding

    def _leak(self, finding: Finding) -> Leak:
        """The proof, from the view that was looked at last."""
        frame, column, whole = finding.suspects[0], finding.columns[0], self.wholes(finding.view)[0]
        cut = Cut(frames=finding.point.frames, kind=finding.view)
        full_answer, cut_answer = whole.value(column, frame), self._view[0].value(column, frame)
        return Leak(frame=frame, cut=cut, column=column, full_answer=full_answer, cut_answer=cut_answer)

    def _search(self, finding: Finding) -> Steps[int | None]:
        """How many later frames the first leaking frame needed, by single runs of longer views of the same kind.

        Steps double from the cut on, then the gap is halved, since most methods look ahead by a few frames only. The
        number is exact where every shorter view changes the frame's answer; a method whose answer happens to be right
        on one of them may be said to need less than it does. None where a run fails, or lengths are missing.
        """
        frame, kind, whole = finding.suspects[0], finding.view, self._case.frames
        lengths = [finding.point.frames, *self._longer(finding), whole]
        low, high, step = 0, len(lengths) - 1, 1
        while high - low > 1:
            probe = low + min(step, (high - low) // 2)
            answers = (yield Cut(frames=lengths[probe], kind=kind)).answers
            if answers is None:
                return None
            found = differences(self.wholes(kind), (answers,), frame + 1, first=frame, tolerance=self._rule.tolerance)
            changed = {name for name, here in zip(found.columns, found.changed[:, 0], strict=True) if here}
            if changed.intersection(finding.columns):
                low, step = probe, 2 * step
            else:
                high = probe
        return lengths[high] - frame - 1 if lengths[high] - lengths[low] == 1 else None

    def _longer(self, finding: Finding) -> Sequence[int]:
        """Lengths of longer views, ascending; shorter than the whole."""
        between = range(finding.point.frames + 1, self._case.frames)
        copies = self._case.copied and finding.view is CutKind.ALTERED_FUTURE
        if self._case.possible is None or copies:
            return between
        return [k for k in self._case.possible if k in between]


def _ending(findings: Sequence[Finding]) -> Ending | None:
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
