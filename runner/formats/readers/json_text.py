"""Reads JSON within fixed bounds, and says of everything that is wrong with it on which line and in which column.

A text about which there is nothing to say is parsed at once, strictly (``runner.confine.strict_json``). Where that
gives up, a walk over the tokens finds out why. What a child answers is the text, not its value: the parent parses it in
the same strict way, within the same bounds, and so need not believe that anybody did so before.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from pydantic import TypeAdapter

from runner.confine import Confine, JsonValue, Reply
from runner.confine.strict_json import NotStrictError, parse_strictly
from runner.confine.wire import pack
from runner.formats.readers.confined import confined_call, garbled, told
from runner.formats.readers.file_bytes import in_memory, read_bytes, wide_encoding
from runner.formats.readers.json_faults import SENTENCES, Fault, JsonCaps, Top, place_of
from runner.formats.readers.json_walk import SPACE, Walk
from runner.formats.readers.problems import ProblemList


def read_json(descriptor: int, *, caps: JsonCaps, top: Top, problems: ProblemList) -> JsonValue:
    """Read a JSON text.

    Args:
        descriptor: Open for reading; its position is neither used nor moved.
        caps: How large it may be.
        top: What it must hold.
        problems: What is wrong is added here, the first thousand of it; ``row`` is the line.

    Returns:
        Its value, every number of it finite and every string without lone surrogates; None, too, where there is a
        problem.
    """
    sound = _read(descriptor, caps, top, problems)
    return None if sound is None else sound.value


class _Sound(NamedTuple):
    text: str
    value: JsonValue


def _read(descriptor: int, caps: JsonCaps, top: Top, problems: ProblemList) -> _Sound | None:
    before = problems.count
    text = _read_text(descriptor, caps, problems)
    if not text:
        return None
    _check_top(text, top, problems)
    if problems.count == before and (sound := _read_at_once(text, caps)) is not None:
        return sound
    Walk(text, caps, problems).run()
    assert problems.count > before, "a text that is refused at once has something wrong with it"
    return None


_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


def _read_at_once(text: str, caps: JsonCaps) -> _Sound | None:
    """A text about which there is nothing to say, and its value."""
    try:
        value = parse_strictly(text, caps)
        if _SURROGATE_ESCAPE.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except (NotStrictError, UnicodeEncodeError):
        return None
    return _Sound(text, value)


def _read_text(descriptor: int, caps: JsonCaps, problems: ProblemList) -> str:
    content = read_bytes(descriptor, caps.size)
    if len(content) > caps.size:
        problems.add(Fault.TOO_LARGE.format(cap=caps.size))
        return ""
    encoding = wide_encoding(content)
    if encoding is not None:
        problems.add(Fault.WIDE.format(encoding=encoding))
        return ""
    if content.startswith(b"\xef\xbb\xbf"):
        problems.add(Fault.MARK, row=1)
        content = content[3:]
    if not content.strip(b" \t\r\n"):
        problems.add(Fault.EMPTY)
        return ""
    return _decode(content, problems)


def _decode(content: bytes, problems: ProblemList) -> str:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        place = place_of(content[: error.start].decode("utf-8"), error.start)
        problems.add(Fault.NOT_UTF8.format(place=place.words), row=place.line)
        return ""
    if (nul := text.find("\0")) >= 0:
        place = place_of(text, nul)
        problems.add(Fault.NUL.format(place=place.words), row=place.line)
        return ""
    return text


_KINDS = {"{": "an object", "[": "an array", '"': "a string", "t": "true, false or null", "f": "true, false or null"}


def _check_top(text: str, top: Top, problems: ProblemList) -> None:
    space = SPACE.match(text)
    assert space is not None
    first = text[space.end()]
    found = "true, false or null" if first == "n" else _KINDS.get(first, "a number")
    if top is not Top.ANY and found != top and first in '{["tfn-0123456789':
        place = place_of(text, space.end())
        problems.add(Fault.TOP.format(place=place.words, found=found, due=top), row=place.line)


# The two sides of the confined call.

_CAPS = TypeAdapter(JsonCaps)
_TEXT = "text"


def read_in_child(request: Mapping[str, JsonValue], descriptors: Sequence[int]) -> Reply:
    """The child's side of ``confined_json``."""
    problems = ProblemList()
    caps = _CAPS.validate_python(request["caps"])
    sound = _read(descriptors[0], caps, Top(str(request["top"])), problems)
    arrays = {} if sound is None else {_TEXT: np.frombuffer(sound.text.encode(), np.uint8)}
    return Reply(header=told(problems), arrays=arrays)


def confined_json(confine: Confine, descriptor: int, *, caps: JsonCaps, top: Top, problems: ProblemList) -> JsonValue:
    """``read_json`` in a child that can do nothing else; the text it calls sound is held against the caps again.

    Raises:
        HostFault: No child could be started.
    """
    return confined_call(
        confine,
        "runner.formats.readers.json_text.read_in_child",
        {"caps": _CAPS.dump_python(caps, mode="json"), "top": top.value},
        descriptor,
        sentences=lambda: SENTENCES,
        array_bytes=caps.size,
        check=lambda reply: check_json(reply, caps=caps, top=top),
        problems=problems,
    )


def check_json(reply: Reply, *, caps: JsonCaps, top: Top) -> JsonValue:
    """The value of an answer, if its text is a sound one within the caps.

    Raises:
        ConfinedFailure: It is not; ``GARBLED``.
    """
    text = reply.arrays.get(_TEXT)
    if text is None or len(reply.arrays) > 1 or text.dtype != np.uint8 or text.ndim != 1:
        raise garbled("its answer lacks its parts")
    if text.size > caps.size:
        raise garbled("its answer is larger than the file may be")
    try:
        sound = _read_at_once(text.tobytes().decode("utf-8"), caps)
    except UnicodeDecodeError:
        sound = None
    if sound is None:
        raise garbled("its answer is not sound, or larger than the file may be")
    kinds: dict[Top, type] = {Top.OBJECT: dict, Top.ARRAY: list, Top.ANY: object}
    if not isinstance(sound.value, kinds[top]):
        raise garbled("its answer is of another kind")
    return sound.value


def warm_up() -> None:
    """Read a good and a bad text once; for the fork server."""
    for content in (b'{"a": [1, 1.5, "\\ud83d\\ude00"]}', b'{"a": 1, "a": NaN', b"\xef\xbb\xbf[1e999,]"):
        with in_memory(content) as descriptor:
            pack(read_in_child({"caps": {}, "top": Top.ANY.value}, [descriptor]))
