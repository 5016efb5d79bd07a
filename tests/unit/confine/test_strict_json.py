"""Strict JSON: what Python's parser lets through is refused, and what is too large is never parsed."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.confine import JsonValue
from runner.confine.strict_json import JsonBounds, NotStrictError, parse_strictly

BOUNDS = JsonBounds(depth=3, values=6, digits=5)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("null", None),
        (' {"a": [1, -2.5, true], "b": {}} ', {"a": [1, -2.5, True], "b": {}}),
        ("[[[]]]", [[[]]]),
        ("[1,2,3,4,5]", [1, 2, 3, 4, 5]),
        ("-12345", -12345),
        ("-1.234e+5", -123400.0),
        ('"[[[[[[[[,,,,,,,,]]"', "[[[[[[[[,,,,,,,,]]"),
        ('"\\"[[[["', '"[[[['),
        ('{"a": {"a": 1}, "b": {"a": 1}}', {"a": {"a": 1}, "b": {"a": 1}}),
        ('"\\ud800"', "\ud800"),
    ],
)
def test_what_is_sound_is_parsed(text: str, value: JsonValue) -> None:
    assert parse_strictly(text, BOUNDS) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1,]",
        "{} {}",
        "NaN",
        "[Infinity]",
        "-Infinity",
        "1e999",
        '{"a": 1, "a": 1}',
        '{"a": 1, "\\u0061": 1}',
        "[[[[]]]]",
        '{"a": {"a": {"a": {}}}}',
        '[[["x", ["y"]]]]',
        "[1,2,3,4,5,6]",
        '{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6}',
        "[[],[],[],[],[],[]]",
        "123456",
        "1.23456",
        "1e00001",
        "\ufeff1",
        "'a'",
    ],
)
def test_what_is_not_is_refused(text: str) -> None:
    with pytest.raises(NotStrictError):
        parse_strictly(text, JsonBounds(depth=3, values=6, digits=5))


@pytest.mark.parametrize("text", ["[" * 10_000_000, '{"":' * 2_000_000, "[" + "1," * 5_000_000 + "1]", "[[[[" + "1"])
def test_what_is_too_large_never_meets_the_parser(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("parsed")

    monkeypatch.setattr(json, "loads", never)
    with pytest.raises(NotStrictError, match="it is too deep, or has too many values"):
        parse_strictly(text, BOUNDS)
    with pytest.raises(AssertionError, match="parsed"):
        parse_strictly("[[[1]]]", BOUNDS)


@pytest.mark.parametrize("token", ['""', "[]", "{}", "]"])
def test_what_no_json_of_so_many_values_can_hold_is_not_scanned_to_its_end(token: str) -> None:
    with pytest.raises(NotStrictError, match="it is no JSON"):
        parse_strictly(token * 30, BOUNDS)
    for many in (token * 31, token * 5_000_000):
        with pytest.raises(NotStrictError, match="it is too deep, or has too many values"):
            parse_strictly(many, BOUNDS)


@pytest.mark.parametrize("digits", ["9" * 4301, "9" * 5_000_000, "-" + "9" * 33, "0." + "9" * 33])
def test_a_number_of_many_digits_is_never_converted(digits: str) -> None:
    with pytest.raises(NotStrictError, match="a number has too many digits"):
        parse_strictly(digits, JsonBounds(depth=3, values=6, digits=32))


@pytest.mark.parametrize("depth", [0, 201])
def test_a_depth_that_pythons_parser_could_not_bear_is_no_bound(depth: int) -> None:
    with pytest.raises(ValueError, match=f"a depth of {depth} is not from 1 to 200"):
        JsonBounds(depth=depth, values=1, digits=1)


def size_of(value: JsonValue) -> tuple[int, int]:
    """Depth, and number of values."""
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else None
    if inner is None:
        return 0, 1
    sizes = [size_of(one) for one in inner]
    return 1 + max((depth for depth, _ in sizes), default=0), 1 + sum(count for _, count in sizes)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-99_999, 99_999) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=8,
)
WRITERS: list[Callable[[JsonValue], str]] = [json.dumps, lambda value: json.dumps(value, indent=1, ensure_ascii=False)]


@given(PLAIN, st.sampled_from(WRITERS))
def test_depth_and_number_of_values_are_counted_exactly(value: JsonValue, write: Callable[[JsonValue], str]) -> None:
    depth, values = size_of(value)
    if depth <= BOUNDS.depth and values <= BOUNDS.values:
        assert parse_strictly(write(value), BOUNDS) == value
    else:
        with pytest.raises(NotStrictError):
            parse_strictly(write(value), BOUNDS)


@given(st.text(st.sampled_from('[]{},:"\\ 01.eE-naulNI'), max_size=12))
def test_what_is_parsed_is_what_pythons_parser_reads(text: str) -> None:
    try:
        value = parse_strictly(text, BOUNDS)
    except NotStrictError:
        return
    assert json.loads(text) == value
