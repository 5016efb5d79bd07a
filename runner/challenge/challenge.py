"""The whole of challenge.yaml."""

from enum import StrEnum
from typing import Literal

from pydantic import Field

from runner.challenge.cases import CaseFiles
from runner.challenge.causality import CausalityRule
from runner.challenge.formats import FrameTableFormat
from runner.challenge.invocation import Invocation
from runner.challenge.limits import Limits
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
    """Something that is predicted, scored and ranked by itself."""

    title: str = ""
    format: FrameTableFormat
    scorer: str
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
