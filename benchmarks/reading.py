"""What it costs to read predictions in confined children, against the plain parser in one run on the same files.

    python benchmarks/reading.py [--json]

Seconds are medians of the clock; the floor reads the same bytes with the standard library and checks nothing.
"""

import argparse
import csv
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from runner.challenge.formats import FrameScoresFormat, FrameTableFormat
from runner.confine import Confine
from runner.formats.contract import Due, Reading, Role
from runner.formats.reading import read_output

VERBS = ("Catch", "Drop", "Extract", "Hold", "Idle", "Insert", "Touch")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One file: seconds it takes us, seconds the plain parser takes, and how many times as long that is."""

    file: str
    seconds: float
    floor: float

    @property
    def ratio(self) -> float:
        """Ours over the floor."""
        return self.seconds / self.floor


def _median(runs: int, action: Callable[[], object]) -> float:
    took = []
    for _ in range(runs):
        began = time.perf_counter()
        action()
        took.append(time.perf_counter() - began)
    return statistics.median(took)


def _table(folder: Path, frames: int, columns: dict[str, object]) -> tuple[FrameTableFormat, Path]:
    rule = FrameTableFormat.model_validate(
        {"kind": "frame_table", "file": "{case}.csv", "index": {"column": "t"}, "columns": columns}
    )
    named = [name for name, column in columns.items() if isinstance(column, dict) and "names" in column]
    path = folder / f"{frames}.csv"
    with path.open("w", newline="") as sink:
        writer = csv.writer(sink, lineterminator="\n")
        writer.writerow(["t", *columns])
        for t in range(frames):
            cells = [VERBS[(t + k) % len(VERBS)] if name in named else t % 14 for k, name in enumerate(columns)]
            writer.writerow([t, *cells])
    return rule, path


def _plain_csv(path: Path) -> int:
    with path.open(newline="") as source:
        return sum(1 for _ in csv.reader(source))


def measure(runs: int, folder: Path) -> Iterator[Row]:
    """Every file in turn."""
    with Confine() as confine:

        def row(what: str, read: Callable[[], Reading], plain: Callable[[], object]) -> Row:
            assert read().prediction is not None
            return Row(file=what, seconds=_median(runs, read), floor=_median(runs, plain))

        for what, frames, columns in (
            ("frame table, 3600 rows, 1 column of numbers", 3600, {"step": {"labels": list(range(14))}}),
            (
                "frame table, 108,000 rows, 4 columns of names",
                108_000,
                {name: {"names": list(VERBS)} for name in ("phase", "step", "left", "right")},
            ),
        ):
            rule, path = _table(folder, frames, dict(columns))
            due = Due(count=frames)
            yield row(
                what,
                lambda rule=rule, path=path, due=due: read_output(  # type: ignore[misc]
                    confine, rule, path, due=due, role=Role.PREDICTION
                ),
                lambda path=path: _plain_csv(path),  # type: ignore[misc]
            )
        scores = np.random.default_rng(5).random((5000, 100))
        path = folder / "scores.json"
        path.write_text(json.dumps({f"{t:06}": {"recognition": list(line)} for t, line in enumerate(scores)}, indent=4))
        scored = FrameScoresFormat.model_validate(
            {"kind": "frame_scores", "file": "{case}.json", "key": "recognition", "classes": 100}
        )
        due = Due(frames=tuple(f"{t:06}.png" for t in range(5000)), count=5000)
        yield row(
            "frame scores, 5000 frames, 100 classes, JSON",
            lambda: read_output(confine, scored, path, due=due, role=Role.PREDICTION),
            lambda: json.loads(path.read_bytes()),
        )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="runs of each; the median counts")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = list(measure(options.runs, Path(folder)))
    if options.json:
        print(json.dumps([{**asdict(row), "ratio": row.ratio} for row in rows]))
        return
    for row in rows:
        print(f"{row.file:50} {row.seconds:8.4f} s  plain parser {row.floor:8.4f} s  {row.ratio:6.2f} x")


if __name__ == "__main__":
    main()
