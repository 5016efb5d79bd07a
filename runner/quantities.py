"""Sizes, durations and rates as people write them: ``32 GiB``, ``250 ms``, ``60 s / 10 min``."""

import re
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

_BYTES = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
    "TiB": 1 << 40,
}
_SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_NUMBER_UNIT = re.compile(r"\s*([0-9]{1,15}(?:\.[0-9]{1,15})?)\s*([A-Za-z]+)\s*")


def _parse(text: object, units: dict[str, float] | dict[str, int], example: str) -> float:
    match = _NUMBER_UNIT.fullmatch(text) if isinstance(text, str) else None
    if match is None or match[2] not in units:
        known = ", ".join(units)
        raise ValueError(f"{text!r} is not a number with a unit; write it like {example} (units: {known})")
    return float(match[1]) * units[match[2]]


def parse_bytes(text: object) -> int:
    """Read a size; ``32 GiB`` is 34359738368. A whole number is bytes already."""
    if isinstance(text, int) and not isinstance(text, bool):
        return text
    return int(_parse(text, _BYTES, "'32 GiB'"))


def parse_seconds(text: object) -> float:
    """Read a duration; ``250 ms`` is 0.25. A number is seconds already."""
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        return float(text)
    return _parse(text, _SECONDS, "'60 s'")


def show_bytes(size: int) -> str:
    """Write a size with the largest binary unit that leaves at least 1."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if size >= _BYTES[unit]:
            return f"{size / _BYTES[unit]:.4g} {unit}"
    return f"{size} B"


def show_seconds(seconds: float, *, whole: bool = False) -> str:
    """Write a duration for people: ``0.8 s``, ``4 min 05 s``, ``2 h 03 min``; ``whole`` leaves tenths out."""
    if seconds < 100:
        return f"{seconds:.0f} s" if whole else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"


Bytes = Annotated[int, BeforeValidator(parse_bytes)]
Seconds = Annotated[float, BeforeValidator(parse_seconds)]


@dataclass(frozen=True)
class Rate:
    """Seconds of run time for seconds of media; ``60 s / 10 min`` is 0.1."""

    run_seconds: float
    media_seconds: float

    def budget(self, media_seconds: float) -> float:
        """Seconds of run time that so much media is worth."""
        return media_seconds * self.run_seconds / self.media_seconds

    def __str__(self) -> str:
        return f"{self.run_seconds:g} s / {self.media_seconds:g} s"

    @classmethod
    def parse(cls, text: object) -> "Rate":
        """Read ``<run time> / <media time>``."""
        parts = text.split("/") if isinstance(text, str) else []
        if len(parts) != 2:
            raise ValueError(f"{text!r} is not a rate; write run time / media time, like '60 s / 10 min'")
        run, media = parse_seconds(parts[0]), parse_seconds(parts[1])
        if run <= 0 or media <= 0:
            raise ValueError(f"{text!r}: both sides of a rate must be more than 0")
        return cls(run, media)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            lambda value: value if isinstance(value, Rate) else cls.parse(value),
            serialization=core_schema.to_string_ser_schema(),
        )
