"""Makes public data of PitVis' form: a folder of cases whose frames give their step away, but not quite.

A case is a walk through the steps, each held for a while; out of patient (-1) and the steps that are not evaluated
(11, 13) come up in places. A frame is a small PNG in the colour of its step, moved at random. The colours never
change, so a method can have them built in; the movement is such that the nearest colour is right for most single
frames but not for all, and a method that remembers the past does better. The instruments are mostly those that are
usual for the step, and change only where it does.

    python challenges/pitvis2023/generate.py OUT --cases 4 --frames 60 90 --seed 7
"""

import argparse
import csv
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

COLOURS: dict[int, tuple[int, int, int]] = {
    -1: (40, 40, 40),
    1: (200, 60, 60),
    2: (60, 200, 60),
    3: (60, 60, 200),
    4: (200, 200, 60),
    5: (200, 60, 200),
    6: (60, 200, 200),
    7: (205, 205, 205),
    8: (130, 130, 40),
    9: (130, 40, 130),
    10: (40, 130, 130),
    11: (215, 130, 130),
    12: (130, 215, 130),
    13: (130, 130, 215),
    14: (130, 130, 130),
}
"""Mean colour of a frame, red, green, blue, by its step; step 0 does not occur."""

SPREAD = 20.0
"""Standard deviation of a frame's mean colour around its step's, in each channel."""

USUAL: dict[int, tuple[int, int]] = {step: ((5 * step + 3) % 19, (7 * step + 1) % 19) for step in COLOURS if step > 0}
"""The two instruments that are usual in a step."""

_WIDTH, _HEIGHT = 64, 36
_SHORTEST, _TYPICAL = 6, 14
_SEGMENTS = 25
_INSTRUMENTS = 19
Labels = NDArray[np.int64]


def walk(rng: np.random.Generator, frames: int) -> Labels:
    """Draw the steps of one case, shape ``(frames,)``."""
    typical = max(_TYPICAL, frames // _SEGMENTS)
    found: list[int] = [-1] * int(rng.integers(0, 5))
    step = int(rng.integers(1, 11))
    while len(found) < frames:
        found += [step] * (_SHORTEST + int(rng.geometric(1 / (typical - _SHORTEST))))
        if rng.random() < 0.12:
            found += [-1] * int(rng.integers(2, 6))
        step = (step - 1 + int(rng.choice([1, 2, 3, 13], p=[0.6, 0.2, 0.1, 0.1]))) % 14 + 1
    return np.array(found[:frames], dtype=np.int64)


def paint(rng: np.random.Generator, step: int) -> NDArray[np.uint8]:
    """Draw one frame of a step, shape ``(36, 64, 3)``."""
    colour = np.array(COLOURS[step]) + rng.normal(0.0, SPREAD, 3)
    grain = rng.integers(-12, 13, (_HEIGHT // 2, _WIDTH // 2, 3)).repeat(2, axis=0).repeat(2, axis=1)
    return np.clip(np.rint(colour + grain), 0, 255).astype(np.uint8)


def generate(folder: Path, *, cases: int, frames: tuple[int, int], seed: int) -> None:
    """Write ``inputs/<case>/<frame>.png`` and ``references/<case>.csv``.

    Args:
        folder: Where to; made if it is missing.
        cases: How many; they are named 01, 02, …
        frames: The least and the most frames of a case, one a second.
        seed: The same seed gives the same bytes.
    """
    rng = np.random.default_rng(seed)
    (folder / "references").mkdir(parents=True, exist_ok=True)
    for number in range(1, cases + 1):
        steps = walk(rng, int(rng.integers(frames[0], frames[1] + 1)))
        inputs = folder / "inputs" / f"{number:02d}"
        inputs.mkdir(parents=True, exist_ok=True)
        for time, step in enumerate(steps.tolist()):
            Image.fromarray(paint(rng, step)).save(inputs / f"{time:05d}.png")
        _write_reference(folder / "references" / f"{number:02d}.csv", number, steps, rng)


def _write_reference(path: Path, video: int, steps: Labels, rng: np.random.Generator) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["int_video", "int_time", "int_step", "int_instrument1", "int_instrument2"])
        instruments = (-1, -2)
        for time, step in enumerate(steps.tolist()):
            drawn = _draw_instruments(rng, step)
            if time == 0 or step != steps[time - 1]:
                instruments = drawn
            writer.writerow([video, time, step, *instruments])


def _draw_instruments(rng: np.random.Generator, step: int) -> tuple[int, int]:
    """Draw the two instruments of a frame: mostly the usual ones, and mostly no second."""
    if step == -1:
        return -1, -2
    chosen = int(rng.integers(0, _INSTRUMENTS))
    first = USUAL[step][0] if chosen > 5 else chosen
    if chosen > 0 and rng.random() < 0.3:
        second = int(rng.integers(0, _INSTRUMENTS))
        return first, USUAL[step][1] if second > 5 else second
    return first, -2


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Make public data of PitVis' form.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cases", type=int, default=4)
    parser.add_argument("--frames", type=int, nargs=2, default=(60, 90), metavar=("LEAST", "MOST"))
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    generate(given.folder, cases=given.cases, frames=(given.frames[0], given.frames[1]), seed=given.seed)


if __name__ == "__main__":
    main()
