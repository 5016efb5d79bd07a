"""Reads a table with one row a frame, and says of everything that is wrong with it where it stands.

``read_frame_table`` meets the bytes and runs in a confined child; ``confined_read`` is what the rest of the program
calls. Sentences are ours (``frame_rule``): names from challenge.yaml, row numbers, frame numbers. What a container
wrote goes into ``Problem.value`` alone.
"""

import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from runner.challenge.formats import ColumnRule, FrameTableFormat
from runner.confine import Confine, JsonValue, Reply
from runner.confine.wire import pack
from runner.errors import UsageError
from runner.formats.contract import FrameTable, Problem, Reading
from runner.formats.frame_header import Layout, read_header, separator_of
from runner.formats.frame_index import check_index
from runner.formats.frame_rule import CAPS, Fault, Role, legal_labels, no_label, sentences
from runner.formats.readers.confined import confined_call, garbled, told
from runner.formats.readers.csv_table import parse_integer, read_integers, read_text, split_fields, split_lines
from runner.formats.readers.file_bytes import in_memory
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
        The labels, ``(frames,)`` a column; or the problems, in the order of the file.
    """
    problems = ProblemList()
    text = read_text(descriptor, caps=CAPS, problems=problems)
    if (table := _read_faultless(rule, text, frames, role)) is not None:
        return Reading(table=table)
    lines = split_lines(text, caps=CAPS, problems=problems) if text else []
    if not lines:
        return Reading(table=None, problems=tuple(problems.kept), problem_count=problems.count)
    separator = separator_of(rule, lines[0], problems)
    rows = split_fields(lines, separator=separator, caps=CAPS, problems=problems)
    layout = read_header(rule, rows, role, problems)
    cells = _read_cells(rule, layout, role)
    problems.take(cells.problems)
    if layout.index is not None:
        problems.take(check_index(rule.index, cells.index, frames))
    if problems.count:
        return Reading(table=None, problems=tuple(problems.kept), problem_count=problems.count)
    columns = {name: np.array(values, dtype=np.int64) for name, values in cells.columns.items()}
    return Reading(table=FrameTable(columns=columns))


def _read_faultless(rule: FrameTableFormat, text: str, frames: int | None, role: Role) -> FrameTable | None:
    """The short way for a table about which there is nothing to say; says nothing itself, and gives up early."""
    expected = (rule.index.column, *rule.columns)
    header, _, body = text.partition("\n")
    names = header.removesuffix("\r").split(rule.separator)
    if any(names.count(name) != 1 for name in expected) or len(names) > CAPS.columns:
        return None
    if len(names) > len(expected) and role is Role.PREDICTION and rule.extra_columns == "refuse":
        return None
    numbers = read_integers(body, columns=len(names), separator=rule.separator)
    if numbers is None or frames not in (None, len(numbers)):
        return None
    due = rule.index.first + rule.index.step * np.arange(len(numbers))
    if not np.array_equal(numbers[:, names.index(rule.index.column)], due):
        return None
    columns = {name: numbers[:, names.index(name)].copy() for name in rule.columns}
    legal = (np.isin(columns[name], list(legal_labels(column, role))).all() for name, column in rule.columns.items())
    return FrameTable(columns=columns) if all(legal) else None


@dataclass(frozen=True, kw_only=True)
class _Cells:
    """What the rows hold; the index of a row that has none that can be read is None."""

    index: list[tuple[int, int | None]]
    columns: dict[str, list[int]]
    problems: ProblemList


def _read_cells(rule: FrameTableFormat, layout: Layout, role: Role) -> _Cells:
    cells = _Cells(index=[], columns={name: [] for name in layout.columns}, problems=ProblemList())
    labels = {name: _Labels(rule.columns[name], role) for name in layout.columns}
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
    return cells


class _Labels:
    """Reads the cells of one column; few texts stand there again and again, so each is read once."""

    def __init__(self, rule: ColumnRule, role: Role) -> None:
        self._legal = legal_labels(rule, role)
        self._no_label = no_label(rule, role)
        self._known: dict[str, int | str] = {}

    def read(self, text: str) -> int | str:
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = self._judge(text)
        return known

    def _judge(self, text: str) -> int | str:
        label = parse_integer(text)
        if isinstance(label, int) and label not in self._legal:
            return self._no_label
        return label


# The two sides of the confined call.


def read_in_child(request: Mapping[str, JsonValue], descriptors: Sequence[int]) -> Reply:
    """The child's side of ``confined_read``."""
    rule = FrameTableFormat.model_validate(request["rule"])
    frames = request["frames"]
    assert frames is None or isinstance(frames, int)
    reading = read_frame_table(rule, descriptors[0], frames=frames, role=Role(str(request["role"])))
    problems = ProblemList(kept=[*reading.problems], count=reading.problem_count)
    return Reply(header=told(problems), arrays=reading.table.columns if reading.table else {})


def confined_read(
    confine: Confine, rule: FrameTableFormat, path_or_fd: Path | int, *, frames: int | None, role: Role
) -> Reading:
    """Read a table in a child that can do nothing else.

    Args:
        confine: Where children come from.
        rule: What the table must look like.
        path_or_fd: The file; a descriptor stays open.
        frames: How many rows it must have; None where nobody knows.
        role: A prediction's problems are values; a reference must have none.

    Raises:
        UsageError: A reference has problems.
        HostFault: No child could be started.
    """
    if isinstance(path_or_fd, int):
        reading = _read_descriptor(confine, rule, path_or_fd, frames=frames, role=role)
    else:
        reading = _read_path(confine, rule, path_or_fd, frames=frames, role=role)
    if role is Role.REFERENCE and reading.table is None:
        raise _bad_reference(path_or_fd, reading)
    return reading


def _bad_reference(path_or_fd: Path | int, reading: Reading) -> UsageError:
    sentences = [one.what + (f" (there: {one.value})" if one.value else "") for one in reading.problems]
    more = reading.problem_count - len(sentences)
    if more > 0:
        sentences.append(f"and {more} more")
    where = str(path_or_fd) if isinstance(path_or_fd, Path) else "a reference"
    return UsageError(
        "; ".join(sentences),
        where=where,
        remedy="mend the reference, or the task's format in challenge.yaml",
    )


def _read_path(confine: Confine, rule: FrameTableFormat, path: Path, *, frames: int | None, role: Role) -> Reading:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return _single(f"the file cannot be opened: {error.strerror}")
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return _single("this is no regular file")
        return _read_descriptor(confine, rule, descriptor, frames=frames, role=role)
    finally:
        os.close(descriptor)


def _single(what: str) -> Reading:
    return Reading(table=None, problems=(Problem(what=what),), problem_count=1)


def _read_descriptor(
    confine: Confine, rule: FrameTableFormat, descriptor: int, *, frames: int | None, role: Role
) -> Reading:
    problems = ProblemList()
    table = confined_call(
        confine,
        "runner.formats.frame_table.read_in_child",
        {"rule": rule.model_dump(mode="json", by_alias=True), "frames": frames, "role": role.value},
        descriptor,
        sentences=lambda: sentences(rule, frames, role),
        columns=(rule.index.column, *rule.columns),
        array_bytes=len(rule.columns) * (CAPS.rows if frames is None else frames) * 8,
        check=lambda reply: _check_table(rule, reply, frames=frames, role=role),
        problems=problems,
    )
    return Reading(table=table, problems=tuple(problems.kept), problem_count=problems.count)


def _check_table(rule: FrameTableFormat, reply: Reply, *, frames: int | None, role: Role) -> FrameTable:
    """Believe nothing: the child may no longer be ours."""
    if set(reply.arrays) != set(rule.columns):
        raise garbled("its answer lacks a column, or has one too many")
    columns = {}
    for name, column in rule.columns.items():
        array = reply.arrays[name]
        if array.dtype != np.int64 or array.ndim != 1 or not array.size:
            raise garbled("its answer has a column that is no list of labels")
        if not np.isin(array, list(legal_labels(column, role))).all():
            raise garbled("its answer holds labels that are none")
        columns[name] = array.astype(np.int64, copy=False)
    lengths = {array.size for array in columns.values()}
    if len(lengths) != 1 or frames not in (None, *lengths) or max(lengths) > CAPS.rows:
        raise garbled("its answer has a wrong number of frames")
    return FrameTable(columns=columns)


def warm_up() -> None:
    """Read a good and a bad table once; for the fork server."""
    rule = FrameTableFormat.model_validate(
        {"kind": "frame_table", "file": "{case}", "index": {"column": "t"}, "columns": {"x": {"labels": [0]}}}
    )
    for content in (b"t,x\n0,0\n1,0\n", b't,y\n0,a\n"', b"t;x\n0;nan\n5;\n", b"t,x\n\xff"):
        with in_memory(content) as descriptor:
            request: dict[str, JsonValue] = {"rule": rule.model_dump(mode="json"), "frames": 2, "role": "prediction"}
            pack(read_in_child(request, [descriptor]))
