"""Reads any long table of scores, a row for each team and case, into one complete or incomplete table a task."""

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from runner.errors import UsageError
from runner.ranking.table import ScoreTable

_WHOLE = "all"


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Names of the columns.

    Attributes:
        task: Which task; a table without it is one task.
        case: Which case.
        team: Who is ranked.
        value: The score; empty where there is none.
        metric: Which metric; a table without it has one.
    """

    task: str = "task"
    case: str = "case"
    team: str = "team"
    value: str = "value"
    metric: str = "metric"


def read_long_table(path: Path, columns: Columns, *, metric: str | None = None) -> Mapping[str, ScoreTable]:
    """Read a CSV file.

    Args:
        path: The file, with a header.
        columns: What its columns are called.
        metric: Which metric is ranked; None: the only one there is.

    Returns:
        A table a task, in the order of the file; NaN where a team has no value for a case.

    Raises:
        UsageError: The file is missing or says something that cannot be; names the line.
    """
    values: dict[str, dict[tuple[str, str], float]] = {}
    for line, row in _chosen(_rows(path, columns), columns, metric, path):
        task = row.get(columns.task) or _WHOLE
        key = (row[columns.team], row[columns.case])
        found = values.setdefault(task, {})
        if key in found:
            raise UsageError(
                f"team {key[0]!r} has two values for case {key[1]!r} of task {task!r}",
                where=f"{path}, line {line}",
                remedy="leave one row a team and case; the column names are options: --team, --case, --value, --task",
            )
        found[key] = _number(row[columns.value], path, line)
    if not values:
        raise UsageError("the table has no row", where=str(path), remedy="give a table with a row a team and case")
    return {task: _table(found) for task, found in values.items()}


def metrics_of(path: Path, columns: Columns) -> tuple[str, ...]:
    """The metrics a table holds, in its order; none where it has no column that says.

    Raises:
        UsageError: As ``read_long_table``.
    """
    return tuple(dict.fromkeys(row[columns.metric] for _, row in _rows(path, columns) if columns.metric in row))


Frames = Mapping[str, Mapping[str, NDArray[np.float64]]]
"""By team and case, a value a frame, in the order of the frames."""


def read_frames(path: Path, columns: Columns, frame: str, *, metric: str | None = None) -> Mapping[str, Frames]:
    """Read a CSV file with a row for each frame of each team and case.

    Args:
        path: The file, with a header.
        columns: What its columns are called.
        frame: The column of the frame's number: whole numbers without a gap, from whichever the case begins with.
        metric: Which metric is read; None: the only one there is.

    Returns:
        The frames by task, in the order of the file.

    Raises:
        UsageError: The file is missing or says something that cannot be; names the line, or the team and case.
    """
    values: dict[str, dict[str, dict[str, dict[int, float]]]] = {}
    for line, row in _chosen(_rows(path, columns, also=(frame,)), columns, metric, path):
        task = row.get(columns.task) or _WHOLE
        found = values.setdefault(task, {}).setdefault(row[columns.team], {}).setdefault(row[columns.case], {})
        number = _frame(row[frame], path, line)
        if number in found:
            raise UsageError(
                f"team {row[columns.team]!r} has two values for frame {number} of case {row[columns.case]!r}",
                where=f"{path}, line {line}",
                remedy="leave one row a team, case and frame",
            )
        found[number] = _number(row[columns.value], path, line)
        if math.isnan(found[number]):
            raise UsageError(
                f"frame {number} has no value", where=f"{path}, line {line}", remedy="leave out the whole case instead"
            )
    if not values:
        raise UsageError("the table has no row", where=str(path), remedy="give a table with a row a frame")
    return {
        task: {
            team: {case: _without_gap(frames, team, case, path) for case, frames in cases.items()}
            for team, cases in teams.items()
        }
        for task, teams in values.items()
    }


def _frame(text: str, path: Path, line: int) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise UsageError(
            f"{text!r} is not the number of a frame", where=f"{path}, line {line}", remedy="write a whole number"
        ) from error


def _without_gap(frames: Mapping[int, float], team: str, case: str, path: Path) -> NDArray[np.float64]:
    numbers = sorted(frames)
    for before, after in pairwise(numbers):
        if after != before + 1:
            raise UsageError(
                f"team {team!r} has no value for frame {before + 1} of case {case!r}",
                where=str(path),
                remedy="give a row for every frame",
            )
    return np.array([frames[number] for number in numbers])


def case_means(frames: Frames) -> ScoreTable:
    """The mean over the frames of each case, as a table; NaN where a team has no such case."""
    return _table(
        {(team, case): float(values.mean()) for team, cases in frames.items() for case, values in cases.items()}
    )


def _rows(path: Path, columns: Columns, *, also: tuple[str, ...] = ()) -> list[tuple[int, dict[str, str]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as source:
            reader = csv.DictReader(source)
            names = reader.fieldnames or ()
            for needed in (columns.team, columns.case, columns.value, *also):
                if needed not in names:
                    raise UsageError(
                        f"there is no column {needed!r}; there are {', '.join(map(repr, names)) or 'none'}",
                        where=f"{path}, line 1",
                        remedy="name the columns: --team NAME --case NAME --value NAME",
                    )
            rows = [(reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"the table cannot be read: {error}", where=str(path), remedy="give a CSV file") from error
    for line, row in rows:
        if None in row or None in row.values():
            raise UsageError(
                f"the row has not as many fields as the header has names, {len(names)}",
                where=f"{path}, line {line}",
                remedy="mend that row",
            )
    return rows


def _chosen(
    rows: list[tuple[int, dict[str, str]]], columns: Columns, metric: str | None, path: Path
) -> list[tuple[int, dict[str, str]]]:
    if not rows or columns.metric not in rows[0][1]:
        return rows
    names = list(dict.fromkeys(row[columns.metric] for _, row in rows))
    if metric is None and len(names) > 1:
        raise UsageError(
            f"the table holds {len(names)} metrics: {', '.join(names)}", where=str(path), remedy="choose one: --metric"
        )
    if metric is not None and metric not in names:
        raise UsageError(
            f"there is no metric {metric!r}; there are {', '.join(names)}", where=str(path), remedy="choose one of them"
        )
    return [(line, row) for line, row in rows if metric is None or row[columns.metric] == metric]


def _number(text: str, path: Path, line: int) -> float:
    if not text.strip() or text.strip().upper() in ("NA", "NAN"):
        return math.nan
    try:
        value = float(text)
    except ValueError:
        value = math.inf
    if math.isinf(value):
        raise UsageError(
            f"{text!r} is not a finite number", where=f"{path}, line {line}", remedy="leave a missing value empty"
        )
    return value


def _table(values: Mapping[tuple[str, str], float]) -> ScoreTable:
    teams = tuple(dict.fromkeys(team for team, _ in values))
    cases = tuple(dict.fromkeys(case for _, case in values))
    matrix = np.full((len(teams), len(cases)), np.nan)
    for (team, case), value in values.items():
        matrix[teams.index(team), cases.index(case)] = value
    return ScoreTable.of(teams, cases, matrix)
