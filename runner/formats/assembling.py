"""Makes of the answers of a stream the files that their formats ask for, so that the same readers judge them.

Nothing is judged here. An answer is JSON that the protocol has bounded and parsed strictly; whatever of it a format
has no place for is written so that its reader refuses it, and names its row: a text where a number is due keeps its
quotation marks, an object becomes ``{…}``. Only the size is counted, since the files grow with the answers.

Where the tasks that share a run write one file, an answer holds the columns of all of them. Where they write several,
it holds an object for each task, under the task's name.
"""

import base64
import binascii
import csv
import io
import json
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias

from pydantic import JsonValue

from runner.challenge import ColumnRule, FormatSection, FrameScoresFormat, FrameTableFormat, LabelImagesFormat
from runner.challenge.streamed import IMAGE_KEY, scores_key
from runner.formats.contract import Due
from runner.formats.label_images import image_rule
from runner.formats.score_rule import frame_ids
from runner.job import Intake, IntakeRefusal, Output

Answer: TypeAlias = Mapping[str, JsonValue]
"""What a container answers for a frame."""

LEAST_LINE = 1 << 20
"""Bytes a line of the protocol may always have."""

_SPARE = 1 << 16
_SCORE_BYTES = 80
_LONGEST_CELL = 200
_MOST_STRANGERS = 8
_UNFIT = re.compile("[\x00-\x1f\x7f\x85\u2028\u2029\ud800-\udfff]")


def longest_line(rules: Sequence[FormatSection]) -> int:
    """Bytes that a line with an answer in all of these formats may have."""
    needed = 0
    for rule in rules:
        match rule:
            case LabelImagesFormat():
                needed += -(-image_rule(rule).caps.size // 3) * 4
            case FrameScoresFormat():
                needed += rule.classes * _SCORE_BYTES
    return max(LEAST_LINE, needed + _SPARE)


class _Room:
    """How many bytes may be written in all."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._left = most

    def take(self, count: int) -> bool:
        """Whether so many bytes more may be written."""
        self._left -= count
        return self._left >= 0

    @property
    def exceeded(self) -> bool:
        return self._left < 0


class _Writer(Protocol):
    """Writes one output of a job."""

    def own(self, answer: Answer) -> Answer:
        """What of an answer of the organisers, which is for all tasks, this output has a place for."""

    def add(self, frame: int, answer: Answer) -> None:
        """Write a frame's answer; frames come in order, each once."""

    def finish(self) -> int:
        """Write the rest; the bytes that were written."""

    def close(self) -> None:
        """Let go of what is open, finished or not."""


class Assembly:
    """The outputs of one job on one case, written as the answers come."""

    def __init__(
        self,
        outputs: Sequence[tuple[Output, Mapping[str, FormatSection]]],
        *,
        due: Due,
        folder: Path,
        most: int,
        before_first: Answer,
    ) -> None:
        """Begin.

        Args:
            outputs: What is to be left, each with the formats of the tasks that it is for, by task.
            due: The case.
            folder: ``predictions`` of the attempt.
            most: Bytes that all of them may have.
            before_first: What a missed frame holds before the first answer.

        Raises:
            UsageError: The case cannot be described in the format.
        """
        self._room = _Room(most)
        self._targets = [folder / output.kept for output, _ in outputs]
        self._tasks = [tuple(rules) for _, rules in outputs]
        self._plain = len(outputs) == 1
        for target in self._targets:
            target.parent.mkdir(parents=True, exist_ok=True)
        self._writers = [
            _writer(output, rules, due, target, self._room)
            for (output, rules), target in zip(outputs, self._targets, strict=True)
        ]
        self._held = [writer.own(before_first) for writer in self._writers]

    def take(self, frame: int, answer: Answer | None) -> None:
        """Write the answer for a frame; of one that was missed, the answer before it.

        Raises:
            OSError: It cannot be written.
        """
        for place, writer in enumerate(self._writers):
            if answer is not None:
                self._held[place] = answer if self._plain else self._of(answer, self._tasks[place])
            if not self._room.exceeded:
                writer.add(frame, self._held[place])

    def _of(self, answer: Answer, tasks: Sequence[str]) -> Answer:
        """The part of an answer that is for one output."""
        merged: dict[str, JsonValue] = {}
        for task in tasks:
            part = answer.get(task)
            merged |= part if isinstance(part, dict) else {}
        return merged

    def close(self) -> None:
        """Let go of what is open, finished or not."""
        for writer in self._writers:
            writer.close()

    def finish(self, files: Sequence[str]) -> tuple[Intake, ...]:
        """Write the rest, and say what there is.

        Args:
            files: What the outputs are called inside the container.

        Raises:
            OSError: It cannot be written.
        """
        sizes = [writer.finish() for writer in self._writers]
        if not self._room.exceeded:
            return tuple(Intake(file=file, size=size) for file, size in zip(files, sizes, strict=True))
        for target in self._targets:
            if target.is_dir():
                shutil.rmtree(target)
            else:
                target.unlink(missing_ok=True)
        detail = f"more than the {self._room.most} bytes allowed"
        return tuple(Intake(file=file, refusal=IntakeRefusal.TOO_LARGE, detail=detail) for file in files)


def _writer(output: Output, rules: Mapping[str, FormatSection], due: Due, target: Path, room: _Room) -> _Writer:
    first = next(iter(rules.values()))
    match first:
        case FrameTableFormat():
            return _Table([rule for rule in rules.values() if isinstance(rule, FrameTableFormat)], target, room)
        case FrameScoresFormat(layout="json"):
            return _JsonScores(first, due, target, room)
        case FrameScoresFormat():
            return _TableScores(first, target, room)
        case LabelImagesFormat():
            return _Images(output, target, room)
        case _:
            raise AssertionError(f"challenge.yaml lets no {first.kind} be streamed")


class _Table:
    """A table with a row a frame."""

    def __init__(self, rules: Sequence[FrameTableFormat], target: Path, room: _Room) -> None:
        self._target, self._room = target, room
        self._index, self._separator = rules[0].index, rules[0].separator
        self._columns: dict[str, ColumnRule] = {}
        for rule in reversed(rules):
            self._columns = {**self._columns, **rule.columns}
        self._names = list(dict.fromkeys(name for rule in rules for name in rule.columns))
        self._strict = any(rule.extra_columns == "refuse" for rule in rules)
        self._strangers: list[str] = []
        self._rows: list[tuple[int, dict[str, str]]] = []

    def own(self, answer: Answer) -> Answer:
        return {name: value for name, value in answer.items() if name in self._columns}

    def add(self, frame: int, answer: Answer) -> None:
        cells = {name: _label_cell(self._columns[name], answer[name]) for name in self._names if name in answer}
        if self._strict and len(cells) < len(answer):
            cells |= self._strange_cells(answer)
        if self._room.take(sum(len(cell.encode()) + 1 for cell in cells.values()) + len(str(frame)) + 1):
            self._rows.append((frame, cells))

    def _strange_cells(self, answer: Answer) -> dict[str, str]:
        """What stands under names that no column has, as columns of their own: which their reader refuses."""
        cells: dict[str, str] = {}
        for name, value in answer.items():
            shown = _text(name)
            if name in self._columns or shown in self._columns or shown == self._index.column:
                continue
            if shown not in self._strangers:
                if len(self._strangers) == _MOST_STRANGERS:
                    continue
                self._strangers.append(shown)
            cells[shown] = _plain_cell(value)
        return cells

    def finish(self) -> int:
        there = {name for _, cells in self._rows for name in cells}
        names = [name for name in self._names if name in there or not there] + self._strangers
        with self._target.open("x", encoding="utf-8", newline="") as sink:
            rows = csv.writer(sink, delimiter=self._separator, lineterminator="\n")
            rows.writerow([self._index.column, *names])
            for frame, cells in self._rows:
                number = self._index.first + frame * self._index.step
                rows.writerow([number, *(cells.get(name, "") for name in names)])
        return self._target.stat().st_size

    def close(self) -> None:
        pass  # nothing is open before the end


def _label_cell(rule: ColumnRule, value: JsonValue) -> str:
    """A label by name or by number; whatever else stands there, so that no reader takes it for one."""
    if rule.names and type(value) is int and 0 <= value < len(rule.names):
        return rule.names[value]
    if rule.names and isinstance(value, str):
        return _text(value)
    return _plain_cell(value)


def _plain_cell(value: JsonValue) -> str:
    """A value of JSON as it is written there; a text keeps its quotation marks."""
    match value:
        case None:
            return ""
        case dict():
            return "{…}"
        case list():
            return "[…]"
        case str():
            return f'"{_text(value)}"'
        case _:
            return _text(json.dumps(value))


def _text(text: str) -> str:
    """A text that fits into a cell: one line, valid, bounded; a label that is longer is none."""
    return _UNFIT.sub("\ufffd", text[:_LONGEST_CELL]) + ("…" if len(text) > _LONGEST_CELL else "")


class _JsonScores:
    """An object with the scores of each frame, under its id."""

    def __init__(self, rule: FrameScoresFormat, due: Due, target: Path, room: _Room) -> None:
        self._rule, self._room = rule, room
        self._ids = frame_ids(rule, due) or ()
        self._sink = target.open("xb")
        self._size = 0
        self._write(b"{")

    def _write(self, text: bytes) -> None:
        if self._room.take(len(text)):
            self._size += self._sink.write(text)

    def own(self, answer: Answer) -> Answer:
        key = scores_key(self._rule)
        return {key: answer[key]} if key in answer else {}

    def add(self, frame: int, answer: Answer) -> None:
        entry = dict(answer) if self._rule.key else answer.get(scores_key(self._rule))
        between = ",\n" if frame else "\n"
        self._write(f"{between}{json.dumps(self._ids[frame])}: {json.dumps(entry)}".encode())

    def finish(self) -> int:
        self._write(b"\n}\n")
        self.close()
        return self._size

    def close(self) -> None:
        self._sink.close()


class _TableScores:
    """A table without a header: a frame's number, and its scores."""

    def __init__(self, rule: FrameScoresFormat, target: Path, room: _Room) -> None:
        self._rule, self._room = rule, room
        self._sink = target.open("xb")
        self._size = 0

    def own(self, answer: Answer) -> Answer:
        key = scores_key(self._rule)
        return {key: answer[key]} if key in answer else {}

    def add(self, frame: int, answer: Answer) -> None:
        scores = answer.get(scores_key(self._rule))
        listed = scores[: self._rule.classes + 1] if isinstance(scores, list) else []
        line = io.StringIO()
        csv.writer(line, lineterminator="\n").writerow([self._rule.first + frame, *map(_plain_cell, listed)])
        text = line.getvalue().encode()
        if self._room.take(len(text)):
            self._size += self._sink.write(text)

    def finish(self) -> int:
        self.close()
        return self._size

    def close(self) -> None:
        self._sink.close()


class _Images:
    """A folder with a PNG file a frame."""

    def __init__(self, output: Output, target: Path, room: _Room) -> None:
        self._names, self._target, self._room = output.names, target, room
        self._size = 0
        target.mkdir()

    def own(self, answer: Answer) -> Answer:
        return {IMAGE_KEY: answer[IMAGE_KEY]} if IMAGE_KEY in answer else {}

    def add(self, frame: int, answer: Answer) -> None:
        text = answer.get(IMAGE_KEY)
        if not isinstance(text, str):
            return  # the reader says that the image is missing
        content = _decoded(text)
        if self._room.take(len(content)):
            with (self._target / self._names[frame]).open("xb") as sink:
                self._size += sink.write(content)

    def finish(self) -> int:
        return self._size

    def close(self) -> None:
        pass  # each file is closed when it is whole


def _decoded(text: str) -> bytes:
    """What base64 stands for; what is none stays as it is, which is no PNG."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return text.encode("utf-8", "replace")
