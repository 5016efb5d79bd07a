"""Scores a frame, in JSON and in tables: right ones are read, and of wrong ones every problem is named."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.challenge.formats import FrameScoresFormat
from runner.confine import Confine, JsonValue, Reply
from runner.errors import UsageError
from runner.formats import score_table
from runner.formats.contract import Due, FrameScores, Reading, Role
from runner.formats.frame_scores import confined_read, read_frame_scores
from runner.formats.score_rule import frame_ids, sentences

RULE = FrameScoresFormat(kind="frame_scores", file="{case}.json", key="recognition", classes=3)
TABLE = FrameScoresFormat(kind="frame_scores", file="{case}.csv", layout="table", classes=2, first=1)
DUE = Due(frames=("000001.png", "000002.png"), count=2)
NO_DECIMAL = "is not a number: only the digits 0 to 9, a point, a minus sign and an exponent are read"
IDS = "ids are the names of the frames' files, without the extension"


def read(
    content: str | bytes, *, rule: FrameScoresFormat = RULE, due: Due = DUE, role: Role = Role.PREDICTION
) -> Reading:
    descriptor = os.memfd_create("scores")
    try:
        os.write(descriptor, content.encode() if isinstance(content, str) else content)
        reading = read_frame_scores(rule, descriptor, due=due, role=role)
    finally:
        os.close(descriptor)
    ids = frame_ids(rule, due)
    let_through = sentences(rule, None if ids is None else len(ids))
    assert [problem.what for problem in reading.problems if not let_through.fullmatch(problem.what)] == []
    assert (reading.prediction is None) == (reading.problem_count > 0)
    return reading


def rows(reading: Reading) -> list[list[float]]:
    assert isinstance(reading.prediction, FrameScores)
    assert reading.prediction.scores.dtype == np.float64
    return [[float(score) for score in row] for row in reading.prediction.scores]


def said(content: str | bytes, **how: object) -> list[str]:
    return [problem.what for problem in read(content, **how).problems]  # type: ignore[arg-type]


def text(frames: Mapping[str, object]) -> str:
    return json.dumps({name: {"recognition": scores} for name, scores in frames.items()})


GOOD = text({"000001": [0, 0.5, 1], "000002": [1, 0, 0.25]})
SCORES = [[0.0, 0.5, 1.0], [1.0, 0.0, 0.25]]


def test_right_scores_are_read_in_the_order_of_the_frames() -> None:
    assert rows(read(GOOD)) == SCORES
    assert rows(read(text({"000002": [1, 0, 0.25], "000001": [0, 0.5, 1]}))) == SCORES


@pytest.mark.parametrize(
    ("frame_ids", "names"),
    [("stem", ["000001", "000002"]), ("name", ["000001.png", "000002.png"]), ("number", ["5", "6"])],
)
def test_frames_have_ids_as_the_rule_says(frame_ids: str, names: list[str]) -> None:
    rule = RULE.model_copy(update={"frame_ids": frame_ids, "key": "", "first": 5})
    assert rows(read(json.dumps(dict(zip(names, SCORES, strict=True))), rule=rule)) == SCORES


def test_two_frames_of_one_id_are_the_organisers_error() -> None:
    due = Due(frames=("1.png", "1.jpg"), count=2)
    with pytest.raises(UsageError, match="two frames of a case have the same id"):
        frame_ids(RULE, due)
    assert frame_ids(RULE.model_copy(update={"frame_ids": "name"}), due) == ("1.png", "1.jpg")


def test_more_scores_than_are_read_are_the_organisers_error() -> None:
    rule = RULE.model_copy(update={"classes": 100})
    assert len(frame_ids(rule, Due(count=40_000)) or ()) == 40_000
    with pytest.raises(UsageError, match="40001 frames of 100 scores are more than the 4000000 scores that are read"):
        frame_ids(rule, Due(count=40_001))


def test_frames_nobody_knows_are_those_of_the_file() -> None:
    assert rows(read(text({"b": [1, 1, 1], "a": [0, 0, 0]}), due=Due())) == [[0, 0, 0], [1, 1, 1]]
    rule = RULE.model_copy(update={"frame_ids": "number"})
    assert rows(read(text({"1": [1, 1, 1], "0": [0, 0, 0]}), rule=rule, due=Due())) == [[0, 0, 0], [1, 1, 1]]
    assert said(text({"0": [1, 1, 1], "2": [0, 0, 0]}), rule=rule, due=Due()) == [
        "entry 2 is none of the 2 frames: ids are 0, 1, …",
        "frame 2 of 2 is missing",
    ]
    assert rows(read("1,0,1\n2,1,1\n", rule=TABLE, due=Due())) == [[0, 1], [1, 1]]


def test_an_empty_object_lacks_every_frame() -> None:
    assert said("{}") == ["frames 1 to 2 of 2 are missing (2)"]
    assert said("{}", due=Due()) == ["there are no frames"]


def test_all_problems_are_listed_in_the_order_of_the_frames() -> None:
    due = Due(frames=tuple(f"{number:02}.png" for number in range(8)), count=8)
    content = {
        "07": {"recognition": [0, 0]},
        "1": {"recognition": [0, "x", 2]},
        "xx": {"recognition": [0, 0, 0]},
        "00": {"recognition": [-1, 2, 0], "more": 1},
        "05": {"recognition": None},
        "04": {},
    }
    reading = read(json.dumps(content), due=due)
    assert [(problem.what, problem.value) for problem in reading.problems] == [
        (f"entry 2 is not named exactly as frame 2 of 8 is: {IDS}", "'1'"),
        (f"entry 3 is none of the 8 frames: {IDS}", "'xx'"),
        ("frame 1 of 8: there is a key that is not asked for, beside 'recognition'", "'more'"),
        ("frame 1 of 8: 1 of 3 scores are less than 0, the first is that of class 0", "'-1.0'"),
        ("frame 1 of 8: 1 of 3 scores are greater than 1, the first is that of class 1", "'2.0'"),
        ("frame 2 of 8: 1 of 3 scores are no numbers, the first is that of class 1", "'\"x\"'"),
        ("frames 3 to 4 of 8 are missing (2)", None),
        ("frame 5 of 8: there is no 'recognition'", None),
        ("frame 6 of 8: a list of 3 scores is due", None),
        ("frame 7 of 8 is missing", None),
        ("frame 8 of 8: there are fewer than 3 scores", "'2'"),
    ]


def test_what_may_be_ignored() -> None:
    content = GOOD[:-1] + ', "x": 1}'
    assert said(content) == [f"entry 3 is none of the 2 frames: {IDS}"]
    assert rows(read(content, rule=RULE.model_copy(update={"extra_frames": "ignore"}))) == SCORES
    content = GOOD.replace("}}", '}, "000002b": 1}').replace('{"recognition"', '{"more": [], "recognition"')
    rule = RULE.model_copy(update={"extra_keys": "ignore", "extra_frames": "ignore"})
    assert rows(read(content, rule=rule)) == SCORES
    assert rows(read(content, rule=RULE.model_copy(update={"extra_frames": "ignore"}), role=Role.REFERENCE)) == SCORES


def test_a_reference_of_whole_numbers() -> None:
    rule = RULE.model_copy(update={"whole": True})
    assert rows(read(text({"000001": [0, 1, 1.0], "000002": [0, 0, 0]}), rule=rule, role=Role.REFERENCE))[0] == [
        0,
        1,
        1,
    ]
    assert said(GOOD, rule=rule) == [
        "frame 1 of 2: 1 of 3 scores are not whole numbers, the first is that of class 1",
        "frame 2 of 2: 1 of 3 scores are not whole numbers, the first is that of class 2",
    ]


def test_no_sentence_holds_a_byte_of_the_container() -> None:
    content = {"SECRET": 1, "000001": {"SECRET": 2}, "000002": {"recognition": ["SECRET", 201, 201]}}
    reading = read(json.dumps(content))
    assert reading.problem_count == 4
    assert not any("SECRET" in problem.what or "201" in problem.what for problem in reading.problems)
    assert "SECRET" in str(reading.problems)


# Tables.


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_right_table_is_read(end: str) -> None:
    assert rows(read(f"1,0.5,1{end}2,1e-1,0{end}", rule=TABLE)) == [[0.5, 1], [0.1, 0]]


@pytest.mark.parametrize(
    ("content", "problems"),
    [
        ("", ["the file is empty"]),
        ("frame,a,b\n1,0,0\n2,0,0\n",
         ["row 1: a header stands here, and none is due: the first row is that of frame 1"]),
        ("1;0;0\n2;0;0\n", ["the fields are separated by a semicolon where a comma is due"]),
        ("0,0,0\n1,0,0\n", ["row 1: the frame's number does not start at 1"]),
        ("1,0,0\n", ["row 2: the table ends too early: the row for frame 2 is missing"]),
        ("1,0,0\n2,0,0\n3,0,0\n", ["row 3: the frame's number is beyond the last frame, 2"]),
        ("1,0,0\n1,0,0\n2,0,0\n", ["row 2: the frame's number 1 stands here again, as in row 1"]),
        ("1.0,0,0\n2,0,0\n", [
            "row 1: the frame's number is a decimal number: ids are whole numbers, write 3 and not 3.0"]),
        ("1,0\n2,0,0,0\n", ["row 1: there are fewer than 2 scores", "row 2: there are more than 2 scores"]),
        ("1,x,nan\n2,2,-1\n", [
            "row 1: 2 of 2 scores cannot be read; the first is that of class 0, which " + NO_DECIMAL,
            "row 2: 1 of 2 scores are less than 0, the first is that of class 1",
            "row 2: 1 of 2 scores are greater than 1, the first is that of class 0"]),
    ],
)  # fmt: skip
def test_tables_that_are_wrong(content: str, problems: list[str]) -> None:
    assert said(content, rule=TABLE) == problems


def test_rows_of_other_frames_may_be_ignored() -> None:
    rule = TABLE.model_copy(update={"extra_frames": "ignore"})
    assert rows(read("0,9,9\n1,0,1\n2,1,0\n3,0,0\n", rule=rule)) == [[0, 1], [1, 0]]


CELL = st.sampled_from(["0", "1", "2", "3", "-1", "0.5", "", "1.0", "nan", '"1"', " 1", "x", "1e400"])


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(CELL, CELL, CELL), max_size=4), st.sampled_from(["\n", "\r\n"]), st.sampled_from([DUE, Due()])
)
def test_the_short_way_agrees_with_the_long_one(cells: list[tuple[str, str, str]], end: str, due: Due) -> None:
    content = "".join(",".join(row) + end for row in cells)
    short = read(content, rule=TABLE, due=due)
    original = score_table._read_faultless
    score_table._read_faultless = lambda *_: None
    try:
        long = read(content, rule=TABLE, due=due)
    finally:
        score_table._read_faultless = original
    assert (short.problems, short.problem_count) == (long.problems, long.problem_count)
    assert short.prediction is None or rows(short) == rows(long)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(
    st.sampled_from(["000001", "000002", "1", "x"]),
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["recognition", "x"]), inner),
        max_leaves=8,
    ),
))  # fmt: skip
def test_any_object_is_read_or_refused(content: dict[str, object]) -> None:
    read(json.dumps(content))


# The confined call.


def test_a_child_reads_the_same(confine: Confine, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    for content in (GOOD, text({"000001": [0, 2, 0], "2": [0, 0, 0]})):
        path.write_text(content)
        confined, direct = confined_read(confine, RULE, path, due=DUE, role=Role.PREDICTION), read(content)
        assert (confined.problems, confined.problem_count) == (direct.problems, direct.problem_count)
        assert confined.prediction is None or rows(confined) == rows(direct)


def test_a_video_of_the_field_is_read(confine: Confine, tmp_path: Path) -> None:
    due = Due(frames=tuple(f"{number:06}.png" for number in range(5000)), count=5000)
    rule = RULE.model_copy(update={"classes": 100})
    scores = np.random.default_rng(5).random((5000, 100))
    path = tmp_path / "x.json"
    path.write_text(
        json.dumps({f"{frame:06}": {"recognition": list(row)} for frame, row in enumerate(scores)}, indent=4)
    )
    reading = confined_read(confine, rule, path, due=due, role=Role.PREDICTION)
    assert isinstance(reading.prediction, FrameScores)
    assert np.array_equal(reading.prediction.scores, scores)


class Impostor(Confine):
    """Answers what a child that was taken over might."""

    def __init__(self, answer: Reply) -> None:
        super().__init__()
        self._answer = answer
        self.array_bytes = 0

    def call(self, *_: object, **how: object) -> Reply:
        assert isinstance(how["array_bytes"], int)
        self.array_bytes = how["array_bytes"]
        return self._answer


OK: dict[str, JsonValue] = {"problems": [], "count": 0}
RIGHT = np.array(SCORES)
MALFORMED = "its list of problems is malformed"


def told(what: str, value: JsonValue = None) -> Reply:
    return Reply(header={"problems": [[what, None, None, value]], "count": 1})


@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        (Reply(header=OK), "its answer lacks its parts"),
        (Reply(header=OK, arrays={"scores": RIGHT, "more": RIGHT}), "its answer lacks its parts"),
        (Reply(header=OK, arrays={"scores": RIGHT.astype(np.float32)}), "its answer lacks its parts"),
        (Reply(header=OK, arrays={"scores": RIGHT[0]}), "its answer lacks its parts"),
        (Reply(header=OK, arrays={"scores": RIGHT[:1]}), "its answer is of another shape"),
        (Reply(header=OK, arrays={"scores": RIGHT[:, :2]}), "its answer is of another shape"),
        (Reply(header=OK, arrays={"scores": RIGHT * np.nan}), "its answer holds scores that are none"),
        (Reply(header=OK, arrays={"scores": RIGHT * 2}), "its answer holds scores that are none"),
        (told("SECRET"), MALFORMED),
        (told("frame 1 of 3 is missing"), MALFORMED),
        (told("frame 1 of 2: there is no 'SECRET'"), MALFORMED),
        (told("frame 1 of 2: there are fewer than 255 scores"), MALFORMED),
        (told("frame 1 of 2: 1 of 3 scores are less than 255, the first is that of class 0"), MALFORMED),
        (told("frame 1 of 2 is missing", "\x1b[2J"), MALFORMED),
    ],
)
def test_an_answer_that_is_none_is_a_problem(tmp_path: Path, answer: Reply, detail: str) -> None:
    (tmp_path / "x").touch()
    impostor = Impostor(answer)
    reading = confined_read(impostor, RULE, tmp_path / "x", due=DUE, role=Role.PREDICTION)
    assert reading.prediction is None
    assert [problem.what for problem in reading.problems] == [
        f"the file could not be read: the reader stopped: {detail}"
    ]
    assert impostor.array_bytes == 2 * 3 * 8


def test_a_right_answer_of_an_impostor_is_accepted_so_the_test_above_can_fail(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    right = Impostor(Reply(header=OK, arrays={"scores": RIGHT}))
    assert rows(confined_read(right, RULE, tmp_path / "x", due=DUE, role=Role.PREDICTION)) == SCORES
    wrong = Impostor(told("frame 1 of 2 is missing"))
    reading = confined_read(wrong, RULE, tmp_path / "x", due=DUE, role=Role.PREDICTION)
    assert [problem.what for problem in reading.problems] == ["frame 1 of 2 is missing"]
