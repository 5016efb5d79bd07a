"""Reads one JSON answer of named fields, and says of everything that is wrong which field it is.

The text is read in a confined child, and what that calls sound is parsed again, strictly and within the same bounds
(``readers.json_text``); here its values are held against the rule. Sentences name fields and choices of challenge.yaml;
what a container wrote goes into ``Problem.value``.
"""

import difflib
import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TypeGuard

from runner.challenge.formats import AnswerFormat, FieldRule
from runner.confine import Confine, JsonValue
from runner.formats.contract import Answer, Due, Reading, Role
from runner.formats.readers import json_text
from runner.formats.readers.json_faults import JsonCaps, Top
from runner.formats.readers.opened import read_file
from runner.formats.readers.problems import ProblemList
from runner.formats.spelling import listed, loosely

_MOST_NUMBERS = 10_000
"""Of a list whose length is not given."""

_STRANGERS = 10_000
"""Values of fields that are not asked for."""

_VALUE_BYTES = 80
_LARGEST_INTEGER = 1 << 53


class Fault(StrEnum):
    """Every sentence about an answer, but for those about its text."""

    NO_FIELD = "there is no field {name}"
    NEARLY = "a field is not named exactly {name}, which is missing: did you mean it?"
    STRANGER = "there is a field that is not asked for: the fields are {names}"
    TYPE = "field {name} is {found} where {due} is due"
    DECIMAL = "field {name} is a decimal number where a whole number is due: write 3 and not 3.0"
    LARGE = "field {name} is a whole number beyond 2^53, which is not read exactly"
    LEAST = "field {name} is less than {lowest}"
    GREATEST = "field {name} is greater than {highest}"
    CHOICE = "field {name} is none of its choices: {choices}"
    NEARLY_CHOICE = "field {name} is not written exactly as a choice: mind case, spaces and underscores in {choices}"
    SHORT = "field {name} has fewer numbers than the {length} that are due"
    LONG = "field {name} has more numbers than the {length} that are read"
    NO_NUMBERS = "field {name}: {count} of its items are no numbers, the first is item {place}"
    ITEMS_LEAST = "field {name}: {count} of its numbers are less than {lowest}, the first is item {place}"
    ITEMS_GREATEST = "field {name}: {count} of its numbers are greater than {highest}, the first is item {place}"


def answer_caps(rule: AnswerFormat) -> JsonCaps:
    """How large the text may be: twice what is due, and some fields that are not."""
    lists = [field for field in rule.fields.values() if field.type == "numbers"]
    items = sum(_MOST_NUMBERS if field.length is None else field.length for field in lists)
    texts = max((len(choice) for field in rule.fields.values() for choice in field.choices), default=0)
    values = 2 * (items + len(rule.fields)) + _STRANGERS
    return JsonCaps(size=values * _VALUE_BYTES + 12 * texts * len(rule.fields), values=values)


def confined_read(
    confine: Confine,
    rule: AnswerFormat,
    path: Path,
    *,
    due: Due,  # noqa: ARG001  the same whatever the case
    role: Role,
) -> Reading:
    """Read an answer; its text in a child that can do nothing else.

    Args:
        confine: Where children come from.
        rule: What its fields must be.
        path: The file.
        due: Of no meaning here.
        role: A reference may hold further fields.

    Raises:
        HostFault: No child could be started.
    """

    def read(descriptor: int) -> Reading:
        problems = ProblemList()
        caps = answer_caps(rule)
        values = json_text.confined_json(confine, descriptor, caps=caps, top=Top.OBJECT, problems=problems)
        fields = check_fields(rule, values, role, problems) if isinstance(values, dict) else {}
        prediction = None if problems.count else Answer(fields=fields)
        return Reading(prediction=prediction, problems=tuple(problems.kept), problem_count=problems.count)

    return read_file(path, read)


def check_fields(
    rule: AnswerFormat, values: Mapping[str, JsonValue], role: Role, problems: ProblemList
) -> dict[str, JsonValue]:
    """Hold the values of an object against the rule.

    Args:
        rule: What its fields must be.
        values: Finite, as ``parse_strictly`` answers them.
        role: A reference may hold further fields.
        problems: What is wrong is added here.

    Returns:
        By name, in the order of the rule; ``number`` and ``numbers`` as floats. Of no meaning where there is a problem.
    """
    taken = _match(rule, values, role, problems)
    fields: dict[str, JsonValue] = {}
    for name, field in rule.fields.items():
        if name in taken:
            fields[name] = _Field(name, field, problems).read(taken[name])
        elif not field.optional:
            problems.add(Fault.NO_FIELD.format(name=repr(name)), column=name)
    return fields


def _match(
    rule: AnswerFormat, values: Mapping[str, JsonValue], role: Role, problems: ProblemList
) -> Mapping[str, JsonValue]:
    """The values of the fields that are asked for; one that is nearly named like a missing one is taken for it."""
    taken = {name: value for name, value in values.items() if name in rule.fields}
    strict = role is Role.PREDICTION and rule.extra_fields == "refuse"
    for name in [name for name in values if name not in rule.fields]:
        missing = [known for known in rule.fields if known not in taken]
        close = difflib.get_close_matches(name.strip().lower()[:100], missing, n=1, cutoff=0.7)
        if close:
            taken[close[0]] = values[name]
            problems.add(Fault.NEARLY.format(name=repr(close[0])), column=close[0], value=name)
        elif strict:
            problems.add(Fault.STRANGER.format(names=listed(list(rule.fields))), value=name)
    return taken


class _Field:
    """Reads the value of one field, and says what is wrong with it."""

    def __init__(self, name: str, rule: FieldRule, problems: ProblemList) -> None:
        self._name = name
        self._rule = rule
        self._problems = problems
        self._lowest, self._highest = rule.range or (-float("inf"), float("inf"))

    def read(self, value: JsonValue) -> JsonValue:
        match self._rule.type, value:
            case ("boolean", bool()):
                return value
            case ("text", str()):
                return self._text(value)
            case ("number" | "integer", _) if _is_number(value):
                return self._number(value)
            case ("numbers", list()):
                return self._numbers(value)
            case _:
                self._say(Fault.TYPE, value, found=_kind(value), due=_DUE[self._rule.type])
                return None

    def _say(self, fault: Fault, value: JsonValue, **fields: object) -> None:
        what = fault.format(
            name=repr(self._name), lowest=f"{self._lowest:g}", highest=f"{self._highest:g}",
            choices=listed(self._rule.choices), **fields,
        )  # fmt: skip
        self._problems.add(what, column=self._name, value=json.dumps(value)[:100])

    def _text(self, value: str) -> str:
        if value not in self._rule.choices:
            nearly = loosely(value) in map(loosely, self._rule.choices)
            self._say(Fault.NEARLY_CHOICE if nearly else Fault.CHOICE, value)
        return value

    def _number(self, value: float) -> float:
        whole = self._rule.type == "integer"
        if whole and isinstance(value, float):
            self._say(Fault.DECIMAL, value)
        elif whole and abs(value) > _LARGEST_INTEGER:
            self._say(Fault.LARGE, value)
        elif value < self._lowest:
            self._say(Fault.LEAST, value)
        elif value > self._highest:
            self._say(Fault.GREATEST, value)
        return value if whole else float(value)

    def _numbers(self, values: Sequence[JsonValue]) -> JsonValue:
        length = self._rule.length
        if length is not None and len(values) < length:
            self._say(Fault.SHORT, len(values), length=length)
        elif len(values) > (_MOST_NUMBERS if length is None else length):
            self._say(Fault.LONG, len(values), length=_MOST_NUMBERS if length is None else length)
        numbers = [value for value in values if _is_number(value)]
        if len(numbers) < len(values):
            self._items(Fault.NO_NUMBERS, values, [not _is_number(value) for value in values])
        else:
            self._items(Fault.ITEMS_LEAST, values, [number < self._lowest for number in numbers])
            self._items(Fault.ITEMS_GREATEST, values, [number > self._highest for number in numbers])
        return [float(number) for number in numbers]

    def _items(self, fault: Fault, values: Sequence[JsonValue], wrong: Sequence[bool]) -> None:
        if any(wrong):
            first = wrong.index(True)
            self._say(fault, values[first], count=sum(wrong), place=first + 1)


def _is_number(value: JsonValue) -> TypeGuard[int | float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_DUE = {
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "text": "a text",
    "numbers": "a list of numbers",
}


def _kind(value: JsonValue) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list():
            return "a list"
        case _:
            return "an object"


def warm_up() -> None:
    """Read a good and a bad text once; for the fork server."""
    json_text.warm_up()
