"""What a prediction looks like, a file a kind."""

from runner.challenge.formats.answer import AnswerFormat, FieldRule
from runner.challenge.formats.arrays import ArraysFormat, OneArray
from runner.challenge.formats.frame_scores import FrameScoresFormat
from runner.challenge.formats.frame_table import ColumnRule, FrameTableFormat, IndexRule
from runner.challenge.formats.label_images import ImageLabel, LabelImagesFormat
from runner.challenge.formats.registry import AnyFormat, outside_format
from runner.challenge.formats.section import FormatSection

__all__ = [
    "AnswerFormat",
    "AnyFormat",
    "ArraysFormat",
    "ColumnRule",
    "FieldRule",
    "FormatSection",
    "FrameScoresFormat",
    "FrameTableFormat",
    "ImageLabel",
    "IndexRule",
    "LabelImagesFormat",
    "OneArray",
    "outside_format",
]
