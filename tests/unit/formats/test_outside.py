"""A format that an installed package brings: its reader runs confined, and is believed no more than ours."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest

from runner.challenge.formats import FormatSection
from runner.challenge.formats.registry import _rule_of
from runner.confine import Confine, ConfinedFailure, JsonValue, Reply
from runner.errors import UsageError
from runner.formats import outside
from runner.formats.contract import Answer, Arrays, Due, FrameScores, FrameTable, Prediction, Reading, Role
from runner.formats.outside import check_prediction
from runner.formats.reading import read_output

MODULE = """
from enum import StrEnum
from typing import Literal

import numpy as np

from runner.challenge.formats import FormatSection
from runner.formats.contract import Answer, Arrays, FrameScores, FrameTable, LabelImages

class SpansFormat(FormatSection):
    kind: Literal["spans"]
    answers: str = "table"
    most_bytes: int = 1000

class Fault(StrEnum):
    BAD = "line {line} is not a span of {width} numbers"
    SHORT = "there are too few spans"

class Spans:
    rule = SpansFormat
    faults = Fault

    @staticmethod
    def read(rule, file, due, say):
        text = file.read().decode()
        for number, line in enumerate(text.splitlines(), 1):
            if line == "bad":
                say(Fault.BAD, row=number, value=line, line=number, width=2)
        if text == "secret":
            say(Fault.BAD, line=text, width=2)
        match rule.answers:
            case "table":
                return FrameTable(columns={"x": np.arange(due.count), "y": np.full(due.count, len(due.frames[0]))})
            case "scores":
                return FrameScores(scores=np.ones((due.count, 2)))
            case "arrays":
                return Arrays(arrays={"a": np.zeros((2, 2), np.uint8)})
            case "answer":
                return Answer(fields={"n": len(text)})
            case "nan":
                return Arrays(arrays={"a": np.array([np.nan])})
            case "much":
                return Arrays(arrays={"a": np.zeros(2000, np.uint8)})
            case "images":
                return LabelImages(frames=1, read=lambda: iter([]))
            case _:
                return None
"""
DUE = Due(frames=("a.png", "b.png", "c.png"), count=3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A distribution on ``sys.path``, in a folder that a child without rights cannot open."""
    path = tmp_path_factory.mktemp("site")
    path.chmod(0o700)
    (path / "spans_format.py").write_text(MODULE)
    dist = path / "spans_format-1.0.dist-info"
    dist.mkdir()
    (dist / "METADATA").write_text("Metadata-Version: 2.1\nName: spans-format\nVersion: 1.0\n")
    (dist / "entry_points.txt").write_text(
        "[proctor.formats]\nspans = spans_format:Spans\nbare = spans_format:Fault\nbroken = spans_format:nothing\n"
    )
    sys.path.insert(0, str(path))
    yield path
    sys.path.remove(str(path))
    sys.modules.pop("spans_format", None)


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Confine]:
    with Confine(preload=("runner.formats.outside",)) as confined:
        yield confined


def rule(**more: object) -> FormatSection:
    return _rule_of("spans").model_validate({"kind": "spans", "file": "{case}.txt", **more})


def read(confine: Confine, folder: Path, content: str, **more: object) -> Reading:
    path = folder / "output"
    path.write_text(content)
    return read_output(confine, rule(**more), path, due=DUE, role=Role.PREDICTION)


def test_each_kind_of_prediction_comes_through(server: Confine, tmp_path: Path) -> None:
    table = read(server, tmp_path, "").prediction
    assert isinstance(table, FrameTable)
    assert {name: column.tolist() for name, column in table.columns.items()} == {"x": [0, 1, 2], "y": [5, 5, 5]}
    scores = read(server, tmp_path, "", answers="scores").prediction
    assert isinstance(scores, FrameScores)
    assert scores.scores.tolist() == [[1, 1]] * 3
    arrays = read(server, tmp_path, "", answers="arrays").prediction
    assert isinstance(arrays, Arrays)
    assert arrays.arrays["a"].tolist() == [[0, 0], [0, 0]]
    assert read(server, tmp_path, "four", answers="answer").prediction == Answer(fields={"n": 4})


def test_its_problems_are_told(server: Confine, tmp_path: Path) -> None:
    reading = read(server, tmp_path, "1 2\nbad\nbad\n")
    assert reading.prediction is None
    assert [(problem.what, problem.row, problem.value) for problem in reading.problems] == [
        ("line 2 is not a span of 2 numbers", 2, "'bad'"),
        ("line 3 is not a span of 2 numbers", 3, "'bad'"),
    ]


@pytest.mark.parametrize(
    ("content", "answers", "detail"),
    [
        ("secret", "table", "its list of problems is malformed"),
        ("", "nothing", "its answer holds neither a prediction nor a problem"),
        ("", "nan", "its answer holds numbers that are not finite"),
        ("", "much", "its answer is larger than the file may be"),
        ("", "images", "an exception was raised"),
    ],
)
def test_what_is_no_answer_is_not_believed(
    server: Confine, tmp_path: Path, content: str, answers: str, detail: str
) -> None:
    reading = read(server, tmp_path, content, answers=answers)
    assert [problem.what for problem in reading.problems] == [
        f"the file could not be read: the reader stopped: {detail}"
    ]


def test_a_file_that_is_too_large_is_not_read(server: Confine, tmp_path: Path) -> None:
    assert read(server, tmp_path, "x" * 1000).prediction is not None
    reading = read(server, tmp_path, "x" * 1001)
    assert [problem.what for problem in reading.problems] == ["the file is larger than 1000 bytes"]


def test_a_package_that_is_gone_or_is_none_is_the_organisers_error(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="has most_bytes that is no whole number from 1 to 134217728"):
        read(Confine(), tmp_path, "", most_bytes=0)
    left = rule()
    monkeypatch.setattr(outside, "outside_format", lambda _: None)
    with pytest.raises(UsageError, match=r"'spans' of proctor\.formats is not installed, or has no attribute 'faults'"):
        read_output(Confine(), left, tmp_path / "x", due=DUE, role=Role.PREDICTION)


def test_one_that_cannot_be_loaded_does_not_stop_the_others(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: dict[str, object] = {}
    monkeypatch.setattr(outside, "_LOADED", loaded)
    outside.warm_up()
    assert {"spans", "bare"} <= set(loaded)
    assert "broken" not in loaded


# What the parent believes.


def answer(header: str, arrays: Mapping[str, object]) -> Reply:
    named = {name: np.asarray(array) for name, array in arrays.items()}
    return Reply(header={}, arrays={"header": np.frombuffer(header.encode(), np.uint8), **named})


TABLE = '{"kind": "frame_table", "names": ["x"]}'
SCORES = '{"kind": "frame_scores", "names": ["scores"]}'
ARRAYS = '{"kind": "arrays", "names": ["x"]}'
PARTS, TYPE, NAMES = "lacks its parts", "is of another type", "has malformed names"
FRAMES, FINITE = "has a wrong number of frames", "holds numbers that are not finite"


@pytest.mark.parametrize(
    ("header", "arrays", "detail"),
    [
        (TABLE, {"0": [1, 2, 3]}, None),
        (TABLE, {"0": [1, 2]}, FRAMES),
        (TABLE, {"0": [1.0, 2.0, 3.0]}, TYPE),
        (TABLE, {"0": [[1], [2], [3]]}, TYPE),
        (TABLE, {"1": [1, 2, 3]}, NAMES),
        (TABLE, {"0": [1, 2, 3], "1": [1, 2, 3]}, NAMES),
        (TABLE.replace('"x"', '"\\u001b"'), {"0": [1, 2, 3]}, NAMES),
        (TABLE.replace('"x"', "7"), {"0": [1, 2, 3]}, NAMES),
        (TABLE.replace('"x"', '"x", "x"'), {"0": [1, 2, 3], "1": [1, 2, 3]}, NAMES),
        (TABLE.replace('["x"]', "[]"), {}, TYPE),
        (TABLE.replace("}", ', "more": 1}'), {"0": [1, 2, 3]}, PARTS),
        (SCORES, {"0": [[0.5], [1.0], [0.0]]}, None),
        (SCORES, {"0": [[0.5], [np.inf], [0.0]]}, FINITE),
        (SCORES, {"0": [[0.5], [1.0]]}, FRAMES),
        (SCORES, {"0": [0.5, 1.0, 0.0]}, TYPE),
        (SCORES.replace('"scores"]', '"x"]'), {"0": [[0.5], [1.0], [0.0]]}, TYPE),
        (ARRAYS, {"0": [1.5]}, None),
        (ARRAYS, {"0": [np.nan]}, FINITE),
        ('{"kind": "answer", "fields": {"x": 1}}', {}, None),
        ('{"kind": "answer", "fields": {"x": 1}}', {"0": [1]}, PARTS),
        ('{"kind": "answer", "fields": [1]}', {}, PARTS),
        ('{"kind": "answer", "fields": {"x": NaN}}', {}, "is not sound"),
        ('{"kind": "label_images", "names": []}', {}, PARTS),
        ("[]", {}, PARTS),
    ],
)
def test_an_answer_is_held_against_what_it_says_it_is(
    header: str, arrays: Mapping[str, object], detail: str | None
) -> None:
    if detail is None:
        prediction: Prediction = check_prediction(answer(header, arrays), DUE, 1000)
        assert isinstance(prediction, (FrameTable, FrameScores, Arrays, Answer))
        return
    with pytest.raises(ConfinedFailure) as caught:
        check_prediction(answer(header, arrays), DUE, 1000)
    assert caught.value.detail == f"its answer {detail}"


def test_an_answer_of_too_many_bytes() -> None:
    text: JsonValue = '{"kind": "arrays", "names": ["x"]}'
    assert isinstance(text, str)
    with pytest.raises(ConfinedFailure, match="its answer is larger than the file may be"):
        check_prediction(answer(text, {"0": np.zeros(1000, np.uint8)}), DUE, 1000)
