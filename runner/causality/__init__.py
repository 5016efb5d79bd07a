"""Whether a method looks ahead: which cuts to run, what differs, what that proves. Pure; no I/O."""

from runner.causality.evidence import Answers, Evidence, FullRun, Observation, Request, frames_shown
from runner.causality.findings import Standing
from runner.causality.plan import Cost, estimate, next_cuts
from runner.causality.verdict import CausalityOutcome, CausalityVerdict, Leak, TriedCut, conclude, upper_bound

__all__ = [
    "Answers",
    "CausalityOutcome",
    "CausalityVerdict",
    "Cost",
    "Evidence",
    "FullRun",
    "Leak",
    "Observation",
    "Request",
    "Standing",
    "TriedCut",
    "conclude",
    "estimate",
    "frames_shown",
    "next_cuts",
    "upper_bound",
]
