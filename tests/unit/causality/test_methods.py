"""The methods beside ``targeted``, clips and copies, the cap, runs made ahead, and the search after a leak."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.causality import (
    Answers,
    CausalityOutcome,
    CausalityVerdict,
    Cost,
    Evidence,
    FullRun,
    Observation,
    Request,
    Standing,
    conclude,
    estimate,
    frames_shown,
    next_cuts,
)
from runner.causality.examination import Ending
from runner.causality.plan import course
from runner.challenge import CausalityRule, LeakPolicy
from runner.formats.contract import FrameScores, FrameTable
from runner.job import Cut, CutKind
from tools.simulated_methods import LOOKING_AHEAD, Method, ahead, examine, flipping, length_relative, recurrent

FRAMES = 60
PREFIX, ALTERED, CLIP = CutKind.PREFIX, CutKind.ALTERED_FUTURE, CutKind.CLIP
Answer = Callable[[Request], Answers | str]


def a_rule(**changes: Any) -> CausalityRule:
    given: dict[str, Any] = {"method": "targeted", "on": 1, "cuts": 6, "on_leak": LeakPolicy.REFUSE}
    return CausalityRule(length_dependence=LeakPolicy.REPORT, **(given | changes))


def looking(ahead: int, frames: int = FRAMES) -> Answer:
    """A method whose answer for t is what frame t + ahead shows; frame f of the case shows f // 7, others' show −1."""

    def answer(request: Request) -> Answers:
        shown = np.arange(frames_shown(request, frames)) // 7
        if isinstance(request, Cut) and request.kind is ALTERED:
            shown[request.frames :] = -1
        seen = shown[np.minimum(np.arange(len(shown)) + ahead, len(shown) - 1)]
        return Answers.of(FrameTable(columns={"step": seen}))

    return answer


def follow(
    answer: Answer, rule: CausalityRule, evidence: Evidence | None = None, *, seed: int = 8, width: int = 1
) -> tuple[list[Request], CausalityVerdict]:
    evidence = evidence or Evidence(frames=FRAMES)
    cost = estimate(
        rule,
        evidence.frames,
        can_alter=evidence.can_alter,
        possible=evidence.possible,
        clip=evidence.clip,
        copied=evidence.copied,
    )
    asked: list[Request] = []
    while requests := next_cuts(rule, evidence, seed, width=width):
        assert len(requests) <= width
        asked += requests
        for request in requests:
            said = answer(request)
            if isinstance(said, str):
                evidence = evidence.plus(Observation(request=request, failure=said))
            else:
                evidence = evidence.plus(Observation(request=request, answers=said))
    if width == 1:
        assert len([r for r in asked if r != FullRun()]) <= cost.most
    return asked, conclude(rule, evidence, seed)


STEADY = looking(0)


@pytest.mark.parametrize("rule", ["last", "all"])
def test_exhaustive_makes_every_prefix_of_a_clip_in_order(rule: str) -> None:
    asked, verdict = follow(STEADY, a_rule(method="exhaustive", rule=rule), Evidence(frames=FRAMES, clip=True))
    whole = [Cut(frames=FRAMES, kind=CLIP, repeat=n) for n in range(2)]
    assert asked == [*whole, *(Cut(frames=k, kind=CLIP) for k in range(1, FRAMES))]
    assert verdict.outcome is CausalityOutcome.PASSED
    assert (verdict.cuts_tested, verdict.cuts_possible, verdict.bound) == (59, 59, 0.0)
    which = "No last answer of a prefix" if rule == "last" else "No answer"
    assert verdict.sentence == (
        f"{which} changed when later frames were withheld: 59 of 59 possible cuts tested. No cut is left untested. "
        "2 runs of the clip differ in at most 0.0 % of its 60 frames."
    )


def only_the_first_answer(request: Request) -> Answers:
    """Its answer for frame 0 needs 30 frames; the last answer of a prefix shows it at k = 1 alone."""
    said = STEADY(request)
    assert isinstance(said, Answers)
    columns = said.labels.copy()
    shown = request.frames if isinstance(request, Cut) else FRAMES
    columns[0, 0] = 5 if shown > 30 else 9
    return Answers.of(FrameTable(columns={"step": columns[0]}))


def test_the_last_answers_are_petraws_rule_and_the_others_are_not_looked_at() -> None:
    asked, last = follow(only_the_first_answer, a_rule(method="exhaustive", rule="last", min_frames=2))
    assert last.outcome is CausalityOutcome.PASSED
    assert len(asked) == 2 + 58
    _, every = follow(only_the_first_answer, a_rule(method="exhaustive", rule="all", min_frames=2))
    assert every.outcome is CausalityOutcome.LEAKING


def test_exhaustive_stops_at_the_first_confirmed_leak() -> None:
    asked, verdict = follow(looking(1), a_rule(method="exhaustive", rule="last"), Evidence(frames=FRAMES, clip=True))
    assert asked[2:9] == [Cut(frames=k, kind=CLIP) for k in range(1, 8)]
    assert asked[9:12] == [
        Cut(frames=7, kind=CLIP, repeat=1),
        Cut(frames=7, kind=CLIP, repeat=2),
        Cut(frames=FRAMES, kind=CLIP, repeat=2),
    ]
    assert asked[12:] == [*(Cut(frames=7, kind=ALTERED, repeat=n) for n in range(3)), Cut(frames=8, kind=ALTERED)]
    assert verdict.first_leak is not None
    assert (verdict.first_leak.frame, verdict.first_leak.future_frames) == (6, 1)
    assert "3 runs of the clip agree" in verdict.sentence


def test_where_no_case_lends_frames_petraws_rule_convicts_on_prefixes() -> None:
    alone = Evidence(frames=FRAMES, clip=True, can_alter=False)
    asked, verdict = follow(looking(1), a_rule(method="exhaustive", rule="last"), alone)
    assert all(isinstance(r, Cut) and r.kind is CLIP for r in asked)
    assert verdict.outcome is CausalityOutcome.LEAKING
    assert verdict.sentence == (
        "The answer for frame 6 changed when the frames from 7 on were withheld: 3 runs of the clip agree, 3 without "
        "them agree, and they differ. Found with 7 of 59 possible cuts. It took 1 later frame to give frame 6 its "
        "answer."
    )
    assert verdict.detail.endswith("Frame 6, step: 1 with the clip, 0 without the frames from 7 on.")
    _, every = follow(looking(1), a_rule(method="exhaustive"), alone)
    assert every.outcome is CausalityOutcome.INCONCLUSIVE
    assert every.cuts[-1].standing is Standing.UNPROVEN


def by_length(request: Request) -> Answers:
    columns = np.zeros(frames_shown(request, FRAMES), dtype=np.int64)
    columns[-1] = 0 if len(columns) == FRAMES else 9
    return Answers.of(FrameTable(columns={"step": columns}))


def test_petraws_rule_tells_a_dependence_on_length_from_a_leak_where_it_can() -> None:
    asked, verdict = follow(by_length, a_rule(method="exhaustive", rule="last"))
    assert verdict.outcome is CausalityOutcome.LENGTH_DEPENDENT
    assert verdict.length_dependent_share is None
    assert "with 1 of 60 frames the last answer changed, but none did" in verdict.sentence
    assert [r.kind for r in asked[6:] if isinstance(r, Cut)] == [ALTERED] * 59


def test_a_cut_run_cuts_once_and_runs_the_whole_again_only_for_a_candidate() -> None:
    for seed in range(6):
        asked, verdict = follow(STEADY, a_rule(method="cut-run"), seed=seed)
        assert asked[0] == FullRun()
        assert len(asked) == 2
        assert isinstance(asked[1], Cut)
        assert asked[1].kind is PREFIX
        assert (asked[1].frames == 8) is (seed % 2 == 0)
        assert verdict.outcome is CausalityOutcome.PASSED
        assert verdict.random_cuts == seed % 2
    assert "This leaves room for at most 98.3 % of cut points that leak. The full sequence was run once." in (
        follow(STEADY, a_rule(method="cut-run"))[1].sentence
    )
    asked, verdict = follow(looking(3), a_rule(method="cut-run"))
    assert [r for r in asked if isinstance(r, FullRun)] == [FullRun(repeat=n) for n in range(3)]
    assert verdict.outcome is CausalityOutcome.LEAKING


def test_a_change_that_does_not_hold_leaves_a_cut_run_undecided() -> None:
    def once(request: Request) -> Answers | str:
        return looking(3)(request) if isinstance(request, Cut) and request.repeat == 0 else STEADY(request)

    _, verdict = follow(once, a_rule(method="cut-run"))
    assert verdict.outcome is CausalityOutcome.INCONCLUSIVE
    assert "a changed answer did not hold" in verdict.sentence


def test_altered_futures_are_shown_from_the_start() -> None:
    rule = a_rule(method="altered-future")
    asked, verdict = follow(STEADY, rule)
    assert [r.kind for r in asked if isinstance(r, Cut)] == [ALTERED] * 6
    assert verdict.outcome is CausalityOutcome.PASSED
    assert verdict.sentence.startswith("No answer changed when later frames were replaced by others: 6 of 59")
    asked, verdict = follow(looking(3), rule)
    assert verdict.outcome is CausalityOutcome.LEAKING
    assert "withheld" not in verdict.sentence
    assert follow(by_length, rule)[1].outcome is CausalityOutcome.PASSED
    asked, verdict = follow(STEADY, rule, Evidence(frames=FRAMES, can_alter=False))
    assert asked == []
    assert verdict.outcome is CausalityOutcome.INCONCLUSIVE
    assert "no other case could lend frames" in verdict.sentence


def test_altered_futures_of_a_copy_are_compared_with_the_whole_of_a_copy() -> None:
    copied = Evidence(frames=FRAMES, copied=True, possible=(8, 20, 29, 40))
    asked, verdict = follow(looking(3), a_rule(), copied)
    prefixes = [Cut(frames=20, repeat=n) for n in range(3)]
    assert asked[2:5] == prefixes
    assert asked[6:12] == [
        Cut(frames=FRAMES, kind=CLIP),
        *(Cut(frames=20, kind=ALTERED, repeat=n) for n in range(3)),
        *(Cut(frames=FRAMES, kind=CLIP, repeat=n) for n in (1, 2)),
    ]
    assert verdict.first_leak is not None
    assert verdict.first_leak.future_frames == 3
    asked, _ = follow(STEADY, a_rule(), copied)
    assert {r.frames for r in asked if isinstance(r, Cut)} == {8, 20, 29, 40}
    assert all(r.kind is PREFIX for r in asked if isinstance(r, Cut))


def test_only_possible_lengths_are_cut_and_counted_but_a_copy_may_be_cut_anywhere() -> None:
    possible = (5, 20, 29, 40, 60)
    _, verdict = follow(STEADY, a_rule(min_frames=6, cuts=9), Evidence(frames=FRAMES, possible=possible))
    assert (verdict.cuts_tested, verdict.cuts_possible) == (3, 3)
    copied = Evidence(frames=FRAMES, possible=possible, copied=True)
    asked, verdict = follow(STEADY, a_rule(method="altered-future"), copied)
    assert verdict.cuts_possible == 59
    assert asked[:2] == [Cut(frames=FRAMES, kind=CLIP, repeat=n) for n in range(2)]
    with pytest.raises(ValueError, match="not ascending"):
        Evidence(frames=FRAMES, possible=(3, 2))


def test_a_clip_that_gives_no_answer_is_inconclusive() -> None:
    asked, verdict = follow(lambda _: "crashed", a_rule(), Evidence(frames=FRAMES, clip=True))
    assert len(asked) == 3
    assert verdict.outcome is CausalityOutcome.INCONCLUSIVE
    assert "3 repetitions of the clip gave no answer" in verdict.sentence


@pytest.mark.parametrize("most", range(2, 9))
def test_a_cap_is_never_an_all_clear(most: int) -> None:
    rule = a_rule(most_runs=most)
    for width in (1, 4):
        asked, verdict = follow(STEADY, rule, width=width)
        assert len(asked) == 1 + min(most, 7)
        if most >= 7:
            assert verdict.outcome is CausalityOutcome.PASSED
            continue
        assert verdict.outcome is CausalityOutcome.INCONCLUSIVE
        assert verdict.bound is None
        assert verdict.sentence.startswith(
            f"Causality is inconclusive: {most - 1} of 6 cuts, since no more than {most} runs are allowed. "
            f"{most - 1} of 59 possible cuts tested"
        )


def test_a_leak_that_was_proven_before_the_cap_stays_one() -> None:
    outcomes = {most: follow(looking(3), a_rule(most_runs=most))[1] for most in (7, 8, 9, 20)}
    assert outcomes[7].outcome is CausalityOutcome.INCONCLUSIVE
    assert [outcomes[most].outcome for most in (8, 9, 20)] == [CausalityOutcome.LEAKING] * 3
    leaks = [outcomes[most].first_leak for most in (8, 9, 20)]
    assert [leak.future_frames if leak else -1 for leak in leaks] == [None, 3, 3]


@pytest.mark.parametrize("frames", [1, 2, 3, 5, 7, 11, 15, 24, 40])
@pytest.mark.parametrize("method", ["targeted", "altered-future", "exhaustive"])
def test_the_search_finds_how_far_a_method_looks_ahead(frames: int, method: str) -> None:
    far = Evidence(frames=200)
    asked, verdict = follow(looking(frames, 200), a_rule(method=method), far)
    leak = verdict.first_leak
    assert leak is not None
    assert leak.future_frames == frames
    singles = [r for r in asked if isinstance(r, Cut) and r.frames > leak.cut.frames and r.kind is ALTERED]
    assert all(r.repeat == 0 for r in singles[-2:])


def test_a_search_whose_run_fails_tells_nothing() -> None:
    def fragile(request: Request) -> Answers | str:
        return "crashed" if request == Cut(frames=13, kind=ALTERED) else looking(3)(request)

    _, verdict = follow(fragile, a_rule())
    assert verdict.first_leak is not None
    assert verdict.first_leak.future_frames is None
    assert "It took" not in verdict.sentence


def test_scores_leak_beyond_the_tolerance_only_and_their_values_are_the_organisers() -> None:
    def scored(size: float) -> Answer:
        def answer(request: Request) -> Answers:
            shown = frames_shown(request, FRAMES)
            scores = np.tile([0.25, 0.75], (shown, 1))
            if isinstance(request, Cut):
                scores[request.frames - 1, 0] += size
            return Answers.of(FrameScores(scores=scores))

        return answer

    assert follow(scored(9e-5), a_rule())[1].outcome is CausalityOutcome.PASSED
    passed = follow(scored(9e-5), a_rule())[1]
    assert passed.tolerance == 1e-4
    assert passed.sentence.startswith("No answer changed by more than 0.0001 when later frames were withheld")
    _, verdict = follow(scored(0.01), a_rule())
    assert verdict.outcome is CausalityOutcome.LEAKING
    assert verdict.first_leak is not None
    assert (verdict.first_leak.column, verdict.first_leak.full_answer) == ("class 0", 0.25)
    assert "class 0: 0.25 with the full sequence, 0.26 with other frames" in verdict.detail
    assert "0.25" not in verdict.sentence
    assert "0.26" not in verdict.sentence


def test_a_column_left_out_of_a_prefix_is_found() -> None:
    def shy(request: Request) -> Answers:
        columns = {"a": np.zeros(frames_shown(request, FRAMES), dtype=np.int64)}
        return Answers.of(FrameTable(columns=columns | ({} if isinstance(request, Cut) else {"b": columns["a"]})))

    _, verdict = follow(shy, a_rule())
    assert verdict.first_leak is not None
    assert (verdict.first_leak.column, verdict.first_leak.full_answer, verdict.first_leak.cut_answer) == ("b", 0, None)
    assert "b: 0 with the full sequence, no answer with other frames" in verdict.detail


METHODS: dict[str, Method] = {
    "steady": recurrent,
    "ahead": ahead(3),
    "length": length_relative,
    "sorts": LOOKING_AHEAD["reads all, then sorts"],
}


@given(
    st.sampled_from(sorted(METHODS)),
    st.sampled_from(["targeted", "exhaustive", "cut-run", "altered-future"]),
    st.integers(2, 5),
    st.integers(0, 999),
    st.sampled_from([None, 7, 15]),
    st.booleans(),
)
@settings(max_examples=25, deadline=None)
def test_runs_made_ahead_change_no_verdict(
    name: str, method: str, width: int, seed: int, most: int | None, copied: bool
) -> None:
    rule = a_rule(method=method, cuts=8, most_runs=most)
    case = Evidence(frames=40, copied=copied)
    one = examine(METHODS[name], seed, rule, evidence=case)
    many = examine(METHODS[name], seed, rule, evidence=case, width=width)
    assert many.verdict == one.verdict
    assert set(one.asked) <= set(many.asked)
    assert len(many.asked) == len(set(many.asked))


@given(st.integers(2, 6), st.integers(0, 999), st.sampled_from([0.002, 0.02, 0.1]), st.sampled_from([0.0, 0.2]))
@settings(max_examples=25, deadline=None)
def test_runs_made_ahead_change_no_verdict_of_a_moody_method(
    width: int, seed: int, flips: float, failing: float
) -> None:
    def moody(request: Request) -> Answers | str:
        own = int(np.random.default_rng([seed, *map(ord, repr(request))]).integers(1 << 30))
        if request != FullRun() and np.random.default_rng(own).random() < failing:
            return "crashed"
        scores = np.eye(6)[np.arange(frames_shown(request, FRAMES)) // 11]
        return Answers.of(FrameTable(columns={"step": flipping(ahead(seed % 2), flips, own)(scores)}))

    rule = a_rule(cuts=9)
    assert follow(moody, rule, width=width)[1] == follow(moody, rule)[1]


def test_runs_are_made_ahead_for_cuts_and_for_a_confirmation_alike() -> None:
    whole = [Observation(request=FullRun(repeat=n), answers=STEADY(FullRun())) for n in range(2)]  # type: ignore[arg-type]
    evidence = Evidence(frames=FRAMES).plus(*whole)
    first = next_cuts(a_rule(), evidence, 8, width=3)
    assert len(first) == 3
    assert first[0] == Cut(frames=8)
    assert next_cuts(a_rule(), evidence, 8) == first[:1]
    assert next_cuts(a_rule(), Evidence(frames=FRAMES), 8, width=5) == (FullRun(),)
    changed = looking(3)(Cut(frames=8))
    assert isinstance(changed, Answers)
    candidate = evidence.plus(Observation(request=Cut(frames=8), answers=changed))
    assert next_cuts(a_rule(), candidate, 8, width=6) == (
        Cut(frames=8, repeat=1),
        Cut(frames=8, repeat=2),
        FullRun(repeat=2),
        *(Cut(frames=8, kind=ALTERED, repeat=n) for n in range(3)),
    )
    assert course(a_rule(), candidate, 8).ending is None
    assert course(a_rule(method="off"), candidate, 8).ending is Ending.OFF


def cost(frames: int = 300, *, can_alter: bool = True, clip: bool = False, copied: bool = False, **rule: Any) -> Cost:
    of = 3000 if clip else None
    return estimate(
        a_rule(**{"cuts": 20, **rule}), frames, can_alter=can_alter, clip=clip, copied=copied, of=of
    )  # fmt: skip


def test_the_cost_is_known_beforehand() -> None:
    assert cost() == Cost(clean=21, most=57, relative=1 + 5 + 15 / 2)
    assert cost(copied=True) == Cost(clean=21, most=62, relative=11.0)
    assert cost(can_alter=False) == Cost(clean=21, most=30, relative=11.0)
    assert cost(3) == Cost(clean=3, most=4 + 2 + 2 * 5 + 4, relative=1 + 2 * 0.5)
    assert cost(method="off") == Cost(clean=0, most=0)
    assert cost(method="altered-future") == Cost(clean=21, most=4 + 20 + 3 * 2 + 18, relative=21.0)
    assert cost(method="altered-future", can_alter=False) == Cost(clean=0, most=0)
    assert cost(method="altered-future", copied=True) == Cost(clean=22, most=5 + 20 + 3 * 2 + 18, relative=22.0)
    assert cost(method="cut-run") == Cost(clean=1, most=4 + 1 + 5 + 18, relative=0.5)
    exhaustive = cost(method="exhaustive", rule="last", clip=True)
    assert (exhaustive.clean, exhaustive.most) == (301, 5 + 299 + 15 + 18)
    assert exhaustive.relative == pytest.approx(0.2 + 299 * 0.05)
    assert cost(most_runs=5) == Cost(clean=5, most=5, relative=1 + 4 * 0.625)


def test_a_clean_method_costs_what_was_said() -> None:
    for method in ("targeted", "exhaustive", "cut-run", "altered-future"):
        for case in (Evidence(frames=FRAMES), Evidence(frames=FRAMES, copied=True), Evidence(frames=FRAMES, clip=True)):
            rule = a_rule(method=method)
            asked, _ = follow(STEADY, rule, case)
            said = estimate(rule, FRAMES, clip=case.clip, copied=case.copied)
            assert len([r for r in asked if r != FullRun()]) == said.clean
