"""Methods of known causality, simulated, each checked from first request to last."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from runner.causality import (
    Answers,
    CausalityOutcome,
    CausalityVerdict,
    Evidence,
    Observation,
    Request,
    conclude,
    estimate,
    next_cuts,
)
from runner.challenge import CausalityRule, LeakPolicy
from runner.job import Cut, CutKind

FRAMES, LABELS = 300, 6
RULE = CausalityRule(method="targeted", on=1, cuts=20, on_leak=LeakPolicy.REFUSE, length_dependence=LeakPolicy.REPORT)

Scores = NDArray[np.float64]
"""What a network sees of each frame; shape (frames, labels)."""
Method = Callable[[Scores], NDArray[np.intp]]


def a_case(seed: int) -> Scores:
    """A workflow of 8 to 12 phases that fade into one another over 5 to 11 frames, with noise on every frame."""
    rng = np.random.default_rng(seed)
    bounds = np.sort(rng.choice(np.arange(8, FRAMES - 8), size=rng.integers(7, 12), replace=False))
    phases = np.cumsum(rng.integers(1, LABELS, size=len(bounds) + 1)) % LABELS
    sharp = np.eye(LABELS)[phases[np.searchsorted(bounds, np.arange(FRAMES), side="right")]]
    fade = int(rng.integers(2, 6))
    return _mean_around(sharp, fade, fade) + rng.normal(0, 0.3, (FRAMES, LABELS))


def _mean_around(x: Scores, before: int, after: int) -> Scores:
    """Mean over a window that is cut off where the sequence is."""
    sums = np.concatenate((np.zeros((1, x.shape[1])), np.cumsum(x, axis=0)))
    first = np.maximum(np.arange(len(x)) - before, 0)
    last = np.minimum(np.arange(len(x)) + after + 1, len(x))
    return np.asarray((sums[last] - sums[first]) / (last - first)[:, None])


def ahead(frames: int) -> Method:
    return lambda x: x[np.minimum(np.arange(len(x)) + frames, len(x) - 1)].argmax(1)


def windowed(before: int, after: int) -> Method:
    return lambda x: _mean_around(x, before, after).argmax(1)


def recurrent(x: Scores) -> NDArray[np.intp]:
    return np.asarray(_filtered(x).argmax(1))


def _filtered(x: Scores) -> Scores:
    state, out = np.zeros(x.shape[1]), []
    for frame in x:
        state = 0.8 * state + 0.2 * frame
        out.append(state)
    return np.array(out)


def bidirectional(x: Scores) -> NDArray[np.intp]:
    return np.asarray((_filtered(x) + _filtered(x[::-1])[::-1]).argmax(1))


def voting(edges: Literal["edge", "symmetric"], base: Method) -> Method:
    """The most frequent label of 11 frames around each, as a median filter is for two labels."""

    def method(x: Scores) -> NDArray[np.intp]:
        around = np.lib.stride_tricks.sliding_window_view(np.pad(base(x), 5, mode=edges), 11)
        return np.asarray((around[:, :, None] == np.arange(LABELS)).sum(1).argmax(1))

    return method


def normalised(x: Scores) -> NDArray[np.intp]:
    return np.asarray(((_filtered(x) - x.mean(0)) / x.std(0)).argmax(1))


def length_relative(x: Scores) -> NDArray[np.intp]:
    """Causal but for t / n: late labels are made likely late."""
    progress = np.arange(len(x))[:, None] / len(x)
    return np.asarray((_filtered(x) - np.abs(progress - np.arange(LABELS) / LABELS)).argmax(1))


def length_relative_and_ahead(x: Scores) -> NDArray[np.intp]:
    progress = np.arange(len(x))[:, None] / len(x)
    seen = x[np.minimum(np.arange(len(x)) + 15, len(x) - 1)]
    return np.asarray((seen - np.abs(progress - np.arange(LABELS) / LABELS)).argmax(1))


def batch_rounding(x: Scores) -> NDArray[np.intp]:
    """Causal, in batches of 16; a partial batch takes another kernel, which rounds near-ties the other way."""
    scores = _filtered(x)
    partial = len(x) - len(x) % 16
    best = scores.argsort(1)
    margin = np.take_along_axis(scores, best[:, -1:], 1) - np.take_along_axis(scores, best[:, -2:-1], 1)
    flips = (np.arange(len(x)) >= partial) & (margin[:, 0] < 0.08)
    return np.where(flips, best[:, -2], best[:, -1])


def flipping(method: Method, share: float, seed: int) -> Method:
    """Another answer for a random share of frames, other frames in each run."""
    rng = np.random.default_rng(seed)

    def run(x: Scores) -> NDArray[np.intp]:
        labels = method(x)
        return np.where(rng.random(len(x)) < share, (labels + 1) % LABELS, labels)

    return run


@dataclass(frozen=True, kw_only=True)
class Checked:
    verdict: CausalityVerdict
    runs: int


def view(case: Scores, lender: Scores | None, request: Request) -> Scores:
    """What a container would be shown; the future is lent from the other case, half a length away."""
    match request:
        case Cut(kind=CutKind.PREFIX, frames=k):
            return case[:k]
        case Cut(frames=k):
            assert lender is not None
            return np.concatenate((case[:k], np.roll(lender, FRAMES // 2, axis=0)[k:]))
        case _:
            return case


def check(method: Method, seed: int, *, lender: bool = True, rule: CausalityRule = RULE) -> Checked:
    """Run a whole check, as the pipeline would."""
    case, other = a_case(2 * seed), a_case(2 * seed + 1)
    evidence = Evidence(frames=FRAMES, can_alter=lender)
    runs = 0
    while requests := next_cuts(rule, evidence, seed):
        for request in requests:
            labels = method(view(case, other if lender else None, request))
            answers = Answers(columns=("phase",), labels=labels[None, :].astype(np.int64))
            evidence = evidence.plus(Observation(request=request, answers=answers))
            runs += 1
    assert runs - 1 <= estimate(rule, FRAMES, can_alter=lender).most
    return Checked(verdict=conclude(rule, evidence, seed), runs=runs)


SEEDS = range(10)
"""Raise to 200, with ``-s``, to print the figures of ARCHITECTURE.md."""

CAUSAL: dict[str, Method] = {"frame-wise": ahead(0), "recurrent": recurrent, "causal smoothing": windowed(15, 0)}

LOOKING_AHEAD: dict[str, Method] = {
    "look-ahead 1": ahead(1),
    "look-ahead 3": ahead(3),
    "look-ahead 15": ahead(15),
    "centred smoothing": windowed(7, 7),
    "smoothing, 3 frames ahead": windowed(7, 3),
    "median filter, mirrored edges": voting("symmetric", recurrent),
    "whole-sequence normalisation": normalised,
    "bidirectional": bidirectional,
}

HARDLY_LOOKING_AHEAD: dict[str, Method] = {
    "median filter, edges repeated": voting("edge", ahead(0)),
    "smoothing, 15 behind and 1 ahead": windowed(15, 1),
}
"""About 6 % and 1.3 % of cut points change any answer at all."""


def report(name: str, cuts: list[int]) -> None:
    median, p95 = np.median(cuts), np.percentile(cuts, 95)
    print(f"{name}: median {median:g}, p95 {p95:g}, max {max(cuts)} cuts; {len(cuts)} found")  # noqa: T201


@pytest.mark.parametrize("name", CAUSAL)
def test_a_causal_method_passes(name: str) -> None:
    for seed in SEEDS:
        checked = check(CAUSAL[name], seed)
        assert checked.verdict.outcome is CausalityOutcome.PASSED
        assert checked.verdict.cuts_tested == 20
        assert checked.verdict.random_cuts >= 10
        assert checked.runs == 1 + estimate(RULE, FRAMES).clean == 22


@pytest.mark.parametrize("name", LOOKING_AHEAD)
def test_a_method_that_looks_ahead_is_caught_within_a_few_cuts(name: str) -> None:
    cuts = []
    for seed in SEEDS:
        checked = check(LOOKING_AHEAD[name], seed)
        assert checked.verdict.outcome is CausalityOutcome.LEAKING
        assert checked.verdict.first_leak is not None
        assert checked.verdict.first_leak.frame < checked.verdict.first_leak.cut.frames
        cuts.append(checked.verdict.cuts_tested)
    report(name, cuts)
    assert np.median(cuts) == 1
    assert np.percentile(cuts, 95) <= 5


@pytest.mark.parametrize("name", HARDLY_LOOKING_AHEAD)
def test_a_method_that_hardly_looks_ahead_is_mostly_caught(name: str) -> None:
    verdicts = [check(HARDLY_LOOKING_AHEAD[name], seed).verdict for seed in SEEDS]
    caught = [v.cuts_tested for v in verdicts if v.outcome is CausalityOutcome.LEAKING]
    report(name, caught)
    assert len(caught) >= 0.9 * len(SEEDS)


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
    for method in (ahead(15), length_relative):
        verdict = check(method, 1, lender=False).verdict
        assert verdict.outcome is CausalityOutcome.INCONCLUSIVE
        assert "no other case could lend frames" in verdict.sentence
    assert check(recurrent, 1, lender=False).verdict.outcome is CausalityOutcome.PASSED


def test_a_method_that_answers_the_same_for_every_frame_gets_random_cuts_only() -> None:
    verdict = check(lambda x: np.zeros(len(x), dtype=np.intp), 3).verdict
    assert verdict.outcome is CausalityOutcome.PASSED
    assert verdict.random_cuts == 20
    assert verdict.bound == pytest.approx(0.1391, abs=5e-5)
