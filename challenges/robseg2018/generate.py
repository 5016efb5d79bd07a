"""Makes public data of the form of the 2018 Robotic Scene Segmentation: objects nearly in the colours of their classes.

A sequence has some objects, ellipses that drift over the background; an object is missing in some frames. In the left
image each is drawn in the colour of its class, moved at random from frame to frame, and a few pixels off its label; the
right image is shifted by a fixed disparity. The nearest colour is the right class for most objects, but not for all:
clamps and the ultrasound probe have almost the same.

    python challenges/robseg2018/generate.py OUT --cases 1 --frames 300 300 --seed 7 --predictions seen
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

COLOURS = (
    (0, 0, 0), (0, 255, 0), (0, 255, 255), (125, 255, 12), (255, 55, 0), (24, 55, 125), (187, 155, 25), (0, 255, 125),
    (255, 255, 125), (123, 15, 175), (124, 155, 5), (12, 255, 141),
)  # fmt: skip
"""Colour of each class, red, green, blue."""

SPREAD = 30.0
"""Standard deviation of an object's colour around its class's, in each channel."""

WIDTH, HEIGHT = 1280, 1024
SUCTION = 9
_OFF = (3, 5)
_DISPARITY = 24
_OBJECTS = 6
_SEEN = 0.85
_FILTERED = 1  # zlib's strategy: as small here, in two thirds of the time
_CALIBRATION = """\
# Made up: pinhole cameras, in pixels; the right one is moved along x, in mm.
focal_length: 1080 1080
principal_point: 640 512
baseline: 4.4
"""
Labels = NDArray[np.uint8]
Colours = NDArray[np.uint8]


@dataclass(frozen=True, kw_only=True)
class Frame:
    """One frame.

    Attributes:
        layers: The object of each pixel, 0 for the background, shape ``(1024, 1280)``.
        classes: Class of each object, shape ``(objects,)``.
        colours: Its colour in the images, shape ``(objects, 3)``.
    """

    layers: Labels
    classes: Labels
    colours: Colours

    @property
    def labels(self) -> Labels:
        """The reference."""
        return self.classes[self.layers]

    @property
    def left(self) -> Colours:
        """The left image, shape ``(1024, 1280, 3)``."""
        return self.colours[self._drawn]

    @property
    def right(self) -> Colours:
        """The right image."""
        return np.roll(self.left, -_DISPARITY, axis=1)

    @property
    def seen(self) -> Labels:
        """The class of the nearest colour of the left image."""
        squared = ((self.colours[:, None].astype(int) - np.array(COLOURS)) ** 2).sum(axis=2)
        nearest: Labels = squared.argmin(axis=1).astype(np.uint8)
        return nearest[self._drawn]

    @property
    def _drawn(self) -> Labels:
        return np.roll(self.layers, _OFF, axis=(0, 1))


class Scene:
    """The objects of one sequence; ``frame`` draws the next one."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        kinds = rng.permutation(np.arange(1, len(COLOURS)))[:_OBJECTS]
        self._classes = np.concatenate([[0], kinds]).astype(np.uint8)
        self._centres = rng.uniform((0, 0), (HEIGHT, WIDTH), (_OBJECTS, 2))
        self._radii = np.sort(rng.uniform(40, 320, (_OBJECTS, 2)), axis=0)[::-1]
        self._drift = rng.normal(0, 4, (_OBJECTS, 2))

    def frame(self) -> Frame:
        """Draw the next frame."""
        layers = np.zeros((HEIGHT, WIDTH), dtype=np.uint8)
        there = self._rng.random(_OBJECTS) < _SEEN
        for number in np.flatnonzero(there).tolist():
            _ellipse(layers, self._centres[number], self._radii[number], value=number + 1)
        self._centres = (self._centres + self._drift) % (HEIGHT, WIDTH)
        moved = np.array(COLOURS)[self._classes] + self._rng.normal(0, SPREAD, (len(self._classes), 3))
        colours = np.clip(np.rint(moved), 0, 255).astype(np.uint8)
        return Frame(layers=layers, classes=self._classes, colours=colours)


def _ellipse(layers: Labels, centre: NDArray[np.float64], radii: NDArray[np.float64], *, value: int) -> None:
    begin = np.maximum(np.floor(centre - radii), 0).astype(int)
    end = np.minimum(np.ceil(centre + radii) + 1, (HEIGHT, WIDTH)).astype(int)
    rows, columns = np.ogrid[begin[0] : end[0], begin[1] : end[1]]
    inside = ((rows - centre[0]) / radii[0]) ** 2 + ((columns - centre[1]) / radii[1]) ** 2 <= 1
    layers[begin[0] : end[0], begin[1] : end[1]][inside] = value


PREDICTIONS: dict[str, Callable[[Frame], Labels]] = {
    "seen": lambda frame: frame.seen,
    "perfect": lambda frame: frame.labels,
    "worst": lambda frame: np.full_like(frame.layers, SUCTION),
    "turned": lambda frame: np.rot90(frame.seen, 2),
}
"""Predictions of a frame by name: the nearest colour; the reference itself; nothing but a class that is not scored; the
nearest colour, upside down."""


def generate(folder: Path, *, cases: int, frames: tuple[int, int], seed: int, predictions: str = "") -> None:
    """Write ``sequences/<case>/``, ``labels/<case>/`` and, where asked for, ``predictions/<case>/``.

    Args:
        folder: Where to; made if it is missing.
        cases: How many sequences; they are named seq_1, seq_2, …
        frames: The least and the most frames of one; they are named frame000, frame001, …
        seed: The same seed gives the same data.
        predictions: One of ``PREDICTIONS``; empty: none are written.
    """
    rng = np.random.default_rng(seed)
    for number in range(1, cases + 1):
        case = f"seq_{number}"
        scene = Scene(rng)
        for count in range(int(rng.integers(frames[0], frames[1] + 1))):
            frame, name = scene.frame(), f"frame{count:03d}.png"
            _save(folder / "sequences" / case / "left_frames" / name, frame.left)
            _save(folder / "sequences" / case / "right_frames" / name, frame.right)
            _save(folder / "labels" / case / name, _coloured(frame.labels))
            if predictions:
                _save(folder / "predictions" / case / name, _coloured(PREDICTIONS[predictions](frame)))
        (folder / "sequences" / case / "camera_calibration.txt").write_text(_CALIBRATION, encoding="ascii")


def _coloured(labels: Labels) -> Colours:
    return np.array(COLOURS, dtype=np.uint8)[labels]


def _save(path: Path, image: Colours) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(image).save(path, compress_type=_FILTERED)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Make public data of the form of the 2018 Robotic Scene Segmentation.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cases", type=int, default=2)
    parser.add_argument("--frames", type=int, nargs=2, default=(3, 3), metavar=("LEAST", "MOST"))
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--predictions", choices=sorted(PREDICTIONS), default="")
    given = parser.parse_args()
    generate(
        given.folder, cases=given.cases, frames=(given.frames[0], given.frames[1]), seed=given.seed,
        predictions=given.predictions,
    )  # fmt: skip


if __name__ == "__main__":
    main()
