"""What challenge.yaml says, a file a section; data only."""

from runner.challenge.cases import CaseFiles, InputKind, InputRule
from runner.challenge.causality import AnswersCompared, CausalityMethod, CausalityRule, LeakPolicy
from runner.challenge.challenge import Challenge, Consequence, Platform, Task
from runner.challenge.formats import (
    AnswerFormat,
    ArraysFormat,
    ColumnRule,
    FieldRule,
    FormatSection,
    FrameScoresFormat,
    FrameTableFormat,
    ImageLabel,
    IndexRule,
    LabelImagesFormat,
    OneArray,
)
from runner.challenge.invocation import FrameWay, Invocation, InvocationMode, Pacing, Stream
from runner.challenge.limits import Limits, RunTime
from runner.challenge.privacy import Feedback, Publish
from runner.challenge.ranking import RankingRule
from runner.challenge.scoring import CONTAINER, MetricRule, MissingCase, Primary, ScorerImage

__all__ = [
    "CONTAINER",
    "AnswerFormat",
    "AnswersCompared",
    "ArraysFormat",
    "CaseFiles",
    "CausalityMethod",
    "CausalityRule",
    "Challenge",
    "ColumnRule",
    "Consequence",
    "Feedback",
    "FieldRule",
    "FormatSection",
    "FrameScoresFormat",
    "FrameTableFormat",
    "FrameWay",
    "ImageLabel",
    "IndexRule",
    "InputKind",
    "InputRule",
    "Invocation",
    "InvocationMode",
    "LabelImagesFormat",
    "LeakPolicy",
    "Limits",
    "MetricRule",
    "MissingCase",
    "OneArray",
    "Pacing",
    "Platform",
    "Primary",
    "Publish",
    "RankingRule",
    "RunTime",
    "ScorerImage",
    "Stream",
    "Task",
]
