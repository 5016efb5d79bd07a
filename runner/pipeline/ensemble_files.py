"""What ensembles amount to, kept as values and written beside a run's scores."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from runner.errors import UsageError
from runner.pipeline.publish import show_number
from runner.safe_text import for_csv
from runner.store import read_value, write_value, write_whole
from runner.submissions import Status
from runner.verdict import VerdictWord

JSON_NAME = "ensembles.json"
CSV_NAME = "ensembles.csv"

Weights = tuple[float, ...] | tuple[tuple[float, ...], ...]
"""A number for each member, or for each member one a class."""


@dataclass(frozen=True, kw_only=True)
class EnsembleRow:
    """An ensemble in a task; it takes part outside the competition.

    Attributes:
        name: Method, members and what it was fitted on, in words; the rows of a task have different ones.
        task: Name.
        method: How its members' predictions became one.
        members: Submissions, by name, in the order of the weights.
        fitted_on: Folder name of the run it was fitted on; empty where nothing was fitted.
        seed: For what was drawn; None where nothing was.
        weights: What the members weigh, by column (``scores`` where there are scores, empty where it is for all).
            Nothing where all weigh the same, and for a network.
        values: By metric, the figure over the cases; None where it is not defined.
        cases: By case, the same.
    """

    name: str
    task: str
    method: str
    members: tuple[str, ...]
    fitted_on: str
    seed: int | None
    weights: Mapping[str, Weights]
    values: Mapping[str, float | None]
    cases: Mapping[str, Mapping[str, float | None]]
    status: Status = Status.NON_COMPETING


@dataclass(frozen=True, kw_only=True)
class Ensembles:
    """All ensembles of a run; those of one task are in the order in which they were first made.

    Attributes:
        challenge: Name.
        version: As the organisers number it.
        digest: Of challenge.yaml and the code beside it.
        rows: The ensembles.
    """

    challenge: str
    version: str
    digest: str
    rows: tuple[EnsembleRow, ...]


def require_free(out: Path) -> None:
    """Refuse a folder that holds something.

    Raises:
        UsageError: It does, or it is no folder.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(
            f"{str(out)!r} is there already, and nothing is written over", remedy="give a new folder with --out"
        )


def write_ensembles(folder: Path, made: Ensembles) -> Ensembles:
    """Write ensembles as JSON and as a table, beside those that the folder holds already.

    The table has the columns of ``scores.csv``, so that rows of both can stand in one table for ``proctor rank``. An
    ensemble of the same name in the same task takes the place of the former one.

    Args:
        folder: A run folder, or a new one.
        made: The new ones.

    Returns:
        All that the folder holds now.

    Raises:
        UsageError: What it holds is damaged, or it cannot be made.
        HostFault: It cannot be written.
    """
    _make(folder)
    before = _before(folder / JSON_NAME, made)
    rows = {(row.task, row.name): row for row in (*before, *made.rows)}
    whole = Ensembles(
        challenge=made.challenge, version=made.version, digest=made.digest, rows=tuple(rows.values())
    )  # fmt: skip
    write_value(folder / JSON_NAME, whole)
    write_whole(folder / CSV_NAME, _csv(_lines(whole)))
    return whole


def _make(folder: Path) -> None:
    """Make a folder that nobody else may look into, as a run's: it names hidden cases."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise UsageError(
            f"the folder cannot be made: {error.strerror}", where=str(folder), remedy="give another folder with --out"
        ) from error


def _before(path: Path, made: Ensembles) -> tuple[EnsembleRow, ...]:
    if not path.is_file():
        return ()
    before = read_value(path, Ensembles)
    same = (before.challenge, before.digest) == (made.challenge, made.digest)
    return before.rows if same else ()  # scored by other rules: not to be compared


def _csv(lines: Iterable[Sequence[str]]) -> bytes:
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    for line in lines:
        writer.writerow([for_csv(field) for field in line])
    return sink.getvalue().encode()


def _lines(ensembles: Ensembles) -> Iterable[Sequence[str]]:
    yield ("task", "submission", "team", "status", "case", "verdict", "metric", "value")
    for row in ensembles.rows:
        for case, values in row.cases.items():
            for metric, value in values.items():
                yield (
                    row.task, row.name, row.name, row.status.value, case, VerdictWord.ACCEPTED.value, metric,
                    "" if value is None else show_number(value),
                )  # fmt: skip
