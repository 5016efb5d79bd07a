"""What the other sections must say where frames are streamed: which answers a stream can hold, and what is held."""

from collections.abc import Mapping

from pydantic import JsonValue

from runner.challenge.cases import InputKind, InputRule
from runner.challenge.formats import (
    ColumnRule,
    FormatSection,
    FrameScoresFormat,
    FrameTableFormat,
    LabelImagesFormat,
)
from runner.challenge.invocation import Pacing, Stream

IMAGE_KEY = "image"
"""Under which an answer holds a label image, as base64 of a PNG file."""

SCORES_KEY = "scores"
"""Under which an answer holds a list of scores where the format names no key."""

_TIMED = (InputKind.FRAMES, InputKind.TABLE, InputKind.VIDEO)


def scores_key(rule: FrameScoresFormat) -> str:
    """Under which an answer holds its list of scores."""
    return rule.key or SCORES_KEY


def example_answer(rule: FormatSection) -> dict[str, JsonValue] | None:
    """An answer for a frame that a format accepts, whatever the frame shows; None: none is known."""
    match rule:
        case FrameTableFormat():
            return {name: _first_label(column) for name, column in rule.columns.items()}
        case FrameScoresFormat():
            lowest = rule.range[0]
            return {scores_key(rule): [int(lowest) if rule.whole else lowest] * rule.classes}
    return None


def _first_label(column: ColumnRule) -> int | str:
    legal = next(number for number in column.ids if number not in column.reference_only)
    return column.names[legal] if column.names else legal


def check_streamed(
    name: str, rule: FormatSection, inputs: Mapping[str, InputRule], *, inputs_from: tuple[str, ...], stream: Stream
) -> None:
    """Whether a task can be streamed.

    Args:
        name: Of the task.
        rule: Its format.
        inputs: What it is shown.
        inputs_from: Earlier tasks whose predictions it is given.
        stream: How frames are streamed.

    Raises:
        ValueError: It cannot, with our sentence.
    """
    where = f"tasks.{name}"
    if not isinstance(rule, FrameTableFormat | FrameScoresFormat | LabelImagesFormat):
        raise ValueError(  # noqa: TRY004  pydantic takes no other
            f"{where}: {rule.kind} cannot be streamed: it needs an answer a frame, as frame_table, frame_scores and "
            "label_images have; take invocation.stream out"
        )
    if not any(one.kind in _TIMED for one in inputs.values()):
        raise ValueError(f"{where}: there are no frames to stream; take invocation.stream out")
    if inputs_from:
        raise ValueError(f"{where}: inputs_from cannot be streamed; take invocation.stream out")
    if stream.pacing is Pacing.REALTIME and (lack := _not_held(rule, stream.before_first)):
        raise ValueError(
            f"invocation.stream.before_first: {lack} of {where}: it is what a frame holds that is missed before the "
            "first answer"
        )


def _not_held(rule: FormatSection, held: Mapping[str, JsonValue]) -> str:
    """What an answer that is held lacks of a format; empty where it lacks nothing."""
    match rule:
        case FrameTableFormat():
            for name, column in rule.columns.items():
                if name not in held and column.missing == "refuse":
                    return f"there is no column {name}"
                if name in held and not _is_label(column, held[name]):
                    return f"{held[name]!r} is no label of column {name}"
        case FrameScoresFormat():
            scores = held.get(scores_key(rule))
            if not isinstance(scores, list) or len(scores) != rule.classes or not all(map(_is_number, scores)):
                return f"{scores_key(rule)} is no list of {rule.classes} scores"
        case LabelImagesFormat() if not isinstance(held.get(IMAGE_KEY), str):
            return f"there is no {IMAGE_KEY}"
    return ""


def _is_label(column: ColumnRule, value: JsonValue) -> bool:
    if isinstance(value, str):
        return value in column.names
    return type(value) is int and value in column.ids


def _is_number(value: JsonValue) -> bool:
    return type(value) in (int, float)
