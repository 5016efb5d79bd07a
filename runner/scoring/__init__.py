"""The scorer contract, how a scorer is found and run, and the metrics most of them need."""

from runner.scoring.contract import Aggregate, Aggregating, CaseScore, Metric, Scorer, aggregate

__all__ = ["Aggregate", "Aggregating", "CaseScore", "Metric", "Scorer", "aggregate"]
