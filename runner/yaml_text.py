"""Reads a YAML file a person wrote, and says of everything that is wrong with it where it stands.

The dialect is the part of YAML 1.2 that has no surprises. ``on``, ``off``, ``yes`` and ``no`` are text, so
``method: off`` and the key ``on`` mean what they say. Numbers are decimal; one with leading zeros stays text,
since it is an id. Dates stay text. Doubled keys, anchors, tags and numbers that are not finite are refused:
the first hides a mistake, the second can blow up a small file to any size, the third makes objects, the last
makes every comparison false.
"""

import difflib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import UnionType
from typing import Annotated, Literal, NamedTuple, TypeGuard, TypeVar, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, JsonValue, Tag, ValidationError
from pydantic_core import ErrorDetails

from runner.errors import ConfigError

MAX_BYTES = 1 << 20
"""Largest file that is read."""

_QUOTED = 60
_MAX_DEPTH = 40

Key = str | int
KeyPath = tuple[Key, ...]
Model = TypeVar("Model", bound=BaseModel)


class Fault(NamedTuple):
    """One thing that is wrong, and where."""

    line: int
    key: KeyPath
    what: str


@dataclass(frozen=True, kw_only=True)
class YamlText:
    """What a file says.

    Attributes:
        value: The whole of it.
        lines: Line, counted from 1, of every key and list item by its path; ``()`` is the file itself.
    """

    value: JsonValue
    lines: Mapping[KeyPath, int]


def read_text(path: Path) -> str:
    """Read a bounded UTF-8 file.

    Raises:
        ConfigError: It is missing, too large or not UTF-8.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        reason = error.strerror or "it cannot be read"
        raise ConfigError(f"cannot read {str(path)!r}: {reason}", remedy="check the path") from error
    if len(content) > MAX_BYTES:
        raise ConfigError(f"the file is larger than {MAX_BYTES} bytes", where=str(path), remedy="is it the right file?")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        what = f"byte {content[error.start]:#04x} is not UTF-8"
        raise ConfigError(what, where=f"{path}:{line}", remedy="save the file as UTF-8") from error


def read_model(path: Path, model: type[Model]) -> Model:
    """Read a file into a model; see ``parse_model``."""
    return parse_model(path, read_text(path), model)


def parse_model(path: Path, text: str, model: type[Model]) -> Model:
    """Turn text into a model.

    Args:
        path: Named in errors only.
        text: What the file holds.
        model: What it must say.

    Raises:
        ConfigError: It does not; lists every error with file, line, key, value and what is wrong.
    """
    parsed = parse_yaml(path, text)
    try:
        return model.model_validate(parsed.value)
    except ValidationError as error:
        details = error.errors(include_url=False)
        raise _config_error(path, [_explain(detail, parsed, model) for detail in details]) from None


def _config_error(path: Path, faults: Sequence[Fault]) -> ConfigError:
    lines = []
    for fault in sorted(dict.fromkeys(faults), key=lambda fault: fault.line):
        key = f" {_dotted(fault.key)}:" if fault.key else ""
        lines.append(f"{path}:{fault.line}:{key} {fault.what}")
    if len(lines) == 1:
        return ConfigError(lines[0])
    return ConfigError("\n  ".join([f"{path}: {len(lines)} errors", *lines]))


def _dotted(path: KeyPath) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def quote(value: object) -> str:
    """A value as an error message shows it: quoted, bounded, control characters escaped."""
    text = repr(value) if isinstance(value, str) else json.dumps(value, default=repr)
    return text if len(text) <= _QUOTED else text[: _QUOTED - 1] + "…"


_TAG = "tag:yaml.org,2002:"
_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})\Z")
_FLOAT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)(?:\.[0-9]+(?:[eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+)\Z")
_NOT_FINITE = re.compile(r"[-+]?\.(?:nan|NaN|NAN|inf|Inf|INF)\Z")


class _Loader(yaml.SafeLoader):
    """YAML's scanner and parser with our own idea of what plain text means."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012  yaml's own attribute


for _name, _pattern, _first in (
    ("null", re.compile(r"(?:~|null|)\Z"), ["~", "n", ""]),
    ("bool", re.compile(r"(?:true|false)\Z"), ["t", "f"]),
    ("int", _INT, list("-+0123456789")),
    ("float", _FLOAT, list("-+0123456789")),
    ("float", _NOT_FINITE, list("-+.")),
):
    _Loader.add_implicit_resolver(f"{_TAG}{_name}", _pattern, _first)


class _Refused(NamedTuple):
    """Text that an explicit tag, or its own look, calls something it is not."""

    wanted: str


def _float(text: str) -> float | _Refused:
    value = float(text) if _FLOAT.match(text) else math.nan
    return value if math.isfinite(value) else _Refused("a finite number")


_SCALARS: Mapping[str, Callable[[str], str | bool | int | float | _Refused | None]] = {
    "str": lambda text: text,
    "null": lambda text: None if text in ("", "~", "null") else _Refused("null"),
    "bool": lambda text: text == "true" if text in ("true", "false") else _Refused("true or false"),
    "int": lambda text: int(text) if _INT.match(text) else _Refused("a whole number"),
    "float": _float,
}


@dataclass
class _Builder:
    lines: dict[KeyPath, int] = field(default_factory=lambda: {(): 1})
    faults: list[Fault] = field(default_factory=list)

    def build(self, node: yaml.Node, path: KeyPath) -> JsonValue:
        match node:
            case yaml.MappingNode() if node.tag == f"{_TAG}map":
                return self._mapping(node, path)
            case yaml.SequenceNode() if node.tag == f"{_TAG}seq":
                return [self._item(item, (*path, number)) for number, item in enumerate(node.value)]
            case yaml.ScalarNode():
                return self._scalar(node, path)
            case _:
                return self._refuse(node, path, f"the tag {quote(node.tag)} is not read here; leave it out")

    def _refuse(self, node: yaml.Node, path: KeyPath, what: str) -> JsonValue:
        self.faults.append(Fault(_line(node), path, what))
        return None

    def _item(self, node: yaml.Node, path: KeyPath) -> JsonValue:
        self.lines[path] = _line(node)
        return self.build(node, path)

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> JsonValue:
        values: dict[str, JsonValue] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self._refuse(key_node, path, "a key must be plain text, not a list or a section")
                continue
            key = str(key_node.value)
            if key in values:
                first = self.lines[(*path, key)]
                self._refuse(key_node, (*path, key), f"the key stands here a second time; first in line {first}")
                continue
            self.lines[(*path, key)] = _line(key_node)
            values[key] = self.build(value_node, (*path, key))
        return values

    def _scalar(self, node: yaml.ScalarNode, path: KeyPath) -> JsonValue:
        text, tag = str(node.value), node.tag.removeprefix(_TAG)
        if tag not in _SCALARS:
            return self._refuse(node, path, f"the tag {quote(node.tag)} is not read here; leave it out")
        value = _SCALARS[tag](text)
        if isinstance(value, _Refused):
            return self._refuse(node, path, f"{quote(text)} is not {value.wanted}; quote it if it is text")
        return value


def _line(node: yaml.Node | yaml.Event) -> int:
    return node.start_mark.line + 1 if node.start_mark else 1


def _check_events(path: Path, text: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        line = _line(event)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise _config_error(
                path, [Fault(line, (), "anchors and aliases (& and *) are not read here; write it out")]
            )
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _MAX_DEPTH:
            raise _config_error(path, [Fault(line, (), f"sections are nested deeper than {_MAX_DEPTH}")])


def parse_yaml(path: Path, text: str) -> YamlText:
    """Turn text into plain values, keeping the line of every key.

    Raises:
        ConfigError: It is not YAML, or uses a part of YAML that is not read here.
    """
    try:
        _check_events(path, text)
        node = yaml.compose(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise _config_error(path, [_syntax_fault(error, text)]) from error
    if node is None:  # nothing but comments: what must be there is named by the model
        return YamlText(value={}, lines={(): 1})
    builder = _Builder()
    value = builder.build(node, ())
    if builder.faults:
        raise _config_error(path, builder.faults)
    return YamlText(value=value, lines=builder.lines)


def _syntax_fault(error: yaml.YAMLError, text: str) -> Fault:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        context = f"{error.context}, " if error.context else ""
        return Fault(mark.line + 1, (), f"this is not YAML, at column {mark.column + 1}: {context}{error.problem}")
    position = getattr(error, "position", 0)
    reason = getattr(error, "reason", "it cannot be read")
    return Fault(text.count("\n", 0, position) + 1, (), f"this is not YAML: {reason}")


class _Place(NamedTuple):
    """Where an error stands: its path in the file, and the keys its section knows."""

    path: KeyPath
    known: tuple[str, ...]


def _members(annotation: object) -> Iterator[tuple[str, object]]:
    """What a value may be, each with the tag pydantic writes into an error's place when there are several."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        tags = [item.tag for item in arguments[1:] if isinstance(item, Tag)]
        for tag, member in _members(arguments[0]):
            yield (tags[0] if tags else tag), member
    elif origin in (Union, UnionType):
        for argument in arguments:
            if argument is not type(None):
                yield from _members(argument)
    else:
        yield getattr(annotation, "__name__", str(annotation)), annotation


def _tagged(members: Sequence[tuple[str, object]], tag: Key) -> object:
    for name, member in members:
        if name == tag:
            return member
    for _, member in members:
        if _is_model(member) and any(tag in _literals(info.annotation) for info in member.model_fields.values()):
            return member
    return object


def _literals(annotation: object) -> tuple[object, ...]:
    return get_args(annotation) if get_origin(annotation) is Literal else ()


def _is_model(annotation: object) -> TypeGuard[type[BaseModel]]:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _kind_of(annotation: object, value: object) -> object:
    """The subclass of a model whose own literal key says that the value is of it; else the annotation itself."""
    if _is_model(annotation) and isinstance(value, dict):
        for kind in annotation.__subclasses__():
            if any(_literals(info.annotation) == (value.get(name),) for name, info in kind.model_fields.items()):
                return kind
    return annotation


def _keys(model: type[BaseModel]) -> dict[str, object]:
    """Every name a section's keys go by, with what its value may be."""
    keys: dict[str, object] = {}
    for name, info in model.model_fields.items():
        keys[info.alias or name] = info.annotation
        if model.model_config.get("populate_by_name"):
            keys[name] = info.annotation
    return keys


def _inside(value: object, part: Key) -> object:
    if isinstance(value, dict):
        return value.get(part)
    return value[part] if isinstance(value, list) and isinstance(part, int) and part < len(value) else None


def _locate(model: type[BaseModel], location: tuple[Key, ...], value: object) -> _Place:
    """Follow pydantic's place through the models: it holds tags of unions, which are no keys of the file."""
    path: list[Key] = []
    annotation: object = model
    known: tuple[str, ...] = ()
    for part in location:
        members = list(_members(annotation))
        if len(members) > 1:
            annotation = _tagged(members, part)
            continue
        annotation = members[0][1] if members else object
        if part == "[key]":
            break
        path.append(part)
        annotation = _kind_of(annotation, value)
        value = _inside(value, part)
        if _is_model(annotation):
            keys = _keys(annotation)
            known, annotation = tuple(keys), keys.get(str(part), object)
        else:
            arguments = get_args(annotation)
            index = 1 if get_origin(annotation) in (dict, Mapping) else 0
            known, annotation = (), arguments[index] if len(arguments) > index else object
    return _Place(tuple(path), known)


def _explain(detail: ErrorDetails, parsed: YamlText, model: type[BaseModel]) -> Fault:
    place = _locate(model, detail["loc"], parsed.value)
    line = next(parsed.lines[place.path[:n]] for n in range(len(place.path), -1, -1) if place.path[:n] in parsed.lines)
    words = plain_words(detail)
    match detail["type"]:
        case "missing":
            what = "is missing" + _near_miss(place, parsed)
        case "extra_forbidden":
            what = "is not a key of this section" + _suggestion(place)
        case _ if isinstance(detail["input"], (dict, list)):
            what = words
        case _:
            shown = quote(detail["input"])
            what = words if words.startswith(shown) else f"{shown}: {words}"
    return Fault(line, place.path, what)


def _suggestion(place: _Place) -> str:
    close = difflib.get_close_matches(str(place.path[-1]), place.known, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; its keys are {', '.join(place.known)}"


def _near_miss(place: _Place, parsed: YamlText) -> str:
    """A missing key is often there under a slightly wrong name."""
    parent = place.path[:-1]
    written = [str(path[-1]) for path in parsed.lines if path and path[:-1] == parent]
    strangers = [name for name in written if name not in place.known]
    close = difflib.get_close_matches(str(place.path[-1]), strangers, n=1)
    return f"; {close[0]!r} stands there instead" if close else ""


_PLAIN_WORDS = {
    "string_type": "must be text; put it in quotes",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "dict_type": "must be a section of keys and values",
    "model_type": "must be a section of keys and values",
    "model_attributes_type": "must be a section of keys and values",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "path_type": "must be a path, as text",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "too_short": "must hold at least {min_length}, holds {actual_length}",
    "too_long": "must hold at most {max_length}, holds {actual_length}",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "must have the form {pattern}",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "union_tag_invalid": "must be one of {expected_tags}",
    "value_error": "{error}",
    "assertion_error": "{error}",
}


def plain_words(detail: ErrorDetails) -> str:
    """What is wrong with a value, in our words."""
    context = detail.get("ctx", {})
    template = _PLAIN_WORDS.get(detail["type"])
    if template is None:
        return detail["msg"][:1].lower() + detail["msg"][1:]
    return template.format_map({key: str(value) for key, value in context.items()})
