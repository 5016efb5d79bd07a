"""What a finished check proves, in a word and in numbers."""

from dataclasses import dataclass
from enum import StrEnum

from runner.causality import words
from runner.causality.evidence import Evidence
from runner.causality.examination import Ending
from runner.causality.facts import Facts, TriedCut, upper_bound
from runner.causality.findings import Leak
from runner.causality.plan import course
from runner.challenge import CausalityRule

__all__ = ["CausalityOutcome", "CausalityVerdict", "Leak", "TriedCut", "conclude", "upper_bound"]


class CausalityOutcome(StrEnum):
    """The closed list of outcomes, the worst first; only ``leaking`` may cost anything by itself."""

    LEAKING = "leaking"
    LENGTH_DEPENDENT = "length-dependent"
    NOT_DETERMINISTIC = "not-deterministic"
    INCONCLUSIVE = "inconclusive"
    PASSED = "passed"
    NOT_RUN = "not-run"


@dataclass(frozen=True, kw_only=True)
class CausalityVerdict:
    """What was tested and what it proves.

    Attributes:
        outcome: One of the closed list.
        sentence: For anybody: our words, counts and frame numbers; no label, no name.
        detail: For the organisers: the same with both answers, or with the reasons of failures; our words too.
        cuts: Every cut point that was tried, in order.
        cuts_tested: How many of them came to a result.
        cuts_possible: Number of prefixes there are.
        random_cuts: Of the tested ones, those drawn from the seed.
        noise: Largest share of frames in which two runs of the full sequence differ.
        tolerance: The largest difference between two scores that counts as none; None where no scores were compared.
        bound: Clean methods: the largest share of leaking cut points compatible with the result at 95 %.
        first_leak: The proof; None unless leaking.
        length_dependent_share: Share of the frames of a prefix whose answers changed with the length alone; None where
            no such dependence was found, and where only last answers are compared. A leaking method may have it too.
    """

    outcome: CausalityOutcome
    sentence: str
    detail: str
    cuts: tuple[TriedCut, ...] = ()
    cuts_tested: int = 0
    cuts_possible: int = 0
    random_cuts: int = 0
    noise: float = 0.0
    tolerance: float | None = None
    bound: float | None = None
    first_leak: Leak | None = None
    length_dependent_share: float | None = None


def conclude(rule: CausalityRule, evidence: Evidence, seed: int) -> CausalityVerdict:
    """Judge the evidence; a check that still has requests is inconclusive."""
    facts = Facts.of(rule, evidence, course(rule, evidence, seed))
    outcome = _outcome(facts)
    sentence, detail = _words(outcome, facts)
    return CausalityVerdict(
        outcome=outcome,
        sentence=sentence,
        detail=detail,
        cuts=facts.cuts,
        cuts_tested=facts.tested,
        cuts_possible=facts.possible,
        random_cuts=facts.random,
        noise=facts.noise,
        tolerance=facts.tolerance,
        bound=facts.bound if outcome is CausalityOutcome.PASSED else None,
        first_leak=facts.leak,
        length_dependent_share=facts.dependent_share,
    )


def _outcome(facts: Facts) -> CausalityOutcome:
    match facts.ending:
        case Ending.OFF | Ending.NO_FULL_RUN:
            return CausalityOutcome.NOT_RUN
        case Ending.LEAK:
            return CausalityOutcome.LEAKING
        case Ending.NOISE | Ending.UNCONFIRMED:
            return CausalityOutcome.NOT_DETERMINISTIC
        case Ending.ALL_CUTS if facts.dependent is not None:
            return CausalityOutcome.LENGTH_DEPENDENT
        case Ending.ALL_CUTS if 2 * facts.tested >= len(facts.cuts):
            return CausalityOutcome.PASSED
        case _:
            return CausalityOutcome.INCONCLUSIVE


def _words(outcome: CausalityOutcome, facts: Facts) -> tuple[str, str]:
    match outcome:
        case CausalityOutcome.PASSED:
            return words.passed(facts)
        case CausalityOutcome.LEAKING:
            return words.leaking(facts)
        case CausalityOutcome.LENGTH_DEPENDENT:
            return words.length_dependent(facts)
        case CausalityOutcome.NOT_DETERMINISTIC:
            return words.not_deterministic(facts)
        case CausalityOutcome.INCONCLUSIVE:
            return words.inconclusive(facts)
        case CausalityOutcome.NOT_RUN:
            return words.not_run(facts)
