"""One verdict for an entry, over the cases on which it was checked."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from runner.causality.examination import MOST_UNCONFIRMED
from runner.causality.facts import upper_bound
from runner.causality.findings import Standing
from runner.causality.verdict import CausalityOutcome, CausalityVerdict
from runner.causality.words import room
from runner.challenge import CausalityMethod, CausalityRule


def summary(rule: CausalityRule, verdicts: Mapping[str, CausalityVerdict]) -> CausalityVerdict:
    """The verdict over cases: the worst outcome, with cuts and bound over all of them.

    A case that was not tested counts for nothing where another was. In a cut-run the cases are what the cut points are
    elsewhere: one that failed, or whose change did not hold, leaves the others standing, unless there are many.

    Args:
        rule: The challenge's section.
        verdicts: By name of the case.
    """
    if not verdicts:
        off = rule.method is CausalityMethod.OFF
        why = "the challenge does not ask for it" if off else "no case to be tested has valid answers"
        text = f"Causality was not tested: {why}."
        return CausalityVerdict(outcome=CausalityOutcome.NOT_RUN, sentence=text, detail=text)
    if len(verdicts) == 1:
        return next(iter(verdicts.values()))
    tested = {n: v for n, v in verdicts.items() if v.outcome is not CausalityOutcome.NOT_RUN} or dict(verdicts)
    outcome = _outcome(rule, tested)
    added = _added(tested)
    bound = upper_bound(added.random_cuts, tested_clean=added.cuts_tested, possible=max(1, added.cuts_possible))
    passed = outcome is CausalityOutcome.PASSED
    sentence, detail = _passed(tested, added, bound) if passed else _worst(outcome, tested, added)
    return replace(added, outcome=outcome, sentence=sentence, detail=detail, bound=bound if passed else None)


def _outcome(rule: CausalityRule, verdicts: Mapping[str, CausalityVerdict]) -> CausalityOutcome:
    found = [verdict.outcome for verdict in verdicts.values()]
    worst = min(found, key=list(CausalityOutcome).index)
    if rule.method is not CausalityMethod.CUT_RUN or worst is not CausalityOutcome.INCONCLUSIVE:
        return worst
    count = Counter(cut.standing for verdict in verdicts.values() for cut in verdict.cuts)
    if count[Standing.UNCONFIRMED] >= MOST_UNCONFIRMED:
        return CausalityOutcome.NOT_DETERMINISTIC
    open_ends = count[Standing.OPEN] + count[Standing.UNPROVEN]
    broken = count[Standing.UNCONFIRMED] + count[Standing.BROKEN_OFF]
    passed = found.count(CausalityOutcome.PASSED)
    if open_ends or broken >= MOST_UNCONFIRMED or 2 * passed < len(found):
        return CausalityOutcome.INCONCLUSIVE
    return CausalityOutcome.PASSED


def _added(verdicts: Mapping[str, CausalityVerdict]) -> CausalityVerdict:
    """Cuts added up, and the worst of the rest; outcome and sentences are still to be said."""
    some = list(verdicts.values())
    tolerances = [v.tolerance for v in some if v.tolerance is not None]
    shares = [v.length_dependent_share for v in some if v.length_dependent_share is not None]
    return CausalityVerdict(
        outcome=CausalityOutcome.NOT_RUN,
        sentence="",
        detail="",
        cuts=tuple(cut for v in some for cut in v.cuts),
        cuts_tested=sum(v.cuts_tested for v in some),
        cuts_possible=sum(v.cuts_possible for v in some),
        random_cuts=sum(v.random_cuts for v in some),
        noise=max(v.noise for v in some),
        tolerance=max(tolerances, default=None),
        first_leak=next((v.first_leak for v in some if v.first_leak is not None), None),
        length_dependent_share=max(shares, default=None),
    )


def _passed(verdicts: Mapping[str, CausalityVerdict], added: CausalityVerdict, bound: float) -> tuple[str, str]:
    clean = sum(v.outcome is CausalityOutcome.PASSED for v in verdicts.values())
    drawn = f", {added.random_cuts} of them random" if added.random_cuts else ""
    text = (
        f"No answer changed on {clean} of {len(verdicts)} cases: {added.cuts_tested} of {added.cuts_possible} possible "
        f"cuts tested{drawn}. {room(bound, added.random_cuts)}."
    )
    others = [f" {name}: {v.detail}" for name, v in verdicts.items() if v.outcome is not CausalityOutcome.PASSED]
    return text, text + "".join(others)


def _worst(
    outcome: CausalityOutcome, verdicts: Mapping[str, CausalityVerdict], added: CausalityVerdict
) -> tuple[str, str]:
    """What was found on the first case that came out worst, and on how many."""
    found = {name: v for name, v in verdicts.items() if v.outcome is outcome}
    if not found:  # cases that are inconclusive one by one show together that the method is not deterministic
        found = {name: v for name, v in verdicts.items() if v.outcome is CausalityOutcome.INCONCLUSIVE}
    name, first = next(iter(found.items()))
    head = f"{_WORDS[outcome]} on {len(found)} of {len(verdicts)} cases"
    cuts = f"{added.cuts_tested} of {added.cuts_possible} possible cuts tested over all cases."
    return f"{head}. On the first of them: {first.sentence} {cuts}", f"{head}. On {name}: {first.detail} {cuts}"


_WORDS = {
    CausalityOutcome.LEAKING: "Answers depend on later frames",
    CausalityOutcome.LENGTH_DEPENDENT: "Answers depend on the length of the sequence",
    CausalityOutcome.NOT_DETERMINISTIC: "Answers change from run to run",
    CausalityOutcome.INCONCLUSIVE: "Causality could not be decided",
    CausalityOutcome.NOT_RUN: "Causality was not tested",
}
