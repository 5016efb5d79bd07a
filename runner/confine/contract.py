"""What goes into a confined call and what comes out."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"
"""What JSON can hold. Not pydantic's own: importing that costs the server and its parent a quarter of a second."""

READY = b"R"
"""First byte of every answer: the child is confined and is about to touch the bytes."""

MAX_ORDER_BYTES = 128 << 10
MAX_DESCRIPTORS = 8


class Privileges(StrEnum):
    """Whose rights a child keeps."""

    DROP = "drop"
    KEEP = "keep"


class FailureKind(StrEnum):
    """How a confined call can fail."""

    DIED = "died"
    TIMED_OUT = "timed-out"
    OUT_OF_MEMORY = "out-of-memory"
    GARBLED = "garbled"


class ConfinedFailure(Exception):
    """A child did not answer as it must.

    Args:
        kind: How it failed.
        detail: Why, in our own words; safe to show to anybody.
        trace: What the child said of an exception; a stranger may have written it, so it is for logs only.
    """

    def __init__(self, kind: FailureKind, detail: str, *, trace: str = "") -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind = kind
        self.detail = detail
        self.trace = trace


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What a confined function answers.

    Attributes:
        header: Plain values; every float finite.
        arrays: By name; booleans, integers or floats of any shape, C order.
    """

    header: Mapping[str, JsonValue]
    arrays: Mapping[str, "NDArray[np.generic]"] = field(default_factory=dict)


ConfinedFunction = Callable[[Mapping[str, JsonValue], Sequence[int]], Reply]


@dataclass(frozen=True, kw_only=True)
class Order:
    """One call, as it travels from the parent to the server.

    Attributes:
        function: Dotted name of one of our functions.
        request: Its first argument.
        deadline: Seconds it may take.
        memory: Bytes it may use beyond those the server itself has mapped.
        privileges: Whether root is given up.
    """

    function: str
    request: Mapping[str, JsonValue]
    deadline: float
    memory: int
    privileges: Privileges

    def encode(self) -> bytes:
        """As one message.

        Raises:
            ValueError: It is too large, or holds a number that is not finite.
        """
        message = json.dumps(asdict(self), allow_nan=False).encode()
        if len(message) > MAX_ORDER_BYTES:
            raise ValueError(f"a request of {len(message)} bytes is too large: pass data by descriptor")
        return message

    @classmethod
    def decode(cls, message: bytes) -> "Order":
        """Read a message of our own parent."""
        values: dict[str, Any] = json.loads(message)
        return cls(**{**values, "privileges": Privileges(values["privileges"])})


class ExitCode(IntEnum):
    """How a child says that it failed."""

    RAISED = 70
    OUT_OF_MEMORY = 71


@dataclass(frozen=True, kw_only=True)
class ChildEnd:
    """How the server saw a child end.

    Attributes:
        code: Exit code, negative for the signal that killed it.
        overrun: It was killed because its time was up.
    """

    code: int
    overrun: bool

    def encode(self) -> bytes:
        """As one message."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decode(cls, message: bytes) -> "ChildEnd":
        """Read a message of our own server."""
        return cls(**json.loads(message))
