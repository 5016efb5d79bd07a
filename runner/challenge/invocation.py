"""How a container is started."""

import re
from enum import StrEnum

from pydantic import Field, JsonValue, field_validator, model_validator

from runner.challenge.section import Section
from runner.quantities import Seconds

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_IN_LISTS = ("case", "frame")
_OURS = re.compile(r"PROCTOR_|NVIDIA_|LD_|CUDA_VISIBLE_DEVICES$")


class InvocationMode(StrEnum):
    """What one container is started for: a case, all cases of the data set, or a case whose frames come one by one."""

    CASE = "case"
    DATASET = "dataset"
    STREAM = "stream"


class FrameWay(StrEnum):
    """How a streamed frame reaches a container: as a file in its input folder, or inside the message."""

    PATH = "path"
    INLINE = "inline"


class Pacing(StrEnum):
    """When the next frame is released: once the one before is answered, or at the camera's rate."""

    LOCKSTEP = "lockstep"
    REALTIME = "realtime"


class Stream(Section):
    """How frames are streamed.

    Attributes:
        frames: The ways that are offered; the container chooses one.
        pacing: When the next frame is released.
        answer: Seconds an answer may take; in ``realtime`` a frame's period decides, and this is how long silence is
            borne.
        start_up: Seconds until the container must have said hello.
        before_first: In ``realtime``, where a missed frame holds the answer before it: what is held before the first.
    """

    frames: tuple[FrameWay, ...] = Field(default=(FrameWay.PATH, FrameWay.INLINE), min_length=1)
    pacing: Pacing = Pacing.LOCKSTEP
    answer: Seconds = 10.0
    start_up: Seconds = 120.0
    before_first: dict[str, JsonValue] = {}  # noqa: RUF012  pydantic copies it

    @model_validator(mode="after")
    def _held(self) -> "Stream":
        if self.pacing is Pacing.REALTIME and not self.before_first:
            raise ValueError("before_first is required with pacing: realtime: what a frame missed at the start holds")
        return self


class Invocation(Section):
    """The command line, the two places a container sees, and what is written for it beside the inputs.

    Attributes:
        mode: ``case``: one container a case. ``dataset``: one container for all of them. ``stream``: one container a
            case, which is given its frames one by one.
        command: In place of the image's own entry point and arguments; empty: the image's own.
        args: Arguments after the entry point, or after ``command``. ``{input}`` and ``{output}`` are paths inside the
            container: of the case, or in mode ``dataset`` of all. ``{case}`` is its neutral name, ``{task}`` the
            task's, and the name of an input is its path.
        environment: Variables, beside ``PROCTOR_TASK``, which names the task, or the tasks that share the run.
        input_mount: Folder that holds the inputs, read-only.
        output_mount: Folder the container writes to; empty at the start.
        stream: How frames are streamed: for mode ``stream``; beside the other modes a submission may choose it by
            ``profile: stream``, and then has one container a case and no ``lists``.
        lists: Text files written beside the inputs: path below the input folder, and what a line of it is. A path with
            ``{case}`` is a file a case with a line a frame, where the line has ``{frame}``, the frame's name without
            its extension; one without is a single file with a line a case, or a line for each frame of each.
    """

    mode: InvocationMode = InvocationMode.CASE
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    environment: dict[str, str] = {}  # noqa: RUF012  pydantic copies it
    input_mount: str = Field(default="/data/inputs", pattern=r"^/[A-Za-z0-9_./-]+$")
    output_mount: str = Field(default="/data/outputs", pattern=r"^/[A-Za-z0-9_./-]+$")
    lists: dict[str, str] = {}  # noqa: RUF012
    stream: Stream | None = None

    @field_validator("environment")
    @classmethod
    def _names(cls, environment: dict[str, str]) -> dict[str, str]:
        for name in environment:
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or _OURS.match(name):
                raise ValueError(f"{name!r} is no name of a variable that a challenge may set")
        return environment

    @field_validator("lists")
    @classmethod
    def _list_files(cls, lists: dict[str, str]) -> dict[str, str]:
        for path, line in lists.items():
            if path.startswith("/") or any(part in ("", ".", "..") for part in path.split("/")):
                raise ValueError(f"{path!r} must stay inside the input folder")
            for name in _PLACEHOLDER.findall(path + line):
                if name not in _IN_LISTS:
                    raise ValueError(f"{{{name}}} is not a placeholder of lists; known: {{case}}, {{frame}}")
            if "{frame}" in path or path.count("{case}") > 1:
                raise ValueError(f"{path!r} may hold {{case}} once, and no {{frame}}")
        return lists

    @model_validator(mode="after")
    def _streamed(self) -> "Invocation":
        if self.mode is InvocationMode.STREAM:
            if self.stream is None:
                raise ValueError("stream is required with mode stream: how frames are streamed")
            if self.lists:
                raise ValueError("lists would tell how many frames there are: leave them out in mode stream")
        return self

    @model_validator(mode="after")
    def _a_case_of_its_own(self) -> "Invocation":
        if self.mode is InvocationMode.DATASET:
            for argument in (*self.command, *self.args):
                if "{case}" in argument:
                    raise ValueError(f"{argument!r}: there is no {{case}} in mode dataset: one container has them all")
        return self

    def placeholders(self) -> tuple[tuple[str, str], ...]:
        """Every placeholder of the command line, with the argument it stands in."""
        return tuple(
            (name, argument) for argument in (*self.command, *self.args) for name in _PLACEHOLDER.findall(argument)
        )
