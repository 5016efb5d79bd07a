"""One verdict over cases."""

from dataclasses import replace

import pytest

from runner.causality import CausalityOutcome, CausalityVerdict, Leak, Standing, TriedCut, summary
from runner.challenge import CausalityRule, LeakPolicy
from runner.job import Cut, CutKind

WORDS = {outcome: f"{outcome.value}!" for outcome in CausalityOutcome}


def a_rule(method: str = "targeted") -> CausalityRule:
    return CausalityRule.model_validate(
        {"method": method, "on": "all", "on_leak": LeakPolicy.REFUSE, "length_dependence": LeakPolicy.REPORT}
    )


def a_verdict(
    outcome: CausalityOutcome = CausalityOutcome.PASSED, standing: Standing = Standing.CLEAN, *, random: bool = True
) -> CausalityVerdict:
    decided = standing in {Standing.CLEAN, Standing.LEAKING, Standing.LENGTH_DEPENDENT}
    return CausalityVerdict(
        outcome=outcome,
        sentence=WORDS[outcome],
        detail=f"{WORDS[outcome]} Label 7.",
        cuts=(TriedCut(frames=10, random=random, standing=standing),),
        cuts_tested=int(decided),
        cuts_possible=99,
        random_cuts=int(decided and random),
        noise=0.001,
    )


LEAK = Leak(frame=9, cut=Cut(frames=10, kind=CutKind.ALTERED_FUTURE), column="step", full_answer=7, cut_answer=3)
UNHELD = a_verdict(CausalityOutcome.INCONCLUSIVE, Standing.UNCONFIRMED)
FAILED = a_verdict(CausalityOutcome.INCONCLUSIVE, Standing.FAILED)
NOT_RUN = CausalityVerdict(outcome=CausalityOutcome.NOT_RUN, sentence="no", detail="no")


def test_a_single_case_speaks_for_itself() -> None:
    verdict = a_verdict()
    assert summary(a_rule(), {"a": verdict}) is verdict


def test_nothing_tested_is_said_to_be_so() -> None:
    assert summary(a_rule("off"), {}).sentence == "Causality was not tested: the challenge does not ask for it."
    none = summary(a_rule(), {})
    assert none.outcome is CausalityOutcome.NOT_RUN
    assert none.sentence == "Causality was not tested: no case to be tested has valid answers."
    assert summary(a_rule(), {"a": NOT_RUN, "b": a_verdict()}).outcome is CausalityOutcome.PASSED
    assert summary(a_rule(), {"a": NOT_RUN, "b": NOT_RUN}).outcome is CausalityOutcome.NOT_RUN


def test_cuts_of_a_cut_run_are_added_up_and_bound_the_share_together() -> None:
    cases = {f"case {n}": a_verdict(random=n % 2 == 0) for n in range(40)}
    verdict = summary(a_rule("cut-run"), cases)
    assert verdict.outcome is CausalityOutcome.PASSED
    assert (verdict.cuts_tested, verdict.cuts_possible, verdict.random_cuts, len(verdict.cuts)) == (40, 3960, 20, 40)
    assert verdict.bound == pytest.approx(1 - 0.05 ** (1 / 20))
    assert verdict.sentence == verdict.detail == (
        "No answer changed on 40 of 40 cases: 40 of 3960 possible cuts tested, 20 of them random. At 95 % this leaves "
        "room for at most 13.9 % of cut points that leak."
    )  # fmt: skip


def test_the_worst_case_speaks_for_all() -> None:
    leaking = replace(a_verdict(CausalityOutcome.LEAKING, Standing.LEAKING), first_leak=LEAK)
    dependent = replace(
        a_verdict(CausalityOutcome.LENGTH_DEPENDENT, Standing.LENGTH_DEPENDENT), length_dependent_share=0.3, noise=0.01
    )
    verdict = summary(a_rule(), {"one": a_verdict(), "two": dependent, "three": leaking})
    assert verdict.outcome is CausalityOutcome.LEAKING
    assert (verdict.first_leak, verdict.length_dependent_share, verdict.noise) == (LEAK, 0.3, 0.01)
    assert verdict.bound is None
    assert verdict.sentence == (
        "Answers depend on later frames on 1 of 3 cases. On the first of them: leaking! "
        "3 of 297 possible cuts tested over all cases."
    )
    assert verdict.detail == (
        "Answers depend on later frames on 1 of 3 cases. On three: leaking! Label 7. "
        "3 of 297 possible cuts tested over all cases."
    )


def test_an_inconclusive_case_is_no_all_clear() -> None:
    verdict = summary(a_rule(), {"a": a_verdict(), "b": FAILED})
    assert verdict.outcome is CausalityOutcome.INCONCLUSIVE
    assert verdict.bound is None
    assert "7" not in verdict.sentence


@pytest.mark.parametrize(
    ("others", "outcome"),
    [
        ([FAILED], CausalityOutcome.PASSED),
        ([FAILED] * 5, CausalityOutcome.INCONCLUSIVE),
        ([UNHELD] * 2, CausalityOutcome.PASSED),
        ([UNHELD] * 3, CausalityOutcome.NOT_DETERMINISTIC),
        ([UNHELD] * 2 + [a_verdict(CausalityOutcome.INCONCLUSIVE, Standing.BROKEN_OFF)], CausalityOutcome.INCONCLUSIVE),
        ([a_verdict(CausalityOutcome.INCONCLUSIVE, Standing.OPEN)], CausalityOutcome.INCONCLUSIVE),
        ([a_verdict(CausalityOutcome.INCONCLUSIVE, Standing.UNPROVEN)], CausalityOutcome.INCONCLUSIVE),
        ([a_verdict(CausalityOutcome.NOT_DETERMINISTIC, Standing.OPEN)], CausalityOutcome.NOT_DETERMINISTIC),
    ],
)
def test_in_a_cut_run_cases_are_what_cut_points_are_elsewhere(
    others: list[CausalityVerdict], outcome: CausalityOutcome
) -> None:
    cases = {str(n): one for n, one in enumerate([a_verdict()] * 4 + others)}
    verdict = summary(a_rule("cut-run"), cases)
    assert verdict.outcome is outcome
    assert verdict.sentence
    if outcome is CausalityOutcome.PASSED:
        assert verdict.sentence.startswith("No answer changed on 4 of ")
        assert "Label 7" in verdict.detail
        assert "Label 7" not in verdict.sentence
