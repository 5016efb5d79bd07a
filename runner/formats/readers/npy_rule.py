"""What is asked of arrays that NumPy saved, and every sentence in which they can be refused.

What a file says of itself, shape and version, is the container's own: it goes into ``Problem.value``, and into no
sentence.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from runner.formats.readers.problems import any_of, sentence_pattern

TYPES = {
    "b1": "bool",
    **{f"{kind}{size}": f"{name}{8 * size}" for kind, name in (("i", "int"), ("u", "uint")) for size in (1, 2, 4, 8)},
    **{f"f{size}": f"float{8 * size}" for size in (2, 4, 8)},
}
_MOST_DIMENSIONS = 4


@dataclass(frozen=True, kw_only=True)
class NpyCaps:
    """How large a file may be.

    Attributes:
        size: Bytes of the file.
        unpacked: Bytes of data of all arrays together.
        header: Bytes of a header.
        ratio: How many times larger than its packed bytes a member of an archive may be. Deflate ends near 1032, which
            an array of zeros does reach, so a smaller ratio refuses honest files; ``unpacked`` is what bounds a bomb.
    """

    size: int = 32 << 20
    unpacked: int = 32 << 20
    header: int = 4096
    ratio: int = 1040


@dataclass(frozen=True, kw_only=True)
class ArrayRule:
    """What an array must be.

    Attributes:
        types: Names of the types it may have, of ``bool``, ``int8`` … ``uint64``, ``float16`` … ``float64``.
        shape: Its length in each dimension, at most four; None where any will do.
        minimum: The least value; None where any will do. Floats must be finite in any case.
        maximum: The greatest value.
    """

    types: tuple[str, ...]
    shape: tuple[int | None, ...]
    minimum: float | None = None
    maximum: float | None = None

    def __post_init__(self) -> None:
        if not self.types or not set(self.types) <= set(TYPES.values()):
            raise ValueError(f"{self.types} are not all of {', '.join(TYPES.values())}")
        if len(self.shape) > _MOST_DIMENSIONS:
            raise ValueError(f"{len(self.shape)} dimensions are more than {_MOST_DIMENSIONS}")


class Fault(StrEnum):
    """Every sentence of this reader."""

    EMPTY = "the file is empty"
    TOO_LARGE = "the file is larger than {cap} bytes"
    ARCHIVE = "this is an archive (.npz) where one array (.npy) is due: numpy.save writes it"
    SINGLE = "this is one array (.npy) where an archive (.npz) is due: numpy.savez writes it"
    PICKLE = "{where}this is a pickle, which is never opened: numpy.save(…, allow_pickle=False) writes what is due"
    NO_NPY = "{where}this is not what numpy.save writes: it does not begin as an .npy file does"
    VERSION = "{where}the file is of a version that is not read: 1.0, 2.0 and 3.0 are"
    HEADER_END = "{where}the file ends inside its header"
    HEADER_SIZE = "{where}the header has more than {cap} bytes"
    HEADER = "{where}the header is not as numpy.save writes it"
    FIELDS = "{where}the array has named fields: save one array of numbers"
    OBJECTS = "{where}the array holds Python objects, which are never opened: give it a type of numbers"
    ORDER = "{where}the numbers are stored big-endian: save array.astype({due!r})"
    TYPE = "{where}the type is {found} where {due} is due"
    SHAPE = "{where}the shape is another than {due}"
    ELEMENTS = "{where}the header tells of more than {cap} bytes of data, which are not read"
    DATA_END = "{where}there are fewer bytes of data than the header tells of"
    DATA_MORE = "{where}there are more bytes of data than the header tells of"
    BOOL = "{where}the array is said to hold true and false, but {count} bytes are neither"
    NOT_FINITE = "{where}{count} values are not finite (NaN or infinity), the first at {place}"
    LEAST = "{where}{count} values are less than {due}, the first at {place}"
    GREATEST = "{where}{count} values are greater than {due}, the first at {place}"
    NO_NPZ = "this is not what numpy.savez writes: it does not end as a plain zip archive does"
    DIRECTORY = "the directory of the archive is damaged"
    DIRECTORY_SIZE = "the directory of the archive has more than {cap} bytes"
    ENTRIES = "the archive holds more than {due} members"
    STRANGER = "the archive holds a member that is not asked for: {names} are due"
    DOUBLE = "the archive holds {name} twice"
    MISSING = "the archive does not hold {name}"
    ENCRYPTED = "{where}the member is encrypted"
    METHOD = "{where}the member is packed by a method that is not read: numpy.savez_compressed deflates"
    UNPACKED = "the archive unpacks to more than {cap} bytes, which are not read"
    RATIO = "{where}the member unpacks to more than {cap} times its size"
    OVERLAP = "{where}the member shares bytes with another"
    DAMAGED = "{where}the member is damaged, or is not as long as the directory says"


def sentences(rules: Mapping[str, ArrayRule]) -> re.Pattern[str]:
    """What may be said of arrays with these rules."""
    names = any_of(rules)
    due = {text for rule in rules.values() for text in _due(rule)}
    return sentence_pattern(
        Fault,
        where=f"(?:array (?:{names}): )?",
        name=names,
        names=re.escape(", ".join(rules)),
        found=any_of([*TYPES.values(), *_OTHER_TYPES]),
        due=any_of([*due, len(rules)]),
        place=rf"\((?:{_COUNT}(?:, {_COUNT})*,?)?\)",
    )


_COUNT = "[0-9]{1,20}"
_OTHER_TYPES = ("text", "bytes", "complex", "a date or a duration", "another type")
OTHER_KINDS = dict(zip("USacmM", ("text", "bytes", "bytes", "complex", *["a date or a duration"] * 2), strict=True))


def _due(rule: ArrayRule) -> list[str]:
    """Everything a rule can bring into a sentence."""
    orders = [repr(f"<{code}") for code, name in TYPES.items() if name in rule.types]
    bounds = [f"{bound:g}" for bound in (rule.minimum, rule.maximum) if bound is not None]
    return [*orders, *bounds, " or ".join(rule.types), shape_words(rule.shape)]


def shape_words(shape: Sequence[int | None]) -> str:
    """A shape as a sentence has it."""
    lengths = ["any" if length is None else str(length) for length in shape]
    return f"({lengths[0]},)" if len(lengths) == 1 else f"({', '.join(lengths)})"
