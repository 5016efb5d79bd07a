"""A JSON answer: its fields are what the rule says, and of wrong ones every problem is named."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.challenge.formats import AnswerFormat
from runner.confine import Confine, JsonValue
from runner.formats.answer import answer_caps, check_fields, confined_read
from runner.formats.contract import Answer, Due, Role
from runner.formats.readers.problems import ProblemList


def rule(fields: Mapping[str, object], **more: object) -> AnswerFormat:
    return AnswerFormat.model_validate({"kind": "answer", "file": "{case}.json", "fields": fields, **more})


RULE = rule({
    "grade": {"type": "text", "choices": ["low", "very high"]},
    "count": {"type": "integer", "range": [0, 10], "optional": True},
    "share": {"type": "number", "range": [0, 1], "optional": True},
    "sure": {"type": "boolean", "optional": True},
    "curve": {"type": "numbers", "length": 2, "range": [0, 1], "optional": True},
    "path": {"type": "numbers", "optional": True},
    "big": {"type": "integer", "optional": True},
})  # fmt: skip


def check(
    values: Mapping[str, JsonValue], one: AnswerFormat = RULE, role: Role = Role.PREDICTION
) -> tuple[dict[str, JsonValue], list[tuple[str, str | None, str | None]]]:
    problems = ProblemList()
    fields = check_fields(one, values, role, problems)
    return fields, [(problem.what, problem.column, problem.value) for problem in problems.kept]


def test_a_right_answer() -> None:
    values: dict[str, JsonValue] = {
        "path": [], "curve": [0, 1], "sure": False, "share": 1, "count": 10, "grade": "very high", "big": -(2**53),
    }  # fmt: skip
    fields, problems = check(values)
    assert problems == []
    assert fields == values
    assert list(fields) == ["grade", "count", "share", "sure", "curve", "path", "big"]
    assert [type(fields[name]) for name in ("count", "share")] == [int, float]


def test_an_optional_field_may_be_left_out() -> None:
    assert check({"grade": "low"}) == ({"grade": "low"}, [])


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("grade", "high", "field 'grade' is none of its choices: low, very high"),
        ("grade", "Very_high",
         "field 'grade' is not written exactly as a choice: mind case, spaces and underscores in low, very high"),
        ("grade", None, "field 'grade' is null where a text is due"),
        ("grade", {}, "field 'grade' is an object where a text is due"),
        ("count", 1.0, "field 'count' is a decimal number where a whole number is due: write 3 and not 3.0"),
        ("count", True, "field 'count' is true or false where a whole number is due"),
        ("count", -1, "field 'count' is less than 0"),
        ("count", 11, "field 'count' is greater than 10"),
        ("big", 2**53 + 1, "field 'big' is a whole number beyond 2^53, which is not read exactly"),
        ("share", "0.5", "field 'share' is a text where a number is due"),
        ("share", 1.5, "field 'share' is greater than 1"),
        ("share", False, "field 'share' is true or false where a number is due"),
        ("sure", 1, "field 'sure' is a number where true or false is due"),
        ("curve", 0.5, "field 'curve' is a number where a list of numbers is due"),
        ("curve", [0], "field 'curve' has fewer numbers than the 2 that are due"),
        ("curve", [0, 0, 0], "field 'curve' has more numbers than the 2 that are read"),
        ("curve", [0, True], "field 'curve': 1 of its items are no numbers, the first is item 2"),
        ("curve", [2, -1], "field 'curve': 1 of its numbers are less than 0, the first is item 2"),
        ("path", [0] * 10_001, "field 'path' has more numbers than the 10000 that are read"),
    ],
)  # fmt: skip
def test_wrong_values(name: str, value: JsonValue, sentence: str) -> None:
    _, problems = check({"grade": "low", name: value})
    assert problems[0][:2] == (sentence, name)


def test_all_problems_are_listed() -> None:
    values: dict[str, JsonValue] = {"SECRET": 1, "Grade": "x", "count": 11, "Curve ": [2, "SECRET"]}
    assert check(values)[1] == [
        ("there is a field that is not asked for: the fields are grade, count, share, sure, curve, path, big", None,
         "'SECRET'"),
        ("a field is not named exactly 'grade', which is missing: did you mean it?", "grade", "'Grade'"),
        ("a field is not named exactly 'curve', which is missing: did you mean it?", "curve", "'Curve '"),
        ("field 'grade' is none of its choices: low, very high", "grade", "'\"x\"'"),
        ("field 'count' is greater than 10", "count", "'11'"),
        ("field 'curve': 1 of its items are no numbers, the first is item 2", "curve", "'\"SECRET\"'"),
    ]  # fmt: skip
    assert check({})[1] == [("there is no field 'grade'", "grade", None)]


def test_further_fields_may_be_ignored() -> None:
    values: dict[str, JsonValue] = {"grade": "low", "zzz": 1}
    assert len(check(values)[1]) == 1
    assert check(values, role=Role.REFERENCE) == ({"grade": "low"}, [])
    assert check(values, RULE.model_copy(update={"extra_fields": "ignore"})) == ({"grade": "low"}, [])


VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from([*RULE.fields, "x"]), VALUE))
def test_any_values_are_read_or_refused(values: dict[str, JsonValue]) -> None:
    fields, problems = check(values)
    assert problems or all(fields[name] == values[name] for name in fields)


def test_a_file_is_read(confine: Confine, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"grade": "low", "share": 1}')
    reading = confined_read(confine, RULE, path, due=Due(), role=Role.PREDICTION)
    assert reading.prediction == Answer(fields={"grade": "low", "share": 1.0})
    path.write_text('{"grade": NaN}')
    reading = confined_read(confine, RULE, path, due=Due(), role=Role.PREDICTION)
    assert [problem.what for problem in reading.problems] == ["line 1, column 11: NaN and infinity are not JSON"]
    path.write_text("[]")
    reading = confined_read(confine, RULE, path, due=Due(), role=Role.PREDICTION)
    assert [problem.what for problem in reading.problems] == [
        "line 1, column 1: the file holds an array where an object is due"
    ]
    assert reading.prediction is None


def test_a_text_that_is_too_large_is_refused(confine: Confine, tmp_path: Path) -> None:
    caps = answer_caps(RULE)
    assert (caps.size, caps.values) == (caps.values * 80 + 12 * 9 * 7, 2 * (10_002 + 7) + 10_000)
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"grade": "low", "x": "y" * caps.size}))
    reading = confined_read(confine, RULE, path, due=Due(), role=Role.PREDICTION)
    assert [problem.what for problem in reading.problems] == [f"the file is larger than {caps.size} bytes"]
