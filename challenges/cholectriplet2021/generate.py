"""Makes public data of CholecTriplet's form: videos whose frames give their triplets away, but not quite.

A video is a walk through segments, in each of which none to three of some thirty triplets are done. A frame is a small
PNG of 10 x 10 blocks, one a triplet in rows; a block is bright where its triplet is done and dark where it is not,
moved at random. The brightness of a block is a good score for its triplet, and not a perfect one.

    python challenges/cholectriplet2021/generate.py OUT --cases 5 --frames 1500 2500 --seed 7 --predictions seen
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

CLASSES, NULL = 100, 94
DARK, BRIGHT, SPREAD = 75.0, 165.0, 35.0
"""Mean brightness of a block whose triplet is not done, or is; and its standard deviation."""

_SIDE, _BLOCK = 10, 4
_POOL = 30
_AT_ONCE = [0.1, 0.4, 0.35, 0.15]
Positive = NDArray[np.bool_]
Scores = NDArray[np.float64]


def walk(rng: np.random.Generator, frames: int) -> Positive:
    """Draw the triplets of one video, shape ``(frames, 100)``."""
    pool = np.append(rng.integers(NULL, CLASSES), rng.choice(NULL, _POOL - 1, replace=False))
    weights = 1 / np.arange(1.0, _POOL + 1)
    found = np.zeros((frames, CLASSES), dtype=np.bool_)
    begin = 0
    while begin < frames:
        end = begin + int(rng.integers(3, 16))
        done = rng.choice(pool, rng.choice(len(_AT_ONCE), p=_AT_ONCE), replace=False, p=weights / weights.sum())
        found[begin:end, done] = True
        begin = end
    return found


def look(rng: np.random.Generator, positive: Positive) -> NDArray[np.uint8]:
    """Draw the brightness of every block, shape ``(frames, 100)``."""
    drawn = rng.normal(np.where(positive, BRIGHT, DARK), SPREAD)
    return np.clip(np.rint(drawn), 0, 255).astype(np.uint8)


def _shuffled(rng: np.random.Generator, _positive: Positive, seen: Scores) -> Scores:
    return seen[rng.permutation(len(seen))]


PREDICTIONS: dict[str, Callable[[np.random.Generator, Positive, Scores], Scores]] = {
    "seen": lambda _rng, _positive, seen: seen,
    "perfect": lambda _rng, positive, _seen: positive.astype(np.float64),
    "worst": lambda _rng, positive, _seen: (~positive).astype(np.float64),
    "shuffled": _shuffled,
}
"""Predictions by name: the brightness of each block, the reference itself, its opposite, the brightness a frame off.

Each is made of a generator, the reference, and the brightness in 0 to 1; ``shuffled`` puts its frames in any order."""


def generate(folder: Path, *, cases: int, frames: tuple[int, int], seed: int, predictions: str = "") -> None:
    """Write ``videos/<case>/<frame>.png``, ``triplet/<case>.txt`` and, where asked for, ``predictions/<case>.json``.

    Args:
        folder: Where to; made if it is missing.
        cases: How many; they are named VID01, VID02, …
        frames: The least and the most frames of a video, one a second; they are named 000001, 000002, …
        seed: The same seed gives the same data.
        predictions: One of ``PREDICTIONS``; empty: none are written.
    """
    rng = np.random.default_rng(seed)
    for number in range(1, cases + 1):
        case = f"VID{number:02d}"
        positive = walk(rng, int(rng.integers(frames[0], frames[1] + 1)))
        bright = look(rng, positive)
        _write_frames(folder / "videos" / case, bright)
        _write_reference(folder / "triplet" / f"{case}.txt", positive)
        if predictions:
            own = np.random.default_rng([seed, number])
            scores = PREDICTIONS[predictions](own, positive, bright / 255)
            _write_prediction(folder / "predictions" / f"{case}.json", scores)


def _write_frames(folder: Path, bright: NDArray[np.uint8]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number, blocks in enumerate(bright.reshape(-1, _SIDE, _SIDE), start=1):
        grey = blocks.repeat(_BLOCK, axis=0).repeat(_BLOCK, axis=1)
        Image.fromarray(grey[..., None].repeat(3, axis=2)).save(folder / f"{number:06d}.png")


def _write_reference(path: Path, positive: Positive) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="ascii") as file:
        for number, row in enumerate(positive.astype(int).tolist(), start=1):
            file.write(f"{number},{','.join(map(str, row))}\n")


def _write_prediction(path: Path, scores: Scores) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = enumerate(scores.round(4).tolist(), start=1)
    path.write_text(json.dumps({f"{number:06d}": {"recognition": row} for number, row in rows}), encoding="ascii")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Make public data of CholecTriplet's form.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cases", type=int, default=5)
    parser.add_argument("--frames", type=int, nargs=2, default=(100, 200), metavar=("LEAST", "MOST"))
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--predictions", choices=sorted(PREDICTIONS), default="")
    given = parser.parse_args()
    generate(
        given.folder, cases=given.cases, frames=(given.frames[0], given.frames[1]), seed=given.seed,
        predictions=given.predictions,
    )  # fmt: skip


if __name__ == "__main__":
    main()
