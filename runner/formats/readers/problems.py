"""What readers say: problems in the order of the file, and the only sentences in which they may be said.

A reader works in a child that may have been taken over, and then its sentences are a stranger's. They would be shown
where no byte of a container may be: on hidden data a sentence is a way out for that data. So every reader has one list
of templates; the child fills numbers in, and the parent lets through what could have come from a template, and nothing
else.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from string import Formatter

from runner.formats.contract import Problem

MAX_KEPT = 50
"""Problems that are kept; all are counted."""

VALUE_CHARACTERS = 60
"""Characters of a value that are shown."""

_NUMBER_FIELD = "[0-9]{1,10}"
"""A place, a count or a cap: ten digits, so that little can be told by them."""


@dataclass
class ProblemList:
    """Problems in the order they were met: the first are kept, all are counted."""

    kept: list[Problem] = field(default_factory=list)
    count: int = 0

    def add(self, what: str, *, row: int | None = None, column: str | None = None, value: str | None = None) -> None:
        """Note a problem; ``value`` is what stood there, as it was, and is quoted here."""
        self.count += 1
        if len(self.kept) < MAX_KEPT:
            shown = None if value is None else quote(value)
            self.kept.append(Problem(what=what, row=row, column=column, value=shown))

    def take(self, other: "ProblemList") -> None:
        """Take another list's problems in, in the order of the file; those about the whole file come first."""
        merged = sorted([*self.kept, *other.kept], key=lambda problem: problem.row or 0)
        self.kept, self.count = merged[:MAX_KEPT], self.count + other.count


def quote(text: str) -> str:
    """Bytes of a stranger as they may be shown: quoted, bounded, everything but printable ASCII escaped."""
    shown = ascii(text[: VALUE_CHARACTERS + 1])
    return shown if len(shown) <= VALUE_CHARACTERS else shown[: VALUE_CHARACTERS - 1] + "…"


def sentence_pattern(templates: Iterable[StrEnum], **fields: str) -> re.Pattern[str]:
    """What sentences these templates can become.

    Args:
        templates: Every sentence a reader has, with ``{fields}``.
        fields: What may stand in a field, as a regular expression; in all others, a whole number.
    """

    def pattern(template: str) -> str:
        parts = Formatter().parse(template)
        return "".join(
            re.escape(text) + ("" if name is None else f"(?:{fields.get(name, _NUMBER_FIELD)})")
            for text, name, _, _ in parts
        )

    return re.compile("|".join(pattern(template.value) for template in templates))


def any_of(texts: Iterable[object]) -> str:
    """Exactly one of these texts, as a regular expression."""
    return "|".join(re.escape(str(text)) for text in texts)
