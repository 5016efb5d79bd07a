"""Answers of a stream become the files of their formats, which the ordinary readers take, or refuse by row."""

import base64
import io
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from pydantic import JsonValue

from runner.challenge import FormatSection, FrameScoresFormat, FrameTableFormat, LabelImagesFormat
from runner.challenge.formats.registry import BUILT_IN
from runner.confine import Confine
from runner.formats.assembling import LEAST_LINE, Assembly, longest_line
from runner.formats.contract import Due, FrameScores, FrameTable, LabelImages, Reading, Role
from runner.formats.frame_table import read_frame_table
from runner.formats.readers.csv_table import Mistake
from runner.formats.reading import read_output
from runner.job import Intake, IntakeRefusal, Output

FRAMES = tuple(f"{number:03d}.png" for number in range(3))
DUE = Due(frames=FRAMES, count=3)
STEPS: dict[str, Any] = {
    "kind": "frame_table", "file": "{case}.csv", "index": {"column": "t"},
    "columns": {"step": {"labels": [0, 1, 2]}},
}  # fmt: skip
PHASES: dict[str, Any] = {
    "kind": "frame_table", "file": "{case}.txt", "separator": "\t", "index": {"column": "Frame", "first": 5, "step": 2},
    "columns": {"Phase": {"names": ["Idle", "Left, then right"]}, "Step": {"names": ["a", "b"], "missing": "allow"}},
}  # fmt: skip
SCORES: dict[str, Any] = {"kind": "frame_scores", "file": "{case}.json", "key": "recognition", "classes": 2}
IMAGES: dict[str, Any] = {
    "kind": "label_images", "file": "{case}/{frame}.png", "coding": "index", "width": 2, "height": 1,
    "classes": {0: {"name": "none"}, 7: {"name": "tool"}},
}  # fmt: skip
Answer = Mapping[str, JsonValue] | None


def rule_of(text: Mapping[str, Any]) -> FormatSection:
    return BUILT_IN[text["kind"]].model_validate(text)


def outputs_of(rules: Mapping[str, Mapping[str, Any]]) -> list[tuple[Output, dict[str, FormatSection]]]:
    """The outputs of tasks, as a job has them: one for each file."""
    found: dict[str, dict[str, FormatSection]] = {}
    for task, rule in rules.items():
        found.setdefault(rule["file"], {})[task] = rule_of(rule)
    stems = tuple(name.removesuffix(".png") for name in FRAMES)
    return [(Output(case="c", file=file, frames=3, stems=stems), tasks) for file, tasks in found.items()]


def assemble(
    folder: Path,
    answers: list[Answer],
    rules: Mapping[str, Mapping[str, Any]],
    *,
    most: int = 1 << 20,
    before_first: Mapping[str, JsonValue] | None = None,
) -> tuple[Intake, ...]:
    outputs = outputs_of(rules)
    assembly = Assembly(outputs, due=DUE, folder=folder, most=most, before_first=before_first or {})
    for frame, answer in enumerate(answers):
        assembly.take(frame, answer)
    return assembly.finish([f"<{output.file}>" for output, _ in outputs])


def table_of(path: Path, rule: Mapping[str, Any]) -> Reading:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        parsed = rule_of(rule)
        assert isinstance(parsed, FrameTableFormat)
        return read_frame_table(parsed, descriptor, frames=3, role=Role.PREDICTION)
    finally:
        os.close(descriptor)


def steps_of(folder: Path, *values: JsonValue) -> list[str]:
    """What the reader says of some answers for the column ``step``; the file's own words where it says nothing."""
    assemble(folder, [{"step": value} for value in values], {"steps": STEPS})
    return [problem.what for problem in table_of(folder / "prediction.csv", STEPS).problems]


# Tables.


def test_labels_by_number_become_a_table(tmp_path: Path) -> None:
    (intake,) = assemble(tmp_path, [{"step": 0}, {"step": 2}, {"step": 1}], {"steps": STEPS})
    assert (tmp_path / "prediction.csv").read_text() == "t,step\n0,0\n1,2\n2,1\n"
    assert intake == Intake(file="<{case}.csv>", size=19)
    table = table_of(tmp_path / "prediction.csv", STEPS).prediction
    assert isinstance(table, FrameTable)
    assert table.columns["step"].tolist() == [0, 2, 1]


def test_labels_by_name_or_number_and_the_tables_own_numbers_and_separator(tmp_path: Path) -> None:
    answers: list[Answer] = [{"Phase": "Idle"}, {"Phase": 1}, {"Phase": "Left, then right"}]
    assemble(tmp_path, answers, {"phases": PHASES})
    text = (tmp_path / "prediction.txt").read_text()
    assert text == "Frame\tPhase\n5\tIdle\n7\tLeft, then right\n9\tLeft, then right\n"
    table = table_of(tmp_path / "prediction.txt", PHASES).prediction
    assert isinstance(table, FrameTable)
    assert {name: column.tolist() for name, column in table.columns.items()} == {"Phase": [0, 1, 1]}


def test_a_column_that_may_be_left_out_is_there_as_soon_as_one_answer_has_it(tmp_path: Path) -> None:
    assemble(tmp_path, [{"Phase": 0}, {"Phase": 0, "Step": "b"}, {"Phase": 0, "Step": 0}], {"phases": PHASES})
    assert (tmp_path / "prediction.txt").read_text().splitlines() == [
        "Frame\tPhase\tStep", "5\tIdle\t", "7\tIdle\tb", "9\tIdle\ta",
    ]  # fmt: skip
    problems = table_of(tmp_path / "prediction.txt", PHASES).problems
    assert [(one.row, one.column) for one in problems] == [(2, "Step")]


NO_LABEL = "is not a label: 0 to 2 are"
NO_INTEGER = Mistake.NO_INTEGER.value


@pytest.mark.parametrize(
    ("value", "mistake"),
    [
        (3, NO_LABEL),
        (-1, NO_LABEL),
        (10**20, "has too many digits"),
        (1.0, "is a decimal number: ids are whole numbers, write 3 and not 3.0"),
        (1e300, "is a decimal number: ids are whole numbers, write 3 and not 3.0"),
        (True, NO_INTEGER),
        ("1", NO_INTEGER),
        ("", NO_INTEGER),
        ("a,b", NO_INTEGER),
        ("a\nb\r\n0,1", NO_INTEGER),
        ("\x00", NO_INTEGER),
        ("\ud800", NO_INTEGER),
        ("x" * 10_000, NO_INTEGER),
        ([1], NO_INTEGER),
        ({"step": 1}, NO_INTEGER),
        (None, "is empty"),
    ],
)
def test_what_is_no_label_costs_its_own_row(tmp_path: Path, value: JsonValue, mistake: str) -> None:
    assert steps_of(tmp_path, 0, value, 1) == [f"row 3: step {mistake}"]


@pytest.mark.parametrize(
    ("value", "mistake"),
    [
        ("idle", "is not written exactly as the label: mind case, spaces and underscores in Idle, Left, then right"),
        (2, "is a number where a name is due: Idle, Left, then right are"),
        (-1, "is a number where a name is due: Idle, Left, then right are"),
        ("0", "is a number where a name is due: Idle, Left, then right are"),
        ("Idle\n", "is not a label: Idle, Left, then right are"),
        (True, "is not a label: Idle, Left, then right are"),
    ],
)
def test_what_is_no_name_costs_its_own_row(tmp_path: Path, value: JsonValue, mistake: str) -> None:
    assemble(tmp_path, [{"Phase": 0}, {"Phase": value}, {"Phase": 0}], {"phases": PHASES})
    reading = table_of(tmp_path / "prediction.txt", PHASES)
    assert [problem.what for problem in reading.problems] == [f"row 3: Phase {mistake}"]


def test_a_column_that_no_answer_has_is_missing_as_in_any_table(tmp_path: Path) -> None:
    assemble(tmp_path, [{}, {}, {}], {"steps": STEPS})
    assert (tmp_path / "prediction.csv").read_text() == "t,step\n0,\n1,\n2,\n"
    assert table_of(tmp_path / "prediction.csv", STEPS).problem_count == 3


def test_what_is_not_asked_for_is_refused_by_the_reader_or_left_out(tmp_path: Path) -> None:
    answers: list[Answer] = [{"step": 1, "other": 5, "a,\n": 1}] * 3
    assemble(tmp_path / "strict", answers, {"steps": STEPS})
    problems = [one.what for one in table_of(tmp_path / "strict" / "prediction.csv", STEPS).problems]
    assert problems == [f"column {place} is not asked for: the columns are t, step" for place in (3, 4)]
    assemble(tmp_path / "loose", answers, {"steps": {**STEPS, "extra_columns": "ignore"}})
    assert (tmp_path / "loose" / "prediction.csv").read_text() == "t,step\n0,1\n1,1\n2,1\n"


def test_a_name_that_is_nearly_that_of_a_column_is_told(tmp_path: Path) -> None:
    assemble(tmp_path, [{"Step": 1}] * 3, {"steps": STEPS})
    (problem,) = table_of(tmp_path / "prediction.csv", STEPS).problems
    assert problem.what == "column 2 is not named exactly 'step', which is missing: did you mean it?"


def test_strange_names_are_few_and_short_in_the_file(tmp_path: Path) -> None:
    answers: list[Answer] = [{"step": 0, **{f"{frame}-{n}": n for n in range(100)}, "t": 9} for frame in range(3)]
    assemble(tmp_path, answers, {"steps": STEPS})
    header = (tmp_path / "prediction.csv").read_text().splitlines()[0].split(",")
    assert header == ["t", "step", *(f"0-{n}" for n in range(8))]


def test_tasks_that_write_one_file_share_an_answer(tmp_path: Path) -> None:
    ignore = {"extra_columns": "ignore"}
    tools = {**STEPS, **ignore, "columns": {"tool": {"labels": [4, 5]}, "step": {"labels": [0]}}}
    assemble(tmp_path, [{"step": 1, "tool": 4}] * 3, {"steps": {**STEPS, **ignore}, "tools": tools})
    assert (tmp_path / "prediction.csv").read_text() == "t,step,tool\n0,1,4\n1,1,4\n2,1,4\n"


def test_tasks_that_write_several_files_have_an_object_each(tmp_path: Path) -> None:
    answers: list[Answer] = [
        {"steps": {"step": 1}, "phases": {"Phase": 0}},
        {"steps": 1, "phases": {"Phase": 1}},
        {"step": 1, "phases": {"Phase": 1}},
    ]
    intakes = assemble(tmp_path, answers, {"steps": STEPS, "phases": PHASES})
    assert (tmp_path / "prediction.csv").read_text() == "t,step\n0,1\n1,\n2,\n"
    assert (tmp_path / "prediction.txt").read_text() == (
        "Frame\tPhase\n5\tIdle\n7\tLeft, then right\n9\tLeft, then right\n"
    )
    assert [intake.file for intake in intakes] == ["<{case}.csv>", "<{case}.txt>"]


def test_a_missed_frame_holds_the_answer_before_it(tmp_path: Path) -> None:
    held: dict[str, JsonValue] = {"step": 2, "tool": 9}
    assemble(tmp_path, [None, {"step": 1}, None], {"steps": STEPS}, before_first=held)
    assert (tmp_path / "prediction.csv").read_text() == "t,step\n0,2\n1,1\n2,1\n"


def test_what_is_held_before_the_first_goes_to_every_file(tmp_path: Path) -> None:
    held: dict[str, JsonValue] = {"step": 2, "Phase": "Idle"}
    assemble(tmp_path, [None, None, {"steps": {"step": 0}}], {"steps": STEPS, "phases": PHASES}, before_first=held)
    assert (tmp_path / "prediction.csv").read_text() == "t,step\n0,2\n1,2\n2,0\n"
    assert (tmp_path / "prediction.txt").read_text() == "Frame\tPhase\n5\tIdle\n7\tIdle\n9\t\n"


VALUES: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=40)
@given(st.lists(st.dictionaries(st.sampled_from(["step", "t", "Step"]) | st.text(), VALUES), min_size=3, max_size=3))
def test_no_answer_whatever_raises_or_moves_another_rows_label(
    tmp_path_factory: pytest.TempPathFactory, answers: list[dict[str, JsonValue]]
) -> None:
    folder = tmp_path_factory.mktemp("any")
    assemble(folder, [{"step": 0}, *answers[1:]], {"steps": STEPS})
    lines = (folder / "prediction.csv").read_bytes().decode().split("\n")
    assert [line.partition(",")[0] for line in lines] == ["t", "0", "1", "2", ""]
    reading = table_of(folder / "prediction.csv", STEPS)
    if reading.prediction is not None:
        assert isinstance(reading.prediction, FrameTable)
        told = [0, *(answer.get("step") for answer in answers[1:])]
        assert reading.prediction.columns["step"].tolist() == told


# Scores.


def read(confine: Confine, rule: Mapping[str, Any], path: Path) -> Reading:
    return read_output(confine, rule_of(rule), path, due=DUE, role=Role.PREDICTION)


def test_scores_become_an_object_by_frame(tmp_path: Path, confine: Confine) -> None:
    answers: list[Answer] = [{"recognition": [0.1, 1]}, {"recognition": [0, 0.25]}, {"recognition": [1e-7, 0]}]
    (intake,) = assemble(tmp_path, answers, {"triplets": SCORES})
    path = tmp_path / "prediction.json"
    assert json.loads(path.read_text()) == dict(zip(("000", "001", "002"), answers, strict=True))
    assert intake == Intake(file="<{case}.json>", size=path.stat().st_size)
    scores = read(confine, SCORES, path).prediction
    assert isinstance(scores, FrameScores)
    np.testing.assert_array_equal(scores.scores, [[0.1, 1], [0, 0.25], [1e-7, 0]])


def test_what_is_wrong_with_scores_is_the_readers_to_say(tmp_path: Path, confine: Confine) -> None:
    answers: list[Answer] = [{"recognition": [0.1]}, {"recognition": [0, "x"], "more": 1}, {}]
    assemble(tmp_path, answers, {"triplets": SCORES})
    assert [one.what for one in read(confine, SCORES, tmp_path / "prediction.json").problems] == [
        "frame 1 of 3: there are fewer than 2 scores",
        "frame 2 of 3: there is a key that is not asked for, beside 'recognition'",
        "frame 2 of 3: 1 of 2 scores are no numbers, the first is that of class 1",
        "frame 3 of 3: there is no 'recognition'",
    ]


def test_scores_without_a_key_stand_under_scores(tmp_path: Path) -> None:
    answers: list[Answer] = [{"scores": [0, 1]}, {"scores": [1, 0], "x": 1}, {"other": [0, 0]}]
    assemble(tmp_path, answers, {"triplets": {**SCORES, "key": ""}})
    assert json.loads((tmp_path / "prediction.json").read_text()) == {"000": [0, 1], "001": [1, 0], "002": None}


def test_scores_become_a_table(tmp_path: Path, confine: Confine) -> None:
    rule = {**SCORES, "layout": "table", "first": 1, "file": "{case}.txt"}
    assemble(tmp_path / "good", [{"recognition": [0.5, n]} for n in (0, 1, 0)], {"triplets": rule})
    assert (tmp_path / "good" / "prediction.txt").read_text() == "1,0.5,0\n2,0.5,1\n3,0.5,0\n"
    answers: list[Answer] = [{"recognition": [0.5, "1"]}, {"recognition": [0] * 10_000}, {"recognition": 1}]
    assemble(tmp_path / "bad", answers, {"triplets": rule})
    assert [one.what for one in read(confine, rule, tmp_path / "bad" / "prediction.txt").problems] == [
        f"row 1: 1 of 2 scores cannot be read; the first is that of class 1, which {Mistake.NO_DECIMAL}",
        "row 2: there are more than 2 scores",
        "row 3: there are fewer than 2 scores",
    ]


# Images.


def png(*pixels: int) -> bytes:
    file = io.BytesIO()
    image = Image.new("L", (2, 1))
    image.putdata(pixels)
    image.save(file, "PNG")
    return file.getvalue()


def sent(content: bytes) -> dict[str, JsonValue]:
    return {"image": base64.b64encode(content).decode()}


def test_images_become_files(tmp_path: Path, confine: Confine) -> None:
    answers: list[Answer] = [sent(png(0, 7)), None, sent(png(7, 7))]
    (intake,) = assemble(tmp_path, answers, {"scenes": IMAGES})
    folder = tmp_path / "prediction"
    assert sorted(path.name for path in folder.iterdir()) == ["000.png", "001.png", "002.png"]
    assert intake.size == sum(path.stat().st_size for path in folder.iterdir())
    images = read(confine, IMAGES, folder).prediction
    assert isinstance(images, LabelImages)
    assert [image.tolist() for image in images] == [[[0, 7]], [[0, 7]], [[7, 7]]]


def test_what_is_no_image_is_the_readers_to_say(tmp_path: Path, confine: Confine) -> None:
    assemble(tmp_path, [{"image": 3}, {"image": "no base64 é"}, {"image": "aGVsbG8="}], {"scenes": IMAGES})
    assert [one.what for one in read(confine, IMAGES, tmp_path / "prediction").problems] == [
        "frame 1 of 3: the image is missing",
        "frame 2 of 3: this is not a PNG file",
        "frame 3 of 3: this is not a PNG file",
    ]


# Sizes.


@pytest.mark.parametrize(
    ("rule", "answer"),
    [
        (STEPS, {"step": "x" * 150}),
        (SCORES, {"recognition": [0.5] * 60}),
        ({**SCORES, "layout": "table"}, {"recognition": [0.123456789012345] * 60}),
        (IMAGES, {"image": base64.b64encode(bytes(200)).decode()}),
    ],
    ids=["table", "scores", "score table", "images"],
)
def test_more_than_the_output_may_hold_is_not_kept(
    tmp_path: Path, rule: Mapping[str, Any], answer: Mapping[str, JsonValue]
) -> None:
    assembly = Assembly(outputs_of({"t": rule}), due=DUE, folder=tmp_path, most=100, before_first={})
    for frame in range(3):
        assembly.take(frame, answer)
    (intake,) = assembly.finish(["<case>"])
    assert intake == Intake(file="<case>", refusal=IntakeRefusal.TOO_LARGE, detail="more than the 100 bytes allowed")
    assert list(tmp_path.iterdir()) == []


def test_a_line_may_be_as_long_as_an_answer_needs() -> None:
    assert longest_line([rule_of(STEPS), rule_of(SCORES)]) == LEAST_LINE
    many = rule_of({**SCORES, "classes": 10_000})
    assert isinstance(many, FrameScoresFormat)
    assert longest_line([many, many]) == 2 * 10_000 * 80 + (1 << 16)
    large = rule_of({**IMAGES, "width": 1280, "height": 1024, "coding": "index"})
    assert isinstance(large, LabelImagesFormat)
    assert 1280 * 1024 * 4 // 3 < longest_line([large]) < 6 << 20
