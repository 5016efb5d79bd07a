"""Methods of known causality on made-up sequences, for tests of ``runner.causality`` and benchmarks.

A sequence is what a network could see of each frame: scores of six phases that fade into one another, with noise. A
method turns the scores of the frames it is shown into a label for each, or into scores. It is a plain function, so that
thousands of checks take minutes; ``examine`` takes it through a whole check, as the pipeline does.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from runner.causality import (
    Answers,
    CausalityVerdict,
    Evidence,
    Observation,
    Request,
    conclude,
    next_cuts,
)
from runner.causality.examination import Examination
from runner.challenge import CausalityRule
from runner.formats.contract import FrameScores, FrameTable
from runner.job import Cut, CutKind

FRAMES, LABELS = 300, 6
SECOND = 25
"""Frames."""

Scores = NDArray[np.float64]
"""What a network sees of each frame; shape (frames, labels)."""
Said = NDArray[np.intp] | Scores
"""A label for each frame, or scores of the shape (frames, labels)."""
Method = Callable[[Scores], Said]
Labelling = Callable[[Scores], NDArray[np.intp]]


def a_case(seed: int) -> Scores:
    """A workflow of 8 to 12 phases that fade into one another over 5 to 11 frames, with noise on every frame."""
    rng = np.random.default_rng(seed)
    bounds = np.sort(rng.choice(np.arange(8, FRAMES - 8), size=rng.integers(7, 12), replace=False))
    phases = np.cumsum(rng.integers(1, LABELS, size=len(bounds) + 1)) % LABELS
    sharp = np.eye(LABELS)[phases[np.searchsorted(bounds, np.arange(FRAMES), side="right")]]
    fade = int(rng.integers(2, 6))
    return mean_around(sharp, fade, fade) + rng.normal(0, 0.3, (FRAMES, LABELS))


def mean_around(x: Scores, before: int, after: int) -> Scores:
    """Mean over a window that is cut off where the sequence is."""
    sums = np.concatenate((np.zeros((1, x.shape[1])), np.cumsum(x, axis=0)))
    first = np.maximum(np.arange(len(x)) - before, 0)
    last = np.minimum(np.arange(len(x)) + after + 1, len(x))
    return np.asarray((sums[last] - sums[first]) / (last - first)[:, None])


def filtered(x: Scores) -> Scores:
    """What a recurrent network makes of it: a state that forgets a fifth with each frame."""
    return np.asarray(lfilter([0.2], [1.0, -0.8], x, axis=0))


def ahead(frames: int) -> Labelling:
    """The label of a later frame; of the last one where there is none."""
    return lambda x: x[np.minimum(np.arange(len(x)) + frames, len(x) - 1)].argmax(1)


def windowed(before: int, after: int) -> Labelling:
    """The label of the mean around each frame."""
    return lambda x: mean_around(x, before, after).argmax(1)


def recurrent(x: Scores) -> NDArray[np.intp]:
    """Causal, with a state."""
    return np.asarray(filtered(x).argmax(1))


def seeded_noise(x: Scores) -> NDArray[np.intp]:
    """Causal, with a state and noise that is the same in every run."""
    noise = np.random.default_rng(0).normal(0, 0.05, (10 * FRAMES, LABELS))
    return np.asarray((filtered(x) + noise[: len(x)]).argmax(1))


def bidirectional(x: Scores) -> NDArray[np.intp]:
    """A state from each side."""
    return np.asarray((filtered(x) + filtered(x[::-1])[::-1]).argmax(1))


def voting(edges: Literal["edge", "symmetric"], base: Labelling) -> Labelling:
    """The most frequent label of 11 frames around each, as a median filter is for two labels."""

    def method(x: Scores) -> NDArray[np.intp]:
        votes = np.cumsum(np.eye(LABELS, dtype=np.intp)[np.pad(base(x), (6, 5), mode=edges)], axis=0)
        return np.asarray((votes[11:] - votes[:-11]).argmax(1))

    return method


def normalised(x: Scores) -> NDArray[np.intp]:
    """Scores in units of the whole sequence's spread."""
    return np.asarray(((filtered(x) - x.mean(0)) / (x.std(0) + 1e-9)).argmax(1))


def in_order(x: Scores) -> NDArray[np.intp]:
    """Reads all, then sorts: no phase comes back."""
    return np.sort(recurrent(x))


def peeking_at_the_end(frames: int) -> Labelling:
    """Causal but for the last frames, which are answered from those around them."""

    def method(x: Scores) -> NDArray[np.intp]:
        labels = recurrent(x)
        labels[-frames:] = mean_around(x, 7, 7)[-frames:].argmax(1)
        return labels

    return method


def scores_ahead(x: Scores) -> Scores:
    """The label of the frame alone; a little of the later frames in the scores of the others."""
    scores = x.copy()
    later = mean_around(x, 0, 3)
    others = np.arange(LABELS)[None, :] != x.argmax(1)[:, None]
    lower = np.minimum(scores - 0.02 * np.abs(later), scores)
    return np.where(others, lower, scores)


def length_relative(x: Scores) -> NDArray[np.intp]:
    """Causal but for t / n: late labels are made likely late."""
    progress = np.arange(len(x))[:, None] / len(x)
    return np.asarray((filtered(x) - np.abs(progress - np.arange(LABELS) / LABELS)).argmax(1))


def length_relative_and_ahead(x: Scores) -> NDArray[np.intp]:
    """The same, and 15 frames ahead."""
    progress = np.arange(len(x))[:, None] / len(x)
    seen = x[np.minimum(np.arange(len(x)) + 15, len(x) - 1)]
    return np.asarray((seen - np.abs(progress - np.arange(LABELS) / LABELS)).argmax(1))


def batch_rounding(x: Scores) -> NDArray[np.intp]:
    """Causal, in batches of 16; a partial batch takes another kernel, which rounds near-ties the other way."""
    scores = filtered(x)
    partial = len(x) - len(x) % 16
    best = scores.argsort(1)
    margin = np.take_along_axis(scores, best[:, -1:], 1) - np.take_along_axis(scores, best[:, -2:-1], 1)
    flips = (np.arange(len(x)) >= partial) & (margin[:, 0] < 0.08)
    return np.where(flips, best[:, -2], best[:, -1])


def flipping(method: Labelling, share: float, seed: int) -> Labelling:
    """Another answer for a random share of frames, other frames in each run."""
    rng = np.random.default_rng(seed)

    def run(x: Scores) -> NDArray[np.intp]:
        labels = method(x)
        return np.where(rng.random(len(x)) < share, (labels + 1) % LABELS, labels)

    return run


def seldom_ahead(share: float) -> Labelling:
    """Causal but for a share of the frames, which depends on what they show, and which are answered 3 frames ahead."""

    def method(x: Scores) -> NDArray[np.intp]:
        labels = recurrent(x)
        chosen = np.modf(np.abs(x[:, 0]) * 1e4)[0] < share
        later = (labels + 1 + ahead(3)(x)) % LABELS
        return np.where(chosen, later, labels)

    return method


CAUSAL: Mapping[str, Method] = {
    "frame-wise": ahead(0),
    "recurrent": recurrent,
    "causal smoothing": windowed(15, 0),
    "look-back window": windowed(60, 0),
    "recurrent, seeded noise": seeded_noise,
}

LOOKING_AHEAD: Mapping[str, Method] = {
    "look-ahead 1": ahead(1),
    "look-ahead 3": ahead(3),
    "look-ahead 15": ahead(15),
    "centred smoothing": windowed(7, 7),
    "smoothing, 7 behind and 3 ahead": windowed(7, 3),
    "median filter, mirrored ends": voting("symmetric", recurrent),
    "median filter, repeated ends": voting("edge", ahead(0)),
    "whole-sequence normalisation": normalised,
    "bidirectional": bidirectional,
    "reads all, then sorts": in_order,
    "peeks only in the last second": peeking_at_the_end(SECOND),
    "leaks only in scores": scores_ahead,
    "length-relative and look-ahead 15": length_relative_and_ahead,
}

SELDOM: Mapping[str, Method] = {
    "smoothing, 15 behind and 1 ahead": windowed(15, 1),
    "leaks in fewer than 1 % of frames": seldom_ahead(0.008),
    "leaks in fewer than 0.1 %": seldom_ahead(0.0008),
}
"""They change about 1 %, fewer than 1 % and fewer than 0.1 % of the answers."""


def view(case: Scores, lender: Scores | None, request: Request) -> Scores:
    """What a container would be shown; the future is lent from the other case, half a length away."""
    if not isinstance(request, Cut):
        return case
    if request.kind is not CutKind.ALTERED_FUTURE:
        return case[: request.frames]
    assert lender is not None
    return np.concatenate((case[: request.frames], np.roll(lender, FRAMES // 2, axis=0)[request.frames : len(case)]))


def answers_of(said: Said) -> Answers:
    """What a method said, as answers are compared."""
    if said.ndim == 2:
        return Answers.of(FrameScores(scores=said.astype(np.float64)))
    return Answers.of(FrameTable(columns={"phase": said.astype(np.int64)}))


@dataclass(frozen=True, kw_only=True)
class Examined:
    """What came of a check.

    Attributes:
        verdict: What it proves.
        asked: Everything that was run, in order.
    """

    verdict: CausalityVerdict
    asked: tuple[Request, ...]


def examine_in_one_go(method: Method, seed: int, rule: CausalityRule) -> CausalityVerdict:
    """The verdict of the same check on a whole sequence, many times as fast: the course is not begun anew for each run.

    The rule's ``most_runs`` is left aside.
    """
    case, other = a_case(2 * seed), a_case(2 * seed + 1)
    evidence, said = Evidence(frames=FRAMES), dict[Request, Observation]()
    steps = Examination(rule, evidence, seed).steps()
    try:
        request = next(steps)
        while True:
            if request not in said:
                said[request] = Observation(request=request, answers=answers_of(method(view(case, other, request))))
            request = steps.send(said[request])
    except StopIteration:
        return conclude(rule, evidence.plus(*said.values()), seed)


def examine(
    method: Method, seed: int, rule: CausalityRule, *, evidence: Evidence | None = None, width: int = 1
) -> Examined:
    """Run a whole check, as the pipeline would.

    Args:
        method: What is checked.
        seed: Of the sequence, of the one that lends frames, and of the cuts.
        rule: How it is checked.
        evidence: How the sequence may be cut; None: everywhere, with a lender.
        width: Runs at once.
    """
    case, other = a_case(2 * seed), a_case(2 * seed + 1)
    evidence = evidence or Evidence(frames=FRAMES)
    asked: list[Request] = []
    while requests := next_cuts(rule, evidence, seed, width=width):
        said = [method(view(case[: evidence.frames], other if evidence.can_alter else None, r)) for r in requests]
        asked += requests
        evidence = evidence.plus(
            *(Observation(request=r, answers=answers_of(s)) for r, s in zip(requests, said, strict=True))
        )
    return Examined(verdict=conclude(rule, evidence, seed), asked=tuple(asked))
