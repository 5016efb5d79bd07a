"""Reads the scores of frames from a table without a header: the frame's number, then its scores.

To be called in a confined child.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from runner.challenge.formats import FrameScoresFormat
from runner.formats.frame_index import Gaps, check_index
from runner.formats.frame_rule import SEPARATORS, is_frame
from runner.formats.frame_rule import Fault as TableFault
from runner.formats.lenience import ScoreLenience
from runner.formats.readers.csv_table import (
    CsvCaps,
    Line,
    Row,
    parse_decimal,
    parse_integer,
    read_decimals,
    read_integers,
    read_text,
    split_fields,
    split_lines,
)
from runner.formats.readers.problems import ProblemList
from runner.formats.score_rule import Fault, check_scores, index_rule, score_words, table_caps, wrong_scores


def read_table_scores(
    rule: FrameScoresFormat, descriptor: int, *, frames: int | None, problems: ProblemList, lenience: ScoreLenience
) -> NDArray[np.float64]:
    """Read a table of scores.

    Args:
        rule: What it must look like.
        descriptor: The file, open for reading.
        frames: How many rows it must have; None where nobody knows.
        problems: What is wrong is added here.
        lenience: How frames without a row, and rows of no frame, are taken; both are counted here.

    Returns:
        Shape ``(frames, classes)``; of no meaning where there is a problem.
    """
    caps = table_caps(rule, frames)
    text = read_text(descriptor, caps=caps, problems=problems)
    if (scores := _read_faultless(rule, text, frames)) is not None:
        return scores
    lines = split_lines(text, caps=caps, problems=problems) if text else []
    if not lines:
        return np.empty((0, rule.classes))
    return _Rows(rule, frames, problems, lenience).read(_split(lines, caps, problems))


def _read_faultless(rule: FrameScoresFormat, text: str, frames: int | None) -> NDArray[np.float64] | None:
    """The short way for a table about which there is nothing to say; says nothing itself, and gives up early."""
    numbers = read_decimals(text, columns=rule.classes + 1, separator=",")
    if numbers is None or frames not in (None, len(numbers)):
        return None
    heads = [line.partition(",")[0] for line in text.rstrip("\r\n").split("\n")]
    index = read_integers("\n".join(heads), columns=1, separator=",")
    if index is None or not np.array_equal(index[:, 0], rule.first + np.arange(len(numbers))):
        return None
    scores = numbers[:, 1:].copy()
    return None if any(wrong.any() for _, wrong in wrong_scores(rule, scores)) else scores


def _split(lines: Sequence[Line], caps: CsvCaps, problems: ProblemList) -> Sequence[Row]:
    first = lines[0].text
    best = max(SEPARATORS, key=lambda separator: (first.count(separator), separator == ","))
    if "," in first or best not in first:
        best = ","
    if best != ",":
        problems.add(TableFault.SEPARATOR.format(found=SEPARATORS[best], due=SEPARATORS[","]), row=lines[0].number)
    return split_fields(lines, separator=best, caps=caps, problems=problems)


class _Rows:
    """Reads row after row, and says what is wrong with each."""

    def __init__(
        self, rule: FrameScoresFormat, frames: int | None, problems: ProblemList, lenience: ScoreLenience
    ) -> None:
        self._rule = rule
        self._index = index_rule(rule)
        self._frames = frames
        self._problems = problems
        self._lenience = lenience
        self._words = score_words(rule)

    def read(self, rows: Sequence[Row]) -> NDArray[np.float64]:
        if rows and all(isinstance(parse_decimal(field), str) for field in rows[0].fields):
            line = rows[0].line
            self._problems.add(Fault.HEADER.format(row=line, first=self._rule.first), row=line)
            rows = rows[1:]
        entries, scores = [], []
        found = ProblemList()
        for row in rows:
            number = self._number(row, found)
            if number is not None and self._is_ignored(number):
                self._lenience.dropped += 1
                continue
            entries.append((row.line, number))
            scores.append(self._scores(row, found))
        self._problems.take(found)
        gaps = Gaps.REFUSED if self._lenience.fill is None else Gaps.ALLOWED
        if self._lenience.dropped and not entries and self._frames is not None:
            self._problems.add(TableFault.NO_FRAMES.format(frames=self._frames))
        else:
            self._problems.take(check_index(self._index, entries, self._frames, gaps=gaps))
        read = np.array([row for row in scores if row is not None]).reshape(-1, self._rule.classes)
        return read if self._problems.count else self._filled([number for _, number in entries], read)

    def _filled(self, numbers: Sequence[int | None], scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """The scores of each frame; the numbers are those of different frames, in order."""
        if self._lenience.fill is None or self._frames is None:
            return scores
        self._lenience.filled = self._frames - len(scores)
        filled = np.full((self._frames, self._rule.classes), self._lenience.fill)
        filled[np.array(numbers, dtype=np.int64) - self._rule.first] = scores
        return filled

    def _is_ignored(self, number: int) -> bool:
        return self._lenience.drops and not is_frame(self._index, number, self._frames)

    def _number(self, row: Row, problems: ProblemList) -> int | None:
        number = parse_integer(row.fields[0])
        if isinstance(number, int):
            return number
        what = Fault.CELL.format(row=row.line, index=self._index.column, mistake=number)
        problems.add(what, row=row.line, value=row.fields[0])
        return None

    def _scores(self, row: Row, problems: ProblemList) -> NDArray[np.float64] | None:
        where, cells = f"row {row.line}: ", row.fields[1:]
        if len(cells) != self._rule.classes:
            fault = Fault.SHORT if len(cells) < self._rule.classes else Fault.LONG
            problems.add(fault.format(where=where, **self._words), row=row.line, value=str(len(cells)))
            return None
        numbers = [parse_decimal(cell) for cell in cells]
        wrong = [place for place, number in enumerate(numbers) if isinstance(number, str)]
        if wrong:
            what = Fault.NO_DECIMAL.format(
                where=where, count=len(wrong), place=wrong[0], mistake=numbers[wrong[0]], **self._words
            )
            problems.add(what, row=row.line, value=cells[wrong[0]])
            return None
        scores = np.array(numbers, dtype=np.float64)
        check_scores(self._rule, scores, where, problems, row=row.line)
        return scores
