"""Whether a method looks ahead: which cuts to run, what differs, what that proves. Pure; no I/O."""

from runner.causality.answers import Answers
from runner.causality.cost import Cost, estimate
from runner.causality.evidence import Evidence, FullRun, Observation, Request, frames_shown
from runner.causality.findings import Leak, Standing
from runner.causality.plan import next_cuts
from runner.causality.summary import summary
from runner.causality.verdict import CausalityOutcome, CausalityVerdict, TriedCut, conclude, upper_bound

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
    "summary",
    "upper_bound",
]
