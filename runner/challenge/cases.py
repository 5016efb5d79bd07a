"""How a data folder is read, and what of it a container is shown."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import PurePosixPath

from pydantic import Field, field_validator, model_validator

from runner.challenge.section import Section


class InputKind(StrEnum):
    """What an input of a case is.

    ``frames``: a folder with a file a frame. ``video``: one file. ``table``: text with one row a frame. ``file``: any
    other file, such as a calibration, which has no length.
    """

    FRAMES = "frames"
    VIDEO = "video"
    TABLE = "table"
    FILE = "file"


_TIMED = (InputKind.FRAMES, InputKind.TABLE, InputKind.VIDEO)


def _stays_inside(pattern: str) -> str:
    parts = pattern.split("/")
    if pattern.startswith("/") or any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"{pattern!r} must stay inside its folder")
    return pattern


def one_case(pattern: str) -> str:
    """A pattern of a path that names ``{case}`` once.

    Raises:
        ValueError: It does not, or leaves its folder.
    """
    if pattern.count("{case}") != 1:
        raise ValueError(f"{pattern!r} must name {{case}} exactly once")
    return _stays_inside(pattern)


class InputRule(Section):
    """One input of a case.

    Attributes:
        kind: What it is.
        path: Pattern of its path in the data folder, with ``{case}``.
        inside: Written ``as``: its path below the input folder inside the container, with ``{case}``, a neutral name
            there; by default ``{case}`` where it is the only input, else ``{case}/<its name>``, with the ending of
            ``path``.
        frames: Of ``frames``: which files are frames, as a shell pattern; their sorted names are their order.
        header: Of ``table``: the first row is a header and no frame.
    """

    kind: InputKind
    path: str
    inside: str = Field(default="", alias="as")
    frames: str = "*.png"
    header: bool = True

    _path = field_validator("path")(one_case)

    @field_validator("inside")
    @classmethod
    def _named_once(cls, pattern: str) -> str:
        return one_case(pattern) if pattern else pattern


class CaseFiles(Section):
    """Where the inputs and the references of a case lie in a data folder.

    Attributes:
        inputs: Pattern of a case's folder of frames, with ``{case}``; or several inputs by name.
        references: Pattern of a case's reference, a file or a folder with a file a frame; never mounted.
        frames: Where ``inputs`` is a pattern: which files of the folder are frames.
        fps: Frames a second; the media time of a case is its number of frames divided by this. None where no input has
            a length.
        length: Which input says how many frames a case has; by default the first that is ``frames``, ``table`` or
            ``video``, in this order.
    """

    inputs: str | dict[str, InputRule]
    references: str
    frames: str = "*.png"
    fps: float | None = Field(default=None, gt=0)
    length: str = ""

    _references = field_validator("references")(one_case)

    @field_validator("inputs")
    @classmethod
    def _some(cls, inputs: str | dict[str, InputRule]) -> str | dict[str, InputRule]:
        if isinstance(inputs, str):
            return one_case(inputs)
        if not inputs:
            raise ValueError("there must be an input")
        bad = [name for name in inputs if not name.isidentifier() or name in ("input", "output", "task", "case")]
        if bad:
            raise ValueError(f"{bad[0]!r} is no name for an input: letters, digits and '_', and no placeholder of ours")
        return inputs

    @model_validator(mode="after")
    def _lengths(self) -> "CaseFiles":
        rules = self.rules
        if self.length and (self.length not in rules or rules[self.length].kind not in _TIMED):
            timed = [name for name, rule in rules.items() if rule.kind in _TIMED]
            raise ValueError(f"length {self.length!r} is no input with frames; those are {', '.join(timed) or 'none'}")
        places = [rule.inside for rule in rules.values()]
        for name, rule in rules.items():
            if any(rule.inside == other or other.startswith(f"{rule.inside}/") for other in _without(places, rule)):
                raise ValueError(f"inputs.{name}: its place {rule.inside!r} is that of another input, or holds it")
        if self.timed and self.fps is None:
            raise ValueError("fps is required: frames a second")
        return self

    @property
    def rules(self) -> Mapping[str, InputRule]:
        """Every input by name, with its place inside the container."""
        if isinstance(self.inputs, str):
            return {
                "frames": InputRule(kind=InputKind.FRAMES, path=self.inputs, frames=self.frames, **{"as": "{case}"})
            }
        alone = len(self.inputs) == 1
        return {
            name: rule if rule.inside else rule.model_copy(update={"inside": _default_place(name, rule, alone=alone)})
            for name, rule in self.inputs.items()
        }

    @property
    def timed(self) -> str:
        """Name of the input that says how long a case is; empty where none does."""
        if self.length:
            return self.length
        found = (name for kind in _TIMED for name, rule in self.rules.items() if rule.kind is kind)
        return next(found, "")


def _without(places: list[str], rule: InputRule) -> list[str]:
    """The places of the other inputs."""
    others = list(places)
    others.remove(rule.inside)
    return others


def _default_place(name: str, rule: InputRule, *, alone: bool) -> str:
    suffix = "" if rule.kind is InputKind.FRAMES else PurePosixPath(rule.path).suffix
    return f"{{case}}{suffix}" if alone else f"{{case}}/{name}{suffix}"
