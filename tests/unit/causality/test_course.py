"""The course of a check, step by step, on answers written by hand."""

from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.causality import (
    Answers,
    CausalityOutcome,
    CausalityVerdict,
    Evidence,
    FullRun,
    Leak,
    Observation,
    Request,
    Standing,
    conclude,
    estimate,
    frames_shown,
    next_cuts,
    upper_bound,
)
from runner.causality.schedule import cut_points, targets
from runner.challenge import CausalityRule, LeakPolicy
from runner.formats.contract import FrameTable
from runner.job import Cut, CutKind

FRAMES = 100
Answer = Callable[[Request], list[int] | str]
"""Answers a request with labels, or with why there are none."""


def a_rule(*, cuts: int = 6, min_frames: int = 1, on: bool = True) -> CausalityRule:
    return CausalityRule(
        method="targeted" if on else "off",
        on=1,
        cuts=cuts,
        min_frames=min_frames,
        on_leak=LeakPolicy.REFUSE,
        length_dependence=LeakPolicy.REPORT,
    )


def answers(labels: list[int]) -> Answers:
    return Answers.of(FrameTable(columns={"step": np.array(labels, dtype=np.int64)}))


def observe(request: Request, answer: Answer) -> Observation:
    said = answer(request)
    if isinstance(said, str):
        return Observation(request=request, failure=said)
    return Observation(request=request, answers=answers(said))


def follow(
    answer: Answer, *, rule: CausalityRule | None = None, can_alter: bool = True, frames: int = FRAMES
) -> tuple[list[Request], CausalityVerdict]:
    """Everything that was asked for, and the verdict."""
    rule = rule or a_rule()
    evidence, asked = Evidence(frames=frames, can_alter=can_alter), list[Request]()
    while requests := next_cuts(rule, evidence, 7):
        assert next_cuts(rule, evidence, 7) == requests
        asked.extend(requests)
        evidence = evidence.plus(*(observe(request, answer) for request in requests))
    assert len(asked) - 1 <= estimate(rule, frames, can_alter=can_alter).most
    return asked, conclude(rule, evidence, 7)


def lengths(first: int = 1, frames: int = FRAMES) -> tuple[int, ...]:
    return tuple(range(first, frames))


BASE = [0] * 40 + [1] * 30 + [2] * 30


def steady(request: Request) -> list[int]:
    return BASE[: frames_shown(request, FRAMES)]


def seen(request: Request) -> tuple[int, CutKind, int] | None:
    return (request.frames, request.kind, request.repeat) if isinstance(request, Cut) else None


PREFIX, ALTERED = CutKind.PREFIX, CutKind.ALTERED_FUTURE


def last_is_nine(labels: list[int], cut: Cut) -> list[int]:
    """Another answer for the last frame before the cut."""
    return [*labels[: cut.frames - 1], 9, *labels[cut.frames :]]


def looks_ahead(request: Request) -> list[int]:
    """The change at 40 needs frame 41."""
    labels = steady(request)
    if isinstance(request, Cut) and request.frames == 41:
        labels[40] = 0
    return labels


def test_a_steady_method_is_run_twice_and_cut_six_times() -> None:
    asked, verdict = follow(steady)
    assert asked[:2] == [FullRun(repeat=0), FullRun(repeat=1)]
    assert len(asked) == 8
    assert asked[2] == Cut(frames=41)
    assert [r.kind for r in asked if isinstance(r, Cut)].count(ALTERED) == 1
    assert asked[4] == Cut(frames=71, kind=ALTERED)
    assert verdict.outcome is CausalityOutcome.PASSED
    assert (verdict.cuts_tested, verdict.cuts_possible, verdict.noise) == (6, 99, 0.0)
    assert verdict.bound == pytest.approx(1 - 0.05 ** (1 / verdict.random_cuts))
    assert verdict.sentence == (
        "No answer changed when later frames were withheld, or replaced by others: 6 of 99 possible cuts tested, "
        "3 of them random. At 95 % "
        "this leaves room for at most 63.2 % of cut points that leak. 2 runs of the full sequence differ in at most "
        "0.0 % of its 100 frames."
    )


def test_a_leak_is_confirmed_by_three_runs_of_each_view() -> None:
    asked, verdict = follow(looks_ahead)
    assert [seen(r) for r in asked] == [
        None,
        None,
        (41, PREFIX, 0),
        (41, PREFIX, 1),
        (41, PREFIX, 2),
        None,
        (41, ALTERED, 0),
        (41, ALTERED, 1),
        (41, ALTERED, 2),
        (42, ALTERED, 0),
    ]
    assert verdict.outcome is CausalityOutcome.LEAKING
    leak = verdict.first_leak
    assert leak is not None
    assert leak == Leak(
        frame=40,
        cut=Cut(frames=41, kind=ALTERED),
        column="step",
        full_answer=1,
        cut_answer=0,
        future_frames=1,
    )
    assert verdict.sentence == (
        "The answer for frame 40 changed when the frames from 41 on were withheld, and again when they were replaced "
        "by others: 3 runs of the full sequence agree, 3 with the other frames agree, and they differ. "
        "Found with 1 of 99 possible cuts. It took 1 later frame to give frame 40 its answer."
    )
    assert verdict.detail.endswith("Frame 40, step: 1 with the full sequence, 0 with other frames from 41 on.")


def test_only_the_organisers_sentence_names_labels() -> None:
    def far(request: Request) -> list[int]:
        return [label * 111 + 555 for label in looks_ahead(request)]

    _, verdict = follow(far)
    assert "555" in verdict.detail
    assert "666" in verdict.detail
    assert "555" not in verdict.sentence
    assert "666" not in verdict.sentence


def test_length_alone_is_no_leak_and_the_rest_is_tested_with_altered_futures() -> None:
    def by_length(request: Request) -> list[int]:
        labels = steady(request)
        return labels if len(labels) == FRAMES else [9, *labels[1:]]

    asked, verdict = follow(by_length)
    kinds = [r.kind for r in asked if isinstance(r, Cut)]
    assert kinds == [PREFIX] * 3 + [ALTERED] * 6
    assert verdict.outcome is CausalityOutcome.LENGTH_DEPENDENT
    assert verdict.length_dependent_share == 1 / 41
    assert [c.standing for c in verdict.cuts] == [Standing.LENGTH_DEPENDENT] + [Standing.CLEAN] * 5
    assert "with 41 of 100 frames 1 answer (2.4 %) changed, first that for frame 0" in verdict.sentence


def test_a_leak_behind_a_dependence_on_length_is_found() -> None:
    def both(request: Request) -> list[int]:
        labels = steady(request)
        if len(labels) < FRAMES:
            return [9, *labels[1:]]
        if isinstance(request, Cut) and request.frames == 71:
            labels[70] = 1
        return labels

    asked, verdict = follow(both)
    assert verdict.outcome is CausalityOutcome.LEAKING
    assert verdict.first_leak is not None
    assert verdict.first_leak.cut == Cut(frames=71, kind=ALTERED)
    assert verdict.length_dependent_share == 1 / 41
    assert "withheld" not in verdict.sentence
    assert [seen(r) for r in asked[-4:]] == [*((71, ALTERED, n) for n in range(3)), (72, ALTERED, 0)]


def test_a_search_takes_up_what_a_cut_point_has_run() -> None:
    def far(request: Request) -> list[int]:
        labels = steady(request)
        if isinstance(request, Cut) and 42 <= request.frames < 71:
            labels[41] = 0
        return labels

    asked, verdict = follow(far, rule=a_rule(cuts=20))
    assert verdict.first_leak is not None
    assert verdict.first_leak.future_frames == 71 - 41 - 1
    assert asked.count(Cut(frames=71, kind=ALTERED)) == 1
    for known in range(2, len(asked)):
        evidence = Evidence(frames=FRAMES).plus(*(observe(request, far) for request in asked[:known]))
        ahead = next_cuts(a_rule(cuts=20), evidence, 7, width=40)
        assert len(set(ahead)) == len(ahead)
        assert not set(ahead) & set(asked[:known])


def test_without_an_altered_future_there_is_no_conviction() -> None:
    asked, verdict = follow(looks_ahead, can_alter=False)
    assert verdict.outcome is CausalityOutcome.INCONCLUSIVE
    assert [seen(r) for r in asked[2:]] == [(41, PREFIX, 0), (41, PREFIX, 1), (41, PREFIX, 2), None]
    assert "no other case could lend frames" in verdict.sentence


def test_noise_stops_the_check_at_once() -> None:
    def noisy(request: Request) -> list[int]:
        labels = steady(request)
        return [5, 5, *labels[2:]] if request == FullRun(repeat=1) else labels

    asked, verdict = follow(noisy)
    assert len(asked) == 2
    assert verdict.outcome is CausalityOutcome.NOT_DETERMINISTIC
    assert verdict.noise == 0.02


def test_one_per_cent_of_noise_is_allowed_and_its_frame_convicts_nobody() -> None:
    def noisy(request: Request) -> list[int]:
        labels = steady(request)
        return [5, *labels[1:]] if request == FullRun(repeat=1) else labels

    asked, verdict = follow(noisy)
    assert len(asked) == 8
    assert verdict.outcome is CausalityOutcome.PASSED


def test_three_candidates_that_do_not_hold_end_the_check() -> None:
    def restless(request: Request) -> list[int]:
        labels = steady(request)
        return last_is_nine(labels, request) if isinstance(request, Cut) and request.repeat == 0 else labels

    asked, verdict = follow(restless)
    assert verdict.outcome is CausalityOutcome.NOT_DETERMINISTIC
    assert len(asked) == 2 + 3 * 2
    assert [c.standing for c in verdict.cuts] == [Standing.UNCONFIRMED] * 3


def test_a_candidate_that_a_third_full_run_refutes_is_unconfirmed() -> None:
    def late(request: Request) -> list[int]:
        labels = looks_ahead(request)
        if request == FullRun(repeat=2):
            labels[40] = 0
        return labels

    _, verdict = follow(late)
    assert verdict.outcome is CausalityOutcome.PASSED
    assert verdict.cuts[0].standing is Standing.UNCONFIRMED
    assert verdict.cuts_tested == 5
    assert verdict.sentence.endswith(" A change at 41 frames did not show in each of 3 runs.")


def test_a_prefix_without_an_answer_is_inconclusive_there_and_nothing_else() -> None:
    def fragile(request: Request) -> list[int] | str:
        return "crashed" if isinstance(request, Cut) and request.frames == 41 else steady(request)

    asked, verdict = follow(fragile)
    assert len(asked) == 8
    assert verdict.outcome is CausalityOutcome.PASSED
    assert verdict.cuts_tested == 5
    assert verdict.sentence.endswith(" No answer with 41 frames.")
    assert verdict.detail.endswith(" No answer with 41 (crashed) frames.")


def test_three_cuts_in_a_row_without_an_answer_end_the_check() -> None:
    asked, verdict = follow(lambda r: "timed-out" if isinstance(r, Cut) else steady(r))
    assert len(asked) == 5
    assert verdict.outcome is CausalityOutcome.INCONCLUSIVE
    assert "3 cuts in a row gave no answer" in verdict.sentence


def test_too_few_answers_prove_nothing() -> None:
    count = iter(range(100))
    said: dict[Request, bool] = {}

    def two_of_three(request: Request) -> list[int] | str:
        if not isinstance(request, Cut):
            return steady(request)
        fails = said.setdefault(request, next(count) % 3 != 2)
        return "crashed" if fails else steady(request)

    _, verdict = follow(two_of_three)
    assert verdict.outcome is CausalityOutcome.INCONCLUSIVE
    assert "fewer than half" in verdict.sentence


def test_confirmations_without_an_answer_are_bounded_and_convict_nobody() -> None:
    def breaks(request: Request) -> list[int] | str:
        if isinstance(request, Cut) and request.repeat > 0:
            return "out-of-memory"
        labels = steady(request)
        return last_is_nine(labels, request) if isinstance(request, Cut) else labels

    asked, verdict = follow(breaks)
    assert len(asked) == 2 + 3 * 2
    assert verdict.outcome is CausalityOutcome.INCONCLUSIVE
    assert "could not be confirmed" in verdict.sentence


def test_an_altered_future_without_an_answer_breaks_off() -> None:
    def breaks(request: Request) -> list[int] | str:
        at = isinstance(request, Cut) and (request.frames, request.kind) == (41, ALTERED)
        return "crashed" if at else looks_ahead(request)

    _, verdict = follow(breaks)
    assert verdict.outcome is CausalityOutcome.PASSED
    assert verdict.cuts[0].standing is Standing.BROKEN_OFF
    assert "No answer with 41 frames" in verdict.sentence


def only_once(request: Request) -> list[int] | str:
    return steady(request) if request == FullRun() else "crashed"


@pytest.mark.parametrize(
    ("answer", "rule", "outcome", "words", "asked"),
    [
        (steady, a_rule(on=False), CausalityOutcome.NOT_RUN, "the challenge does not ask for it", 0),
        (lambda _: "crashed", a_rule(), CausalityOutcome.NOT_RUN, "no valid answers", 1),
        (steady, a_rule(min_frames=100), CausalityOutcome.INCONCLUSIVE, "the shortest prefix to be tested 100", 0),
        (only_once, a_rule(), CausalityOutcome.INCONCLUSIVE, "3 repetitions of the full sequence gave no answer", 4),
    ],
)
def test_checks_that_end_before_the_first_cut(
    answer: Answer, rule: CausalityRule, outcome: CausalityOutcome, words: str, asked: int
) -> None:
    requests, verdict = follow(answer, rule=rule)
    assert verdict.outcome is outcome
    assert words in verdict.sentence
    assert verdict.bound is None
    assert len(requests) == asked


def test_a_check_that_was_stopped_is_inconclusive() -> None:
    evidence = Evidence(frames=FRAMES).plus(*(observe(FullRun(repeat=n), steady) for n in range(2)))
    verdict = conclude(a_rule(), evidence, 7)
    assert verdict.outcome is CausalityOutcome.INCONCLUSIVE
    assert "stopped before its end" in verdict.sentence


@given(st.randoms(use_true_random=False), st.booleans(), st.integers(1, 12), st.integers(1, 40))
@settings(max_examples=150, deadline=None)
def test_any_behaviour_ends_within_the_estimate(random: Random, can_alter: bool, cuts: int, frames: int) -> None:
    moody = random.choice([0.0, 0.05, 0.3])
    failing = random.choice([0.0, 0.2, 0.6])

    def whim(request: Request) -> list[int] | str:
        if request != FullRun() and random.random() < failing:
            return "crashed"
        shown = frames_shown(request, frames)
        seen_by_cut = isinstance(request, Cut) and random.random() < moody
        return [int(seen_by_cut)] * shown

    _, verdict = follow(whim, rule=a_rule(cuts=cuts), can_alter=can_alter, frames=frames)
    assert verdict.cuts_tested <= cuts
    assert verdict.sentence


def test_the_first_targets_end_on_changed_answers_after_long_phases() -> None:
    labels = [0] * 10 + [1] * 3 + [2] * 60 + [3] * 27
    assert targets(answers(labels), lengths()) == (74, 11, 14, 84, 75, 12, 15, 73, 10, 13)
    assert targets(answers(labels), lengths(14)) == (74, 14, 84, 75, 15, 73)
    assert targets(answers([4] * 9), lengths(1, 9)) == ()


def test_a_target_moves_up_to_a_length_that_is_possible() -> None:
    labels = [0] * 10 + [1] * 3 + [2] * 60 + [3] * 27
    assert targets(answers(labels), (10, 12, 75, 80)) == (75, 12, 75, 75, 12, 75, 75, 10, 75)


def test_every_second_target_is_an_altered_future_unless_it_is_drawn_too() -> None:
    points = cut_points(a_rule(cuts=20), lengths(), answers(BASE), 1, alter=True)
    plain = cut_points(a_rule(cuts=20), lengths(), answers(BASE), 1)
    assert [(p.frames, p.random) for p in points] == [(p.frames, p.random) for p in plain]
    aimed = [p for p in points if not p.random]
    assert [p.frames for p in aimed if not p.altered] == [41, 42, 72, 70]
    assert [p.frames for p in aimed if p.altered] == [71]
    assert not any(p.altered for p in points if p.random)
    assert not any(p.altered for p in plain)


def test_a_change_in_any_column_is_a_target() -> None:
    two = Answers.of(FrameTable(columns={"b": np.array([0, 0, 0, 1, 1]), "a": np.array([5, 6, 6, 6, 6])}))
    assert two.columns == ("a", "b")
    assert set(targets(two, lengths(1, 5))) == {2, 3, 1, 4}


def test_random_cuts_depend_on_the_seed_alone_and_count_where_a_target_stood() -> None:
    rule = a_rule(cuts=20)
    points = cut_points(rule, lengths(), answers(BASE), 1)
    assert points == cut_points(rule, lengths(), answers(BASE), 1)
    assert points != cut_points(rule, lengths(), answers(BASE), 2)
    assert len({p.frames for p in points}) == 20
    drawn = [int(k) for k in np.random.default_rng(1).permutation(np.arange(1, FRAMES))]
    random = {p.frames for p in points if p.random}
    assert random == set(drawn[: len(random)])


def test_every_prefix_is_tested_when_cuts_allow_it() -> None:
    points = cut_points(a_rule(cuts=500), lengths(3, 8), answers([0, 0, 1, 1, 1, 0, 0, 0]), 1)
    assert sorted(p.frames for p in points) == [3, 4, 5, 6, 7]
    assert all(p.random for p in points if p.frames in {3, 7})


@pytest.mark.parametrize(
    ("random", "tested", "possible", "bound"),
    [
        (20, 20, 300, 0.139108),
        (10, 20, 300, 0.258866),
        (1, 1, 300, 0.95),
        (5, 5, 5, 0.0),
        (5, 9, 10, 0.1),
        (0, 3, 10, 0.7),
    ],
)
def test_the_bound(random: int, tested: int, possible: int, bound: float) -> None:
    assert upper_bound(random, tested_clean=tested, possible=possible) == pytest.approx(bound, abs=1e-6)


def test_evidence_refuses_what_cannot_be() -> None:
    good = observe(FullRun(), steady)
    with pytest.raises(ValueError, match="twice"):
        Evidence(frames=FRAMES).plus(good, good)
    with pytest.raises(ValueError, match="shows 41 frames"):
        Evidence(frames=FRAMES).plus(Observation(request=Cut(frames=41), answers=answers([0] * 40)))
    with pytest.raises(ValueError, match="either answers or a failure"):
        Observation(request=FullRun())
    with pytest.raises(ValueError, match="do not fit"):
        Answers(columns=("a", "b"), labels=np.zeros((1, 4), dtype=np.int64))
