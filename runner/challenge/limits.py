"""What a container may use."""

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from runner.challenge.section import Section
from runner.quantities import Bytes, Rate, Seconds


class RunTimePerMedia(Section):
    """A budget in proportion to the case: media time × rate + allowance."""

    per_media: Rate
    allowance: Seconds = 0.0

    def seconds(self, media_seconds: float) -> float:
        """Seconds a case of so much media may run."""
        return self.per_media.budget(media_seconds) + self.allowance


class RunTimeFixed(Section):
    """The same budget for every case."""

    fixed: Seconds = Field(gt=0)

    def seconds(self, media_seconds: float) -> float:  # noqa: ARG002  the two kinds answer the same question
        """Seconds any case may run."""
        return self.fixed


def _kind(value: object) -> Literal["fixed", "per_media"]:
    fixed = isinstance(value, RunTimeFixed) or (isinstance(value, dict) and "fixed" in value)
    return "fixed" if fixed else "per_media"


RunTime = Annotated[
    Annotated[RunTimePerMedia, Tag("per_media")] | Annotated[RunTimeFixed, Tag("fixed")], Discriminator(_kind)
]


class Limits(Section):
    """What a container may use; memory, shm and cpus are required beside run_time.

    Attributes:
        run_time: Judged: FinishedAt − StartedAt ≤ budget.
        memory: Bytes; shm and /tmp count towards it; swap is off.
        shm: Bytes of /dev/shm.
        cpus: Processors.
        gpus: Whole devices, 0 for none.
        output: Bytes it may write to the output folder.
        output_files: Files and folders it may make there.
        tmp: Bytes of /tmp.
        pids: Processes and threads.
    """

    run_time: RunTime
    memory: Bytes = Field(ge=6 << 20)
    shm: Bytes = Field(ge=1 << 20)
    cpus: float = Field(gt=0)
    gpus: int = Field(default=0, ge=0)
    output: Bytes = Field(default=200 << 20, ge=1 << 20)
    output_files: int = Field(default=4096, ge=16)
    tmp: Bytes = Field(default=1 << 30, ge=1 << 20)
    pids: int = Field(default=512, ge=16)

    @model_validator(mode="after")
    def _shm_fits(self) -> "Limits":
        if self.shm > self.memory:
            raise ValueError("shm must not be larger than memory: it counts towards it")
        return self
