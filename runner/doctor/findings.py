"""What an examination of this host finds."""

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """How it stands."""

    FINE = "fine"
    NOTE = "note"
    PROBLEM = "problem"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        name: What was looked at.
        state: How it stands.
        sentence: What was seen, with the numbers.
        remedy: The next thing to type or to change; empty where it is fine.
    """

    name: str
    state: State
    sentence: str
    remedy: str = ""


def fine(name: str, sentence: str) -> Finding:
    """Nothing to mend."""
    return Finding(name=name, state=State.FINE, sentence=sentence)


def note(name: str, sentence: str, remedy: str) -> Finding:
    """Worth knowing."""
    return Finding(name=name, state=State.NOTE, sentence=sentence, remedy=remedy)


def problem(name: str, sentence: str, remedy: str) -> Finding:
    """Must be mended before this host can be trusted with a final."""
    return Finding(name=name, state=State.PROBLEM, sentence=sentence, remedy=remedy)
