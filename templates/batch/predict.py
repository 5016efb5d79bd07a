"""Predict the step and the instruments of every frame of a video: ``predict.py FOLDER_OF_FRAMES OUTPUT.csv``.

Replace ``predict`` with your method. It is called once a frame, in order, and is never given a later one: a
method written this way cannot look ahead.
"""

import csv
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

# What the example below knows: the mean colour of each step in the public sample, which is invented.
COLOURS = {
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
FAR = 60.0  # further than this from every colour: it is no frame of the sample

OUT_OF_PATIENT = -1
NO_SECOND = -2

State = int
START: State = 1


def predict(image: NDArray[np.uint8], state: State) -> tuple[tuple[int, int, int], State]:
    """Say which step a frame shows, and which instruments.

    Args:
        image: The frame, red, green and blue; shape (height, width, 3).
        state: What the call for the frame before returned, ``START`` for the first. Keep what your method
            must remember here: the last label, the last features, a hidden state.

    Returns:
        Step, first and second instrument, and the state for the next frame.
    """
    colour = image.mean(axis=(0, 1))
    distances = {step: float(np.linalg.norm(colour - known)) for step, known in COLOURS.items()}
    nearest = min(distances, key=distances.__getitem__)
    step = nearest if distances[nearest] < FAR else state
    first, second = (OUT_OF_PATIENT, NO_SECOND) if step == OUT_OF_PATIENT else (0, NO_SECOND)
    return (step, first, second), step


def frames(folder: Path) -> Iterator[NDArray[np.uint8]]:
    """Read the frames one at a time, in order: an hour of video does not fit in memory."""
    names = sorted(folder.glob("*.png"))
    if not names:
        sys.exit(f"error: there are no PNG frames in {folder}")
    for name in names:
        with Image.open(name) as image:
            yield np.asarray(image.convert("RGB"))


def write(path: Path, labels: list[tuple[int, int, int]]) -> None:
    """Write one row a frame; the file gets its name when it is whole."""
    partial = path.with_name(f"{path.name}.partial")
    with partial.open("w", newline="") as sink:
        rows = csv.writer(sink, lineterminator="\n")
        rows.writerow(("int_time", "int_step", "int_instrument1", "int_instrument2"))
        rows.writerows((time, *label) for time, label in enumerate(labels))
    partial.replace(path)


def main() -> None:
    """Read the two arguments, predict frame by frame, write the table."""
    if len(sys.argv) != 3:
        sys.exit("usage: predict.py FOLDER_OF_FRAMES OUTPUT.csv")
    folder, output = map(Path, sys.argv[1:])
    labels, state = [], START
    for image in frames(folder):
        label, state = predict(image, state)
        labels.append(label)
    try:
        write(output, labels)
    except OSError as error:
        sys.exit(f"error: {output} cannot be written: {error.strerror}")
    print(f"wrote {len(labels)} rows")


if __name__ == "__main__":
    main()
