"""What is asked of a file of scores, and every sentence in which one can be refused.

A frame is named by its place in the sequence, from 1, and a class by its number, from 0. What a container wrote, an id
or a score, goes into ``Problem.value``.
"""

import re
from collections.abc import Sequence
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from runner.challenge.formats import FrameScoresFormat, IndexRule
from runner.errors import UsageError
from runner.formats.contract import Due
from runner.formats.frame_rule import SEPARATORS, index_fields
from runner.formats.frame_rule import Fault as TableFault
from runner.formats.readers import csv_table, json_faults
from runner.formats.readers.csv_table import CsvCaps, Mistake
from runner.formats.readers.json_faults import JsonCaps
from runner.formats.readers.problems import ProblemList, any_of, sentence_pattern

MOST_FRAMES = 20_000
"""Frames a file may hold where nobody knows how many there are."""

_MOST_SCORES = 4_000_000
_MOST_BYTES = 128 << 20
_SCORE_BYTES = 80
"""Bytes a score may take, with the space around it: 17 digits take 25, and each on a line of its own some more."""
_FRAME_BYTES = 1024
_SPARE = 1 << 16


class Fault(StrEnum):
    """Every sentence about scores, but for those about the text they stand in."""

    NO_FRAMES = "there are no frames"
    ONE_MISSING = "frame {frame} of {frames} is missing"
    SOME_MISSING = "frames {frame} to {end} of {frames} are missing ({count})"
    NEARLY = "entry {entry} is not named exactly as frame {frame} of {frames} is: {ids}"
    STRANGER = "entry {entry} is none of the {frames} frames: {ids}"
    NO_OBJECT = "{where}an object that holds {key} is due"
    NO_KEY = "{where}there is no {key}"
    EXTRA_KEY = "{where}there is a key that is not asked for, beside {key}"
    NO_LIST = "{where}a list of {classes} scores is due"
    SHORT = "{where}there are fewer than {classes} scores"
    LONG = "{where}there are more than {classes} scores"
    NO_NUMBER = "{where}{count} of {classes} scores are no numbers, the first is that of class {place}"
    NO_DECIMAL = (
        "{where}{count} of {classes} scores cannot be read; the first is that of class {place}, which {mistake}"
    )
    LEAST = "{where}{count} of {classes} scores are less than {least}, the first is that of class {place}"
    GREATEST = "{where}{count} of {classes} scores are greater than {greatest}, the first is that of class {place}"
    NOT_WHOLE = "{where}{count} of {classes} scores are not whole numbers, the first is that of class {place}"
    HEADER = "row {row}: a header stands here, and none is due: the first row is that of frame {first}"
    CELL = "row {row}: {index} {mistake}"


def index_rule(rule: FrameScoresFormat) -> IndexRule:
    """How the rows of a table are numbered."""
    return IndexRule(column="the frame's number", first=rule.first)


def frame_ids(rule: FrameScoresFormat, due: Due) -> tuple[str, ...] | None:
    """The id of every frame, in order; None where nobody knows.

    Raises:
        UsageError: Two frames have the same id, or the scores are more than are read.
    """
    names = due.frames or tuple(map(str, range(due.count or 0)))
    if not names:
        return None
    if len(names) * rule.classes > _MOST_SCORES:
        raise UsageError(
            f"{len(names)} frames of {rule.classes} scores are more than the {_MOST_SCORES} scores that are read",
            remedy="use a format of kind arrays, or shorter cases",
        )
    match rule.frame_ids:
        case "name":
            ids = names
        case "stem":
            ids = tuple(name.rpartition(".")[0] or name for name in names)
        case "number":
            ids = tuple(map(str, range(rule.first, rule.first + len(names))))
    if len(set(ids)) != len(ids):
        raise UsageError("two frames of a case have the same id", remedy="write frame_ids: name in challenge.yaml")
    return ids


def json_caps(rule: FrameScoresFormat, frames: int | None) -> JsonCaps:
    """How large a JSON text may be: twice what is due, so that what is too much can be said in detail."""
    count = MOST_FRAMES if frames is None else frames
    values = 2 * count * (rule.classes + 8) + _SPARE
    return JsonCaps(size=_most_bytes(rule, count), values=min(values, 2 * _MOST_SCORES))


def table_caps(rule: FrameScoresFormat, frames: int | None) -> CsvCaps:
    """How large a table may be."""
    count = MOST_FRAMES if frames is None else frames
    return CsvCaps(
        size=_most_bytes(rule, count),
        rows=count + _SPARE,
        line_length=(rule.classes + 2) * _SCORE_BYTES,
        columns=2 * rule.classes + 2,
    )


def most_entries(rule: FrameScoresFormat, frames: int | None) -> int:
    """How many frames a file can tell of, right ones or not."""
    return json_caps(rule, frames).values if rule.layout == "json" else table_caps(rule, frames).rows


def _most_bytes(rule: FrameScoresFormat, frames: int) -> int:
    return min(_MOST_BYTES, frames * (rule.classes * _SCORE_BYTES + _FRAME_BYTES) + _SPARE)


def id_words(rule: FrameScoresFormat) -> str:
    """How frames are named, as the end of a sentence."""
    match rule.frame_ids:
        case "name":
            return "ids are the names of the frames' files"
        case "stem":
            return "ids are the names of the frames' files, without the extension"
        case "number":
            return f"ids are {rule.first}, {rule.first + 1}, …"


def score_words(rule: FrameScoresFormat) -> dict[str, str]:
    """What the sentences about scores take from the rule."""
    lowest, highest = rule.range
    return {
        "classes": str(rule.classes),
        "key": repr(rule.key),
        "least": f"{lowest:g}",
        "greatest": f"{highest:g}",
        "ids": id_words(rule),
    }


def check_scores(
    rule: FrameScoresFormat, scores: NDArray[np.float64], where: str, problems: ProblemList, *, row: int | None = None
) -> None:
    """Say what is wrong with the scores of one frame."""
    for fault, wrong in wrong_scores(rule, scores):
        if wrong.any():
            place = int(np.argmax(wrong))
            what = fault.format(where=where, count=int(np.count_nonzero(wrong)), place=place, **score_words(rule))
            problems.add(what, row=row, value=repr(float(scores[place])))


def wrong_scores(rule: FrameScoresFormat, scores: NDArray[np.float64]) -> Sequence[tuple[Fault, NDArray[np.bool_]]]:
    """By fault, which of these finite scores are wrong."""
    lowest, highest = rule.range
    ranges = [(Fault.LEAST, np.asarray(scores < lowest)), (Fault.GREATEST, np.asarray(scores > highest))]
    return [*ranges, (Fault.NOT_WHOLE, np.asarray(scores != np.floor(scores)))] if rule.whole else ranges


def sentences(rule: FrameScoresFormat, frames: int | None) -> re.Pattern[str]:
    """What may be said of a file with this rule and so many frames."""
    number = "[1-9][0-9]{0,6}"
    count = "[1-9][0-9]{0,6}" if frames is None else any_of([frames])
    fields = {
        **{name: re.escape(words) for name, words in score_words(rule).items()},
        **dict.fromkeys(("entry", "count"), number),
        "place": "[0-9]{1,4}",
        "mistake": any_of(Mistake),
    }
    if rule.layout == "table":
        table = index_fields(index_rule(rule), frames)
        caps = table_caps(rule, frames)
        return sentence_pattern(
            [*csv_table.Fault, *TableFault, *Fault],
            **(table | fields | {"count": f"{number}|{table['count']}"}),
            where="row [1-9][0-9]{0,7}: ",
            cap=any_of([caps.size, caps.rows, caps.line_length, caps.columns]),
            encoding="UTF-16|UTF-32",
            found=any_of(SEPARATORS.values()),
            due=any_of(SEPARATORS.values()),
        )
    where = f"frame {number} of (?:{count}): "
    own = sentence_pattern(Fault, **fields, frame=number, end=number, frames=count, where=where)
    return re.compile(f"{json_faults.SENTENCES.pattern}|{own.pattern}")
