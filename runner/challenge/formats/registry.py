"""Finds the rule for a format's kind: a built-in one, or one that an installed package brings.

A package brings formats by entry points of the group ``proctor.formats``: the name is the kind, the object has the rule
as its attribute ``rule`` (a ``FormatSection``). They are looked for only where no built-in kind fits.
"""

import difflib
from importlib.metadata import entry_points
from typing import Annotated, Any

from pydantic import BeforeValidator, SerializeAsAny

from runner.challenge.formats.answer import AnswerFormat
from runner.challenge.formats.arrays import ArraysFormat
from runner.challenge.formats.frame_scores import FrameScoresFormat
from runner.challenge.formats.frame_table import FrameTableFormat
from runner.challenge.formats.label_images import LabelImagesFormat
from runner.challenge.formats.section import FormatSection

GROUP = "proctor.formats"
BUILT_IN: dict[str, type[FormatSection]] = {
    "frame_table": FrameTableFormat,
    "frame_scores": FrameScoresFormat,
    "label_images": LabelImagesFormat,
    "arrays": ArraysFormat,
    "answer": AnswerFormat,
}


def outside_format(kind: str) -> Any:
    """What an installed package brings under a kind; None where none does."""
    return next((found.load() for found in entry_points(group=GROUP, name=kind)), None)


def _rule_of(kind: str) -> type[FormatSection]:
    if kind in BUILT_IN:
        return BUILT_IN[kind]
    known = sorted(BUILT_IN.keys() | {found.name for found in entry_points(group=GROUP)})
    if kind not in known:
        close = difflib.get_close_matches(kind, known, n=1)
        guess = f"did you mean {close[0]!r}? " if close else ""
        raise ValueError(f"there is no format {kind!r}; {guess}known: {', '.join(known)}")
    rule = getattr(outside_format(kind), "rule", None)
    if not (isinstance(rule, type) and issubclass(rule, FormatSection)):
        raise ValueError(  # noqa: TRY004  pydantic takes no other
            f"the entry point {kind!r} of {GROUP} has no attribute 'rule' that is a FormatSection"
        )
    return rule


def _resolved(value: object) -> object:
    if isinstance(value, FormatSection):
        return value
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
        raise ValueError(f"a format needs its kind: {', '.join(BUILT_IN)}")  # noqa: TRY004  as above
    return _rule_of(value["kind"]).model_validate(value)


AnyFormat = Annotated[SerializeAsAny[FormatSection], BeforeValidator(_resolved)]
"""A task's format, as the rule of its own kind."""
