"""Makes public data of PETRAW's form: sequences whose video and kinematics give their labels away, but not quite.

A sequence carries blocks from left to right and then back; each block is a series of verbs of the giving and the taking
hand. The four quarters of a picture stand for phase, step, left verb and right verb, each in the colour of its label,
moved at random. Of the 28 kinematic values the positions of both hands stand for the step, the others for the verb of
their hand. Colours and means never change, so a method can have them built in; the nearest is right for most single
frames but not for all. Nothing here is the movement of an instrument.

    python challenges/petraw2021/generate.py OUT --cases 3 --seconds 4 6 --size 64 36 --seed 3
    python challenges/petraw2021/generate.py OUT --cases 60 --seconds 120 160 --size 1920 1080 --seed 3
"""

import argparse
import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

Labels = NDArray[np.int64]
Values = NDArray[np.float64]

FPS = 30
NAMES: Mapping[str, tuple[str, ...]] = {
    "Phase": ("Idle", "Transfer Left to Right", "Transfer Right to Left"),
    "Step": (
        *(f"Block {block} L2R" for block in range(1, 7)),
        *(f"Block {block} R2L" for block in range(1, 7)),
        "Idle",
    ),
    "Verb_Left": ("Catch", "Drop", "Extract", "Hold", "Idle", "Insert", "Touch"),
    "Verb_Right": ("Catch", "Drop", "Extract", "Hold", "Idle", "Insert", "Touch"),
}
"""Names of the labels by column; label k is the k-th of them."""

COLOURS: Values = np.array(
    [
        (200, 60, 60), (60, 200, 60), (60, 60, 200), (200, 200, 60), (200, 60, 200), (60, 200, 200), (205, 205, 205),
        (130, 130, 40), (130, 40, 130), (40, 130, 130), (215, 130, 130), (130, 215, 130), (60, 60, 60),
    ],
    dtype=np.float64,
)  # fmt: skip
"""Mean colour of a quarter, red, green, blue, by its label."""

SPREAD = 40.0
"""Standard deviation of a quarter's colour around its label's, in each channel."""

MOTION = tuple(
    f"{hand}_{value}"
    for hand in ("Left", "Right")
    for value in (
        "Position_X", "Position_Y", "Position_Z", "Rotation_X", "Rotation_Y", "Rotation_Z", "Rotation_W", "Aperture",
        "Velocity_X", "Velocity_Y", "Velocity_Z", "Angular_Velocity_X", "Angular_Velocity_Y", "Angular_Velocity_Z",
    )
)  # fmt: skip
"""Names of the 28 kinematic values."""

MOTION_OF: Mapping[str, tuple[tuple[int, ...], Values]] = {
    "Step": ((0, 1, 2, 14, 15, 16), np.random.default_rng(13).normal(0.0, 2.0, (13, 6))),
    "Verb_Left": (tuple(range(3, 14)), np.random.default_rng(7).normal(0.0, 1.0, (7, 11))),
    "Verb_Right": (tuple(range(17, 28)), np.random.default_rng(8).normal(0.0, 1.0, (7, 11))),
}
"""By column of labels: which of the 28 values stand for it, and their means by label."""

JITTER = 1.5
"""Standard deviation of a kinematic value around its mean."""

TASKS = ("video", "kinematics", "segmentation", "video_kinematics", "all")

_IDLE_STEP = 12
_PHASE_OF_STEP = np.repeat([1, 2, 0], [6, 6, 1])
_IDLE_VERB = 4
# What the giving and the taking hand do with a block, as numbers of verbs.
_ACTIONS = ((6, 4), (0, 4), (2, 4), (3, 6), (3, 0), (1, 3), (4, 3), (4, 5), (4, 1))
_FRAMES_A_BLOCK = 75
_REMEMBERED = 5


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """One sequence.

    Attributes:
        labels: By column, shape ``(frames,)``.
        colours: Of the quarters, in the order of the columns, shape ``(frames, 4, 3)``.
        motion: The kinematic values, shape ``(frames, 28)``.
    """

    labels: Mapping[str, Labels]
    colours: Values
    motion: Values


def draw(rng: np.random.Generator, frames: int) -> Drawn:
    """Draw the labels of one sequence, and what gives them away."""
    labels = _labels(rng, frames)
    colours = np.stack([COLOURS[column] for column in labels.values()], axis=1)
    colours = np.clip(colours + rng.normal(0.0, SPREAD, colours.shape), 0, 255)
    motion = rng.normal(0.0, JITTER, (frames, len(MOTION)))
    for name, (places, means) in MOTION_OF.items():
        motion[:, places] += means[labels[name]]
    return Drawn(labels=labels, colours=colours, motion=np.round(motion, 3))


def _labels(rng: np.random.Generator, frames: int) -> Mapping[str, Labels]:
    """Draw steps and verbs as spans of random length; the phase follows from the step."""
    blocks = min(6, max(1, frames // (2 * _FRAMES_A_BLOCK)))
    idle = (_IDLE_STEP, _IDLE_VERB, _IDLE_VERB)
    spans = [idle]
    for direction in (0, 1):
        for block in rng.permutation(6)[:blocks].tolist():
            spans += [(6 * direction + block, *verbs[:: -1 if direction else 1]) for verbs in _ACTIONS]
            if rng.random() < 0.3:
                spans.append(idle)
        spans.append(idle)
    ends = np.cumsum(rng.gamma(4.0, size=len(spans)))
    span = np.searchsorted(ends / ends[-1], (np.arange(frames) + 0.5) / frames)
    steps, left, right = np.array(spans, dtype=np.int64)[span].T
    return {"Phase": _PHASE_OF_STEP[steps], "Step": steps, "Verb_Left": left, "Verb_Right": right}


def nearest(drawn: Drawn, inputs: Sequence[str], *, remembered: int = 1) -> Mapping[str, Labels]:
    """Guess every label by the nearest colours, the nearest means, or both together.

    Args:
        drawn: The sequence; only its colours and its motion are looked at.
        inputs: ``video``, ``kinematics``, or both.
        remembered: How many frames, this one and those before it, a guess looks at.
    """
    guess = {}
    for place, name in enumerate(NAMES):
        distance = np.zeros((len(drawn.motion), len(NAMES[name])))
        if "video" in inputs:
            distance += _squared(drawn.colours[:, place], COLOURS[: len(NAMES[name])]) / SPREAD**2
        if "kinematics" in inputs:
            distance += _motion_distance(drawn.motion, name) / JITTER**2
        total = np.cumsum(distance, axis=0)
        total[remembered:] -= total[:-remembered].copy()
        guess[name] = total.argmin(axis=1)
    return guess


def _motion_distance(motion: Values, name: str) -> Values:
    """Squared distance from the means of each label; a phase is as near as the nearest of its steps."""
    places, means = MOTION_OF["Step" if name == "Phase" else name]
    distance = _squared(motion[:, places], means)
    if name != "Phase":
        return distance
    return np.stack([distance[:, phase == _PHASE_OF_STEP].min(axis=1) for phase in range(3)], axis=1)


def _squared(values: Values, means: Values) -> Values:
    found: Values = ((values[:, None] - means) ** 2).sum(axis=2)
    return found


def guesses(drawn: Drawn) -> Mapping[str, Mapping[str, Labels]]:
    """Predictions by task: the nearest for what each is given; segmentation leaves the step out, all remembers."""
    video, both = nearest(drawn, ["video"]), ["video", "kinematics"]
    return {
        "video": video,
        "kinematics": nearest(drawn, ["kinematics"]),
        "segmentation": {name: labels for name, labels in video.items() if name != "Step"},
        "video_kinematics": nearest(drawn, both),
        "all": nearest(drawn, both, remembered=_REMEMBERED),
    }


def generate(
    folder: Path,
    *,
    cases: int,
    seconds: tuple[float, float],
    size: tuple[int, int],
    seed: int,
    predictions: Sequence[str] = (),
) -> None:
    """Write ``videos/<case>.mp4``, ``kinematics/<case>.tsv`` and ``references/<case>.txt``.

    Args:
        folder: Where to; made if it is missing.
        cases: How many; they are named 001, 002, …
        seconds: The shortest and the longest case.
        size: Width and height of the video, each even.
        seed: The same seed gives the same tables and pictures.
        predictions: Tasks of which ``predictions/<task>/<case>.txt`` is written too, as ``guesses`` makes them.
    """
    rng = np.random.default_rng(seed)
    for number in range(1, cases + 1):
        case = f"{number:03d}"
        drawn = draw(rng, max(1, round(float(rng.uniform(*seconds)) * FPS)))
        _write_video(folder / "videos" / f"{case}.mp4", drawn.colours, size, rng)
        motion = ([f"{value:.3f}" for value in row] for row in drawn.motion.tolist())
        _write_table(folder / "kinematics" / f"{case}.tsv", MOTION, motion)
        _write_labels(folder / "references" / f"{case}.txt", drawn.labels)
        guessed = guesses(drawn) if predictions else {}
        for task in predictions:
            _write_labels(folder / "predictions" / task / f"{case}.txt", guessed[task])


def paint(colours: Values, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Draw one small picture of four quarters, shape ``(18, 32, 3)``."""
    quarters = colours.reshape(2, 2, 3).repeat(9, axis=0).repeat(16, axis=1)
    grain = rng.integers(-12, 13, (18, 32, 3))
    picture: NDArray[np.uint8] = np.clip(np.rint(quarters + grain), 0, 255).astype(np.uint8)
    return picture


def _write_video(path: Path, colours: Values, size: tuple[int, int], rng: np.random.Generator) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    width, height = size
    with av.open(str(path), "w") as container:
        # Any FFmpeg has this codec; a fixed range of quantisers keeps the colours at any size.
        stream = container.add_stream("mpeg4", rate=FPS, options={"qmin": "2", "qmax": "4"})
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        stream.thread_count = 1
        for one in colours:
            small = av.VideoFrame.from_ndarray(paint(one, rng), format="rgb24")
            picture = small.reformat(width=width, height=height, format="yuv420p", interpolation="POINT")
            container.mux(stream.encode(picture))
        container.mux(stream.encode())


def _write_labels(path: Path, labels: Mapping[str, Labels]) -> None:
    columns = [np.array(NAMES[name])[ids].tolist() for name, ids in labels.items()]
    rows = zip(*columns, strict=True)
    _write_table(path, ("Frame", *labels), ([str(frame), *row] for frame, row in enumerate(rows)))


def _write_table(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Make public data of PETRAW's form.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cases", type=int, default=3)
    parser.add_argument("--seconds", type=float, nargs=2, default=(4.0, 6.0), metavar=("LEAST", "MOST"))
    parser.add_argument("--size", type=int, nargs=2, default=(64, 36), metavar=("WIDTH", "HEIGHT"))
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--predictions", nargs="+", default=(), choices=TASKS, metavar="TASK")
    given = parser.parse_args()
    generate(
        given.folder, cases=given.cases, seconds=(given.seconds[0], given.seconds[1]),
        size=(given.size[0], given.size[1]), seed=given.seed, predictions=given.predictions,
    )  # fmt: skip


if __name__ == "__main__":
    main()
