"""The JSON primitive: sound texts are read, and of others everything that is wrong is said, with its place."""

import json
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.confine import ConfinedFailure, FailureKind, JsonValue, Reply
from runner.formats.contract import Problem
from runner.formats.readers import json_text as module
from runner.formats.readers.json_faults import SENTENCES, Fault, JsonCaps, Top
from runner.formats.readers.json_text import check_json, read_json
from runner.formats.readers.json_walk import Walk
from runner.formats.readers.problems import ProblemList, sentence_pattern

CAPS = JsonCaps(size=2000, depth=4, values=30, digits=20)


def read(content: bytes | str, *, caps: JsonCaps = CAPS, top: Top = Top.ANY) -> tuple[JsonValue, list[Problem]]:
    problems = ProblemList()
    descriptor = os.memfd_create("json")
    try:
        os.write(descriptor, content.encode() if isinstance(content, str) else content)
        value = read_json(descriptor, caps=caps, top=top, problems=problems)
    finally:
        os.close(descriptor)
    assert problems.count == len(problems.kept)
    return value, problems.kept


def sentences(content: bytes | str, *, caps: JsonCaps = CAPS, top: Top = Top.ANY) -> list[str]:
    value, problems = read(content, caps=caps, top=top)
    assert value is None
    assert problems
    return [problem.what for problem in problems]


def answer(text: str | bytes) -> Reply:
    content = text.encode() if isinstance(text, str) else text
    return Reply(header={}, arrays={"text": np.frombuffer(content, np.uint8)})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("null", None),
        (' \r\n\t{"a": [1, -2.5e1, true, false, null, "x"], "b": {}, "c": []}\n', {
            "a": [1, -25.0, True, False, None, "x"], "b": {}, "c": []}),
        ('"\\ud83d\\ude00 \\\\ud800 é"', "\U0001f600 \\ud800 é"),
        ('{"": {"a": 1}, "a": {"a": 2}}', {"": {"a": 1}, "a": {"a": 2}}),
        ("[[[[]]]]", [[[[]]]]),
        ("-0", 0),
        ("1e-999", 0.0),
        ("1" * 20, int("1" * 20)),
        ("0." + "1" * 19, float("0." + "1" * 19)),
        ("-1." + "1" * 19, float("-1." + "1" * 19)),
        ("[" + ",".join("1" * 29) + "]", [1] * 29),
        ("[" + ",".join(["{ }"] * 29) + "]", [{}] * 29),
        ('["' + ", " * 40 + '"]', [", " * 40]),
    ],
)  # fmt: skip
def test_sound_texts(text: str, value: JsonValue) -> None:
    found, problems = read(text)
    assert problems == []
    assert found == value
    assert type(found) is type(value)
    assert check_json(answer(text), caps=CAPS, top=Top.ANY) == value


PLACE = "line 1, column "
BAD: list[tuple[bytes | str, list[str]]] = [
    (b"", ["the file is empty"]),
    (b" \r\n\t", ["the file is empty"]),
    (b" " * 2001, ["the file is larger than 2000 bytes"]),
    (b"\xef\xbb\xbf", ["the file begins with a byte order mark: save it as UTF-8 without one", "the file is empty"]),
    (b"\xef\xbb\xbf[1, 2", ["the file begins with a byte order mark: save it as UTF-8 without one",
                            PLACE + "6: the file ends inside an array"]),
    ("[1]".encode("utf-16"), ["the file is UTF-16: save it as UTF-8"]),
    ("[1]".encode("utf-16-le"), ["the file is UTF-16: save it as UTF-8"]),
    ("[1]".encode("utf-16-be"), ["the file is UTF-16: save it as UTF-8"]),
    ("[1]".encode("utf-32"), ["the file is UTF-32: save it as UTF-8"]),
    ("[1]".encode("utf-32-be"), ["the file is UTF-32: save it as UTF-8"]),
    (b"[1,\n \xe9]", ["line 2, column 2: the bytes are not UTF-8"]),
    (b'["\xed\xa0\x80"]', [PLACE + "3: the bytes are not UTF-8"]),
    (b"[1,\n2,\0]", ["line 2, column 3: a NUL byte stands here: the file is not text"]),
    ("[" * 100, [PLACE + "5: arrays and objects are more than 4 deep"]),
    ('{"a":' * 100, [PLACE + "21: arrays and objects are more than 4 deep"]),
    ("[" + ",".join("1" * 30) + "]", [PLACE + "60: there are more than 30 values"]),
    ('["abc', [PLACE + "2: the file ends inside the string that begins here"]),
    ('["a\\', [PLACE + "2: the file ends inside the string that begins here"]),
    ('["a\\u12', [PLACE + "2: the file ends inside the string that begins here"]),
    ("[1,", [PLACE + "4: the file ends inside an array"]),
    ("[[1],\n", ["line 2, column 1: the file ends inside an array"]),
    ('{"a": 1', [PLACE + "8: the file ends inside an object"]),
    ('{"a":', [PLACE + "6: the file ends inside an object"]),
    ('{"a"', [PLACE + "5: the file ends inside an object"]),
    ("{", [PLACE + "2: the file ends inside an object"]),
    ("[,1]", [PLACE + "2: a value is due here"]),
    ('{"a": }', [PLACE + "7: a value is due here"]),
    ("]", [PLACE + "1: a value is due here"]),
    ("{1: 2}", [PLACE + "2: a name in quotation marks is due here"]),
    ('{"a" 1}', [PLACE + "6: a colon is due here"]),
    ("[1 2]", [PLACE + "4: a comma or ] is due here"]),
    ("[1}", [PLACE + "3: a comma or ] is due here"]),
    ('{"a": 1 "b": 2}', [PLACE + "9: a comma or } is due here"]),
    ("[1,\n]", ["line 2, column 1: a comma stands before this bracket, with nothing between"]),
    ('{"a": 1, }', [PLACE + "10: a comma stands before this bracket, with nothing between"]),
    ("[1] [2]", [PLACE + "5: the value has ended, and more follows"]),
    ("1\n2", ["line 2, column 1: the value has ended, and more follows"]),
    ('["a\nb"]', [PLACE + "4: a line ends inside a string: write \\n there"]),
    ('["a\tb"]', [PLACE + "4: a control character stands inside a string"]),
    ('["\\x41"]', [PLACE + "3: this is no escape of JSON"]),
    ('["\\u12g4"]', [PLACE + "3: this is no escape of JSON"]),
    ('["\\ud800"]', [PLACE + "2: the string holds half of a surrogate pair (\\ud800 to \\udfff)"]),
    ('{"\\udc00x": "\\ud800\\ud800"}', [
        PLACE + "2: the string holds half of a surrogate pair (\\ud800 to \\udfff)",
        PLACE + "13: the string holds half of a surrogate pair (\\ud800 to \\udfff)"]),
    ("[NaN, 1, Infinity, -Infinity]", [PLACE + f"{n}: NaN and infinity are not JSON" for n in (2, 10, 20)]),
    ("[nan, -inf]", [PLACE + f"{n}: NaN and infinity are not JSON" for n in (2, 7)]),
    ("[1e999, -1e999]", [
        PLACE + f"{n}: the number is too large: it would be read as infinite" for n in (2, 9)]),
    ("[" + "1" * 21 + "]", [PLACE + "2: the number has more than 20 digits"]),
    ("-0." + "1" * 20, [PLACE + "1: the number has more than 20 digits"]),
    ("[+1, 01, .5, 1., 1e, 0x10]", [
        *(PLACE + f"{n}: the number is not as JSON writes it: no plus sign, no leading 0, a digit on each side of the "
          "point" for n in (2, 6, 10, 14, 18)),
        PLACE + "22: this is no JSON value"]),
    ("[True, None]", [PLACE + f"{n}: this is Python: JSON writes true, false and null" for n in (2, 8)]),
    ("['a']", [PLACE + '2: JSON knows no single quotation marks: write "']),
    ("{'a': 1}", [PLACE + '2: JSON knows no single quotation marks: write "']),
    ("[1, // one\n2]", [PLACE + "5: JSON knows no comments"]),
    ("# x", [PLACE + "1: JSON knows no comments"]),
    ("[undefined]", [PLACE + "2: this is no JSON value"]),
    ("[\u0661]", [PLACE + "2: this is no JSON value"]),
    ("\u00a0[]", [PLACE + "1: this is no JSON value", PLACE + "2: the value has ended, and more follows"]),
    ('{"a": 1,\n "b": {"a": 1, "\\u0061": 2},\n "a": 3}', [
        "line 2, column 16: the name stands here again, as in line 2, column 8",
        "line 3, column 2: the name stands here again, as in line 1, column 2"]),
]  # fmt: skip


@pytest.mark.parametrize(("content", "expected"), BAD, ids=[said[0] for _, said in BAD])
def test_what_is_wrong_is_said_with_its_place(content: bytes | str, expected: list[str]) -> None:
    assert sentences(content) == expected


@pytest.mark.parametrize(
    ("text", "top", "what"),
    [
        ("[]", Top.OBJECT, "line 1, column 1: the file holds an array where an object is due"),
        ("\n {}", Top.ARRAY, "line 2, column 2: the file holds an object where an array is due"),
        ('"x"', Top.OBJECT, "line 1, column 1: the file holds a string where an object is due"),
        ("-1", Top.ARRAY, "line 1, column 1: the file holds a number where an array is due"),
        ("null", Top.OBJECT, "line 1, column 1: the file holds true, false or null where an object is due"),
        ("false", Top.OBJECT, "line 1, column 1: the file holds true, false or null where an object is due"),
    ],
)
def test_the_kind_at_the_top(text: str, top: Top, what: str) -> None:
    assert sentences(text, top=top) == [what]
    assert read(text)[1] == []


def test_every_sentence_is_tried_above_and_is_one_the_parent_lets_through() -> None:
    tried = [what for _, expected in BAD for what in expected]
    tried.append("line 1, column 1: the file holds an array where an object is due")
    assert [what for what in tried if not SENTENCES.fullmatch(what)] == []
    fields = {"place": ".*: ", "first": ".*", "encoding": ".*", "found": ".*", "due": ".*"}
    missing = [fault for fault in Fault if not any(map(sentence_pattern([fault], **fields).fullmatch, tried))]
    assert missing == []


def test_a_problem_has_its_line_and_quotes_what_stood_there() -> None:
    (problem,) = read('{"a\\u001b[0m\u202e": 1,\n"a\\u001b[0m\u202e": 2}')[1]
    assert (problem.row, problem.column, problem.value) == (2, None, "'a\\x1b[0m\\u202e'")
    (problem,) = read("[" + "x" * 1000 + "]")[1]
    assert problem.value == "'" + "x" * 58 + "…"


@pytest.mark.parametrize(("there", "counted"), [(200, 200), (2000, 1000)])
def test_a_thousand_are_counted_and_fifty_are_kept(there: int, counted: int) -> None:
    problems = ProblemList()
    descriptor = os.memfd_create("json")
    os.write(descriptor, b"[" + b"NaN,\n" * (there - 1) + b"NaN]")
    assert read_json(descriptor, caps=JsonCaps(), top=Top.ANY, problems=problems) is None
    os.close(descriptor)
    assert problems.count == counted
    assert [problem.row for problem in problems.kept] == list(range(1, 51))


def test_reading_leaves_the_position_of_the_descriptor_alone() -> None:
    descriptor = os.memfd_create("json")
    os.write(descriptor, b"[1]")
    assert read_json(descriptor, caps=CAPS, top=Top.ANY, problems=ProblemList()) == [1]
    assert os.lseek(descriptor, 0, os.SEEK_CUR) == 3
    os.close(descriptor)


SAMPLE = '{"a": [1, -2.5e1, {"b": "\\u00e9\\n é"}],\n"c": null, "d": true}'.encode()


def test_a_text_cut_anywhere_is_a_problem() -> None:
    for length in range(len(SAMPLE)):
        assert len(sentences(SAMPLE[:length])) == 1
    assert read(SAMPLE) == ({"a": [1, -25.0, {"b": "é\n é"}], "c": None, "d": True}, [])


PIECE = st.sampled_from(
    [
        *'[]{},:"\\/ \n\0é\x1f0.-+eE19',
        *("true", "null", "NaN", "1e999", "1e5", '"a"', '"a":', '"\\ud800"', '"\\ud83d\\ude00"', "\\u", "12345", "x"),
        *("\ufeff", "'", '{"a":1}', "[1]", "{}", "[]", "1" * 9, "\u00a0"),
    ]
)


def test_the_short_way_is_taken_up_to_the_caps() -> None:
    for text in ("[" + ",".join("1" * 29) + "]", "[" + ", ".join(["[ ]"] * 29) + "]", "[[[[]]]]", '[[[{"[[[[": 1}]]]'):
        assert module._read_at_once(text, CAPS) is not None
    for text in ("[" + ",".join("1" * 30) + "]", "[[[[[]]]]]", "[[[[[1]]]]]", '["\\ud800"]', '{"a": 1, "a": 1}'):
        assert module._read_at_once(text, CAPS) is None


SMALL = JsonCaps(size=500, depth=2, values=5, digits=6)


@settings(max_examples=400)
@given(st.lists(PIECE, max_size=8).map("".join))
def test_the_walk_finds_something_wrong_exactly_where_the_short_way_gives_up(text: str) -> None:
    problems = ProblemList()
    Walk(text, SMALL, problems).run()
    sound = module._read_at_once(text, SMALL)
    assert (sound is None) == (problems.count > 0)


@given(st.lists(PIECE, max_size=8).map("".join))
def test_what_is_read_is_what_pythons_parser_reads_and_never_more(text: str) -> None:
    value, problems = read(text, caps=SMALL)
    assert value is None or problems == []
    if problems == []:
        assert json.loads(text) == value


@given(st.binary(max_size=60))
def test_random_bytes_are_problems_and_never_exceptions(content: bytes) -> None:
    value, problems = read(content)
    assert value is None or problems == []
    assert all(SENTENCES.fullmatch(problem.what) for problem in problems)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**18), 10**18) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]),
                                                                        max_size=5), inner, max_size=3),
    max_leaves=10,
)  # fmt: skip


@given(PLAIN, st.booleans(), st.sampled_from([None, 1]))
def test_what_python_writes_is_read_and_believed(value: JsonValue, escape: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=escape, indent=indent)
    caps = JsonCaps(size=10_000)
    assert read(text, caps=caps) == (value, [])
    assert check_json(answer(text), caps=caps, top=Top.ANY) == value


def nested(depth: int) -> JsonValue:
    value: JsonValue = []
    for _ in range(depth - 1):
        value = [value]
    return value


PARTS = "its answer lacks its parts"
NOT_SOUND = "its answer is not sound, or larger than the file may be"
KIND = "its answer is of another kind"


@pytest.mark.parametrize(
    ("reply", "detail"),
    [
        (Reply(header={}), PARTS),
        (Reply(header={}, arrays={"other": np.zeros(1, np.uint8)}), PARTS),
        (Reply(header={}, arrays={**answer("[]").arrays, "more": np.zeros(1, np.uint8)}), PARTS),
        (Reply(header={}, arrays={"text": np.frombuffer(b"[]", np.int8)}), PARTS),
        (Reply(header={}, arrays={"text": np.frombuffer(b"[]", np.uint8).reshape(1, 2)}), PARTS),
        (answer(b"[" + b" " * 1999 + b"]"), "its answer is larger than the file may be"),
        (answer("1"), KIND),
        (answer("null"), KIND),
        (answer("{}"), KIND),
        (answer("[" * 5 + "]" * 5), NOT_SOUND),
        (answer("[" * 2000), NOT_SOUND),
        (answer("[" + ",".join("1" * 30) + "]"), NOT_SOUND),
        (answer("[" + "1" * 21 + "]"), NOT_SOUND),
        (answer("[NaN]"), NOT_SOUND),
        (answer("[1e999]"), NOT_SOUND),
        (answer('[{"a": 1, "a": 2}]'), NOT_SOUND),
        (answer('["\\ud800"]'), NOT_SOUND),
        (answer('[{"\\udc00": 1}]'), NOT_SOUND),
        (answer(b'["\xff"]'), NOT_SOUND),
        (answer(b""), NOT_SOUND),
        (answer(b"[] []"), NOT_SOUND),
    ],
)
def test_an_answer_that_no_file_can_have_is_not_believed(reply: Reply, detail: str) -> None:
    with pytest.raises(ConfinedFailure) as caught:
        check_json(reply, caps=CAPS, top=Top.ARRAY)
    assert (caught.value.kind, caught.value.detail) == (FailureKind.GARBLED, detail)


def test_an_answer_at_the_caps_is_believed_so_the_test_above_can_fail() -> None:
    values: tuple[JsonValue, ...] = (nested(4), [*[1] * 29], [10**20 - 1, -(10**20) + 1])
    for value in values:
        assert check_json(answer(json.dumps(value)), caps=CAPS, top=Top.ARRAY) == value


@pytest.mark.parametrize("depth", [0, 201])
def test_a_depth_that_pythons_parser_could_not_bear_is_no_cap(depth: int) -> None:
    with pytest.raises(ValueError, match=f"a depth of {depth} is not from 1 to 200"):
        JsonCaps(depth=depth)


def test_the_deepest_cap_can_be_read() -> None:
    text = "[" * 200 + "]" * 200
    assert read(text, caps=JsonCaps(depth=200)) == (nested(200), [])
