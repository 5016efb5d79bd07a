"""JSON by Python's own parser, which is lenient, made strict; its size is counted before it is parsed.

Python's parser takes NaN, reads ``1e999`` as infinity, lets the last of two equal names win, and leaves by
``RecursionError`` where brackets are deep. So depth and number of values are counted first, in a scan that needs no
memory, and hooks refuse the rest. Nothing is said of what is wrong: who wants to know must look for himself.
"""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from runner.confine.contract import JsonValue

_MOST_DEEP = 200
"""Python's parser recurses; this is far below what it can bear."""


_MOST_TOKENS = 5
"""Strings, brackets and commas a value."""


@dataclass(frozen=True, kw_only=True)
class JsonBounds:
    """How large a text may be.

    Attributes:
        depth: Arrays and objects inside one another; from 1 to 200.
        values: Values of any kind, names not counted; each takes some 70 bytes once it is read.
        digits: Digits of a number, those of its exponent included.
    """

    depth: int
    values: int
    digits: int

    def __post_init__(self) -> None:
        if not 1 <= self.depth <= _MOST_DEEP:
            raise ValueError(f"a depth of {self.depth} is not from 1 to {_MOST_DEEP}")


class NotStrictError(ValueError):
    """A text is no JSON, or not strict, or too large; the text is ours."""


def parse_strictly(text: str, bounds: JsonBounds) -> JsonValue:
    """Parse a JSON text.

    Returns:
        Its value: every float finite, no name twice in one object.

    Raises:
        NotStrictError: It is not JSON, or has a doubled name or a number that is not finite, or is out of bounds.
    """

    def parse_integer(digits: str) -> int:
        check_digits(digits)
        return int(digits)

    def parse_float(digits: str) -> float:
        check_digits(digits)
        number = float(digits)
        return number if math.isfinite(number) else _not_finite(digits)

    def check_digits(digits: str) -> None:
        if len(digits) > bounds.digits and sum(map(str.isdigit, digits)) > bounds.digits:
            raise NotStrictError("a number has too many digits")

    if not _is_within(text, bounds):
        raise NotStrictError("it is too deep, or has too many values")
    try:
        value: JsonValue = json.loads(
            text,
            parse_int=parse_integer,
            parse_float=parse_float,
            parse_constant=_not_finite,
            object_pairs_hook=_no_doubles,
        )
    except NotStrictError:
        raise
    except (ValueError, RecursionError) as error:
        raise NotStrictError("it is no JSON") from error
    return value


_STRINGS_AND_BRACKETS = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[{][ \t\n\r]*+[\]}]|[\[\]{},]', re.DOTALL)


def _is_within(text: str, bounds: JsonBounds) -> bool:
    """Whether depth and number of values are within bounds; right for JSON, and of no meaning for anything else.

    A value stands behind each comma and at the beginning of each array or object that is not empty; one is the whole.
    The scan itself is bounded too: a value brings two strings, two brackets and a comma at most.
    """
    depth, values = 0, 1
    for count, match in enumerate(_STRINGS_AND_BRACKETS.finditer(text), 1):
        if count > _MOST_TOKENS * bounds.values:
            return False
        match match[0]:
            case "[" | "{":
                depth += 1
                values += 1
            case "]" | "}":
                depth -= 1
            case ",":
                values += 1
            case token if token[0] == '"' or depth < bounds.depth:  # a string, or an array or object that is empty
                continue
            case _:
                return False
        if depth > bounds.depth or values > bounds.values:
            return False
    return True


def _not_finite(_text: str) -> NoReturn:
    raise NotStrictError("a number is not finite")


def _no_doubles(pairs: Sequence[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise NotStrictError("a name stands there twice")
    return values
