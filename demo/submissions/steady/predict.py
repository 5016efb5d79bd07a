"""Remembers how likely each step was, and changes its mind on good evidence only: a forward filter.

What it answers for a frame depends on that frame and those before it.
"""

import csv
import math
import sys
from pathlib import Path

from PIL import Image, ImageStat

Colour = tuple[float, ...]

# Mean colour of a frame by step, from the public sample.
COLOURS: dict[int, Colour] = {
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


def mean_colour(frame: Path) -> Colour:
    with Image.open(frame) as image:
        return tuple(ImageStat.Stat(image.convert("RGB")).mean)


def distance(one: Colour, other: Colour) -> float:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


SPREAD = 30.0  # of a frame's mean colour around its step's, a standard deviation
STAYS = 0.9  # how likely a step goes on for another second


def likelihood(colour: Colour, step: int) -> float:
    return math.exp(-distance(colour, COLOURS[step]) / (2 * SPREAD**2)) + 1e-12


def predict(colours: list[Colour]) -> list[int]:
    steps = []
    belief = dict.fromkeys(COLOURS, 1 / len(COLOURS))
    for colour in colours:
        weight = {
            step: (STAYS * belief[step] + (1 - STAYS) / len(COLOURS)) * likelihood(colour, step) for step in COLOURS
        }
        total = sum(weight.values())
        belief = {step: value / total for step, value in weight.items()}
        steps.append(max(belief, key=belief.__getitem__))
    return steps


def main() -> None:
    folder, output = map(Path, sys.argv[1:])
    steps = predict([mean_colour(frame) for frame in sorted(folder.glob("*.png"))])
    with output.open("w", newline="") as sink:
        rows = csv.writer(sink, lineterminator="\n")
        rows.writerow(("int_time", "int_step"))
        rows.writerows(enumerate(steps))


main()
