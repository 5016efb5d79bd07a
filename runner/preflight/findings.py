"""What a finding is, and how an image's own words are quoted in one."""

from dataclasses import dataclass, field
from enum import StrEnum

from runner.safe_text import for_terminal

_QUOTED = 120


class Severity(StrEnum):
    """What a finding does to an image, the worst first."""

    REFUSES = "refuses"
    WARNS = "warns"
    NOTE = "note"


@dataclass(frozen=True, kw_only=True)
class PreflightFinding:
    """Something about an image.

    Attributes:
        severity: Whether it refuses the image, makes its failure likely, or only changes what its author is used to.
        sentence: What it is, in our words only; safe to show to anybody.
        remedy: How to mend it.
        evidence: What it was seen by, quoted from the image: made visible and bounded, but a stranger's words.
        stops_start: With it a program that ends with 126 or 127 was never started.
        hint: The entry of the catalogue of known failures that tells more; empty for none.
    """

    severity: Severity
    sentence: str
    remedy: str
    evidence: str = ""
    stops_start: bool = False
    hint: str = field(default="", compare=False)

    @property
    def full(self) -> str:
        """The sentence with its evidence, for whoever may see the image's own words."""
        return f"{self.sentence}: {self.evidence}" if self.evidence else self.sentence


def refuses(sentence: str, remedy: str, *evidence: str, hint: str = "") -> PreflightFinding:
    """A finding that refuses the image."""
    return _finding(Severity.REFUSES, sentence, remedy, evidence, hint=hint)


def warns(sentence: str, remedy: str, *evidence: str, stops_start: bool = False) -> PreflightFinding:
    """A finding that makes a failure likely."""
    return _finding(Severity.WARNS, sentence, remedy, evidence, stops_start=stops_start)


def note(sentence: str, remedy: str, *evidence: str) -> PreflightFinding:
    """A finding that is good to know."""
    return _finding(Severity.NOTE, sentence, remedy, evidence)


def quoted(text: str) -> str:
    """An image's own words on one line, visible and at most 120 characters."""
    return f"'{for_terminal(text, limit=_QUOTED)}'"


def start_fault(findings: tuple[PreflightFinding, ...]) -> str:
    """Why a program that ended with 126 or 127 was never started, as far as it was foreseen; empty where it was not."""
    return "; ".join(finding.sentence for finding in findings if finding.stops_start)


def _finding(
    severity: Severity,
    sentence: str,
    remedy: str,
    evidence: tuple[str, ...],
    *,
    stops_start: bool = False,
    hint: str = "",
) -> PreflightFinding:
    return PreflightFinding(
        severity=severity, sentence=sentence, remedy=remedy, evidence=", ".join(evidence), stops_start=stops_start,
        hint=hint,
    )  # fmt: skip
