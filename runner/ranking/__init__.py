"""Scores to ranks; pure."""

from runner.ranking.methods import RankedRow, Ranking, rank
from runner.ranking.table import ScoreTable, apply_missing

__all__ = ["RankedRow", "Ranking", "ScoreTable", "apply_missing", "rank"]
