"""The whole of challenge.yaml."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Literal

from pydantic import Field, model_validator

from runner.challenge.cases import CaseFiles, InputKind, InputRule, one_case
from runner.challenge.causality import CausalityRule
from runner.challenge.formats import AnyFormat, FormatSection
from runner.challenge.invocation import Invocation, InvocationMode
from runner.challenge.limits import Limits, RunTimeFixed
from runner.challenge.privacy import Feedback, Publish
from runner.challenge.ranking import RankingRule
from runner.challenge.scoring import CONTAINER, MissingCase, Primary, ScorerImage
from runner.challenge.section import Section
from runner.challenge.streamed import check_streamed
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
    """What a case's verdict does to the submission; each is required, organisers differ.

    ``broke-protocol`` can only be met where frames are streamed; left out, it is what ``crashed`` is.
    """

    bad_image: ConsequenceScope = Field(alias="bad-image", default=ConsequenceScope.SUBMISSION)
    crashed: ConsequenceScope
    out_of_memory: ConsequenceScope = Field(alias="out-of-memory")
    timed_out: ConsequenceScope = Field(alias="timed-out")
    too_much_output: ConsequenceScope = Field(alias="too-much-output")
    unsafe_output: ConsequenceScope = Field(alias="unsafe-output")
    missing_output: ConsequenceScope = Field(alias="missing-output")
    bad_output: ConsequenceScope = Field(alias="bad-output")
    not_causal: ConsequenceScope = Field(alias="not-causal")
    broke_protocol: ConsequenceScope | None = Field(alias="broke-protocol", default=None)

    def scope_of(self, word: str) -> ConsequenceScope:
        """The scope for a verdict's word."""
        scope: ConsequenceScope | None = getattr(self, word.replace("-", "_"))
        return self.crashed if scope is None else scope


class Task(Section):
    """Something that is predicted, scored and ranked by itself.

    Attributes:
        title: For people.
        inputs: Names of ``cases.inputs`` that it is given; empty: all. A task is not shown what it does not name.
        inputs_from: Earlier tasks whose predictions of the same submission it is given, below ``predictions/<task>``.
        format: What a container writes.
        reference_format: What a reference looks like, where that differs.
        references: Pattern of its reference files, where they are not ``cases.references``.
        scorer: ``<challenge>.<name in scorer.py>``, or the name of an entry point of the group ``proctor.scorers``; or
            ``container``.
        scorer_image: For ``scorer: container``: the image, what it may use, and what it measures.
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
    scorer_image: ScorerImage | None = None
    options: dict[str, str | int | float | bool] = {}  # noqa: RUF012  pydantic copies it
    primary: Primary
    missing_case: MissingCase

    @property
    def format_of_references(self) -> FormatSection:
        """What its references look like."""
        return self.reference_format or self.format


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
        if self.causality.method != "off" and self.invocation.mode is not InvocationMode.STREAM:
            self.require_cuts()
        if not self.cases.timed and not isinstance(self.limits.run_time, RunTimeFixed):
            raise ValueError("limits.run_time: no input has a length, so the run time must be fixed")
        return self

    def require_cuts(self) -> None:
        """Whether causality can be checked in every task by cutting what it is shown.

        Raises:
            ValueError: It cannot, with our sentence.
        """
        inputs = self.cases.rules
        for name, task in self.tasks.items():
            _check_causality(name, task, [inputs[one] for one in task.inputs or inputs])

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
        _check_scorer(name, task)
        if self.invocation.stream is not None:
            shown = {one: inputs[one] for one in task.inputs or inputs}
            stream = self.invocation.stream
            check_streamed(name, task.format, shown, inputs_from=task.inputs_from, stream=stream)


_COMPARED = ("frame_table", "frame_scores", "label_images")
"""Formats with an answer for each frame, which causality can be checked by."""


def _check_causality(name: str, task: Task, shown: Sequence[InputRule]) -> None:
    if task.format.kind not in _COMPARED:
        raise ValueError(
            f"tasks.{name}: causality cannot be checked by {task.format.kind}: it needs an answer a frame, as "
            "frame_table, frame_scores and label_images have; causality.method: off"
        )
    if all(rule.kind is InputKind.FILE for rule in shown):
        raise ValueError(f"tasks.{name}: causality cannot be checked without frames to cut; causality.method: off")


def _check_scorer(name: str, task: Task) -> None:
    rule = task.scorer_image
    if rule is None:
        if task.scorer == CONTAINER:
            raise ValueError(f"tasks.{name}.scorer: 'container' needs the section scorer_image, which says in which")
        return
    if task.scorer != CONTAINER:
        raise ValueError(f"tasks.{name}.scorer_image goes with scorer: container, and the scorer is {task.scorer!r}")
    if task.options:
        raise ValueError(f"tasks.{name}.options are for a scorer in Python; one in a container takes scorer_image.args")
    fault = rule.fault(task.primary, task.missing_case)
    if fault:
        raise ValueError(f"tasks.{name}.scorer_image: {fault}")
