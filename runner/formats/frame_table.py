"""Reads a table with one row a frame, and says of everything that is wrong with it where it stands.

``read_frame_table`` meets the bytes and runs in a confined child; ``confined_read`` is what the rest of the program
calls. Sentences are ours (``frame_rule``): names from challenge.yaml, row numbers, frame numbers. What a container
wrote goes into ``Problem.value`` alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from runner.challenge.formats import FrameTableFormat
from runner.confine import Confine, JsonValue, Reply
from runner.confine.wire import pack
from runner.formats.contract import FrameTable, Reading, Role
from runner.formats.frame_header import Layout, read_header, separator_of
from runner.formats.frame_index import Gaps, check_index
from runner.formats.frame_labels import Labels, read_labels, read_numbers
from runner.formats.frame_rule import CAPS, Fault, is_frame, legal_labels, required_columns, sentences
from runner.formats.lenience import TableLenience
from runner.formats.readers.confined import confined_call, counts_of, garbled, told
from runner.formats.readers.csv_table import (
    parse_integer,
    read_integers,
    read_text,
    split_evenly,
    split_fields,
    split_lines,
)
from runner.formats.readers.file_bytes import in_memory
from runner.formats.readers.opened import read_file
from runner.formats.readers.problems import ProblemList

__all__ = ["Role", "confined_read", "legal_labels", "read_frame_table"]


def read_frame_table(rule: FrameTableFormat, descriptor: int, *, frames: int | None, role: Role) -> Reading:
    """Read a table; to be called in a confined child.

    Args:
        rule: What it must look like.
        descriptor: The file, open for reading.
        frames: How many rows it must have; None where nobody knows.
        role: A reference may hold labels that a prediction may not, and further columns.

    Returns:
        The labels, ``(frames,)`` a column that is there; or the problems, in the order of the file.
    """
    return _read_counted(rule, descriptor, frames=frames, role=role)[0]


def _read_counted(
    rule: FrameTableFormat, descriptor: int, *, frames: int | None, role: Role
) -> tuple[Reading, TableLenience]:
    problems, lenience = ProblemList(), TableLenience.of(rule, frames=frames, role=role)
    table = _read_table(rule, descriptor, frames=frames, role=role, problems=problems, lenience=lenience)
    if table is None or problems.count:
        return Reading(prediction=None, problems=tuple(problems.kept), problem_count=problems.count), lenience
    return Reading(prediction=table, notes=lenience.notes(rule, list(table.columns), table.frames)), lenience


def _read_table(
    rule: FrameTableFormat,
    descriptor: int,
    *,
    frames: int | None,
    role: Role,
    problems: ProblemList,
    lenience: TableLenience,
) -> FrameTable | None:
    text = read_text(descriptor, caps=CAPS, problems=problems)
    if (table := _read_faultless(rule, text, frames, role)) is not None:
        return table
    lines = split_lines(text, caps=CAPS, problems=problems) if text else []
    if not lines:
        return None
    separator = separator_of(rule, lines[0], problems)
    rows = split_fields(lines, separator=separator, caps=CAPS, problems=problems)
    layout = read_header(rule, rows, role, problems)
    cells = _read_cells(rule, layout, role, frames, lenience)
    problems.take(cells.problems)
    if lenience.dropped and not cells.index:
        problems.add(Fault.NO_FRAMES.format(frames=frames))
    elif layout.index is not None:
        gaps = Gaps.REFUSED if lenience.fill is None else Gaps.ALLOWED
        problems.take(check_index(rule.index, cells.index, frames, gaps=gaps))
    if problems.count:
        return None
    columns = {name: np.array(values, dtype=np.int64) for name, values in cells.columns.items()}
    if lenience.fill is not None and frames is not None:
        columns = _filled(rule, cells, columns, frames, lenience)
    return FrameTable(columns=columns)


def _filled(
    rule: FrameTableFormat,
    cells: "_Cells",
    columns: Mapping[str, NDArray[np.int64]],
    frames: int,
    lenience: TableLenience,
) -> dict[str, NDArray[np.int64]]:
    """The columns with a label for each frame; the numbers of the rows are those of different frames, in order."""
    numbers = np.array([number for _, number in cells.index], dtype=np.int64)
    places = (numbers - rule.index.first) // rule.index.step
    lenience.filled = frames - len(places)
    filled = {}
    for name, labels in columns.items():
        assert lenience.fill is not None
        filled[name] = np.full(frames, lenience.fill[name], np.int64)
        filled[name][places] = labels
    return filled


def _read_faultless(rule: FrameTableFormat, text: str, frames: int | None, role: Role) -> FrameTable | None:
    """The short way for a table about which there is nothing to say; says nothing itself, and gives up early."""
    header, _, body = text.partition("\n")
    names = header.removesuffix("\r").split(rule.separator)
    there = [name for name in rule.columns if name in names]
    if not _is_right_header(rule, names, there, role):
        return None
    if any(rule.columns[name].names for name in there):
        columns = _named_columns(rule, names, there, body, role)
    else:
        columns = _numbered_columns(rule, names, there, body, role)
    if columns is None:
        return None
    numbers = columns.pop(rule.index.column)
    due = rule.index.first + rule.index.step * np.arange(len(numbers))
    if frames not in (None, len(numbers)) or not np.array_equal(numbers, due):
        return None
    return FrameTable(columns=columns)


def _is_right_header(rule: FrameTableFormat, names: Sequence[str], there: Sequence[str], role: Role) -> bool:
    asked = [rule.index.column, *there]
    if not there or any(names.count(name) != 1 for name in asked) or len(names) > CAPS.columns:
        return False
    if not set(required_columns(rule, role)) <= set(there):
        return False
    return len(names) == len(asked) or role is Role.REFERENCE or rule.extra_columns == "ignore"


def _numbered_columns(
    rule: FrameTableFormat, names: Sequence[str], there: Sequence[str], body: str, role: Role
) -> dict[str, NDArray[np.int64]] | None:
    """The index and the columns of labels, where all are numbers; the further ones must be numbers, too."""
    numbers = read_integers(body, columns=len(names), separator=rule.separator)
    if numbers is None:
        return None
    columns = {name: numbers[:, names.index(name)].copy() for name in (rule.index.column, *there)}
    legal = (np.isin(columns[name], list(legal_labels(rule.columns[name], role))).all() for name in there)
    return columns if all(legal) else None


def _named_columns(
    rule: FrameTableFormat, names: Sequence[str], there: Sequence[str], body: str, role: Role
) -> dict[str, NDArray[np.int64]] | None:
    """The index and the columns of labels, where some are names and nothing is quoted."""
    cells = split_evenly(body, columns=len(names), separator=rule.separator, caps=CAPS)
    if cells is None:
        return None
    columns = {rule.index.column: read_numbers(cells[names.index(rule.index.column)])}
    columns |= {name: read_labels(rule.columns[name], cells[names.index(name)], role) for name in there}
    read = {name: column for name, column in columns.items() if column is not None}
    return read if len(read) == len(columns) else None


@dataclass(frozen=True, kw_only=True)
class _Cells:
    """What the rows hold; the index of a row that has none that can be read is None."""

    index: list[tuple[int, int | None]]
    columns: dict[str, list[int]]
    problems: ProblemList


def _read_cells(
    rule: FrameTableFormat, layout: Layout, role: Role, frames: int | None, lenience: TableLenience
) -> _Cells:
    cells = _Cells(index=[], columns={name: [] for name in layout.columns}, problems=ProblemList())
    labels = {name: Labels(rule.columns[name], role, stand_in=lenience.stand_ins.get(name)) for name in layout.columns}
    index_name = rule.index.column
    for line, fields in layout.rows:
        if len(fields) != layout.width:
            what = Fault.FIELDS.format(row=line, fields=len(fields), width=layout.width)
            cells.problems.add(what, row=line)
            cells.index.append((line, None))
            continue
        if tuple(fields) == layout.names:
            cells.problems.add(Fault.HEADER_AGAIN.format(row=line), row=line)
            continue
        if layout.index is not None:
            number = parse_integer(fields[layout.index])
            if lenience.drops and isinstance(number, int) and not is_frame(rule.index, number, frames):
                lenience.dropped += 1
                continue
            if isinstance(number, str):
                what = Fault.CELL.format(row=line, column=index_name, mistake=number)
                cells.problems.add(what, row=line, column=index_name, value=fields[layout.index])
            cells.index.append((line, number if isinstance(number, int) else None))
        for name, place in layout.columns.items():
            label = labels[name].read(fields[place])
            if isinstance(label, str):
                what = Fault.CELL.format(row=line, column=name, mistake=label)
                cells.problems.add(what, row=line, column=name, value=fields[place])
            else:
                cells.columns[name].append(label)
    lenience.unknown = {name: labels[name].unknown for name in lenience.stand_ins if name in labels}
    return cells


# The two sides of the confined call.


def read_in_child(request: Mapping[str, JsonValue], descriptors: Sequence[int]) -> Reply:
    """The child's side of ``confined_read``."""
    rule = FrameTableFormat.model_validate(request["rule"])
    frames = request["frames"]
    assert frames is None or isinstance(frames, int)
    reading, lenience = _read_counted(rule, descriptors[0], frames=frames, role=Role(str(request["role"])))
    problems = ProblemList(kept=[*reading.problems], count=reading.problem_count)
    table = reading.prediction
    header = told(problems, lenience.counts)
    return Reply(header=header, arrays=table.columns if isinstance(table, FrameTable) else {})


def confined_read(
    confine: Confine, rule: FrameTableFormat, path_or_fd: Path | int, *, frames: int | None, role: Role
) -> Reading:
    """Read a table in a child that can do nothing else.

    Args:
        confine: Where children come from.
        rule: What the table must look like.
        path_or_fd: The file; a descriptor stays open.
        frames: How many rows it must have; None where nobody knows.
        role: A reference may hold labels that a prediction may not, and further columns.

    Raises:
        HostFault: No child could be started.
    """
    if isinstance(path_or_fd, int):
        return _read_descriptor(confine, rule, path_or_fd, frames=frames, role=role)
    return read_file(
        path_or_fd, lambda descriptor: _read_descriptor(confine, rule, descriptor, frames=frames, role=role)
    )


def _read_descriptor(
    confine: Confine, rule: FrameTableFormat, descriptor: int, *, frames: int | None, role: Role
) -> Reading:
    problems, lenience = ProblemList(), TableLenience.of(rule, frames=frames, role=role)
    table = confined_call(
        confine,
        "runner.formats.frame_table.read_in_child",
        {"rule": rule.model_dump(mode="json", by_alias=True), "frames": frames, "role": role.value},
        descriptor,
        sentences=lambda: sentences(rule, frames, role),
        columns=(rule.index.column, *rule.columns),
        array_bytes=len(rule.columns) * (CAPS.rows if frames is None else frames) * 8,
        check=lambda reply: _check_table(rule, reply, frames=frames, role=role, lenience=lenience),
        problems=problems,
        counts=len(lenience.counts),
    )
    notes = () if table is None else lenience.notes(rule, list(table.columns), table.frames)
    return Reading(prediction=table, problems=tuple(problems.kept), problem_count=problems.count, notes=notes)


def _check_table(
    rule: FrameTableFormat, reply: Reply, *, frames: int | None, role: Role, lenience: TableLenience
) -> FrameTable:
    """Believe nothing: the child may no longer be ours."""
    there = [name for name in rule.columns if name in reply.arrays]
    if not there or len(there) != len(reply.arrays) or not set(required_columns(rule, role)) <= set(there):
        raise garbled("its answer lacks a column, or has one too many")
    columns = {}
    for name in there:
        column, array = rule.columns[name], reply.arrays[name]
        if array.dtype != np.int64 or array.ndim != 1 or not array.size:
            raise garbled("its answer has a column that is no list of labels")
        if not np.isin(array, list(legal_labels(column, role))).all():
            raise garbled("its answer holds labels that are none")
        columns[name] = array.astype(np.int64, copy=False)
    lengths = {array.size for array in columns.values()}
    if len(lengths) != 1 or frames not in (None, *lengths) or max(lengths) > CAPS.rows:
        raise garbled("its answer has a wrong number of frames")
    lenience.believe(counts_of(reply), columns, frames=max(lengths), caps=CAPS)
    return FrameTable(columns=columns)


def warm_up() -> None:
    """Read a good and a bad table once; for the fork server."""
    columns = {"x": {"labels": [0]}, "y": {"names": ["a"], "missing": "allow"}}
    rule = FrameTableFormat.model_validate(
        {"kind": "frame_table", "file": "{case}", "index": {"column": "t"}, "columns": columns}
    )
    good = (b"t,x\n0,0\n1,0\n", b"t,x,y\n0,0,a\n1,0,a\n")
    for content in (*good, b't,y\n0,A\n"', b"t;x\n0;nan\n5;\n", b"t,x\n\xff"):
        with in_memory(content) as descriptor:
            request: dict[str, JsonValue] = {"rule": rule.model_dump(mode="json"), "frames": 2, "role": "prediction"}
            pack(read_in_child(request, [descriptor]))
