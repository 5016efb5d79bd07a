"""What a check found in sentences: one for anybody, without labels, scores and names, and one for the organisers."""

from runner.causality.examination import MOST_FAILURES, MOST_NOISE, Ending
from runner.causality.facts import Facts
from runner.causality.findings import RUNS_THAT_PROVE, Leak, Standing
from runner.challenge import CausalityMethod
from runner.job import CutKind

Sentences = tuple[str, str]
"""For anybody, and for the organisers."""


def passed(facts: Facts) -> Sentences:
    """No answer changed."""
    which = "No last answer of a prefix" if facts.last_only else "No answer"
    text = (
        f"{which} changed{_tolerance(facts)} when later frames were {_done(facts)}: {_tested(facts)}. "
        f"{room(facts.bound, facts.random)}. {_noise(facts)}."
    )
    shown, known = _remarks(facts)
    return text + shown, text + known


def leaking(facts: Facts) -> Sentences:
    """An answer provably depended on later frames."""
    leak, finding = facts.leak, facts.findings[-1]
    assert leak is not None
    count, cut = len(finding.suspects), leak.cut.frames
    which = f"frame {leak.frame}" if count == 1 else f"{count} frames, the first of them {leak.frame},"
    replaced = leak.cut.kind is CutKind.ALTERED_FUTURE
    only_replaced = facts.method is CausalityMethod.ALTERED_FUTURE or finding.point.altered
    prefix_too = facts.dependent is None and not only_replaced
    what = "replaced by others" if replaced else "withheld"
    again = "withheld, and again when they were " if replaced and prefix_too else ""
    view = "with the other frames" if replaced else "without them"
    text = (
        f"The answer for {which} changed{_tolerance(facts)} when the frames from {cut} on were {again}{what}: "
        f"{RUNS_THAT_PROVE} runs of the {facts.whole} agree, {RUNS_THAT_PROVE} {view} agree, and they differ. "
        f"Found with {facts.tested} of {facts.possible} possible cuts.{_needed(leak)}"
    )
    without = f"with other frames from {cut} on" if replaced else f"without the frames from {cut} on"
    both = (
        f" Frame {leak.frame}, {leak.column}: {_value(leak.full_answer)} with the {facts.whole}, "
        f"{_value(leak.cut_answer)} {without}."
    )
    return text, text + both


def length_dependent(facts: Facts) -> Sentences:
    """Answers changed with the length alone."""
    finding, share = facts.dependent, facts.dependent_share
    assert finding is not None
    if share is None:
        changed = "the last answer changed"
    else:
        changed = (
            f"{_count(len(finding.suspects), 'answer')} ({percent(share)}) changed{_tolerance(facts)}, first that for "
            f"frame {finding.suspects[0]}"
        )
    text = (
        f"Answers depend on the length of the sequence, not on later frames: with {finding.point.frames} of "
        f"{facts.frames} frames {changed}, but none did when the later frames were replaced by others. "
        f"{_tested(facts)}."
    )
    shown, known = _remarks(facts)
    return text + shown, text + known


def not_deterministic(facts: Facts) -> Sentences:
    """Runs of the same input differ."""
    if facts.ending is Ending.NOISE:
        text = f"Runs of the same input differ too much to tell: {_noise(facts)}, {percent(MOST_NOISE)} is allowed."
        return text, text
    text = f"Answers change from run to run. {_noise(facts)}.{_unconfirmed(facts)}"
    return text, text


def inconclusive(facts: Facts) -> Sentences:
    """Nothing could be told."""
    shown, known = _remarks(facts)
    if facts.ending is Ending.CAP:
        text = (
            f"Causality is inconclusive: {facts.tested} of {facts.points} cuts, since no more than {facts.most_runs} "
            f"runs are allowed. {_tested(facts)}."
        )
    else:
        text = f"Causality could not be decided: {_why(facts)}. {_tested(facts)}."
    return text + shown, text + known


def not_run(facts: Facts) -> Sentences:
    """Nothing was tested."""
    off = facts.ending is Ending.OFF
    why = "the challenge does not ask for it" if off else "the full sequence has no valid answers"
    return (f"Causality was not tested: {why}.",) * 2


def _why(facts: Facts) -> str:
    last = facts.findings[-1] if facts.findings else None
    match facts.ending:
        case Ending.NO_CUT:
            why = f"the sequence has {facts.frames} frames, the shortest prefix to be tested {facts.min_frames}"
        case Ending.NO_DONOR:
            why = "no other case could lend frames"
        case Ending.FULL_RUN_FAILS:
            why = f"{MOST_FAILURES} repetitions of the {facts.whole} gave no answer"
        case Ending.FAILURES:
            why = f"{MOST_FAILURES} cuts in a row gave no answer"
        case Ending.BROKEN_OFF:
            why = "changed answers could not be confirmed, since repetitions gave no answer"
        case Ending.UNPROVEN if last is not None:
            why = (
                f"{_count(len(last.suspects), 'answer')} changed when the frames from {last.point.frames} on were "
                "withheld, but no other case could lend frames to tell a leak from a dependence on length"
            )
        case Ending.ALL_CUTS if facts.count[Standing.UNCONFIRMED] == len(facts.findings):
            why = "a changed answer did not hold"
        case Ending.ALL_CUTS:
            why = "fewer than half of the cuts gave an answer"
        case _:
            why = "the check was stopped before its end"
    return why


def percent(share: float) -> str:
    """A share as people read it."""
    return f"{100 * share:.1f} %"


def room(bound: float, random: int) -> str:
    """What a clean result leaves room for."""
    if bound == 0:
        return "No cut is left untested"
    at = "At 95 % this" if random else "This"
    return f"{at} leaves room for at most {percent(bound)} of cut points that leak"


def _done(facts: Facts) -> str:
    if facts.method is CausalityMethod.ALTERED_FUTURE:
        return "replaced by others"
    replaced = any(f.view is CutKind.ALTERED_FUTURE for f in facts.findings)
    return "withheld, or replaced by others" if replaced else "withheld"


def _tolerance(facts: Facts) -> str:
    return "" if facts.tolerance is None else f" by more than {facts.tolerance:g}"


def _tested(facts: Facts) -> str:
    drawn = "" if facts.method is CausalityMethod.EXHAUSTIVE else f", {facts.random} of them random"
    return f"{facts.tested} of {facts.possible} possible cuts tested{drawn}"


def _noise(facts: Facts) -> str:
    if facts.full_runs == 1:
        return f"The {facts.whole} was run once"
    share = percent(facts.noise)
    return f"{facts.full_runs} runs of the {facts.whole} differ in at most {share} of its {facts.frames} frames"


def _needed(leak: Leak) -> str:
    if leak.future_frames is None:
        return ""
    later = _count(leak.future_frames, "later frame")
    return f" It took {later} to give frame {leak.frame} its answer."


def _value(value: float | None) -> str:
    return "no answer" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _unconfirmed(facts: Facts) -> str:
    unconfirmed = facts.standing(Standing.UNCONFIRMED)
    if not unconfirmed:
        return ""
    where = ", ".join(str(f.point.frames) for f in unconfirmed)
    return f" A change at {where} frames did not show in each of {RUNS_THAT_PROVE} runs."


def _remarks(facts: Facts) -> Sentences:
    """What is to be said of cuts without a result."""
    unconfirmed, failed = _unconfirmed(facts), facts.standing(Standing.FAILED, Standing.BROKEN_OFF)
    if not failed:
        return unconfirmed, unconfirmed
    where = ", ".join(str(f.point.frames) for f in failed)
    why = ", ".join(f"{f.point.frames} ({f.failure})" for f in failed)
    return f"{unconfirmed} No answer with {where} frames.", f"{unconfirmed} No answer with {why} frames."
