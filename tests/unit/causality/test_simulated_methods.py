"""Methods of known causality, simulated, each checked from first request to last."""

import numpy as np
import pytest

from runner.causality import CausalityOutcome, Evidence, estimate
from runner.challenge import CausalityRule, LeakPolicy
from tools.simulated_methods import (
    CAUSAL,
    FRAMES,
    LOOKING_AHEAD,
    SELDOM,
    Examined,
    Method,
    batch_rounding,
    examine,
    examine_in_one_go,
    flipping,
    length_relative,
    length_relative_and_ahead,
    recurrent,
    windowed,
)

RULE = CausalityRule(method="targeted", on=1, cuts=20, on_leak=LeakPolicy.REFUSE, length_dependence=LeakPolicy.REPORT)
AT_THE_END = "peeks only in the last second"
"""Changes half a per cent of the answers, and none at all in every fifth sequence."""


def check(method: Method, seed: int, *, lender: bool = True) -> Examined:
    checked = examine(method, seed, RULE, evidence=Evidence(frames=FRAMES, can_alter=lender))
    assert len(checked.asked) - 1 <= estimate(RULE, FRAMES, can_alter=lender).most
    return checked


SEEDS = range(10)


@pytest.mark.parametrize("name", CAUSAL)
def test_a_causal_method_passes(name: str) -> None:
    for seed in SEEDS:
        checked = check(CAUSAL[name], seed)
        assert checked.verdict.outcome is CausalityOutcome.PASSED
        assert checked.verdict.cuts_tested == 20
        assert checked.verdict.random_cuts >= 10
        assert len(checked.asked) == 1 + estimate(RULE, FRAMES).clean == 22


@pytest.mark.parametrize("name", sorted(LOOKING_AHEAD.keys() - {AT_THE_END}))
def test_a_method_that_looks_ahead_is_caught_within_a_few_cuts(name: str) -> None:
    cuts = []
    for seed in SEEDS:
        checked = check(LOOKING_AHEAD[name], seed)
        assert checked.verdict.outcome is CausalityOutcome.LEAKING
        assert checked.verdict.first_leak is not None
        assert checked.verdict.first_leak.frame < checked.verdict.first_leak.cut.frames
        cuts.append(checked.verdict.cuts_tested)
    assert np.median(cuts) <= 3
    assert np.percentile(cuts, 95) <= 5


def test_smoothing_with_a_single_frame_ahead_is_mostly_caught() -> None:
    method = SELDOM["smoothing, 15 behind and 1 ahead"]
    outcomes = [check(method, seed).verdict.outcome for seed in SEEDS]
    assert outcomes.count(CausalityOutcome.LEAKING) >= 0.9 * len(SEEDS)


def test_a_method_that_peeks_at_the_end_is_caught_there_or_seen_to_depend_on_length() -> None:
    verdicts = [check(LOOKING_AHEAD[AT_THE_END], seed).verdict for seed in SEEDS]
    leaks = [v.first_leak for v in verdicts if v.first_leak is not None]
    assert len(leaks) >= 0.4 * len(SEEDS)
    assert all(leak.frame >= FRAMES - 25 for leak in leaks)
    assert all(v.outcome is not CausalityOutcome.PASSED for v in verdicts)


def test_length_relative_features_are_no_leak() -> None:
    for seed in SEEDS:
        verdict = check(length_relative, seed).verdict
        assert verdict.outcome is CausalityOutcome.LENGTH_DEPENDENT
        assert verdict.length_dependent_share is not None
        assert 0 < verdict.length_dependent_share <= 1
        assert verdict.first_leak is None
        assert verdict.cuts_tested == 20


def test_a_leak_is_found_behind_a_dependence_on_length() -> None:
    outcomes = [check(length_relative_and_ahead, seed).verdict.outcome for seed in SEEDS]
    assert set(outcomes) == {CausalityOutcome.LEAKING}


def test_rounding_in_the_last_batch_never_convicts() -> None:
    outcomes = [check(batch_rounding, seed).verdict.outcome for seed in SEEDS]
    assert set(outcomes) <= {CausalityOutcome.LENGTH_DEPENDENT, CausalityOutcome.PASSED}
    assert outcomes.count(CausalityOutcome.LENGTH_DEPENDENT) > 0.5 * len(SEEDS)


@pytest.mark.parametrize("share", [1e-4, 1e-3, 3e-3])
def test_random_flips_never_convict(share: float) -> None:
    allowed = {CausalityOutcome.PASSED, CausalityOutcome.NOT_DETERMINISTIC}
    outcomes = [check(flipping(recurrent, share, seed), seed).verdict.outcome for seed in SEEDS]
    assert set(outcomes) <= allowed
    if share <= 1e-4:
        assert outcomes.count(CausalityOutcome.PASSED) >= 0.95 * len(SEEDS)


def test_many_flips_are_not_deterministic() -> None:
    outcomes = {check(flipping(recurrent, 0.05, seed), seed).verdict.outcome for seed in range(20)}
    assert outcomes == {CausalityOutcome.NOT_DETERMINISTIC}


def test_a_leak_is_found_through_random_flips() -> None:
    outcomes = [check(flipping(windowed(7, 7), 1e-4, seed), seed).verdict.outcome for seed in SEEDS]
    assert outcomes.count(CausalityOutcome.LEAKING) >= 0.95 * len(SEEDS)


def test_without_another_case_nobody_is_convicted() -> None:
    for method in (LOOKING_AHEAD["look-ahead 15"], length_relative):
        verdict = check(method, 1, lender=False).verdict
        assert verdict.outcome is CausalityOutcome.INCONCLUSIVE
        assert "no other case could lend frames" in verdict.sentence
    assert check(recurrent, 1, lender=False).verdict.outcome is CausalityOutcome.PASSED


def test_a_method_that_answers_the_same_for_every_frame_gets_random_cuts_only() -> None:
    verdict = check(lambda x: np.zeros(len(x), dtype=np.intp), 3).verdict
    assert verdict.outcome is CausalityOutcome.PASSED
    assert verdict.random_cuts == 20
    assert verdict.bound == pytest.approx(0.1391, abs=5e-5)


def test_a_check_in_one_go_comes_to_the_same_verdict() -> None:
    for method in (recurrent, length_relative, LOOKING_AHEAD["bidirectional"]):
        assert examine_in_one_go(method, 5, RULE) == check(method, 5).verdict
