"""What challenge.yaml says, a file a section; data only."""

from runner.challenge.cases import CaseFiles
from runner.challenge.causality import CausalityRule, LeakPolicy
from runner.challenge.challenge import Challenge, Consequence, Platform, Task
from runner.challenge.formats import ColumnRule, FrameTableFormat, IndexRule
from runner.challenge.invocation import Invocation, InvocationMode
from runner.challenge.limits import Limits, RunTime
from runner.challenge.privacy import Feedback, Publish
from runner.challenge.ranking import RankingRule
from runner.challenge.scoring import MissingCase, Primary

__all__ = [
    "CaseFiles",
    "CausalityRule",
    "Challenge",
    "ColumnRule",
    "Consequence",
    "Feedback",
    "FrameTableFormat",
    "IndexRule",
    "Invocation",
    "InvocationMode",
    "LeakPolicy",
    "Limits",
    "MissingCase",
    "Platform",
    "Primary",
    "Publish",
    "RankingRule",
    "RunTime",
    "Task",
]
