"""Sequences for the methods: phases that fade into one another, as a network sees them; a frame is a small text."""

import json
import random
from pathlib import Path

from tests.zoo.method import LABELS, RATE, Frames, window


def sequence(seed: int, frames: int) -> tuple[list[int], Frames]:
    """The true labels, and what is seen: phases of 22 to 34 frames, one of which begins in the last second."""
    rng = random.Random(seed)
    labels, label = list[int](), rng.randrange(LABELS)
    last = frames - RATE // 2
    while len(labels) < last:
        labels += [label] * min(rng.randint(22, 34), last - len(labels))
        label = (label + rng.randint(1, LABELS - 1)) % LABELS
    labels += [label] * (frames - last)
    sharp = [[0.7 * (label == number) for number in range(LABELS)] for label in labels]
    noisy = [[value + abs(rng.gauss(0, 0.1)) for value in frame] for frame in window(2, 2)(sharp)]
    return labels, [[min(value, 1.0) for value in frame] for frame in noisy]


def write(folder: Path, *, cases: int, frames: int, seed: int) -> None:
    """A data folder of so many cases, each a few frames longer than the one before."""
    for number in range(cases):
        labels, seen = sequence(seed + number, frames + 3 * number)
        place = folder / "inputs" / f"{number:02d}"
        place.mkdir(parents=True)
        for index, frame in enumerate(seen):
            (place / f"{index:05d}.txt").write_text(" ".join(f"{value:.4f}" for value in frame) + "\n")
        for kind in ("labels", "scores"):
            (folder / kind).mkdir(exist_ok=True)
        rows = "".join(f"{index},{label}\n" for index, label in enumerate(labels))
        (folder / "labels" / f"{number:02d}.csv").write_text("frame,label\n" + rows)
        known = {f"{index:05d}": [float(label == one) for one in range(LABELS)] for index, label in enumerate(labels)}
        (folder / "scores" / f"{number:02d}.json").write_text(json.dumps(known))
