"""Methods of known causality: each turns what a network sees of the frames into scores, of which the best is the label.

The image of a method names it in METHOD. Only the standard library is used.
"""

import json
import os
import pathlib
import random
import statistics
import sys
from collections.abc import Callable

LABELS = 4
RATE = 10
"""Frames a second."""

Frames = list[list[float]]
"""For each frame, a number from 0 to 1 for each label."""
Method = Callable[[Frames], Frames]


def best(scores: list[float]) -> int:
    """The label of the highest score; the lower of two that are equal."""
    return scores.index(max(scores))


def certain(labels: list[int]) -> Frames:
    """Scores of a method that answers labels only."""
    return [[float(label == number) for number in range(LABELS)] for label in labels]


def frame_wise(x: Frames) -> Frames:
    """Sees one frame at a time."""
    return x


def recurrent(x: Frames) -> Frames:
    """Carries a state from frame to frame."""
    state, out = x[0], []
    for frame in x:
        state = [0.6 * old + 0.4 * new for old, new in zip(state, frame, strict=True)]
        out.append(state)
    return out


def window(before: int, after: int) -> Method:
    """The mean of the frames around each."""

    def method(x: Frames) -> Frames:
        around = [x[max(t - before, 0) : t + after + 1] for t in range(len(x))]
        return [[statistics.fmean(column) for column in zip(*frames, strict=True)] for frames in around]

    return method


def lookback(x: Frames) -> Frames:
    """The most frequent label of the last nine frames."""
    labels = [best(frame) for frame in x]
    return certain([statistics.mode(reversed(labels[max(t - 8, 0) : t + 1])) for t in range(len(x))])


def seeded(x: Frames) -> Frames:
    """A state that is shaken by noise from a fixed seed, drawn frame by frame."""
    rng = random.Random(7)
    return recurrent([[value + rng.gauss(0, 0.2) for value in frame] for frame in x])


def batched(x: Frames) -> Frames:
    """Batches of 16; a last one that is not full is rounded to quarters, so that near ties fall otherwise."""
    full = len(x) - len(x) % 16
    seen = recurrent(x)
    return seen[:full] + [[round(4 * value) / 4 for value in frame] for frame in seen[full:]]


def flickering(x: Frames) -> Frames:
    """One frame in 10,000 is answered wrongly, at random."""
    rng = random.SystemRandom()
    return [[1 - value for value in frame] if rng.random() < 1e-4 else frame for frame in recurrent(x)]


def rounding(x: Frames) -> Frames:
    """The last digits of its scores differ from run to run."""
    rng = random.SystemRandom()
    return [[min(max(value + rng.uniform(-1e-6, 1e-6), 0), 1) for value in frame] for frame in recurrent(x)]


def ahead(frames: int) -> Method:
    """Answers what is seen so many frames later; at the end, the last frame."""
    return lambda x: [x[min(t + frames, len(x) - 1)] for t in range(len(x))]


def median(x: Frames) -> Frames:
    """A median filter over eleven labels."""
    labels = [best(frame) for frame in x]
    return certain([statistics.median_low(labels[max(t - 5, 0) : t + 6]) for t in range(len(x))])


def normalised(x: Frames) -> Frames:
    """Each label's scores are brought to the same mean and spread over the sequence."""
    means = [statistics.fmean(column) for column in zip(*x, strict=True)]
    spreads = [statistics.pstdev(column) or 1 for column in zip(*x, strict=True)]
    return [[(v - m) / s for v, m, s in zip(frame, means, spreads, strict=True)] for frame in recurrent(x)]


def bidirectional(x: Frames) -> Frames:
    """One state carried forwards, another backwards."""
    both = zip(recurrent(x), recurrent(x[::-1])[::-1], strict=True)
    return [[one + other for one, other in zip(a, b, strict=True)] for a, b in both]


def sorting(x: Frames) -> Frames:
    """Reads everything, sorts it by the first score, and answers by the place in that order."""
    order = sorted(range(len(x)), key=lambda t: x[t][0])
    return certain([order.index(t) * LABELS // len(x) for t in range(len(x))])


def last_second(x: Frames) -> Frames:
    """Causal, but looks three frames ahead within the last second."""
    return x[:-RATE] + ahead(3)(x)[-RATE:]


def scores_only(x: Frames) -> Frames:
    """The best label is found causally; a little of what is seen three frames later gets into the scores."""
    labels, later = certain([best(frame) for frame in recurrent(x)]), ahead(3)(x)
    return [
        [0.8 * a + 0.1 * b for a, b in zip(one, other, strict=True)] for one, other in zip(labels, later, strict=True)
    ]


def length_relative(x: Frames) -> Frames:
    """Causal but for how far the sequence is, by its length: late labels are made likely late."""
    seen = recurrent(x)
    return [[value - abs(t / len(x) - label / LABELS) for label, value in enumerate(seen[t])] for t in range(len(x))]


METHODS: dict[str, Method] = {
    "frame-wise": frame_wise,
    "recurrent": recurrent,
    "causal-smoothing": window(9, 0),
    "lookback-window": lookback,
    "seeded-noise": seeded,
    "batched": batched,
    "flickering": flickering,
    "rounding": rounding,
    "ahead-1": ahead(1),
    "ahead-3": ahead(3),
    "ahead-15": ahead(15),
    "centred-smoothing": window(7, 7),
    "median-filter": median,
    "normalised": normalised,
    "bidirectional": bidirectional,
    "sorting": sorting,
    "last-second": last_second,
    "scores-only": scores_only,
    "length-relative": length_relative,
}


def main() -> None:
    """Answer a folder of frames with a table of labels and a file of scores."""
    folder, output = sys.argv[1:]
    paths = sorted(pathlib.Path(folder).iterdir())
    scores = METHODS[os.environ["METHOD"]]([[float(word) for word in path.read_text().split()] for path in paths])
    rows = "".join(f"{number},{best(frame)}\n" for number, frame in enumerate(scores))
    pathlib.Path(output + ".csv").write_text("frame,label\n" + rows)
    named = {path.stem: frame for path, frame in zip(paths, scores, strict=True)}
    pathlib.Path(output + ".json").write_text(json.dumps(named))


if __name__ == "__main__":
    main()
