"""Predictions as stacks of numbers, and back: scores as they are, each column of labels as votes of 0 and 1."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from runner.challenge import FormatSection, FrameScoresFormat, FrameTableFormat
from runner.formats.contract import FrameScores, FrameTable, Prediction

Values = NDArray[np.float64]

SCORES = "scores"
"""In place of a column's name where there are scores."""

_TIE_DECIMALS = 9
"""Sums of weights that differ by less are a tie, whatever order they were added in."""


def labels_of(rule: FrameTableFormat, column: str) -> tuple[int, ...]:
    """The legal labels of a column, rising: class k of its stack is the k-th of them."""
    return tuple(sorted(rule.columns[column].ids))


def stacked(predictions: Sequence[Prediction], rule: FormatSection) -> Mapping[str, Values]:
    """The members' predictions for one case.

    Args:
        predictions: One a member, all scores or all labels, of the same frames.
        rule: Their format.

    Returns:
        By column, shape ``(members, frames, classes)``: scores, or votes of 0 and 1. A member that left a column out
        votes for nothing in it; a column that everybody left out is not there.

    Raises:
        ValueError: The members differ in their frames or classes.
    """
    if isinstance(rule, FrameScoresFormat):
        return {SCORES: np.stack([_scores(one) for one in predictions])}
    assert isinstance(rule, FrameTableFormat)
    tables = [_table(one) for one in predictions]
    if len({table.frames for table in tables}) > 1:
        raise ValueError("the members differ in their frames")
    return {
        column: np.stack([_votes(table, column, labels_of(rule, column)) for table in tables])
        for column in rule.columns
        if any(column in table.columns for table in tables)
    }


def unstacked(blended: Mapping[str, Values], rule: FormatSection) -> FrameScores | FrameTable:
    """A prediction of blended stacks, by column of shape ``(frames, classes)``; of equal votes the smallest label."""
    if isinstance(rule, FrameScoresFormat):
        return FrameScores(scores=blended[SCORES])
    assert isinstance(rule, FrameTableFormat)
    return FrameTable(
        columns={
            column: np.array(labels_of(rule, column), dtype=np.int64)[votes.round(_TIE_DECIMALS).argmax(axis=1)]
            for column, votes in blended.items()
        }
    )


def range_of(rule: FormatSection) -> tuple[float, float]:
    """Lowest and highest value of a stack."""
    return rule.range if isinstance(rule, FrameScoresFormat) else (0.0, 1.0)


def truths(reference: Prediction, rule: FormatSection, reference_rule: FormatSection) -> Mapping[str, Values]:
    """What a perfect member's stack would be.

    Args:
        reference: Of the same kind as the predictions (see ``can_be_fitted``).
        rule: The predictions' format.
        reference_rule: The reference's.

    Returns:
        By column, shape ``(frames, classes)``, in the range of the predictions. A frame whose label no prediction may
        have is a row of NaN: nothing can be learned from it.
    """
    if isinstance(rule, FrameScoresFormat):
        (low, high), (lowest, highest) = range_of(rule), range_of(reference_rule)
        scores = _scores(reference)
        same = (low, high) == (lowest, highest)
        return {SCORES: scores if same else low + (scores - lowest) * ((high - low) / (highest - lowest))}
    assert isinstance(rule, FrameTableFormat)
    table = _table(reference)
    found = {}
    for column in rule.columns:
        if column in table.columns:
            votes = _votes(table, column, labels_of(rule, column))
            votes[votes.sum(axis=1) == 0] = np.nan
            found[column] = votes
    return found


def can_be_fitted(rule: FormatSection, reference_rule: FormatSection) -> bool:
    """Whether references say of each frame what a perfect prediction would."""
    match rule, reference_rule:
        case FrameScoresFormat(), FrameScoresFormat():
            return rule.classes == reference_rule.classes
        case FrameTableFormat(), FrameTableFormat():
            return set(rule.columns) <= set(reference_rule.columns)
        case _:
            return False


def _votes(table: FrameTable, column: str, labels: Sequence[int]) -> Values:
    if column not in table.columns:
        return np.zeros((table.frames, len(labels)))
    return np.asarray(table.columns[column][:, None] == np.array(labels), dtype=np.float64)


def _scores(prediction: Prediction) -> Values:
    assert isinstance(prediction, FrameScores)
    return prediction.scores


def _table(prediction: Prediction) -> FrameTable:
    assert isinstance(prediction, FrameTable)
    return prediction
