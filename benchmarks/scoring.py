"""What scores cost, ours and other packages' in one run on the same data.

Peers and ours take turns where both are quick; a peer that takes minutes runs once. Times are medians in seconds of the
processor, so that other work on the machine does not count; from PNG, with several processes, of the clock. Memory is
the peak above the input in megabytes (ours by tracemalloc, in a run of its own; ivtmetrics' by its process).
"Plain" is the joint histogram as it is written first: ``np.bincount(g * K + p, minlength=K * K)`` on int64, a frame at
a time, then IoU from its rows, columns and diagonal.
"""

import argparse
import concurrent.futures
import dataclasses
import functools
import io
import json
import os
import statistics
import subprocess
import tempfile
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from sklearn.metrics import jaccard_score

from runner.scoring.metrics import (
    AveragedOver,
    Between,
    Forgiving,
    Labels,
    MaskCounter,
    Measure,
    Palette,
    Sets,
    TransitionType,
    Undefined,
    delay_scores,
    edit_score,
    frame_overlap,
    joint_histogram,
    mean_over_frames,
    mean_precision,
    segments,
    video_precision,
)
from tools.peers import IVTMETRICS, peer_python

HERE = Path(__file__).parent
CLASSES = 10
Masks = list[NDArray[np.uint8]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    """One job: ours, a peer or none, and the bar it has to reach, as text and as found."""

    job: str
    ours_s: float
    peer: str
    peer_s: float | None
    ratio: float | None
    bar: str
    met: bool | None
    ours_mb: float | None = None
    peer_mb: float | None = None


def alternate(
    runs: int, *functions: Callable[[], object], clock: Callable[[], float] = time.process_time
) -> list[float]:
    """The median time of each function, one run each in turn."""
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(runs):
        for function, found in zip(functions, times, strict=True):
            began = clock()
            function()
            found.append(clock() - began)
    return [statistics.median(found) for found in times]


def peak_mb(function: Callable[[], object]) -> float:
    """The most memory that was allocated at once while it ran."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1] / 2**20
    finally:
        tracemalloc.stop()


# Average precision: 100 classes in videos, about two positives a frame.


def scored_videos(frames: int, videos: int, rng: np.random.Generator) -> list[tuple[Sets, NDArray[np.float64]]]:
    """Frequencies fall from class to class, as in the real ones; scores know a little of the truth."""
    share = np.minimum(1.0, 2.0 * 0.95 ** np.arange(100) / (0.95 ** np.arange(100)).sum())
    made = []
    for _ in range(videos):
        positive = rng.random((frames // videos, 100)) < share
        made.append((positive, np.clip(rng.normal(0.3 + 0.2 * positive, 0.15), 0, 1)))
    return made


def average_precision_rows(frames: int, runs: int) -> Iterator[Row]:
    """All six component levels, and the triplets alone, against ivtmetrics."""
    videos = scored_videos(frames, 5, np.random.default_rng(1))
    with tempfile.TemporaryDirectory() as folder:
        python = peer_python(HERE.parent / "build" / "peers" / "ivtmetrics", IVTMETRICS)
        source, target = Path(folder) / "in.npz", Path(folder) / "out.json"
        arrays: dict[str, Any] = {
            f"all/{number}/{what}": array
            for number, pair in enumerate(videos)
            for what, array in zip(("positive", "score"), pair, strict=True)
        }
        np.savez(source, allow_pickle=False, **arrays)
        peer = [str(python), "-W", "ignore", str(HERE / "peers" / "ivtmetrics_peer.py"), str(source), str(target)]
        subprocess.run([*peer, "--levels-only"], check=True)
        answer = json.loads(target.read_text())
    theirs = answer["cases"]["all"]
    levels: dict[str, list[int]] = answer["levels"]

    def ours(chosen: dict[str, list[int]]) -> dict[str, float]:
        by_video = [video_precision(*video, levels=chosen) for video in videos]
        return {
            level: mean_precision(
                np.stack([found[level] for found in by_video]), classes=None, undefined=Undefined.LEFT_OUT
            ).mean
            for level in chosen
        }

    for level, mean in ours(levels).items():
        assert abs(mean - theirs["mean"][level]) < 1e-12, level
    ivt = {"ivt": levels["ivt"]}
    (six,) = alternate(runs, lambda: ours(levels))
    (one,) = alternate(runs, lambda: ours(ivt))
    memory = peak_mb(lambda: ours(levels))
    seconds = theirs["seconds"]
    yield Row(
        job=f"AP, six levels, {frames} x 100, 5 videos", ours_s=six, peer="ivtmetrics 0.1.5", peer_s=seconds["all"],
        ratio=seconds["all"] / six, bar=">= 60 x, < 400 MB", met=seconds["all"] / six >= 60 and memory < 400,
        ours_mb=memory, peer_mb=theirs["megabytes"],
    )  # fmt: skip
    yield Row(
        job="AP, triplets only", ours_s=one, peer="ivtmetrics 0.1.5", peer_s=seconds["ivt"],
        ratio=seconds["ivt"] / one, bar="", met=None,
    )  # fmt: skip


# Masks.


def regions(count: int, rng: np.random.Generator) -> Masks:
    """Filled ellipses of nine classes, 1280 x 1024, as instruments and organs are: long runs of one label."""
    rows, columns = np.mgrid[:1024, :1280]
    made = []
    for _ in range(count):
        mask = np.zeros((1024, 1280), dtype=np.uint8)
        for label in range(1, CLASSES):
            row, column = rng.integers(100, 900), rng.integers(100, 1150)
            tall, wide = rng.integers(40, 250, 2)
            mask[((rows - row) / tall) ** 2 + ((columns - column) / wide) ** 2 < 1] = label
        made.append(mask)
    return made


def noise(count: int, rng: np.random.Generator) -> Masks:
    """Each pixel a label of its own: the worst case for us, and no mask anybody has."""
    return [rng.integers(0, CLASSES, (1024, 1280)).astype(np.uint8) for _ in range(count)]


def our_mean_iou(references: Masks, predictions: Masks) -> float:
    """Mean IoU over the classes of the reference, then over frames."""
    counter = MaskCounter(classes=CLASSES)
    for reference, prediction in zip(references, predictions, strict=True):
        counter.add(reference, prediction)
    values = frame_overlap(
        counter.counts(),
        classes=range(CLASSES),
        measure=Measure.IOU,
        averaged_over=AveragedOver.REFERENCE,
        undefined=Undefined.FAIL,
    )
    return mean_over_frames(values).value


def plain_mean_iou(references: Masks, predictions: Masks) -> float:
    """The same by the plain joint histogram."""
    means = []
    for reference, prediction in zip(references, predictions, strict=True):
        codes = reference.ravel().astype(np.int64) * CLASSES + prediction.ravel()
        table = np.bincount(codes, minlength=CLASSES * CLASSES).reshape(CLASSES, CLASSES)
        hits, rows, columns = table.diagonal(), table.sum(axis=1), table.sum(axis=0)
        present = rows > 0
        means.append((hits[present] / (rows + columns - hits)[present]).mean())
    return float(np.mean(means))


def sklearn_mean_iou(references: Masks, predictions: Masks) -> float:
    """The same by scikit-learn."""
    means = []
    for reference, prediction in zip(references, predictions, strict=True):
        g, p = reference.ravel(), prediction.ravel()
        means.append(jaccard_score(g, p, labels=np.unique(g), average="macro", zero_division=0))
    return float(np.mean(means))


def shifted(masks: Masks) -> Masks:
    """A prediction: the masks moved by a few pixels."""
    return [np.roll(mask, (7, -5), axis=(0, 1)) for mask in masks]


def mask_rows(count: int, runs: int) -> Iterator[Row]:
    """Mean IoU in memory against the plain joint histogram and scikit-learn."""
    rng = np.random.default_rng(2)
    for name, references in (("regions", regions(count, rng)), ("noise", noise(count, rng))):
        predictions = shifted(references) if name == "regions" else noise(count, rng)
        ours_of = functools.partial(our_mean_iou, references, predictions)
        plain_of = functools.partial(plain_mean_iou, references, predictions)
        expected = plain_of()
        assert abs(ours_of() - expected) < 1e-12
        ours, plain = alternate(runs, ours_of, plain_of)
        memory = peak_mb(ours_of)
        memory_plain = peak_mb(plain_of)
        job = f"mean IoU, {count} masks 1280 x 1024, {name}"
        yield Row(
            job=job, ours_s=ours, peer="plain joint histogram", peer_s=plain, ratio=plain / ours, bar=">= 2 x",
            met=plain / ours >= 2, ours_mb=memory, peer_mb=memory_plain,
        )  # fmt: skip
        if name == "noise":
            continue
        began = time.process_time()
        assert abs(sklearn_mean_iou(references, predictions) - expected) < 1e-12
        theirs = time.process_time() - began
        yield Row(
            job=job, ours_s=ours, peer="scikit-learn jaccard_score", peer_s=theirs, ratio=theirs / ours,
            bar=">= 20 x", met=theirs / ours >= 20,
        )  # fmt: skip


# Masks from PNG, on all processors.

COLOURS = (
    (0, 0, 0), (0, 255, 0), (0, 255, 255), (125, 255, 12), (255, 55, 0), (24, 55, 125), (187, 155, 25), (0, 255, 125),
    (255, 255, 125), (123, 15, 175),
)  # fmt: skip
PNGs = Sequence[tuple[bytes, bytes]]


def decode(files: PNGs) -> int:
    """Pixels only."""
    return sum(np.asarray(Image.open(io.BytesIO(file))).size for pair in files for file in pair)


def decode_and_score(files: PNGs) -> int:
    """Pixels, colours where there are some, and the joint histogram."""
    palette = Palette(COLOURS)
    total = 0
    for pair in files:
        masks = [np.asarray(Image.open(io.BytesIO(file))) for file in pair]
        masks = [palette.decode(mask).labels if mask.ndim == 3 else mask for mask in masks]
        total += int(joint_histogram(masks[0], masks[1], classes=CLASSES).sum())
    return total


def spread(pool: concurrent.futures.Executor, work: Callable[[PNGs], int], parts: Sequence[PNGs]) -> int:
    """Work on each part in a process of its own."""
    return sum(pool.map(work, parts))


def png_rows(count: int, runs: int) -> Iterator[Row]:
    """Decoding and scoring against decoding alone."""
    references = regions(count, np.random.default_rng(3))
    table = np.array(COLOURS, dtype=np.uint8)

    def png(mask: NDArray[np.uint8]) -> bytes:
        file = io.BytesIO()
        Image.fromarray(mask).save(file, "PNG")
        return file.getvalue()

    workers = os.cpu_count() or 1
    with concurrent.futures.ProcessPoolExecutor(workers) as pool:
        for name in ("8-bit", "RGB"):
            painted = [(g, p) if name == "8-bit" else (table[g], table[p]) for g, p in
                       zip(references, shifted(references), strict=True)]  # fmt: skip
            files = [(png(g), png(p)) for g, p in painted]
            parts = [files[number::workers] for number in range(workers)]
            spread(pool, decode_and_score, parts)
            jobs = (functools.partial(spread, pool, work, parts) for work in (decode_and_score, decode))
            both, alone = alternate(runs, *jobs, clock=time.perf_counter)
            bar, met = (">= 0.77 x: scoring adds <= 30 %", alone / both >= 1 / 1.3) if name == "8-bit" else ("", None)
            yield Row(
                job=f"{count} frames from two {name} PNG, {workers} processes", ours_s=both, peer="decoding alone",
                peer_s=alone, ratio=alone / both, bar=bar, met=met,
            )  # fmt: skip


# Sequences.


def workflow(frames: int, kinds: int, rng: np.random.Generator) -> tuple[Labels, Labels]:
    """Segments of 20 to 200 frames, and a prediction that is late or early by up to ten, with some flicker."""
    starts = np.cumsum(rng.integers(20, 200, frames))
    starts = starts[starts < frames]
    labels = rng.integers(0, kinds, starts.size + 1)
    cuts = np.maximum.accumulate(np.clip(starts + rng.integers(-10, 11, starts.size), 0, frames))
    places = np.arange(frames)
    reference = labels[np.searchsorted(starts, places, side="right")]
    prediction = labels[np.searchsorted(cuts, places, side="right")]
    return reference, np.where(rng.random(frames) < 0.01, rng.integers(0, kinds, frames), prediction)


def sequence_rows(runs: int) -> Iterator[Row]:
    """Application-dependent accuracy of a PETRAW-sized test set, and a long edit score."""
    rng = np.random.default_rng(4)
    pairs = [(kinds, *workflow(4200, kinds, rng)) for _ in range(60) for kinds in (3, 13, 7, 7)]
    how = Forgiving(delay=0.25, fps=30, type=TransitionType.PAIR, between=Between.ANY)

    def delays() -> None:
        for kinds, reference, prediction in pairs:
            delay_scores(reference, prediction, labels=range(kinds), forgiving=how, undefined=Undefined.ZERO)

    delays()
    (seconds,) = alternate(runs, delays)
    yield Row(
        job="AD scores, 60 x 4200 frames x 4 components", ours_s=seconds, peer="", peer_s=None, ratio=None,
        bar="< 1 s", met=seconds < 1, ours_mb=peak_mb(delays),
    )  # fmt: skip
    one, other = (np.cumsum(rng.integers(1, 12, 10_000)) % 12 for _ in range(2))
    assert segments(one).size == segments(other).size == 10_000
    (seconds,) = alternate(runs, lambda: edit_score(one, other))
    yield Row(
        job="edit score, 10,000 segments each", ours_s=seconds, peer="", peer_s=None, ratio=None, bar="< 0.05 s",
        met=seconds < 0.05, ours_mb=peak_mb(lambda: edit_score(one, other)),
    )  # fmt: skip


def measure(*, frames: int, masks: int, runs: int) -> Iterator[Row]:
    """All jobs, the quick ones first."""
    yield from sequence_rows(runs)
    yield from mask_rows(masks, runs)
    yield from png_rows(masks, runs)
    yield from average_precision_rows(frames, runs)


def line(row: Row) -> str:
    """A row as text."""
    text = f"{row.job:<56} {row.ours_s:9.4f} s"
    text += f" {row.ours_mb:7.1f} MB" if row.ours_mb is not None else " " * 11
    if row.peer_s is not None:
        memory = f", {row.peer_mb:.0f} MB" if row.peer_mb is not None else ""
        text += f"  {row.peer}: {row.peer_s:.3f} s{memory}, {row.ratio:.2f} x"
    return text + (f"  [{row.bar}: {'met' if row.met else 'NOT MET'}]" if row.bar else "")


def main() -> None:
    """Print the measurement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="runs of ours and of quick peers; the median counts")
    parser.add_argument("--frames", type=int, default=100_000, help="frames of scores; ivtmetrics needs minutes")
    parser.add_argument("--masks", type=int, default=300, help="pairs of masks; 300 take 1.6 GB")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for row in measure(frames=options.frames, masks=options.masks, runs=options.runs):
        rows.append(dataclasses.asdict(row))
        if not options.json:
            print(line(row), flush=True)
    if options.json:
        print(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
