"""The whole of challenge.yaml."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal

from pydantic import Field, model_validator

from runner.challenge.cases import CaseFiles, InputKind, InputRule, one_case
from runner.challenge.causality import CausalityRule
from runner.challenge.formats import AnyFormat
from runner.challenge.invocation import Invocation, InvocationMode
from runner.challenge.limits import Limits, RunTimeFixed
from runner.challenge.privacy import Feedback, Publish
from runner.challenge.ranking import RankingRule
from runner.challenge.scoring import MissingCase, Primary
from runner.challenge.section import Section
from runner.policy import PolicyName


class Platform(StrEnum):
    """What images must be built for."""

    LINUX_AMD64 = "linux/amd64"
    LINUX_ARM64 = "linux/arm64"


class ConsequenceScope(StrEnum):
    """What a bad verdict on a case spoils: that case, or the whole submission."""

    CASE = "case"
    SUBMISSION = "submission"


class Consequence(Section):
    """What a case's verdict does to the submission; each is required, organisers differ."""

    bad_image: ConsequenceScope = Field(alias="bad-image", default=ConsequenceScope.SUBMISSION)
    crashed: ConsequenceScope
    out_of_memory: ConsequenceScope = Field(alias="out-of-memory")
    timed_out: ConsequenceScope = Field(alias="timed-out")
    too_much_output: ConsequenceScope = Field(alias="too-much-output")
    unsafe_output: ConsequenceScope = Field(alias="unsafe-output")
    missing_output: ConsequenceScope = Field(alias="missing-output")
    bad_output: ConsequenceScope = Field(alias="bad-output")
    not_causal: ConsequenceScope = Field(alias="not-causal")

    def scope_of(self, word: str) -> ConsequenceScope:
        """The scope for a verdict's word."""
        scope: ConsequenceScope = getattr(self, word.replace("-", "_"))
        return scope


class Task(Section):
    """Something that is predicted, scored and ranked by itself.

    Attributes:
        title: For people.
        inputs: Names of ``cases.inputs`` that it is given; empty: all. A task is not shown what it does not name.
        inputs_from: Earlier tasks whose predictions of the same submission it is given, below ``predictions/<task>``.
        format: What a container writes.
        reference_format: What a reference looks like, where that differs.
        references: Pattern of its reference files, where they are not ``cases.references``.
        scorer: ``<challenge>.<name in scorer.py>``, or the name of an entry point of the group ``proctor.scorers``.
        options: What the scorer is made with, by name.
        primary: The metric that ranks.
        missing_case: What a case without a valid prediction counts as.
    """

    title: str = ""
    inputs: tuple[str, ...] = ()
    inputs_from: tuple[str, ...] = ()
    format: AnyFormat
    reference_format: AnyFormat | None = None
    references: str = ""
    scorer: str
    options: dict[str, str | int | float | bool] = {}  # noqa: RUF012  pydantic copies it
    primary: Primary
    missing_case: MissingCase


class Challenge(Section):
    """Everything the organisers decided.

    Attributes:
        name: A short name, letters, digits and dashes.
        version: Printed beside every score.
        platform: What images must be built for; images are compared with this, never with the machine at hand.
        policy: ``compatible`` lets images be root and write their own tree; ``strict`` does not.
        reference_hardware: Free text, printed beside every time.
        tasks: By name.
        ranking: How scores become ranks.
    """

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    version: str
    title: str
    platform: Platform
    cases: CaseFiles
    invocation: Invocation
    limits: Limits
    policy: PolicyName = PolicyName.STRICT
    reference_hardware: str = ""
    causality: CausalityRule
    tasks: dict[str, Task] = Field(min_length=1)
    consequence: Consequence
    ranking: RankingRule
    feedback: Feedback
    publish: Publish = Publish()
    data: Literal["hidden", "public"] = "hidden"

    @model_validator(mode="after")
    def _parts_fit(self) -> "Challenge":
        inputs = self.cases.rules
        self._check_command(inputs)
        for path in self.invocation.lists:
            if any(path == rule.inside or path.startswith(f"{rule.inside}/") for rule in inputs.values()):
                raise ValueError(f"invocation.lists: {path!r} lies where an input does")
        for name, task in self.tasks.items():
            self._check_task(name, task, inputs)
        if not self.cases.timed and not isinstance(self.limits.run_time, RunTimeFixed):
            raise ValueError("limits.run_time: no input has a length, so the run time must be fixed")
        return self

    def _check_command(self, inputs: Mapping[str, InputRule]) -> None:
        known = ("input", "output", "task", "case", *inputs)
        for name, argument in self.invocation.placeholders():
            if name not in known:
                words = ", ".join(f"{{{one}}}" for one in known)
                raise ValueError(f"invocation: {{{name}}} in {argument!r} is not a placeholder; known: {words}")

    def _check_task(self, name: str, task: Task, inputs: Mapping[str, InputRule]) -> None:
        strangers = [one for one in task.inputs if one not in inputs]
        if strangers:
            raise ValueError(f"tasks.{name}.inputs: {strangers[0]!r} is none of cases.inputs: {', '.join(inputs)}")
        earlier = list(self.tasks)[: list(self.tasks).index(name)]
        strangers = [one for one in task.inputs_from if one not in earlier]
        if strangers:
            raise ValueError(f"tasks.{name}.inputs_from: {strangers[0]!r} is no task above it: {', '.join(earlier)}")
        if task.references:
            one_case(task.references)
        if self.causality.method != "off":
            if self.invocation.mode is InvocationMode.DATASET:
                raise ValueError("causality cannot be checked in mode dataset so far: causality.method: off")
            self._check_causality(name, task, inputs)

    def _check_causality(self, name: str, task: Task, inputs: Mapping[str, InputRule]) -> None:
        shown = [inputs[one] for one in task.inputs or inputs]
        if task.format.kind != "frame_table":
            raise ValueError(f"tasks.{name}: causality is checked on frame tables only so far: causality.method: off")
        if any(rule.kind is InputKind.VIDEO for rule in shown) or task.inputs_from:
            raise ValueError(
                f"tasks.{name}: causality cannot be checked on videos or on inputs_from so far: causality.method: off"
            )
        if not any(rule.kind in (InputKind.FRAMES, InputKind.TABLE) for rule in shown):
            raise ValueError(f"tasks.{name}: there are no frames to cut: causality.method: off")
