"""How a task is scored."""

import re
from enum import StrEnum
from pathlib import PurePosixPath

from pydantic import Field, field_validator

from runner.challenge.limits import Limits, RunTimeFixed
from runner.challenge.section import Section

CONTAINER = "container"
"""In place of a scorer's name: it runs in a container, and ``scorer_image`` says in which."""

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_KNOWN = ("input", "output", "task")


class MissingCase(StrEnum):
    """What a case without a valid prediction counts as.

    ``worst`` and ``chance`` are values the scorer states; ``exclude`` drops the case for all submissions;
    ``fail`` leaves the submission out of the ranking.
    """

    WORST = "worst"
    CHANCE = "chance"
    EXCLUDE = "exclude"
    FAIL = "fail"


class Primary(Section):
    """The metric that ranks."""

    metric: str
    higher_is_better: bool


class MetricRule(Section):
    """A number that a scorer in a container answers; one of Python says the same of itself.

    Attributes:
        title: As people call it.
        worst: What a case counts as under ``missing_case: worst``.
        chance: What guessing at random is worth, for ``missing_case: chance``; none where nobody can say.
        higher_is_better: Its direction.
    """

    title: str
    worst: float
    chance: float | None = None
    higher_is_better: bool


class ScorerImage(Section):
    """A scorer in a container: once for each submission and task it is shown predictions and references.

    Attributes:
        image: Its image: a reference, or an archive, whose path begins at challenge.yaml's folder.
        args: Arguments after the entry point; ``{input}`` and ``{output}`` are the two folders, ``{task}`` the task.
        limits: What it may use, for all cases of a submission together; no GPU, and the run time is fixed.
        metrics: Every number it answers for a case, in the order of the tables.
    """

    image: str = Field(min_length=1)
    args: tuple[str, ...] = ()
    limits: Limits
    metrics: dict[str, MetricRule] = Field(min_length=1)

    @field_validator("image")
    @classmethod
    def _beside(cls, image: str) -> str:
        if ".." in PurePosixPath(image).parts:
            raise ValueError(f"{image!r} must be a reference, or the path of an archive beside challenge.yaml")
        return image

    @field_validator("args")
    @classmethod
    def _known_placeholders(cls, args: tuple[str, ...]) -> tuple[str, ...]:
        for argument in args:
            for name in _PLACEHOLDER.findall(argument):
                if name not in _KNOWN:
                    words = ", ".join(f"{{{one}}}" for one in _KNOWN)
                    raise ValueError(f"{{{name}}} in {argument!r} is not a placeholder; known: {words}")
        return args

    @field_validator("limits")
    @classmethod
    def _without_gpu(cls, limits: Limits) -> Limits:
        if limits.gpus:
            raise ValueError("a scorer is given no GPU: gpus: 0")
        if not isinstance(limits.run_time, RunTimeFixed):
            raise ValueError("run_time must be fixed: it holds for all cases together")  # noqa: TRY004  it is a value
        return limits

    def fault(self, primary: Primary, missing: MissingCase) -> str:
        """Why a task cannot be ranked by what this scorer answers; empty where it can."""
        metric = self.metrics.get(primary.metric)
        if metric is None:
            return f"primary.metric is {primary.metric!r}, which is none of its metrics: {', '.join(self.metrics)}"
        if metric.higher_is_better != primary.higher_is_better:
            return f"primary.higher_is_better contradicts that of its metric {primary.metric!r}"
        if missing is MissingCase.CHANCE and metric.chance is None:
            return f"missing_case is 'chance', but its metric {primary.metric!r} states no chance value"
        return ""
