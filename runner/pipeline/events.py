"""What a run tells whoever watches it: plain values, one way."""

from collections.abc import Callable
from dataclasses import dataclass

from runner.verdict import Verdict


@dataclass(frozen=True, kw_only=True)
class Step:
    """A step begins; ``text`` says which, for people."""

    text: str


@dataclass(frozen=True, kw_only=True)
class Notice:
    """Something people should know that stops nothing."""

    text: str


@dataclass(frozen=True, kw_only=True)
class RunsPlanned:
    """How many verdicts lie ahead, how many of them are known already, and of how many tasks they are."""

    total: int
    done: int
    tasks: int = 1


@dataclass(frozen=True, kw_only=True)
class CaseEnded:
    """A case has its verdict; ``seconds`` on our clock, 0 where it was done before."""

    submission: str
    team: str
    task: str
    case: str
    verdict: Verdict
    seconds: float


@dataclass(frozen=True, kw_only=True)
class CausalityBegan:
    """A check for causality begins; ``most`` container runs at most."""

    submission: str
    case: str
    expected: int
    most: int


@dataclass(frozen=True, kw_only=True)
class CutEnded:
    """One run of a check for causality is done."""

    submission: str
    case: str
    run: str


@dataclass(frozen=True, kw_only=True)
class CausalityEnded:
    """A check for causality is over."""

    submission: str
    case: str
    sentence: str


@dataclass(frozen=True, kw_only=True)
class HostFailed:
    """The host failed a job; it is tried again, or left pending."""

    submission: str
    case: str
    text: str
    again: bool


Event = Step | Notice | RunsPlanned | CaseEnded | CausalityBegan | CutEnded | CausalityEnded | HostFailed
Observer = Callable[[Event], None]
