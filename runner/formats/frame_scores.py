"""Reads the scores of every class for each frame, from JSON or from a table, and says where it is wrong.

``read_frame_scores`` meets the bytes and runs in a confined child; ``confined_read`` is what the rest of the program
calls.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from runner.challenge.formats import FrameScoresFormat
from runner.confine import Confine, JsonValue, Reply
from runner.confine.wire import pack
from runner.formats.contract import Due, FrameScores, Reading, Role
from runner.formats.due_file import due_file, read_due
from runner.formats.lenience import ScoreLenience
from runner.formats.readers.confined import confined_call, counts_of, garbled, told
from runner.formats.readers.file_bytes import in_memory
from runner.formats.readers.opened import read_file
from runner.formats.readers.problems import ProblemList
from runner.formats.score_json import read_json_scores
from runner.formats.score_rule import MOST_FRAMES, frame_ids, index_rule, most_entries, sentences, wrong_scores
from runner.formats.score_table import read_table_scores

_SCORES = "scores"


def read_frame_scores(rule: FrameScoresFormat, descriptor: int, *, due: Due, role: Role) -> Reading:
    """Read a file of scores; to be called in a confined child.

    Args:
        rule: What it must look like.
        descriptor: The file, open for reading.
        due: The case.
        role: A reference may hold further keys.

    Returns:
        The scores, ``(frames, classes)``; or the problems.

    Raises:
        UsageError: The case cannot be described so: two frames have the same id, or there are too many scores.
    """
    return _read_counted(rule, descriptor, due=due, role=role)[0]


def _read_counted(rule: FrameScoresFormat, descriptor: int, *, due: Due, role: Role) -> tuple[Reading, ScoreLenience]:
    problems = ProblemList()
    ids = frame_ids(rule, due)
    frames = None if ids is None else len(ids)
    lenience = ScoreLenience.of(rule, frames=frames, role=role)
    if rule.layout == "json":
        scores = read_json_scores(rule, descriptor, ids=ids, role=role, problems=problems, lenience=lenience)
    else:
        scores = read_table_scores(rule, descriptor, frames=frames, problems=problems, lenience=lenience)
    if problems.count:
        return Reading(prediction=None, problems=tuple(problems.kept), problem_count=problems.count), lenience
    return Reading(prediction=FrameScores(scores=scores), notes=lenience.notes(len(scores))), lenience


# The two sides of the confined call.


def read_in_child(request: Mapping[str, JsonValue], descriptors: Sequence[int]) -> Reply:
    """The child's side of ``confined_read``."""
    rule = FrameScoresFormat.model_validate(request["rule"])
    content, due = descriptors
    reading, lenience = _read_counted(rule, content, due=read_due(due), role=Role(str(request["role"])))
    problems = ProblemList(kept=[*reading.problems], count=reading.problem_count)
    found = reading.prediction
    header = told(problems, lenience.counts)
    return Reply(header=header, arrays={_SCORES: found.scores} if isinstance(found, FrameScores) else {})


def confined_read(confine: Confine, rule: FrameScoresFormat, path: Path, *, due: Due, role: Role) -> Reading:
    """Read a file of scores in a child that can do nothing else.

    Args:
        confine: Where children come from.
        rule: What it must look like.
        path: The file.
        due: The case. Where nobody knows its frames, those of the file are: by number, or in the order of their names.
        role: A reference may hold further keys.

    Raises:
        UsageError: The case cannot be described so: two frames have the same id, or there are too many scores.
        HostFault: No child could be started.
    """
    ids = frame_ids(rule, due)
    frames = None if ids is None else len(ids)

    def read(descriptor: int) -> Reading:
        problems, lenience = ProblemList(), ScoreLenience.of(rule, frames=frames, role=role)
        with due_file(due) as beside:
            scores = confined_call(
                confine,
                "runner.formats.frame_scores.read_in_child",
                {"rule": rule.model_dump(mode="json"), "role": role.value},
                descriptor,
                sentences=lambda: sentences(rule, frames),
                array_bytes=(MOST_FRAMES if frames is None else frames) * rule.classes * 8,
                check=lambda reply: _check(rule, reply, frames, lenience),
                problems=problems,
                columns=[index_rule(rule).column],
                beside=[beside],
                counts=len(lenience.counts),
            )
        notes = () if scores is None else lenience.notes(scores.frames)
        return Reading(prediction=scores, problems=tuple(problems.kept), problem_count=problems.count, notes=notes)

    return read_file(path, read)


def _check(rule: FrameScoresFormat, reply: Reply, frames: int | None, lenience: ScoreLenience) -> FrameScores:
    """Believe nothing: the child may no longer be ours."""
    scores = reply.arrays.get(_SCORES)
    if scores is None or len(reply.arrays) > 1 or scores.dtype != np.float64 or scores.ndim != 2:
        raise garbled("its answer lacks its parts")
    if scores.shape[1] != rule.classes or frames not in (None, scores.shape[0]) or not scores.size:
        raise garbled("its answer is of another shape")
    numbers = scores.astype(np.float64, copy=False)
    if not np.isfinite(numbers).all() or any(wrong.any() for _, wrong in wrong_scores(rule, numbers)):
        raise garbled("its answer holds scores that are none")
    lenience.believe(counts_of(reply), numbers, most_dropped=most_entries(rule, frames))
    return FrameScores(scores=numbers)


def warm_up() -> None:
    """Read good and bad files once; for the fork server."""
    good: dict[str, tuple[bytes, ...]] = {
        "json": (b'{"0": {"s": [0, 0.5]}}', b'{"00": {"s": [2, null]}, "x": 1}', b'{"0": NaN'),
        "table": (b"0,0,0.5\n", b"0,2,x\n1;2\n\n"),
    }
    for layout, contents in good.items():
        rule: dict[str, JsonValue] = {
            "kind": "frame_scores", "file": "{case}", "layout": layout, "key": "s", "classes": 2,
        }  # fmt: skip
        for content in contents:
            with in_memory(content) as descriptor, due_file(Due(frames=("0.png",), count=1)) as beside:
                pack(read_in_child({"rule": rule, "role": "prediction"}, [descriptor, beside]))
