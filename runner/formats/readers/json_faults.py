"""What is asked of a JSON text, and every sentence in which it can be refused."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from runner.confine.strict_json import JsonBounds
from runner.formats.readers.problems import sentence_pattern


@dataclass(frozen=True, kw_only=True)
class JsonCaps(JsonBounds):
    """How large a JSON text may be; depth, values and digits are those of ``JsonBounds``.

    Attributes:
        size: Bytes.
    """

    size: int = 16 << 20
    depth: int = 32
    values: int = 1_000_000
    digits: int = 64


class Top(StrEnum):
    """What a text must hold."""

    ANY = "anything"
    OBJECT = "an object"
    ARRAY = "an array"


class Fault(StrEnum):
    """Every sentence of this reader."""

    EMPTY = "the file is empty"
    TOO_LARGE = "the file is larger than {cap} bytes"
    MARK = "the file begins with a byte order mark: save it as UTF-8 without one"
    WIDE = "the file is {encoding}: save it as UTF-8"
    NUL = "{place}a NUL byte stands here: the file is not text"
    NOT_UTF8 = "{place}the bytes are not UTF-8"
    TOP = "{place}the file holds {found} where {due} is due"
    DEPTH = "{place}arrays and objects are more than {cap} deep"
    VALUES = "{place}there are more than {cap} values"
    END_IN_STRING = "{place}the file ends inside the string that begins here"
    END_IN_ARRAY = "{place}the file ends inside an array"
    END_IN_OBJECT = "{place}the file ends inside an object"
    VALUE_DUE = "{place}a value is due here"
    NAME_DUE = "{place}a name in quotation marks is due here"
    COLON_DUE = "{place}a colon is due here"
    COMMA_OR_BRACKET = "{place}a comma or ] is due here"
    COMMA_OR_BRACE = "{place}a comma or }} is due here"
    TRAILING_COMMA = "{place}a comma stands before this bracket, with nothing between"
    TRAILING_DATA = "{place}the value has ended, and more follows"
    DOUBLE = "{place}the name stands here again, as in {first}"
    LINE_IN_STRING = "{place}a line ends inside a string: write \\n there"
    CONTROL = "{place}a control character stands inside a string"
    ESCAPE = "{place}this is no escape of JSON"
    SURROGATE = "{place}the string holds half of a surrogate pair (\\ud800 to \\udfff)"
    NOT_FINITE = "{place}NaN and infinity are not JSON"
    INFINITE = "{place}the number is too large: it would be read as infinite"
    DIGITS = "{place}the number has more than {cap} digits"
    NUMBER = "{place}the number is not as JSON writes it: no plus sign, no leading 0, a digit on each side of the point"
    PYTHON = "{place}this is Python: JSON writes true, false and null"
    SINGLE_QUOTE = '{place}JSON knows no single quotation marks: write "'
    COMMENT = "{place}JSON knows no comments"
    NO_VALUE = "{place}this is no JSON value"


SENTENCES = sentence_pattern(
    Fault,
    place=r"line [0-9]{1,9}, column [0-9]{1,9}: ",
    first=r"line [0-9]{1,9}, column [0-9]{1,9}",
    encoding="UTF-16|UTF-32",
    found="an object|an array|a string|a number|true, false or null",
    due="an object|an array",
)


class Place(NamedTuple):
    """Where a character stands, both counted from 1."""

    line: int
    column: int

    @property
    def plain(self) -> str:
        """For the inside of a sentence."""
        return f"line {self.line}, column {self.column}"

    @property
    def words(self) -> str:
        """For its beginning."""
        return f"{self.plain}: "


def place_of(text: str, position: int) -> Place:
    """Where the character at a position stands."""
    return Place(text.count("\n", 0, position) + 1, position - text.rfind("\n", 0, position))
