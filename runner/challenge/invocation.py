"""How a container is started."""

import re
from enum import StrEnum

from pydantic import Field, field_validator

from runner.challenge.section import Section

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_KNOWN = ("input", "output", "task")


class InvocationMode(StrEnum):
    """What one container is started for."""

    CASE = "case"


class Invocation(Section):
    """The command line and the two places a container sees.

    Attributes:
        mode: ``case``: one container a case.
        args: Arguments after the image's own entry point; ``{input}`` and ``{output}`` are paths inside the
            container, ``{task}`` is the task's name.
        input_mount: Folder that holds the case's input, read-only.
        output_mount: Folder the container writes to; empty at the start.
    """

    mode: InvocationMode = InvocationMode.CASE
    args: tuple[str, ...] = ()
    input_mount: str = Field(default="/data/inputs", pattern=r"^/[A-Za-z0-9_./-]+$")
    output_mount: str = Field(default="/data/outputs", pattern=r"^/[A-Za-z0-9_./-]+$")

    @field_validator("args")
    @classmethod
    def _known_placeholders(cls, args: tuple[str, ...]) -> tuple[str, ...]:
        for argument in args:
            for name in _PLACEHOLDER.findall(argument):
                if name not in _KNOWN:
                    raise ValueError(
                        f"{{{name}}} in {argument!r} is not a placeholder; known: {{input}}, {{output}}, {{task}}"
                    )
        return args
