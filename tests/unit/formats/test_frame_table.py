"""A frame table: right ones are read, and of wrong ones every problem is named in our own words."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.challenge.formats import ColumnRule, FrameTableFormat, IndexRule
from runner.confine import Confine, ConfinedFailure, FailureKind, JsonValue, Privileges, Reply
from runner.errors import UsageError
from runner.formats import frame_rule
from runner.formats import frame_table as module
from runner.formats.contract import Due, FrameTable, Problem, Reading
from runner.formats.frame_rule import Fault
from runner.formats.frame_table import Role, confined_read, legal_labels, read_frame_table
from runner.formats.readers import csv_table
from runner.formats.readers.problems import sentence_pattern
from runner.formats.reading import read_output

RULE = FrameTableFormat(
    kind="frame_table",
    file="{case}.csv",
    index=IndexRule(column="int_time"),
    columns={"int_step": ColumnRule(labels=tuple(range(-1, 15)), prediction_only=(0,), reference_only=(99,))},
)
NOT_A_LABEL = "is not a label: -1 to 14 are"

PHASES = ("Idle", "Transfer Left to Right", "Transfer Right to Left")
PETRAW = FrameTableFormat(
    kind="frame_table",
    file="{case}.txt",
    separator="\t",
    index=IndexRule(column="Frame"),
    columns={"Phase": ColumnRule(names=PHASES), "Step": ColumnRule(labels=(1, 2), missing="allow")},
)
LEGAL = "Idle, Transfer Left to Right, Transfer Right to Left"
OPTIONAL = {name: column.model_copy(update={"missing": "allow"}) for name, column in PETRAW.columns.items()}


def read(
    text: str | bytes,
    *,
    frames: int | None = 3,
    role: Role = Role.PREDICTION,
    rule: FrameTableFormat = RULE,
) -> Reading:
    descriptor = os.memfd_create("table")
    try:
        os.write(descriptor, text.encode() if isinstance(text, str) else text)
        reading = read_frame_table(rule, descriptor, frames=frames, role=role)
    finally:
        os.close(descriptor)
    let_through = frame_rule.sentences(rule, frames, role)
    assert [problem.what for problem in reading.problems if not let_through.fullmatch(problem.what)] == []
    return reading


def columns(reading: Reading) -> dict[str, list[int]]:
    assert isinstance(reading.prediction, FrameTable)
    return {name: column.tolist() for name, column in reading.prediction.columns.items()}


def sentences(text: str | bytes, **how: object) -> list[str]:
    reading = read(text, **how)  # type: ignore[arg-type]
    assert reading.prediction is None
    assert reading.problem_count == len(reading.problems)
    return [problem.what for problem in reading.problems]


def table(rows: Sequence[tuple[object, object]], header: str = "int_time,int_step") -> str:
    return "".join(f"{line}\n" for line in [header, *(f"{time},{step}" for time, step in rows)])


def test_a_right_table_is_read() -> None:
    reading = read("int_time,int_step\n0,-1\n1,14\n2,0\n")
    assert reading.problems == ()
    assert isinstance(reading.prediction, FrameTable)
    assert reading.prediction.frames == 3
    assert reading.prediction.columns["int_step"].tolist() == [-1, 14, 0]
    assert reading.prediction.columns["int_step"].dtype == np.int64


@pytest.mark.parametrize(
    "text",
    [
        "int_step,int_time\n-1,0\n14,1\n0,2\n",
        "int_time,int_step\r\n0,-1\r\n1,14\r\n2,0\r\n",
        '\ufeff"int_time","int_step"\n"0","-1"\n1,14\n2,0',
        "int_time,int_step\n00000,-1\n00001,14\n00002,00\n\n",
    ],
)
def test_the_same_table_in_other_clothes(text: str) -> None:
    assert columns(read(text)) == {"int_step": [-1, 14, 0]}


@pytest.mark.parametrize(
    ("header", "problems"),
    [
        ("int_time,int_setp", ["column 2 is not named exactly 'int_step', which is missing: did you mean it?"]),
        ("Int_Time,int_step", ["column 1 is not named exactly 'int_time', which is missing: did you mean it?"]),
        ("int_time, int_step", ["column 2 is not named exactly 'int_step', which is missing: did you mean it?"]),
        ("int_time,zzz", ["column 2 is not asked for: the columns are int_time, int_step",
                          "there is no column 'int_step'"]),
        ("int_time,int_time", ["column 2 is 'int_time' again, as column 1", "there is no column 'int_step'"]),
        ("x,y", ["column 1 is not asked for: the columns are int_time, int_step",
                 "column 2 is not asked for: the columns are int_time, int_step",
                 "there is no column 'int_time'", "there is no column 'int_step'"]),
    ],
)  # fmt: skip
def test_headers(header: str, problems: list[str]) -> None:
    assert sentences(table([(0, 1), (1, 1), (2, 1)], header)) == problems


def test_the_index_that_pandas_writes_is_recognised() -> None:
    assert sentences(",int_time,int_step\n0,0,1\n1,1,1\n2,2,1\n") == [
        "column 1 has no name: is it an index? (pandas: to_csv(..., index=False))"
    ]


def test_a_missing_header_is_one_problem_and_the_rows_are_still_read() -> None:
    assert sentences("0,1\n1,1\n2,77\n") == [
        "there is no header: the first row must be int_time,int_step",
        f"row 3: int_step {NOT_A_LABEL}",
    ]


def test_a_header_in_the_middle_is_named() -> None:
    assert sentences(table([(0, 1), ("int_time", "int_step"), (1, 1), (2, 1)])) == [
        "row 3: the header stands here again"
    ]


@pytest.mark.parametrize(
    ("separator", "name"), [(";", "a semicolon"), ("\t", "a tab"), (" ", "a space"), ("|", "a bar")]
)
def test_a_wrong_separator_is_one_problem(separator: str, name: str) -> None:
    text = table([(0, 1), (1, 1), (2, 1)]).replace(",", separator)
    assert sentences(text) == [f"the fields are separated by {name} where a comma is due"]


def test_another_separator_may_be_the_right_one() -> None:
    rule = RULE.model_copy(update={"separator": "\t"})
    assert read("int_time\tint_step\n0\t1\n", frames=1, rule=rule).prediction is not None
    assert sentences("int_time,int_step\n0,1\n", frames=1, rule=rule) == [
        "the fields are separated by a comma where a tab is due"
    ]


@pytest.mark.parametrize(
    ("cell", "fault"),
    [
        ("15", NOT_A_LABEL),
        ("99", NOT_A_LABEL),
        ("-2", NOT_A_LABEL),
        ("", "is empty"),
        ("nan", "is no number (NaN, infinite or null)"),
        ("3.0", "is a decimal number: ids are whole numbers, write 3 and not 3.0"),
        ("\u0663", "is not a whole number: only the digits 0 to 9 and a minus sign are read"),
        ("1_0", "is not a whole number: only the digits 0 to 9 and a minus sign are read"),
        ("suture", "is not a whole number: only the digits 0 to 9 and a minus sign are read"),
    ],
)
def test_labels(cell: str, fault: str) -> None:
    reading = read(table([(0, 1), (1, cell), (2, 1)]))
    (problem,) = reading.problems
    assert (problem.what, problem.row, problem.column, problem.value) == (
        f"row 3: int_step {fault}",
        3,
        "int_step",
        ascii(cell),
    )


@pytest.mark.parametrize(
    ("times", "problems"),
    [
        ([], ["there are no rows under the header; 3 are due"]),
        ([0, 2], ["row 3: int_time is 2 where 1 was due: the row for frame 1 is missing"]),
        ([1, 2], ["row 2: int_time is 1 where 0 was due: the row for frame 0 is missing"]),
        ([0, 1], ["row 4: the table ends too early: the row for frame 2 is missing"]),
        ([0], ["row 3: the table ends too early: the rows for frames 1 to 2 are missing (2)"]),
        ([0, 1, 2, 3], ["row 5: int_time is beyond the last frame, 2"]),
        ([0, 1, 2, 3, 4, 5], ["row 5: int_time is beyond the last frame, 2; 3 rows are too many"]),
        ([0, 1, 1, 2], ["row 4: int_time 1 stands here again, as in row 3"]),
        ([0, 2, 1], ["row 4: int_time 1 comes after 2: rows must be in order"]),
        ([0, 1, -1, 2], ["row 4: int_time is no frame: 0, 1, … are"]),
        ([1, 2, 3], ["row 2: int_time starts at 1 where 0 is due"]),
        ([3, 4, 5], ["row 2: int_time does not start at 0"]),
        ([-1, 0, 1], ["row 2: int_time does not start at 0"]),
        ([0, 24, 48], ["int_time rises by more than 1 a row"]),
        ([0, 10**14, 2], ["row 3: int_time is beyond the last frame, 2",
                          "row 4: int_time is 2 where 1 was due: the row for frame 1 is missing"]),
        ([2, 1, 0], ["row 3: int_time 1 comes after 2: rows must be in order",
                     "row 4: int_time 0 comes after 2: rows must be in order"]),
    ],
)  # fmt: skip
def test_the_index(times: list[int], problems: list[str]) -> None:
    assert sentences(table([(number, 1) for number in times])) == problems


def test_missing_rows_are_named_as_ranges() -> None:
    times = [*range(300), *range(310, 400), *range(401, 600)]
    assert sentences(table([(number, 1) for number in times]), frames=605) == [
        "row 302: int_time is 310 where 300 was due: the rows for frames 300 to 309 are missing (10)",
        "row 392: int_time is 401 where 400 was due: the row for frame 400 is missing",
        "row 591: the table ends too early: the rows for frames 600 to 604 are missing (5)",
    ]


def test_a_row_whose_number_cannot_be_read_is_not_missing_as_well() -> None:
    assert sentences(table([(0, 1), ("x", 1), (2, 1)])) == [
        "row 3: int_time is not a whole number: only the digits 0 to 9 and a minus sign are read"
    ]
    assert sentences("int_time,int_step\n0,1\n1\n2,1\n") == ["row 3: there are 1 fields where 2 are due"]


def test_an_index_may_start_and_step_as_it_likes() -> None:
    rule = RULE.model_copy(update={"index": IndexRule(column="int_time", first=10, step=5)})
    assert read(table([(10, 1), (15, 1), (20, 1)]), rule=rule).prediction is not None
    assert sentences(table([(10, 1), (20, 1)]), rule=rule) == [
        "row 3: int_time is 20 where 15 was due: the row for frame 15 is missing"
    ]
    assert sentences(table([(10, 1), (12, 1), (15, 1), (20, 1)]), rule=rule) == [
        "row 3: int_time is no frame: 10, 15, … are"
    ]
    assert sentences(table([(10, 1), (11, 1), (12, 1)]), rule=rule) == ["int_time rises by less than 5 a row"]
    assert sentences(table([(15, 1), (20, 1), (25, 1)]), rule=rule) == ["row 2: int_time starts at 15 where 10 is due"]
    assert sentences(table([(11, 1), (16, 1), (21, 1)]), rule=rule) == ["row 2: int_time does not start at 10"]


def test_all_problems_are_listed_in_the_order_of_the_file() -> None:
    assert sentences("int_time,int_step\n0,nan\n1,2,3\n\n3,15\n", frames=5) == [
        "row 2: int_step is no number (NaN, infinite or null)",
        "row 3: there are 3 fields where 2 are due",
        "row 4: the row is empty",
        f"row 5: int_step {NOT_A_LABEL}",
        "row 5: int_time is 3 where 2 was due: the row for frame 2 is missing",
        "row 6: the table ends too early: the row for frame 4 is missing",
    ]


def test_all_are_counted_and_fifty_are_kept() -> None:
    reading = read(table([(number, "3.0") for number in range(3600)]), frames=3600)
    assert (len(reading.problems), reading.problem_count) == (50, 3600)
    assert [problem.row for problem in reading.problems] == list(range(2, 52))


def test_no_sentence_holds_a_byte_of_the_container() -> None:
    text = 'int_time,SECRET,SECRET2\nSECRET,SECRET,"SECRET\n0,SECRET,1\n'
    assert "SECRET" not in "".join(sentences(text))


@pytest.mark.parametrize(
    "times",
    [[201, 202, 203], [0, 201, 402], [0, 1, 201], [201, 201, 201], [0, 201, 1], [1, 201, 0], [-201, 0, 1], [201, 0, 1]],
)
def test_of_the_containers_numbers_only_those_of_frames_are_told(times: list[int]) -> None:
    reading = read(table([(number, 1) for number in times]))
    assert reading.problem_count > 0
    assert "201" not in "".join(problem.what for problem in reading.problems)
    assert "201" in "".join(problem.value or "" for problem in reading.problems)


FILES: list[tuple[str | bytes, int | None]] = [
    (b"x" * ((32 << 20) + 1), 3),
    (b"\n" * 500_002 + b"x", 3),
    ("int_time".encode("utf-16"), 3),
    ("", 3),
    ("int_time\0", 3),
    (b"\xff", 3),
    ("x" * 4097, 3),
    ("int_time,int_step\n\n1\r2,1\n" + '"1,1\n' + "," * 64 + "\n1\nint_time,int_step\n0,x\n", 3),
    ("int_time;int_step\n0;1\n", 3),
    ("0,1\n", 3),
    ("int_time,int_time,int_setp,,x\n", 3),
    ("x,y\n", 3),
    ("int_time,int_step\n", 3),
    ("int_time,int_step\n", None),
    *((table([(number, 1) for number in times]), 4) for times in (
        (0, 2, 4, 6), (1, 2, 3, 4), (2, 3, 4, 5, 6), (4, 5, 6, 7), (0, -1, 1, 4, 2), (0, 1, 1, 4, 5, 3, 2), (0, 3),
        (0, 2, 3), (0, 1, 2), (0,))),
]  # fmt: skip


def test_every_sentence_is_tried_and_each_is_one_the_parent_lets_through() -> None:
    tried = [problem.what for text, frames in FILES for problem in read(text, frames=frames).problems]
    tens = RULE.model_copy(update={"index": IndexRule(column="int_time", step=10)})
    tried += sentences(table([(0, 1), (1, 1), (2, 1)]), rule=tens)
    tried += sentences("Frame\n0\n", frames=1, rule=PETRAW.model_copy(update={"columns": OPTIONAL}))
    tried += sentences(table([(9, 1)]), rule=RULE.model_copy(update={"extra_frames": "ignore"}))
    names = ("header", "name", "names", "columns", "column", "mistake", "index", "found", "due", "number", "encoding")
    patterns = {fault: sentence_pattern([fault], **dict.fromkeys(names, ".*")) for fault in [*csv_table.Fault, *Fault]}
    assert [fault for fault, pattern in patterns.items() if not any(map(pattern.fullmatch, tried))] == []


def test_references_have_labels_and_columns_of_their_own() -> None:
    header = "int_video,int_time,int_step,int_instrument1,int_instrument2\n"
    text = header + "1,0,-1,-1,-2\n1,1,99,8,-2\n1,2,14,x,\n"
    assert columns(read(text, role=Role.REFERENCE)) == {"int_step": [-1, 99, 14]}
    assert sentences(text)[:2] == [
        "column 1 is not asked for: the columns are int_time, int_step",
        "column 4 is not asked for: the columns are int_time, int_step",
    ]


def test_a_label_that_only_predictions_may_hold_is_the_organisers_error() -> None:
    text = table([(0, 0), (1, 1), (2, 1)])
    assert read(text).prediction is not None
    assert sentences(text, role=Role.REFERENCE) == ["row 2: int_step is not a label: -1, 1 to 14, 99 are"]
    assert legal_labels(RULE.columns["int_step"], Role.REFERENCE) == {-1, *range(1, 15), 99}


def test_further_columns_may_be_allowed() -> None:
    rule = RULE.model_copy(update={"extra_columns": "ignore"})
    assert read("a,int_time,int_step\nx,0,1\n", frames=1, rule=rule).prediction is not None


def test_the_number_of_frames_may_be_unknown() -> None:
    assert columns(read(table([(number, 1) for number in range(7)]), frames=None)) == {"int_step": [1] * 7}
    assert sentences(table([(0, 1), (2, 1)]), frames=None) == [
        "row 3: int_time is 2 where 1 was due: the row for frame 1 is missing"
    ]


def both_ways(text: str, frames: int | None, rule: FrameTableFormat) -> tuple[Reading, Reading]:
    """What the short way and the long one say of the same table."""
    short = read(text, frames=frames, rule=rule)
    original = module._read_faultless
    module._read_faultless = lambda *_: None
    try:
        return short, read(text, frames=frames, rule=rule)
    finally:
        module._read_faultless = original


CELL = st.sampled_from(["0", "1", "2", "3", "-1", "15", "", "1.0", "nan", '"1"', " 1", "x"])


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(CELL, CELL), max_size=4), st.sampled_from(["\n", "\r\n"]), st.sampled_from([2, 3, None]))
def test_the_short_way_agrees_with_the_long_one(rows: list[tuple[str, str]], end: str, frames: int | None) -> None:
    text = table(rows).replace("\n", end)
    short, long = both_ways(text, frames, RULE)
    assert (short.problems, short.problem_count) == (long.problems, long.problem_count)
    assert (short.prediction is None) == (long.prediction is None) == (short.problem_count > 0)
    assert short.prediction is None or columns(short) == columns(long)


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=80))
def test_random_bytes_are_problems_and_never_exceptions(content: bytes) -> None:
    reading = read(b"int_time,int_step\n" + content)
    assert (reading.prediction is None) == (reading.problem_count > 0)


# Labels by name, and columns that may be missing.


def petraw(rows: Sequence[Sequence[object]], header: str = "Frame,Phase,Step") -> str:
    lines = [header.replace(",", "\t"), *("\t".join(map(str, row)) for row in rows)]
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_name_is_the_number_of_its_place(end: str) -> None:
    rows = [(0, PHASES[2], 1), (1, PHASES[0], 2), (2, PHASES[1], 2)]
    text = petraw(rows).replace("\n", end)
    assert columns(read(text, rule=PETRAW)) == {"Phase": [2, 0, 1], "Step": [1, 2, 2]}
    assert columns(read(text.replace("Idle", '"Idle"'), rule=PETRAW)) == {"Phase": [2, 0, 1], "Step": [1, 2, 2]}


@pytest.mark.parametrize(
    ("cell", "fault"),
    [
        ("", "is empty"),
        ("1", f"is a number where a name is due: {LEGAL} are"),
        ("idle", f"is not written exactly as the label: mind case, spaces and underscores in {LEGAL}"),
        (" Idle", f"is not written exactly as the label: mind case, spaces and underscores in {LEGAL}"),
        (
            "Transfer_Left_to_Right",
            f"is not written exactly as the label: mind case, spaces and underscores in {LEGAL}",
        ),
        ("TransferLeftToRight", f"is not written exactly as the label: mind case, spaces and underscores in {LEGAL}"),
        ("Transfer", f"is not a label: {LEGAL} are"),
        ("nan", f"is not a label: {LEGAL} are"),
        ("1.0", f"is not a label: {LEGAL} are"),
    ],
)
def test_names_that_are_none(cell: str, fault: str) -> None:
    (problem,) = read(petraw([(0, "Idle", 1), (1, cell, 1)]), frames=2, rule=PETRAW).problems
    assert (problem.what, problem.row, problem.column, problem.value) == (
        f"row 3: Phase {fault}",
        3,
        "Phase",
        ascii(cell),
    )


def test_of_many_names_the_first_thirty_are_listed() -> None:
    rule = PETRAW.model_copy(update={"columns": {"Phase": ColumnRule(names=tuple(f"n{k}" for k in range(33)))}})
    (sentence,) = sentences("Frame\tPhase\n0\tx\n", frames=1, rule=rule)
    assert sentence == f"row 2: Phase is not a label: {', '.join(f'n{k}' for k in range(30))} and 3 more are"


def test_a_name_that_only_predictions_may_hold() -> None:
    rule = PETRAW.model_copy(update={"columns": {"Phase": ColumnRule(names=PHASES, prediction_only=(0,))}})
    text = "Frame\tPhase\n0\tIdle\n"
    assert columns(read(text, frames=1, rule=rule)) == {"Phase": [0]}
    assert sentences(text, frames=1, rule=rule, role=Role.REFERENCE) == [
        "row 2: Phase is not a label: Transfer Left to Right, Transfer Right to Left are"
    ]


def test_a_table_of_names_without_a_header_is_one_problem() -> None:
    text = petraw([(0, "Idle", 1), (1, "Idle", 3)]).partition("\n")[2]
    assert sentences(text, frames=2, rule=PETRAW) == [
        "there is no header: the first row must be Frame\tPhase\tStep",
        "row 2: Step is not a label: 1 to 2 are",
    ]


@pytest.mark.parametrize("text", ["Frame\tPhase\n0\tIdle\n", 'Frame\tPhase\n0\t"Idle"\n'])
def test_a_column_that_may_be_missing_is_not_there_then(text: str) -> None:
    assert columns(read(text, frames=1, rule=PETRAW)) == {"Phase": [0]}
    assert sentences(text, frames=1, rule=PETRAW, role=Role.REFERENCE) == ["there is no column 'Step'"]


def test_a_column_that_must_be_there_is_missed() -> None:
    assert sentences("Frame\tStep\n0\t1\n", frames=1, rule=PETRAW) == ["there is no column 'Phase'"]


@pytest.mark.parametrize("column", ["Step", "Phase"])
def test_one_of_the_columns_must_be_there(column: str) -> None:
    rule = PETRAW.model_copy(update={"columns": OPTIONAL})
    text = f"Frame\t{column}\n0\t{'1' if column == 'Step' else 'Idle'}\n"
    assert set(columns(read(text, frames=1, rule=rule))) == {column}
    assert sentences("Frame\n0\n", frames=1, rule=rule) == ["there is none of the columns Phase, Step"]


def test_a_misspelt_column_that_may_be_missing_is_not_taken_for_missing() -> None:
    assert sentences("Frame\tPhase\tstep\n0\tIdle\t1\n", frames=1, rule=PETRAW) == [
        "column 3 is not named exactly 'Step', which is missing: did you mean it?"
    ]


NAMED_CELL = st.sampled_from(["Idle", "Transfer Left to Right", '"Idle"', "idle", "", "1", "x\rIdle", "Idle\tIdle"])


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(CELL, NAMED_CELL, st.sampled_from(["1", "2", "02", "3", "1.0", ""])), max_size=3),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([2, None]),
)
def test_the_short_way_agrees_with_the_long_one_on_names(
    rows: list[tuple[str, str, str]], end: str, frames: int | None
) -> None:
    short, long = both_ways(petraw(rows).replace("\n", end), frames, PETRAW)
    assert (short.problems, short.problem_count) == (long.problems, long.problem_count)
    assert (short.prediction is None) == (long.prediction is None) == (short.problem_count > 0)
    assert short.prediction is None or columns(short) == columns(long)


def test_an_hour_of_names_at_thirty_frames_a_second_is_read(confine: Confine, tmp_path: Path) -> None:
    frames = 108_000
    verbs = ("Catch", "Drop", "Extract", "Hold", "Idle", "Insert", "Touch")
    named = dict.fromkeys(("Phase", "Step", "Verb_Left", "Verb_Right"), ColumnRule(names=verbs))
    rule = PETRAW.model_copy(update={"columns": named})
    path = tmp_path / "hour.txt"
    path.write_text(
        petraw([(t, *(verbs[(t + k) % 7] for k in range(4))) for t in range(frames)], "Frame," + ",".join(named))
    )
    reading = confined_read(confine, rule, path, frames=frames, role=Role.PREDICTION)
    assert isinstance(reading.prediction, FrameTable)
    assert reading.prediction.columns["Verb_Right"][:8].tolist() == [3, 4, 5, 6, 0, 1, 2, 3]


def test_a_child_reads_the_same(confine: Confine, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.csv", tmp_path / "bad.csv"
    good.write_text(table([(0, 1), (1, 2), (2, 3)]))
    bad.write_text(table([(0, 1), (1, "é"), (3, 3)]))
    reading = confined_read(confine, RULE, good, frames=3, role=Role.PREDICTION)
    assert columns(reading) == {"int_step": [1, 2, 3]}
    with bad.open("rb") as file:
        assert confined_read(confine, RULE, file.fileno(), frames=3, role=Role.PREDICTION) == read(bad.read_bytes())


def test_a_reference_with_problems_stops_with_its_name(confine: Confine, tmp_path: Path) -> None:
    path = tmp_path / "01.csv"
    path.write_text(table([(0, 1), (1, "0"), (2, "x")]))
    with pytest.raises(UsageError) as caught:
        read_output(confine, RULE, path, due=Due(count=3), role=Role.REFERENCE)
    assert str(caught.value) == (
        f"{path}: row 3: int_step is not a label: -1, 1 to 14, 99 are (there: '0'); "
        "row 4: int_step is not a whole number: only the digits 0 to 9 and a minus sign are read (there: 'x') "
        "(mend the reference, or the task's format in challenge.yaml)"
    )


@pytest.mark.parametrize("kind", ["missing", "link", "folder", "fifo"])
def test_what_is_no_file_is_a_problem_and_no_hang(confine: Confine, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x.csv"
    match kind:
        case "link":
            path.symlink_to("/etc/passwd")
        case "folder":
            path.mkdir()
        case "fifo":
            os.mkfifo(path)
        case _:
            pass
    (problem,) = confined_read(confine, RULE, path, frames=3, role=Role.PREDICTION).problems
    assert problem.what in (
        "the file cannot be opened: No such file or directory",
        "the file cannot be opened: Too many levels of symbolic links",
        "this is no regular file",
    )


class Impostor(Confine):
    """Answers what a child that was taken over might."""

    def __init__(self, answer: Reply | ConfinedFailure) -> None:
        super().__init__()
        self._answer = answer
        self.array_bytes: list[object] = []

    def call(self, *_: object, **how: object) -> Reply:
        self.array_bytes.append(how["array_bytes"])
        if isinstance(self._answer, ConfinedFailure):
            raise self._answer
        return self._answer


OK: dict[str, JsonValue] = {"problems": [], "count": 0}
RIGHT = np.array([1, 2, 3])


PARTS = "its answer lacks its parts"
LIST = "its list of problems is malformed"
LACKS = "its answer lacks a column, or has one too many"
COLUMN = "its answer has a column that is no list of labels"
EMPTY: JsonValue = ["the file is empty", None, None, None]
BAD_CELL = "row 3: int_step is not a label: -1 to 14 are"


def told(*problems: JsonValue, count: JsonValue = None) -> Reply:
    return Reply(header={"problems": [*problems], "count": len(problems) if count is None else count})


@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        (Reply(header={}, arrays={"int_step": RIGHT}), PARTS),
        (told(*[EMPTY] * 51), PARTS),
        (told(EMPTY, count=0), PARTS),
        (told(EMPTY, count=2), PARTS),
        (told(EMPTY, count=True), PARTS),
        (told(*[EMPTY] * 50, count=10**12), PARTS),
        (told(count=1), PARTS),
        (Reply(header={**OK, "more": "SECRET"}, arrays={"int_step": RIGHT}), PARTS),
        (told(["the file is empty"]), LIST),
        (told([1, 1, "int_step", "x"]), LIST),
        (told(["SECRET", None, None, None]), LIST),
        (told(["the file is empty SECRET", None, None, None]), LIST),
        (told(["the file is empty\n", None, None, None]), LIST),
        (told(["the file is empty", "SECRET", None, None]), LIST),
        (told(["the file is empty", True, None, None]), LIST),
        (told(["the file is empty", None, "SECRET", None]), LIST),
        (told(["the file is empty", None, None, "\x1b[2J"]), LIST),
        (told(["the file is empty", None, None, "x" * 61]), LIST),
        (told(["row 3: SECRET is not a label: -1 to 14 are", 3, None, None]), LIST),
        (told(["row 3: int_step is not a label: -1 to 255 are", 3, None, None]), LIST),
        (told(["row 3: int_step SECRET", 3, None, None]), LIST),
        (told(["row 123456789: the row is empty", 3, None, None]), LIST),
        (told(["row 3: int_time 255 stands here again, as in row 2", 3, None, None]), LIST),
        (told(["row 3: int_time -1 stands here again, as in row 2", 3, None, None]), LIST),
        (told(["row 3: int_time 1 stands here again, as in row 2555555555", 3, None, None]), LIST),
        (told(["row 3: int_time is beyond the last frame, 255", 3, None, None]), LIST),
        (told(["row 3: int_time is no frame: 0, 255, … are", 3, None, None]), LIST),
        (told(["row 3: int_time starts at 255 where 0 is due", 3, None, None]), LIST),
        (told(["int_time rises by more than 255 a row", 3, None, None]), LIST),
        (told(["there are no rows under the header; 255 are due", None, None, None]), LIST),
        (told(["there is no column 'SECRET'", None, None, None]), LIST),
        (told(["the fields are separated by SECRET where a comma is due", None, None, None]), LIST),
        (Reply(header=OK), LACKS),
        (Reply(header=OK, arrays={"int_step": RIGHT, "more": RIGHT}), LACKS),
        (Reply(header=OK, arrays={"int_step": RIGHT.astype(np.float64)}), COLUMN),
        (Reply(header=OK, arrays={"int_step": RIGHT.reshape(1, 3)}), COLUMN),
        (Reply(header=OK, arrays={"other": RIGHT}), LACKS),
        (Reply(header=OK, arrays={"int_step": RIGHT[:2]}), "its answer has a wrong number of frames"),
        (Reply(header=OK, arrays={"int_step": RIGHT + 90}), "its answer holds labels that are none"),
    ],
)
def test_an_answer_that_is_none_is_a_problem(tmp_path: Path, answer: Reply, detail: str) -> None:
    path = tmp_path / "x.csv"
    path.touch()
    reading = confined_read(Impostor(answer), RULE, path, frames=3, role=Role.PREDICTION)
    assert reading.prediction is None
    assert [problem.what for problem in reading.problems] == [
        f"the file could not be read: the reader stopped: {detail}"
    ]


@pytest.mark.parametrize(
    ("arrays", "role", "believed"),
    [
        ({"Phase": [0, 1, 2]}, Role.PREDICTION, True),
        ({"Phase": [0, 1, 2]}, Role.REFERENCE, False),
        ({"Step": [1, 1, 1]}, Role.PREDICTION, False),
        ({"Phase": [0, 1, 3], "Step": [1, 1, 1]}, Role.PREDICTION, False),
        ({"Phase": [0, 1, 2], "Step": [1, 1]}, Role.PREDICTION, False),
        ({"Phase": [0, 1, 2], "Other": [1, 1, 1]}, Role.PREDICTION, False),
        ({}, Role.PREDICTION, False),
    ],
)
def test_which_columns_an_answer_may_lack(
    tmp_path: Path, arrays: dict[str, list[int]], role: Role, *, believed: bool
) -> None:
    path = tmp_path / "x.txt"
    path.touch()
    answer = Reply(header=OK, arrays={name: np.array(labels) for name, labels in arrays.items()})
    reading = confined_read(Impostor(answer), PETRAW, path, frames=3, role=role)
    assert (reading.prediction is not None) == believed


def test_an_answer_of_more_frames_than_a_file_can_have_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.touch()
    for frames, readable in ((500_000, True), (500_001, False)):
        answer = Reply(header=OK, arrays={"int_step": np.ones(frames, np.int64)})
        reading = confined_read(Impostor(answer), RULE, path, frames=None, role=Role.PREDICTION)
        assert (reading.prediction is not None) == readable


@pytest.mark.parametrize(("frames", "most"), [(3, 24), (None, 8 * 500_000)])
def test_a_child_may_answer_what_a_table_takes_and_no_more(tmp_path: Path, frames: int | None, most: int) -> None:
    path = tmp_path / "x.csv"
    path.touch()
    impostor = Impostor(Reply(header=OK, arrays={"int_step": RIGHT}))
    confined_read(impostor, RULE, path, frames=frames, role=Role.PREDICTION)
    assert impostor.array_bytes == [most]


def test_a_right_answer_of_an_impostor_is_accepted_so_the_test_above_can_fail(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.touch()
    answer = Reply(header=OK, arrays={"int_step": RIGHT})
    assert confined_read(Impostor(answer), RULE, path, frames=3, role=Role.PREDICTION).prediction is not None
    answer = told(EMPTY, [BAD_CELL, 3, "int_step", "'15'"], count=2)
    reading = confined_read(Impostor(answer), RULE, path, frames=3, role=Role.PREDICTION)
    assert reading.prediction is None
    assert reading.problems == (
        Problem(what="the file is empty"),
        Problem(what=BAD_CELL, row=3, column="int_step", value="'15'"),
    )
    answer = told(*[EMPTY] * 50, count=1_000_000)
    assert confined_read(Impostor(answer), RULE, path, frames=3, role=Role.PREDICTION).problem_count == 1_000_000


def test_a_reader_that_dies_is_the_participants_problem_but_the_organisers_error(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.touch()
    dying = Impostor(ConfinedFailure(FailureKind.DIED, "it was killed by SIGSEGV"))
    sentence = "the file could not be read: the reader stopped: it was killed by SIGSEGV"
    (problem,) = confined_read(dying, RULE, path, frames=3, role=Role.PREDICTION).problems
    assert problem.what == sentence
    with pytest.raises(UsageError, match=sentence):
        read_output(dying, RULE, path, due=Due(count=3), role=Role.REFERENCE)


def test_a_hundred_thousand_bad_rows_are_read_within_the_bounds(confine: Confine, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("int_time,int_step\n" + "x,y\n" * 100_000)
    reading = confined_read(confine, RULE, path, frames=3, role=Role.PREDICTION)
    assert len(reading.problems) == 50
    assert reading.problem_count == 200_001


def test_privileges_are_dropped_for_reading(confine: Confine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []
    original = confine.call

    def spy(function: str, request: dict[str, JsonValue], **how: object) -> Reply:
        seen.append(how["privileges"])
        return original(function, request, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(confine, "call", spy)
    path = tmp_path / "x.csv"
    path.write_text(table([(0, 1)]))
    confined_read(confine, RULE, path, frames=1, role=Role.REFERENCE)
    assert seen == [Privileges.DROP]
