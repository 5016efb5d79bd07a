"""Every mistake in a file a person wrote is named with its line, its key, its value and plain words."""

from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Discriminator, Field, JsonValue, Tag, field_validator

from runner.errors import ConfigError
from runner.yaml_text import MAX_BYTES, parse_model, parse_yaml, read_model, read_text

HERE = Path("some.yaml")


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid")

    memory: int
    gpus: int = 0
    kind_of: Literal["slow", "fast"] = "fast"


class PartA(BaseModel):
    model_config = ConfigDict(extra="forbid")

    fixed: float = Field(gt=0)


class PartB(BaseModel):
    model_config = ConfigDict(extra="forbid")

    per_media: str
    allowance: float = 0


def _which(value: object) -> str:
    return "fixed" if isinstance(value, dict) and "fixed" in value else "per_media"


class Whole(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    name: str = Field(pattern="^[a-z]+$")
    share: float = Field(default=0.5, ge=0, le=1)
    timed_out: str = Field(default="case", alias="timed-out")
    part: Part | None = None
    parts: dict[str, Part] = {}
    several: tuple[Part, ...] = ()
    time: Annotated[Annotated[PartA, Tag("fixed")] | Annotated[PartB, Tag("per_media")], Discriminator(_which)] = PartA(
        fixed=1
    )
    even: int = 0

    @field_validator("even")
    @classmethod
    def _is_even(cls, value: int) -> int:
        if value % 2:
            raise ValueError(f"{value} is odd")
        return value


def errors_of(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse_model(HERE, text, Whole)
    lines = str(caught.value).split("\n  ")
    return lines[1:] if len(lines) > 1 else lines


def test_a_good_file_becomes_a_model() -> None:
    text = (
        "name: ab\nshare: 0.25\ntimed-out: submission\ntime: {per_media: x, allowance: 2}\nparts:\n  x: {memory: 1}\n"
    )
    whole = parse_model(HERE, text, Whole)
    assert (whole.name, whole.share, whole.timed_out, whole.parts["x"].memory) == ("ab", 0.25, "submission", 1)
    assert whole.time == PartB(per_media="x", allowance=2)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name: ab\nshare: 2", "some.yaml:2: share: 2: must be at most 1.0"),
        ("name: ab\nshare: -1", "some.yaml:2: share: -1: must be at least 0.0"),
        ("name: ab\nshare: much", "some.yaml:2: share: 'much': must be a number"),
        ("name: ab\nshare: nan", "some.yaml:2: share: 'nan': must be a finite number"),
        ("name: AB", "some.yaml:1: name: 'AB': must have the form ^[a-z]+$"),
        ("name: 1.0", "some.yaml:1: name: 1.0: must be text; put it in quotes"),
        ("name:", "some.yaml:1: name: null: must be text; put it in quotes"),
        ("name: ab\neven: 3", "some.yaml:2: even: 3 is odd"),
        ("name: ab\neven: 2.5", "some.yaml:2: even: 2.5: must be a whole number"),
        ("share: 1", "some.yaml:1: name: is missing"),
        ("nmae: ab\nname: ab", "some.yaml:1: nmae: is not a key of this section; did you mean 'name'?"),
        ("name: ab\ntimed_owt: x", "some.yaml:2: timed_owt: is not a key of this section; did you mean 'timed-out'?"),
        ("name: ab\npart: 3", "some.yaml:2: part: 3: must be a section of keys and values"),
        (
            "name: ab\npart:\n  memory: 1\n  kind_of: quick",
            "some.yaml:4: part.kind_of: 'quick': must be 'slow' or 'fast'",
        ),
        ("name: ab\nparts:\n  x:\n    memory: y", "some.yaml:4: parts.x.memory: 'y': must be a whole number"),
        ("name: ab\nseveral:\n- memory: 1\n- memory: y", "some.yaml:4: several[1].memory: 'y': must be a whole number"),
        ("name: ab\ntime:\n  fixed: 0", "some.yaml:3: time.fixed: 0: must be more than 0.0"),
        ("name: ab\ntime:\n  per_media: a\n  allowance: b", "some.yaml:4: time.allowance: 'b': must be a number"),
        ("[1, 2]", "some.yaml:1: must be a section of keys and values"),
        ("", "some.yaml:1: name: is missing"),
    ],
)
def test_one_mistake_is_one_sentence(text: str, expected: str) -> None:
    assert errors_of(text) == [expected]


def test_an_unknown_key_like_no_other_lists_the_known_ones_aliases_included() -> None:
    (error,) = errors_of("name: ab\nzzz: 1")
    assert error == (
        "some.yaml:2: zzz: is not a key of this section; "
        "its keys are name, share, timed-out, part, parts, several, time, even"
    )


def test_an_unknown_key_inside_a_union_is_compared_with_the_chosen_section() -> None:
    assert errors_of("name: ab\ntime: {per_media: a, alowance: 2}") == [
        "some.yaml:2: time.alowance: is not a key of this section; did you mean 'allowance'?"
    ]


def test_all_errors_are_listed_in_the_order_of_the_file() -> None:
    assert errors_of("share: 7\npart:\n  memroy: 3\n  gpus: x\neven: 1") == [
        "some.yaml:1: name: is missing",
        "some.yaml:1: share: 7: must be at most 1.0",
        "some.yaml:2: part.memory: is missing; 'memroy' stands there instead",
        "some.yaml:3: part.memroy: is not a key of this section; did you mean 'memory'?",
        "some.yaml:4: part.gpus: 'x': must be a whole number",
        "some.yaml:5: even: 1 is odd",
    ]


def test_several_errors_are_counted_in_the_first_line() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_model(HERE, "share: 7", Whole)
    assert str(caught.value).split("\n")[0] == "some.yaml: 2 errors"


def test_a_long_value_is_quoted_in_part_and_control_characters_are_escaped() -> None:
    (error,) = errors_of('name: "' + "\\e[31m" + "x" * 100 + '"')
    assert "\x1b" not in error
    assert error.startswith("some.yaml:1: name: '\\x1b[31mxxx")
    assert "x" * 61 not in error


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on: off", {"on": "off"}),
        ("a: yes", {"a": "yes"}),
        ("a: true\nb: False", {"a": True, "b": "False"}),
        ("a: 003", {"a": "003"}),
        ("a: -7\nb: 1e3\nc: 0.5", {"a": -7, "b": 1000.0, "c": 0.5}),
        ("a: 1_000\nb: 0x10\nc: 1:30\nd: 2024-01-31", {"a": "1_000", "b": "0x10", "c": "1:30", "d": "2024-01-31"}),
        ("a: ~\nb: null\nc:", {"a": None, "b": None, "c": None}),
        ("1: a\nnull: b", {"1": "a", "null": "b"}),
        ("'3': \"4\"", {"3": "4"}),
        ("a: [-1..14]", {"a": ["-1..14"]}),
        ("# nothing", {}),
    ],
)
def test_plain_text_means_what_it_looks_like(text: str, value: JsonValue) -> None:
    assert parse_yaml(HERE, text).value == value


def test_every_key_and_item_keeps_its_line() -> None:
    assert parse_yaml(HERE, "a:\n  b: [1,\n      2]\n").lines == {
        (): 1,
        ("a",): 1,
        ("a", "b"): 2,
        ("a", "b", 0): 2,
        ("a", "b", 1): 3,
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb:\n  c: 1\n  c: 2", "some.yaml:4: b.c: the key stands here a second time; first in line 3"),
        ("a: 1\nb: .nan", "some.yaml:2: b: '.nan' is not a finite number; quote it if it is text"),
        ("a: -.inf", "some.yaml:1: a: '-.inf' is not a finite number; quote it if it is text"),
        ("a: 1e999", "some.yaml:1: a: '1e999' is not a finite number; quote it if it is text"),
        ("a: !!int x", "some.yaml:1: a: 'x' is not a whole number; quote it if it is text"),
        ("a: !!bool x", "some.yaml:1: a: 'x' is not true or false; quote it if it is text"),
        ("a: &x 1\nb: 2", "some.yaml:1: anchors and aliases (& and *) are not read here; write it out"),
        ("? [a]\n: 1", "some.yaml:1: a key must be plain text, not a list or a section"),
        (
            "a: 1\n---\nb: 1",
            (
                "some.yaml:2: this is not YAML, at column 1: expected a single document in the stream, but found "
                "another document"
            ),
        ),
        ("a: 1\nb: \x01", "some.yaml:2: this is not YAML: special characters are not allowed"),
        (
            "a: 'x",
            (
                "some.yaml:1: this is not YAML, at column 6: while scanning a quoted scalar, "
                "found unexpected end of stream"
            ),
        ),
    ],
)
def test_what_is_not_read_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_yaml(HERE, text)
    assert str(caught.value) == message


def test_a_tag_makes_no_object() -> None:
    with pytest.raises(ConfigError, match=r"the tag '.*os\.system' is not read here"):
        parse_yaml(HERE, "a: !!python/object/apply:os.system ['true']")


@pytest.mark.parametrize("text", ["[" * 100, "a: " + "{b: " * 50, "- " * 60])
def test_endless_nesting_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="nested deeper than 40"):
        parse_yaml(HERE, text)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read '.*nothing\.yaml': No such file"):
        read_text(tmp_path / "nothing.yaml")


def test_a_file_that_is_too_large_is_not_parsed(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    path.write_bytes(b"#" * MAX_BYTES)
    assert len(read_text(path)) == MAX_BYTES
    path.write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(ConfigError, match="larger than 1048576 bytes"):
        read_text(path)


def test_bytes_that_are_not_utf8_are_placed(tmp_path: Path) -> None:
    path = tmp_path / "latin.yaml"
    path.write_bytes(b"a: 1\nb: \xe9\n")
    with pytest.raises(ConfigError) as caught:
        read_text(path)
    assert str(caught.value) == f"{path}:2: byte 0xe9 is not UTF-8 (save the file as UTF-8)"


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    path = tmp_path / "bom.yaml"
    path.write_bytes(b"\xef\xbb\xbfname: ab\n")
    assert read_model(path, Whole).name == "ab"
