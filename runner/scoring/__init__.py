"""The scorer contract, how a scorer is found and run, and the metrics most of them need."""

from runner.scoring.contract import Aggregate, CaseScore, Metric, Scorer, aggregate

__all__ = ["Aggregate", "CaseScore", "Metric", "Scorer", "aggregate"]
