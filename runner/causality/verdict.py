"""What a finished check proves, in a word, in numbers, and in a sentence for each reader."""

from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from runner.causality.evidence import Evidence
from runner.causality.findings import RUNS_THAT_PROVE, Finding, Standing
from runner.causality.plan import MOST_FAILURES, MOST_NOISE, Course, Ending, course
from runner.causality.schedule import cuts_possible
from runner.challenge import CausalityRule
from runner.job import Cut

CONFIDENCE = 0.95


class CausalityOutcome(StrEnum):
    """The closed list of outcomes; only ``leaking`` may cost anything by itself."""

    PASSED = "passed"
    LEAKING = "leaking"
    LENGTH_DEPENDENT = "length-dependent"
    INCONCLUSIVE = "inconclusive"
    NOT_DETERMINISTIC = "not-deterministic"
    NOT_RUN = "not-run"


@dataclass(frozen=True, kw_only=True)
class Leak:
    """The first frame whose answer provably depended on what came after the cut.

    Attributes:
        frame: Counted from 0.
        cut: The view that shows it; its ``frames`` is the cut.
        column: The first column that differs.
        full_answer: Label with the whole sequence.
        cut_answer: Label with the view.
    """

    frame: int
    cut: Cut
    column: str
    full_answer: int
    cut_answer: int


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


@dataclass(frozen=True, kw_only=True)
class CausalityVerdict:
    """What was tested and what it proves.

    Attributes:
        outcome: One of the closed list.
        sentence: For anybody: our words, counts and frame numbers; no label, no name.
        detail: For the organisers: the same with both answers, or with the reasons of failures; our words too.
        cuts: Every cut point that was tried, in order.
        cuts_tested: How many of them came to a result.
        cuts_possible: Number of prefixes there are.
        random_cuts: Of the tested ones, those drawn from the seed.
        noise: Largest share of frames in which two runs of the full sequence differ.
        bound: Clean methods: the largest share of leaking cut points compatible with the result at 95 %.
        first_leak: The proof; None unless leaking.
        length_dependent_share: Share of the frames of a prefix whose answers changed with the length alone; None where
            no such dependence was found. A leaking method may have it too.
    """

    outcome: CausalityOutcome
    sentence: str
    detail: str
    cuts: tuple[TriedCut, ...] = ()
    cuts_tested: int = 0
    cuts_possible: int = 0
    random_cuts: int = 0
    noise: float = 0.0
    bound: float | None = None
    first_leak: Leak | None = None
    length_dependent_share: float | None = None


def upper_bound(random_clean: int, *, tested_clean: int, possible: int) -> float:
    """Largest share of leaking cut points compatible at 95 % with ``random_clean`` clean random cuts: 1 − 0.05^(1/n).

    A share q of leaking cut points stays unseen by n random cuts with probability at most (1 − q)^n, less without
    replacement, so this is on the safe side (20 of 300: 13.9 %). It never exceeds the share that was not tested at all.
    """
    untested = (possible - tested_clean) / possible
    if random_clean == 0:
        return untested
    return float(min(untested, 1 - (1 - CONFIDENCE) ** (1 / random_clean)))


def conclude(rule: CausalityRule, evidence: Evidence, seed: int) -> CausalityVerdict:
    """Judge the evidence; a check that still has requests is inconclusive."""
    finished = course(rule, evidence, seed)
    facts = _Facts.of(rule, evidence, finished)
    outcome = _outcome(finished, facts)
    sentence, detail = _words(outcome, finished, facts)
    return CausalityVerdict(
        outcome=outcome,
        sentence=sentence,
        detail=detail,
        cuts=tuple(
            TriedCut(frames=f.point.frames, random=f.point.random, standing=f.standing) for f in finished.findings
        ),
        cuts_tested=facts.tested,
        cuts_possible=facts.possible,
        random_cuts=facts.random,
        noise=evidence.noise,
        bound=facts.bound if outcome is CausalityOutcome.PASSED else None,
        first_leak=facts.leak,
        length_dependent_share=facts.dependent_share,
    )


@dataclass(frozen=True, kw_only=True)
class _Facts:
    """The numbers that the sentences need."""

    frames: int
    min_frames: int
    tested: int
    random: int
    possible: int
    noise: float
    full_runs: int
    bound: float
    leak: Leak | None
    leak_finding: Finding | None
    dependent: Finding | None
    failed: tuple[Finding, ...]
    unconfirmed: tuple[Finding, ...]

    @classmethod
    def of(cls, rule: CausalityRule, evidence: Evidence, finished: Course) -> "_Facts":
        findings = finished.findings
        decided = [f for f in findings if f.decided]
        leaking = next((f for f in findings if f.standing is Standing.LEAKING), None)
        possible = cuts_possible(rule, evidence.frames)
        random = sum(f.point.random for f in decided)
        bound = upper_bound(random, tested_clean=len(decided), possible=possible) if possible else 1.0
        return cls(
            frames=evidence.frames,
            min_frames=rule.min_frames,
            tested=len(decided),
            random=random,
            possible=possible,
            noise=evidence.noise,
            full_runs=len(evidence.full),
            bound=bound,
            leak=_first_leak(evidence, leaking) if leaking else None,
            leak_finding=leaking,
            dependent=next((f for f in findings if f.standing is Standing.LENGTH_DEPENDENT), None),
            failed=tuple(f for f in findings if f.standing in {Standing.FAILED, Standing.BROKEN_OFF}),
            unconfirmed=tuple(f for f in findings if f.standing is Standing.UNCONFIRMED),
        )

    @property
    def dependent_share(self) -> float | None:
        if self.dependent is None:
            return None
        return len(self.dependent.suspects) / self.dependent.point.frames


def _first_leak(evidence: Evidence, finding: Finding) -> Leak:
    frame, full = finding.suspects[0], evidence.full[0]
    view = evidence.of_view(finding.point.frames, finding.view)[0].answers
    assert view is not None
    row = next(i for i in range(len(full.columns)) if full.labels[i, frame] != view.labels[i, frame])
    return Leak(
        frame=frame,
        cut=Cut(frames=finding.point.frames, kind=finding.view),
        column=full.columns[row],
        full_answer=int(full.labels[row, frame]),
        cut_answer=int(view.labels[row, frame]),
    )


def _outcome(finished: Course, facts: _Facts) -> CausalityOutcome:
    match finished.ending:
        case Ending.OFF | Ending.NO_FULL_RUN:
            return CausalityOutcome.NOT_RUN
        case Ending.LEAK:
            return CausalityOutcome.LEAKING
        case Ending.NOISE | Ending.UNCONFIRMED:
            return CausalityOutcome.NOT_DETERMINISTIC
        case Ending.ALL_CUTS if facts.dependent is not None:
            return CausalityOutcome.LENGTH_DEPENDENT
        case Ending.ALL_CUTS if 2 * facts.tested >= len(finished.findings):
            return CausalityOutcome.PASSED
        case _:
            return CausalityOutcome.INCONCLUSIVE


def _words(outcome: CausalityOutcome, finished: Course, facts: _Facts) -> tuple[str, str]:
    """The sentence for anybody and the one for the organisers."""
    match outcome:
        case CausalityOutcome.PASSED:
            return _passed(facts)
        case CausalityOutcome.LEAKING:
            return _leaking(facts)
        case CausalityOutcome.LENGTH_DEPENDENT:
            return _length_dependent(facts)
        case CausalityOutcome.NOT_DETERMINISTIC:
            return _not_deterministic(finished, facts)
        case CausalityOutcome.INCONCLUSIVE:
            return _inconclusive(finished, facts)
        case CausalityOutcome.NOT_RUN:
            off = finished.ending is Ending.OFF
            why = "the challenge does not ask for it" if off else "the full sequence has no valid answers"
            return (f"Causality was not tested: {why}.",) * 2
        case _:
            assert_never(outcome)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _tested(facts: _Facts) -> str:
    return f"{facts.tested} of {facts.possible} possible cuts tested, {facts.random} of them random"


def _noise(facts: _Facts) -> str:
    share = _percent(facts.noise)
    return f"{facts.full_runs} runs of the full sequence differ in at most {share} of its {facts.frames} frames"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _unconfirmed(facts: _Facts) -> str:
    if not facts.unconfirmed:
        return ""
    where = ", ".join(str(f.point.frames) for f in facts.unconfirmed)
    return f" A change at {where} frames did not show in each of {RUNS_THAT_PROVE} runs."


def _remarks(facts: _Facts) -> tuple[str, str]:
    """What is to be said of cuts without a result; for anybody, and with the reasons."""
    unconfirmed = _unconfirmed(facts)
    if not facts.failed:
        return unconfirmed, unconfirmed
    where = ", ".join(str(f.point.frames) for f in facts.failed)
    why = ", ".join(f"{f.point.frames} ({f.failure})" for f in facts.failed)
    return f"{unconfirmed} No answer with {where} frames.", f"{unconfirmed} No answer with {why} frames."


def _passed(facts: _Facts) -> tuple[str, str]:
    text = (
        f"No answer changed when later frames were withheld: {_tested(facts)}. At 95 % this leaves room for at most "
        f"{_percent(facts.bound)} of cut points that leak. {_noise(facts)}."
    )
    shown, known = _remarks(facts)
    return text + shown, text + known


def _runs_agree(what: str) -> str:
    return f"{RUNS_THAT_PROVE} runs of the full sequence agree, {RUNS_THAT_PROVE} with {what} agree, and they differ"


def _leaking(facts: _Facts) -> tuple[str, str]:
    leak, finding = facts.leak, facts.leak_finding
    assert leak is not None
    assert finding is not None
    count, cut = len(finding.suspects), leak.cut.frames
    which = f"frame {leak.frame}" if count == 1 else f"{count} frames, the first of them {leak.frame},"
    withheld = "" if facts.dependent else "withheld, and again when they were "
    text = (
        f"The answer for {which} changed when the frames from {cut} on were {withheld}replaced by others: "
        f"{_runs_agree('the other frames')}. Found with {facts.tested} of {facts.possible} possible cuts."
    )
    both = (
        f" Frame {leak.frame}, {leak.column}: {leak.full_answer} with the full sequence, "
        f"{leak.cut_answer} with other frames from {cut} on."
    )
    return text, text + both


def _length_dependent(facts: _Facts) -> tuple[str, str]:
    finding, share = facts.dependent, facts.dependent_share
    assert finding is not None
    assert share is not None
    text = (
        f"Answers depend on the length of the sequence, not on later frames: with {finding.point.frames} of "
        f"{facts.frames} frames {_count(len(finding.suspects), 'answer')} ({_percent(share)}) changed, first that for "
        f"frame {finding.suspects[0]}, but none did when the later frames were replaced by others. {_tested(facts)}."
    )
    shown, known = _remarks(facts)
    return text + shown, text + known


def _not_deterministic(finished: Course, facts: _Facts) -> tuple[str, str]:
    if finished.ending is Ending.NOISE:
        text = f"Runs of the same input differ too much to tell: {_noise(facts)}, {_percent(MOST_NOISE)} is allowed."
        return text, text
    text = f"Answers change from run to run. {_noise(facts)}.{_unconfirmed(facts)}"
    return text, text


def _inconclusive(finished: Course, facts: _Facts) -> tuple[str, str]:
    shown, known = _remarks(facts)
    last = finished.findings[-1] if finished.findings else None
    match finished.ending:
        case Ending.NO_CUT:
            why = f"the sequence has {facts.frames} frames, the shortest prefix to be tested {facts.min_frames}"
        case Ending.FULL_RUN_FAILS:
            why = f"{MOST_FAILURES} repetitions of the full sequence gave no answer"
        case Ending.FAILURES:
            why = f"{MOST_FAILURES} cuts in a row gave no answer"
        case Ending.BROKEN_OFF:
            why = "changed answers could not be confirmed, since repetitions gave no answer"
        case Ending.UNPROVEN if last is not None:
            why = (
                f"{_count(len(last.suspects), 'answer')} changed when the frames from {last.point.frames} on were "
                "withheld, but no other case could lend frames to tell a leak from a dependence on length"
            )
        case Ending.ALL_CUTS:
            why = "fewer than half of the cuts gave an answer"
        case _:
            why = "the check was stopped before its end"
    text = f"Causality could not be decided: {why}. {_tested(facts)}."
    return text + shown, text + known
