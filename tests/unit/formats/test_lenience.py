"""Missing frames, frames too many and unknown labels: what a task may say of them, and what is told of it."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from pydantic import ValidationError

from runner.challenge.formats import FrameScoresFormat, FrameTableFormat, LabelImagesFormat
from runner.confine import Confine, JsonValue, Reply
from runner.errors import HostFault, UsageError
from runner.formats import frame_rule, frame_scores, frame_table, label_images, score_rule
from runner.formats.contract import Due, FrameScores, FrameTable, LabelImages, Reading, Role
from runner.formats.reading import beside, read_output

FILL = {"step": -1, "phase": "Idle"}


def table_rule(**policies: object) -> FrameTableFormat:
    return FrameTableFormat.model_validate(
        {
            "kind": "frame_table", "file": "{case}.csv", "index": {"column": "t", "first": 10, "step": 5},
            "columns": {
                "step": {"labels": ["-1..4"], "reference_only": [9]},
                "phase": {"names": ["Busy", "Idle"], "missing": "allow"},
            },
        } | policies
    )  # fmt: skip


def opened(content: str | bytes) -> int:
    descriptor = os.memfd_create("file")
    os.write(descriptor, content.encode() if isinstance(content, str) else content)
    return descriptor


def read_table(text: str, rule: FrameTableFormat, *, frames: int | None = 4, role: Role = Role.PREDICTION) -> Reading:
    descriptor = opened(text)
    try:
        reading = frame_table.read_frame_table(rule, descriptor, frames=frames, role=role)
    finally:
        os.close(descriptor)
    let_through = frame_rule.sentences(rule, frames, role)
    assert [one.what for one in reading.problems if not let_through.fullmatch(one.what)] == []
    assert (reading.prediction is None) == (reading.problem_count > 0)
    return reading


def table(rows: Sequence[Sequence[object]], header: str = "t,step,phase") -> str:
    return "".join(f"{line}\n" for line in [header, *(",".join(map(str, row)) for row in rows)])


def labels(reading: Reading) -> dict[str, list[int]]:
    assert reading.problems == ()
    assert isinstance(reading.prediction, FrameTable)
    assert {column.dtype for column in reading.prediction.columns.values()} == {np.dtype(np.int64)}
    return {name: column.tolist() for name, column in reading.prediction.columns.items()}


def said(reading: Reading) -> list[str]:
    assert (reading.prediction, reading.notes) == (None, ())
    return [problem.what for problem in reading.problems]


WHOLE = [(10, 0, "Busy"), (15, 1, "Busy"), (20, 2, "Busy"), (25, 3, "Busy")]


# challenge.yaml.


@pytest.mark.parametrize(
    ("policies", "sentence"),
    [
        ({"missing_frames": {"step": -1}}, "missing_frames: a label for phase is not stated"),
        ({"missing_frames": {}}, "missing_frames: a label for phase, step is not stated"),
        ({"missing_frames": {**FILL, "verb": 1}}, "missing_frames: 'verb' is none of the columns: step, phase"),
        ({"missing_frames": {**FILL, "step": 5}}, "missing_frames: 5 is no label of step"),
        ({"missing_frames": {**FILL, "step": 9}}, "missing_frames: 9 is no label of step"),
        ({"missing_frames": {**FILL, "step": "1"}}, "missing_frames: '1' is no label of step"),
        ({"missing_frames": {**FILL, "phase": 1}}, "missing_frames: 1 is no label of phase"),
        ({"missing_frames": {**FILL, "phase": "idle"}}, "missing_frames: 'idle' is no label of phase"),
        ({"unknown_label": {"phase": "Other"}}, "unknown_label: 'Other' is no label of phase"),
        ({"unknown_label": {"t": 1}}, "unknown_label: 't' is none of the columns: step, phase"),
        ({"missing_frames": {**FILL, "step": True}}, "must be refuse, or a label by column: {phase: idle}"),
        ({"missing_frames": {**FILL, "step": 1.0}}, "must be refuse, or a label by column: {phase: idle}"),
        ({"missing_frames": "ignore"}, "must be refuse, or a label by column: {phase: idle}"),
        ({"unknown_label": "ignore"}, "must be refuse, or a label by column: {phase: idle}"),
        ({"extra_frames": "drop"}, "Input should be 'refuse' or 'ignore'"),
        ({"extra_files": "drop"}, "Input should be 'ignore' or 'refuse'"),
    ],
)
def test_a_table_is_filled_with_labels_of_its_own_columns(policies: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValidationError) as caught:
        table_rule(**policies)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("policies", "sentence"),
    [
        ({"missing_frames": 1.5}, "missing_frames: 1.5 is out of range"),
        ({"missing_frames": -0.5}, "missing_frames: -0.5 is out of range"),
        ({"missing_frames": 0.5, "whole": True}, "missing_frames: 0.5 is not whole, as scores must be"),
        ({"missing_frames": "zeros"}, "must be refuse, or the score of each class: 0"),
        ({"missing_frames": True}, "must be refuse, or the score of each class: 0"),
        ({"missing_frames": float("nan")}, "Input should be a finite number"),
    ],
)
def test_scores_are_filled_with_a_legal_one(policies: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValidationError) as caught:
        score_table_rule(**policies)
    assert sentence in str(caught.value)


def test_images_are_filled_with_one_of_their_classes() -> None:
    with pytest.raises(ValidationError, match="missing_frames: 2 is no class"):
        image_rule(missing_frames=2)
    for stated in ("0", True, 0.0, "drop"):
        with pytest.raises(ValidationError, match="must be refuse, or the number of a class: 0"):
            image_rule(missing_frames=stated)


def test_what_is_not_stated_is_refused() -> None:
    table_format, scores, images = table_rule(), score_table_rule(), image_rule()
    assert (table_format.missing_frames, table_format.extra_frames, table_format.unknown_label) == ("refuse",) * 3
    assert (scores.missing_frames, scores.extra_frames, images.missing_frames) == ("refuse",) * 3
    assert {one.extra_files for one in (table_format, scores, images)} == {"ignore"}


# Tables.


@pytest.mark.parametrize(
    ("rows", "steps", "phases", "note"),
    [
        (WHOLE, [0, 1, 2, 3], [0, 0, 0, 0], ()),
        (WHOLE[1:], [-1, 1, 2, 3], [1, 0, 0, 0], ("1 of 4 frames has no row and counts as step -1, phase Idle",)),
        (WHOLE[:1], [0, -1, -1, -1], [0, 1, 1, 1], ("3 of 4 frames have no row and count as step -1, phase Idle",)),
        ([WHOLE[0], WHOLE[3]], [0, -1, -1, 3], [0, 1, 1, 0],
         ("2 of 4 frames have no row and count as step -1, phase Idle",)),
        (WHOLE[::2], [0, -1, 2, -1], [0, 1, 0, 1], ("2 of 4 frames have no row and count as step -1, phase Idle",)),
    ],
)  # fmt: skip
def test_a_frame_without_a_row_counts_as_stated(
    rows: Sequence[Sequence[object]], steps: list[int], phases: list[int], note: tuple[str, ...]
) -> None:
    reading = read_table(table(rows), table_rule(missing_frames=FILL))
    assert labels(reading) == {"step": steps, "phase": phases}
    assert reading.notes == note


def test_every_second_frame_is_a_mistake_only_where_none_may_lack() -> None:
    text = table([(10, 0, "Busy"), (20, 1, "Busy"), (30, 2, "Busy")])
    reading = read_table(text, table_rule(missing_frames=FILL), frames=6)
    assert labels(reading)["step"] == [0, -1, 1, -1, 2, -1]
    assert said(read_table(text, table_rule(), frames=6)) == ["t rises by more than 5 a row"]


def test_a_column_that_is_not_there_is_not_filled() -> None:
    reading = read_table("t,step\n15,1\n", table_rule(missing_frames=FILL))
    assert labels(reading) == {"step": [-1, 1, -1, -1]}
    assert reading.notes == ("3 of 4 frames have no row and count as step -1",)


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("t,step,phase\n", ["there are no rows under the header; 4 are due"]),
        ("", ["the file is empty"]),
        (table([(20, 1, "Busy"), (15, 1, "Busy")]), ["row 3: t 15 comes after 20: rows must be in order"]),
        (table([(20, 1, "Busy"), (20, 1, "Busy")]), ["row 3: t 20 stands here again, as in row 2"]),
        (table([(20, 1, "Busy"), (30, 1, "Busy")]), ["row 3: t is beyond the last frame, 25"]),
        (table([(20, 1, "Busy"), (21, 1, "Busy")]), ["row 3: t is no frame: 10, 15, … are"]),
        (table([(n, 1, "Busy") for n in (15, 20, 25, 30)]), ["row 2: t starts at 15 where 10 is due"]),
        (table([(n, 1, "Busy") for n in (10, 20, 30)]), ["t rises by more than 5 a row"]),
        (table([(20, 5, "Busy")]), ["row 2: step is not a label: -1 to 4 are"]),
        (table([("x", 1, "Busy")]),
         ["row 2: t is not a whole number: only the digits 0 to 9 and a minus sign are read"]),
    ],
)  # fmt: skip
def test_what_else_is_wrong_with_a_table_stays_a_problem(text: str, problems: list[str]) -> None:
    assert said(read_table(text, table_rule(missing_frames=FILL))) == problems


@pytest.mark.parametrize(
    ("rows", "steps", "notes"),
    [
        ([*WHOLE, (30, 0, "Busy")], [0, 1, 2, 3], ("1 answer is to no frame and was left out",)),
        ([(5, 0, "Busy"), *WHOLE, (31, "secret", "")], [0, 1, 2, 3],
         ("2 answers are to no frame and were left out",)),
        ([WHOLE[0], (12, 0, "Busy"), *WHOLE[1:]], [0, 1, 2, 3], ("1 answer is to no frame and was left out",)),
    ],
)  # fmt: skip
def test_a_row_of_no_frame_is_left_out(
    rows: Sequence[Sequence[object]], steps: list[int], notes: tuple[str, ...]
) -> None:
    reading = read_table(table(rows), table_rule(extra_frames="ignore"))
    assert (labels(reading)["step"], reading.notes) == (steps, notes)


@pytest.mark.parametrize(
    ("rows", "problems"),
    [
        ([(5, 0, "Busy"), (30, 0, "Busy")], ["none of the rows is that of a frame; 4 are due"]),
        ([*WHOLE, ("30.0", 1, "Busy")],
         ["row 6: t is a decimal number: ids are whole numbers, write 3 and not 3.0",
          "row 6: t is beyond the last frame, 25"]),
        ([*WHOLE, (30, 1)], ["row 6: there are 2 fields where 3 are due", "row 6: t is beyond the last frame, 25"]),
        ([*WHOLE[:3], (30, 1, "Busy")], ["row 5: the table ends too early: the row for frame 25 is missing"]),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_not_left_out(rows: Sequence[Sequence[object]], problems: list[str]) -> None:
    assert said(read_table(table(rows), table_rule(extra_frames="ignore"))) == problems


def test_missing_and_further_rows_together() -> None:
    rule = table_rule(missing_frames=FILL, extra_frames="ignore")
    reading = read_table(table([(1, 1, "Busy"), (20, 2, "Busy"), (99, 1, "Busy")]), rule)
    assert labels(reading) == {"step": [-1, -1, 2, -1], "phase": [1, 1, 0, 1]}
    assert reading.notes == (
        "3 of 4 frames have no row and count as step -1, phase Idle",
        "2 answers are to no frame and were left out",
    )
    assert said(read_table(table([(1, 1, "Busy")]), rule)) == ["none of the rows is that of a frame; 4 are due"]


def test_an_unknown_label_counts_as_stated() -> None:
    rule = table_rule(unknown_label={"step": -1, "phase": "Idle"})
    rows = [(10, 77, "Busy"), (15, 9, "Waits"), (20, -2, "nan"), (25, 3, "1.0")]
    reading = read_table(table(rows), rule)
    assert labels(reading) == {"step": [-1, -1, -1, 3], "phase": [0, 1, 1, 1]}
    assert reading.notes == (
        "3 labels of step are unknown and count as -1",
        "3 labels of phase are unknown and count as Idle",
    )
    reading = read_table(table([*WHOLE[:3], (25, 5, "Busy")]), rule)
    assert (labels(reading)["step"], reading.notes) == (
        [0, 1, 2, -1], ("1 label of step is unknown and counts as -1",)
    )  # fmt: skip


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ((25, "", "Busy"), "row 5: step is empty"),
        ((25, "2.0", "Busy"), "row 5: step is a decimal number: ids are whole numbers, write 3 and not 3.0"),
        ((25, "nan", "Busy"), "row 5: step is no number (NaN, infinite or null)"),
        ((25, 1, ""), "row 5: phase is empty"),
        ((25, 1, "0"), "row 5: phase is a number where a name is due: Busy, Idle are"),
        ((25, 1, "idle"),
         "row 5: phase is not written exactly as the label: mind case, spaces and underscores in Busy, Idle"),
    ],
)  # fmt: skip
def test_a_label_that_cannot_be_read_is_not_unknown(row: Sequence[object], problem: str) -> None:
    rule = table_rule(unknown_label={"step": -1, "phase": "Idle"})
    assert said(read_table(table([*WHOLE[:3], row]), rule)) == [problem]


def test_a_column_that_states_nothing_refuses_what_is_unknown() -> None:
    rows = [*WHOLE[:3], (25, 5, "Waits")]
    assert said(read_table(table(rows), table_rule(unknown_label={"phase": "Busy"}))) == [
        "row 5: step is not a label: -1 to 4 are"
    ]


LENIENT = table_rule(missing_frames=FILL, extra_frames="ignore", unknown_label={"step": 0})


def test_a_reference_is_held_to_all_of_it() -> None:
    strict = read_table(table(WHOLE[1:]), LENIENT, role=Role.REFERENCE)
    assert said(strict) == ["row 2: t is 15 where 10 was due: the row for frame 10 is missing"]
    assert said(read_table(table([*WHOLE, (30, 1, "Busy")]), LENIENT, role=Role.REFERENCE)) == [
        "row 6: t is beyond the last frame, 25"
    ]
    assert said(read_table(table([*WHOLE[:3], (25, 77, "Busy")]), LENIENT, role=Role.REFERENCE)) == [
        "row 5: step is not a label: -1 to 4, 9 are"
    ]


def test_frames_that_nobody_knows_are_neither_missing_nor_too_many() -> None:
    assert said(read_table(table([WHOLE[0], WHOLE[2]]), LENIENT, frames=None)) == [
        "row 3: t is 20 where 15 was due: the row for frame 15 is missing"
    ]
    assert said(read_table(table([*WHOLE, (10**14, 1, "Busy")]), LENIENT, frames=None)) == [
        (
            "row 6: t is 100000000000000 where 30 was due: the rows for frames 30 to 99999999999995 are missing "
            "(19999999999994)"
        )
    ]
    assert said(read_table(table([*WHOLE, (31, 1, "Busy")]), LENIENT, frames=None)) == [
        "row 6: t is no frame: 10, 15, … are"
    ]
    reading = read_table(table([*WHOLE, (30, 88, "Busy")]), LENIENT, frames=None)
    assert (labels(reading)["step"], reading.notes) == (
        [0, 1, 2, 3, 0], ("1 label of step is unknown and counts as 0",)
    )  # fmt: skip


ROW = st.tuples(st.sampled_from([5, 10, 12, 15, 20, 25, 30]), st.integers(-2, 5), st.sampled_from(["Busy", "Idle"]))


@settings(max_examples=200, deadline=None)
@given(st.lists(ROW, max_size=6), st.booleans(), st.booleans(), st.booleans())
def test_a_lenient_reading_is_the_strict_one_of_the_mended_table(
    rows: list[tuple[int, int, str]],
    fills: bool,
    drops: bool,
    stands_in: bool,
) -> None:
    policies: dict[str, object] = {}
    policies |= {"missing_frames": FILL} if fills else {}
    policies |= {"extra_frames": "ignore"} if drops else {}
    policies |= {"unknown_label": {"step": 2}} if stands_in else {}
    lenient = read_table(table(rows), table_rule(**policies))
    frames = [10, 15, 20, 25]
    mended = [row for row in rows if row[0] in frames] if drops else list(rows)
    if stands_in:
        mended = [(time, step if -1 <= step <= 4 else 2, phase) for time, step, phase in mended]
    if fills and mended:
        times = {time for time, _, _ in mended}
        for missing in (time for time in frames if time not in times):
            place = sum(time < missing for time, _, _ in mended)
            mended.insert(place, (missing, -1, "Idle"))
    strict = read_table(table(mended), table_rule())
    assert (lenient.prediction is None) == (strict.prediction is None)
    if strict.prediction is not None:
        assert labels(lenient) == labels(strict)


@settings(max_examples=100, deadline=None)
@given(st.permutations(range(4)))
def test_a_whole_table_reads_the_same_whatever_is_stated(steps: list[int]) -> None:
    text = table([(10 + 5 * place, step, "Busy") for place, step in enumerate(steps)])
    assert labels(read_table(text, LENIENT)) == labels(read_table(text, table_rule()))
    assert read_table(text, LENIENT).notes == ()


class Impostor(Confine):
    """Answers what a child that was taken over might."""

    def __init__(self, answer: Reply) -> None:
        super().__init__()
        self._answer = answer

    def call(self, *_: object, **__: object) -> Reply:
        return self._answer


GARBLED = "the file could not be read: the reader stopped: "
PARTS, MORE = f"{GARBLED}its answer lacks its parts", f"{GARBLED}its answer counts more than it holds"
STEPS = np.array([-1, 0, 0, -1])
TWO_IDLE = np.array([1, 0, 1, 1])


def answered(counts: JsonValue, **arrays: Any) -> Reply:
    header: dict[str, JsonValue] = {"problems": [], "count": 0}
    return Reply(header=header if counts is None else header | {"counts": counts}, arrays=arrays)


@pytest.mark.parametrize(
    ("counts", "problem"),
    [
        ([2, 7, 2], None),
        ([0, 0, 0], None),
        (None, PARTS),
        ([], PARTS),
        ([2, 7], PARTS),
        ([2, 7, 2, 0], PARTS),
        ([2, 7, True], PARTS),
        ([2, 7, "2"], PARTS),
        ([2, 7, -1], PARTS),
        ([2, 7, 1 << 40], PARTS),
        ([3, 7, 2], MORE),
        ([2, 500_001, 2], MORE),
        ([2, 7, 3], MORE),
    ],
)
def test_counts_that_a_child_could_not_have_are_not_believed(
    tmp_path: Path, counts: JsonValue, problem: str | None
) -> None:
    (tmp_path / "x").touch()
    confine = Impostor(answered(counts, step=STEPS, phase=TWO_IDLE))
    reading = frame_table.confined_read(confine, LENIENT, tmp_path / "x", frames=4, role=Role.PREDICTION)
    assert [one.what for one in reading.problems] == ([] if problem is None else [problem])
    assert bool(reading.notes) == (counts == [2, 7, 2])


def test_not_every_frame_can_lack_a_row(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    confine = Impostor(answered([4, 0, 0], step=np.full(4, -1), phase=np.full(4, 1)))
    reading = frame_table.confined_read(confine, LENIENT, tmp_path / "x", frames=4, role=Role.PREDICTION)
    assert [one.what for one in reading.problems] == [MORE]


@pytest.mark.parametrize(("policy", "counts"), [("extra_frames", [1, 0]), ("missing_frames", [0, 1])])
def test_what_is_refused_cannot_have_been_counted(tmp_path: Path, policy: str, counts: JsonValue) -> None:
    (tmp_path / "x").touch()
    rule = table_rule(**{policy: "ignore" if policy == "extra_frames" else FILL})
    confine = Impostor(answered(counts, step=STEPS, phase=TWO_IDLE))
    reading = frame_table.confined_read(confine, rule, tmp_path / "x", frames=4, role=Role.PREDICTION)
    assert [one.what for one in reading.problems] == [MORE]
    strict = Impostor(answered(counts, step=STEPS, phase=TWO_IDLE))
    reading = frame_table.confined_read(strict, table_rule(), tmp_path / "x", frames=4, role=Role.PREDICTION)
    assert [one.what for one in reading.problems] == [PARTS]


# Scores.


def score_rule_of(**policies: object) -> FrameScoresFormat:
    return FrameScoresFormat.model_validate(
        {"kind": "frame_scores", "file": "{case}.json", "classes": 2, "key": "s", "range": [0, 1]} | policies
    )


def score_table_rule(**policies: object) -> FrameScoresFormat:
    return score_rule_of(layout="table", key="", first=1, **policies)


IDS = "ids are the names of the frames' files, without the extension"
DUE = Due(frames=("a.png", "b.png", "c.png"), count=3)


def read_scores(content: str, rule: FrameScoresFormat, *, due: Due = DUE, role: Role = Role.PREDICTION) -> Reading:
    descriptor = opened(content)
    try:
        reading = frame_scores.read_frame_scores(rule, descriptor, due=due, role=role)
    finally:
        os.close(descriptor)
    let_through = score_rule.sentences(rule, due.count)
    assert [one.what for one in reading.problems if not let_through.fullmatch(one.what)] == []
    return reading


def scores_of(reading: Reading) -> list[list[float]]:
    assert reading.problems == ()
    assert isinstance(reading.prediction, FrameScores)
    return [[float(score) for score in row] for row in reading.prediction.scores]


def written(frames: Mapping[str, object]) -> str:
    return json.dumps({name: {"s": scores} for name, scores in frames.items()})


@pytest.mark.parametrize(
    ("rule", "content"),
    [
        (score_rule_of(missing_frames=0.25), written({"b": [0, 1]})),
        (score_table_rule(missing_frames=0.25), "2,0,1\n"),
    ],
    ids=["json", "table"],
)
def test_a_frame_without_scores_has_the_one_stated(rule: FrameScoresFormat, content: str) -> None:
    reading = read_scores(content, rule)
    assert scores_of(reading) == [[0.25, 0.25], [0, 1], [0.25, 0.25]]
    assert reading.notes == ("2 of 3 frames have no scores and count as 0.25 in each class",)


def test_frames_without_scores_may_lie_side_by_side() -> None:
    reading = read_scores(written({"a": [0, 1]}), score_rule_of(missing_frames=1))
    assert scores_of(reading) == [[0, 1], [1, 1], [1, 1]]
    assert reading.notes == ("2 of 3 frames have no scores and count as 1 in each class",)
    reading = read_scores(written({"a": [0, 1], "c": [1, 0]}), score_rule_of(missing_frames=1))
    assert scores_of(reading) == [[0, 1], [1, 1], [1, 0]]
    assert reading.notes == ("1 of 3 frames has no scores and counts as 1 in each class",)


def test_one_frame_without_scores() -> None:
    reading = read_scores("1,0,1\n3,1,0\n", score_table_rule(missing_frames=0))
    assert scores_of(reading) == [[0, 1], [0, 0], [1, 0]]
    assert reading.notes == ("1 of 3 frames has no scores and counts as 0 in each class",)


@pytest.mark.parametrize(
    ("content", "problems"),
    [
        ("{}", ["there are no frames"]),
        (written({"b": [0, 2]}), ["frame 2 of 3: 1 of 2 scores are greater than 1, the first is that of class 1"]),
        ('{"b": null}', ["frame 2 of 3: an object that holds 's' is due"]),
        (written({"x": [0, 1]}),
         [f"entry 1 is none of the 3 frames: {IDS}"]),
        (written({"b.png": [0, 1]}),
         [f"entry 1 is not named exactly as frame 2 of 3 is: {IDS}"]),
    ],
)  # fmt: skip
def test_what_else_is_wrong_with_scores_stays_a_problem(content: str, problems: list[str]) -> None:
    assert said(read_scores(content, score_rule_of(missing_frames=0))) == problems


@pytest.mark.parametrize(
    ("content", "problems"),
    [
        ("\n", ["the file is empty"]),
        ("3,0,1\n1,0,1\n", ["row 2: the frame's number 1 comes after 3: rows must be in order"]),
        ("2,0\n", ["row 1: there are fewer than 2 scores"]),
        ("4,0,1\n", ["row 1: the frame's number is beyond the last frame, 3"]),
    ],
)
def test_what_else_is_wrong_with_a_table_of_scores(content: str, problems: list[str]) -> None:
    assert said(read_scores(content, score_table_rule(missing_frames=0))) == problems


def test_scores_of_no_frame_are_left_out_and_told() -> None:
    reading = read_scores("0,9,9\n1,0,1\n2,0,1\n3,0,1\n4,x\n", score_table_rule(extra_frames="ignore"))
    assert scores_of(reading) == [[0, 1]] * 3
    assert reading.notes == ("2 answers are to no frame and were left out",)
    rule = score_rule_of(extra_frames="ignore", missing_frames=1)
    reading = read_scores(written({"x": [9, 9], "c": [0, 0]}), rule)
    assert scores_of(reading) == [[1, 1], [1, 1], [0, 0]]
    assert reading.notes == (
        "2 of 3 frames have no scores and count as 1 in each class",
        "1 answer is to no frame and was left out",
    )
    assert said(read_scores(written({"x": [0, 0]}), rule)) == ["there are no frames"]
    assert said(read_scores("9,0,1\n", score_table_rule(extra_frames="ignore"))) == [
        "none of the rows is that of a frame; 3 are due"
    ]


def test_references_and_unknown_frames_are_not_filled() -> None:
    json_rule, table_format = score_rule_of(missing_frames=0), score_table_rule(missing_frames=0)
    assert said(read_scores(written({"b": [0, 1]}), json_rule, role=Role.REFERENCE)) == [
        "frame 1 of 3 is missing",
        "frame 3 of 3 is missing",
    ]
    assert said(read_scores("1,0,1\n3,0,1\n", table_format, role=Role.REFERENCE)) == [
        "row 2: the frame's number is 3 where 2 was due: the row for frame 2 is missing"
    ]
    assert said(read_scores("1,0,1\n3,0,1\n", table_format, due=Due())) == [
        "row 2: the frame's number is 3 where 2 was due: the row for frame 2 is missing"
    ]
    assert said(read_scores(f"1,0,1\n{10**14},0,1\n", table_format, due=Due())) == [
        (
            "row 2: the frame's number is 100000000000000 where 2 was due: "
            "the rows for frames 2 to 99999999999999 are missing (99999999999998)"
        )
    ]


@pytest.mark.parametrize(
    ("counts", "problem"),
    [([1, 3], None), (None, PARTS), ([1], PARTS), ([2, 0], MORE), ([1, 10**7], MORE)],
)
def test_counts_of_scores_are_not_believed(tmp_path: Path, counts: JsonValue, problem: str | None) -> None:
    (tmp_path / "x").touch()
    confine = Impostor(answered(counts, scores=np.array([[0.0, 0], [0, 1], [1, 0]])))
    rule = score_rule_of(missing_frames=0, extra_frames="ignore")
    reading = frame_scores.confined_read(confine, rule, tmp_path / "x", due=DUE, role=Role.PREDICTION)
    assert [one.what for one in reading.problems] == ([] if problem is None else [problem])
    assert bool(reading.notes) == (problem is None)


def test_not_every_frame_can_lack_scores(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    confine = Impostor(answered([3, 0], scores=np.zeros((3, 2))))
    rule = score_rule_of(missing_frames=0)
    reading = frame_scores.confined_read(confine, rule, tmp_path / "x", due=DUE, role=Role.PREDICTION)
    assert [one.what for one in reading.problems] == [MORE]


def test_a_child_tells_the_same(confine: Confine, tmp_path: Path) -> None:
    text = table([(1, 1, "Busy"), (20, 77, "Busy")])
    (tmp_path / "x").write_text(text)
    reading = read_output(confine, LENIENT, tmp_path / "x", due=Due(count=4), role=Role.PREDICTION)
    assert labels(reading) == {"step": [-1, -1, 0, -1], "phase": [1, 1, 0, 1]}
    assert reading.notes == read_table(text, LENIENT).notes == (
        "3 of 4 frames have no row and count as step -1, phase Idle",
        "1 answer is to no frame and was left out",
        "1 label of step is unknown and counts as 0",
    )  # fmt: skip
    (tmp_path / "x").write_text(table([(20, 1, "Idle"), (15, 1, "Idle")]))
    assert said(read_output(confine, LENIENT, tmp_path / "x", due=Due(count=4), role=Role.PREDICTION)) == [
        "row 3: t 15 comes after 20: rows must be in order"
    ]
    with pytest.raises(UsageError, match="is missing"):
        read_output(confine, LENIENT, tmp_path / "x", due=Due(count=4), role=Role.REFERENCE)
    (tmp_path / "x").write_text(written({"b": [0, 1]}))
    rule = score_rule_of(missing_frames=0.5)
    reading = read_output(confine, rule, tmp_path / "x", due=DUE, role=Role.PREDICTION)
    assert scores_of(reading) == [[0.5, 0.5], [0, 1], [0.5, 0.5]]
    assert reading.notes == ("2 of 3 frames have no scores and count as 0.5 in each class",)


# Images.


def image_rule(**policies: object) -> LabelImagesFormat:
    return LabelImagesFormat.model_validate(
        {
            "kind": "label_images", "file": "{case}/{frame}.png", "coding": "index", "width": 3, "height": 2,
            "classes": {0: {"name": "background"}, 7: {"name": "tissue"}},
        } | policies
    )  # fmt: skip


FRAMES = tuple(f"{number:02}" for number in range(20))


def read_images(
    confine: Confine, path: Path, there: Sequence[int], *, role: Role = Role.PREDICTION, **policies: object
) -> Reading:
    path.mkdir(exist_ok=True)
    for number in there:
        Image.fromarray(np.full((2, 3), 7 * (number % 2), np.uint8)).save(path / f"{number:02}.png")
    due = Due(frames=FRAMES, count=20)
    return label_images.confined_read(confine, image_rule(**policies), path, due=due, role=role)


@pytest.mark.parametrize(
    "missing", [[0], [19], [8], [0, 1, 2, 3, 9, 18, 19], list(range(1, 20)), list(range(19)), []], ids=str
)
def test_a_frame_without_an_image_is_of_one_class(confine: Confine, tmp_path: Path, missing: list[int]) -> None:
    there = [number for number in range(20) if number not in missing]
    reading = read_images(confine, tmp_path / "x", there, missing_frames=7)
    assert isinstance(reading.prediction, LabelImages)
    for _ in range(2):
        found = list(reading.prediction)
        assert {(image.shape, image.dtype) for image in found} == {((2, 3), np.dtype(np.uint8))}
        assert [image.tolist() for image in found] == [
            [[7 if number in missing else 7 * (number % 2)] * 3] * 2 for number in range(20)
        ]
    have = "1 of 20 frames has no image and counts" if len(missing) == 1 else (
        f"{len(missing)} of 20 frames have no image and count")  # fmt: skip
    assert reading.notes == ((f"{have} as wholly 7 (tissue)",) if missing else ())


def test_a_folder_without_any_image_is_refused(confine: Confine, tmp_path: Path) -> None:
    assert said(read_images(confine, tmp_path / "x", [], missing_frames=0)) == [
        "there is an image for none of the 20 frames"
    ]


def test_what_is_no_image_is_not_missing(confine: Confine, tmp_path: Path) -> None:
    folder = tmp_path / "x"
    folder.mkdir()
    (folder / "00.png").symlink_to("nowhere")
    (folder / "01.png").mkdir()
    (folder / "02.png").write_bytes(b"")
    assert said(read_images(confine, folder, range(4, 20), missing_frames=0)) == [
        "frame 1 of 20: the image is no regular file",
        "frame 2 of 20: the image is no regular file",
        "frame 3 of 20: the file is empty",
    ]


def test_what_cannot_be_looked_at_is_not_missing(confine: Confine, tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    due = Due(frames=FRAMES[:2], count=2)
    rule = image_rule(missing_frames=0)
    assert said(label_images.confined_read(confine, rule, tmp_path / "x", due=due, role=Role.PREDICTION)) == [
        "frame 1 of 2: the image cannot be opened",
        "frame 2 of 2: the image cannot be opened",
    ]


def test_a_reference_lacks_no_image(confine: Confine, tmp_path: Path) -> None:
    reading = read_images(confine, tmp_path / "x", range(1, 20), role=Role.REFERENCE, missing_frames=0)
    assert said(reading) == ["frame 1 of 20: the image is missing"]


def test_an_image_that_was_there_is_not_filled_in_later(confine: Confine, tmp_path: Path) -> None:
    reading = read_images(confine, tmp_path / "x", range(1, 20), missing_frames=0)
    assert isinstance(reading.prediction, LabelImages)
    (tmp_path / "x" / "19.png").unlink()
    arriving = reading.prediction.read()
    for _ in range(19):
        next(arriving)
    with pytest.raises(HostFault, match="frame 20 of 20: the image is missing"):
        next(arriving)


def test_an_image_that_came_later_is_not_looked_at(confine: Confine, tmp_path: Path) -> None:
    reading = read_images(confine, tmp_path / "x", range(1, 20), missing_frames=0)
    assert isinstance(reading.prediction, LabelImages)
    Image.fromarray(np.full((2, 3), 7, np.uint8)).save(tmp_path / "x" / "00.png")
    assert next(iter(reading.prediction)).tolist() == [[0] * 3] * 2


# What stands beside.


def test_what_is_not_due_may_be_refused() -> None:
    good = Reading(prediction=FrameTable(columns={"step": STEPS}), notes=("note",))
    strict, lax = table_rule(extra_files="refuse"), table_rule()
    assert beside(strict, good, stray=0) is good
    assert beside(lax, good, stray=3) is good
    assert said(beside(strict, good, stray=1)) == ["the output folder holds 1 file or folder that is not due"]
    assert said(beside(strict, good, stray=2)) == ["the output folder holds 2 files or folders that are not due"]


def test_it_comes_before_what_else_is_wrong() -> None:
    bad = read_table("t,step\n10,x\n11,1\n" + "1,x\n" * 60, table_rule())
    found = beside(table_rule(extra_files="refuse"), bad, stray=2)
    assert found.problems[0].what == "the output folder holds 2 files or folders that are not due"
    assert found.problems[1:] == bad.problems[:49]
    assert (len(found.problems), found.problem_count) == (50, bad.problem_count + 1)
