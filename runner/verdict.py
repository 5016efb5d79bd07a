"""How a case ended and whose doing that was."""

from dataclasses import dataclass, replace
from enum import StrEnum


class Blame(StrEnum):
    """Whose doing it was."""

    NOBODY = "nobody"
    PARTICIPANT = "participant"
    ORGANISER = "organiser"
    HOST = "host"


class VerdictWord(StrEnum):
    """The closed list of ways a case can end, in the order in which one wins over the next."""

    HOST_FAULT = "host-fault"
    SCORER_FAULT = "scorer-fault"
    BAD_IMAGE = "bad-image"
    TIMED_OUT = "timed-out"
    OUT_OF_MEMORY = "out-of-memory"
    TOO_MUCH_OUTPUT = "too-much-output"
    CRASHED = "crashed"
    BROKE_PROTOCOL = "broke-protocol"
    UNSAFE_OUTPUT = "unsafe-output"
    MISSING_OUTPUT = "missing-output"
    BAD_OUTPUT = "bad-output"
    NOT_CAUSAL = "not-causal"
    ACCEPTED = "accepted"


_BLAME = {
    VerdictWord.ACCEPTED: Blame.NOBODY,
    VerdictWord.HOST_FAULT: Blame.HOST,
    VerdictWord.SCORER_FAULT: Blame.ORGANISER,
}


@dataclass(frozen=True, kw_only=True)
class Hint:
    """The likely cause and how to mend it; decides nothing.

    Attributes:
        cause: What is likely behind a verdict.
        fix: What to do.
        slug: Its entry in the catalogue of known failures; empty where it comes from elsewhere.
    """

    cause: str
    fix: str
    slug: str = ""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """How one case ended.

    Attributes:
        word: One of the closed list.
        sentence: Why, with the numbers; our own words only, safe to show to anybody.
        notes: Further facts that change nothing.
        hints: Likely causes and fixes.
        evidence: Files of the run folder, relative to the case's folder.
    """

    word: VerdictWord
    sentence: str
    notes: tuple[str, ...] = ()
    hints: tuple[Hint, ...] = ()
    evidence: tuple[str, ...] = ()

    @property
    def blame(self) -> Blame:
        """Whose doing it was."""
        return _BLAME.get(self.word, Blame.PARTICIPANT)

    @property
    def accepted(self) -> bool:
        """True for ``accepted``."""
        return self.word is VerdictWord.ACCEPTED

    @property
    def pending(self) -> bool:
        """True where the host failed and the case is still to be run."""
        return self.word is VerdictWord.HOST_FAULT


def replace_hints(verdict: Verdict, hints: tuple[Hint, ...]) -> Verdict:
    """The same verdict with other hints."""
    return replace(verdict, hints=hints)


def rank_of(word: VerdictWord) -> int:
    """Position in the order of precedence; the smaller wins."""
    return list(VerdictWord).index(word)
