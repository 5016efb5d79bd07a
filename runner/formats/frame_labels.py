"""Reads the labels of a frame table, by number or by name, one after the other or a whole column at once."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from runner.challenge.formats import ColumnRule
from runner.formats.contract import Role
from runner.formats.frame_rule import is_a_number, legal_labels, nearly_label, no_label
from runner.formats.readers.csv_table import Mistake, parse_integer, read_integers
from runner.formats.spelling import loosely


def ids_by_name(rule: ColumnRule, role: Role) -> Mapping[str, int]:
    """The legal names of a column and their numbers; empty where its labels are numbers."""
    legal = legal_labels(rule, role)
    return {name: label for label, name in enumerate(rule.names) if label in legal}


class Labels:
    """Reads the cells of one column; few texts stand there again and again, so each is read once."""

    def __init__(self, rule: ColumnRule, role: Role, *, stand_in: int | None = None) -> None:
        """``stand_in``: what an unknown label counts as; None where it is a problem."""
        self._rule = rule
        self._stand_in = stand_in
        self._unknown: set[str] = set()
        self.unknown = 0
        self._role = role
        self._legal = legal_labels(rule, role)
        self._ids = ids_by_name(rule, role)
        self._loose = {loosely(name) for name in self._ids}
        self._known: dict[str, int | str] = {}

    def read(self, text: str) -> int | str:
        """A label, or what is wrong, as the rest of a sentence that begins with the column's name."""
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = self._name(text) if self._rule.names else self._number(text)
        self.unknown += text in self._unknown
        return known

    def _no_label(self, text: str) -> int | str:
        if self._stand_in is None:
            return no_label(self._rule, self._role)
        self._unknown.add(text)
        return self._stand_in

    def _number(self, text: str) -> int | str:
        label = parse_integer(text)
        return self._no_label(text) if isinstance(label, int) and label not in self._legal else label

    def _name(self, text: str) -> int | str:
        if text in self._ids:
            return self._ids[text]
        if not text:
            return Mistake.EMPTY.value
        if loosely(text) in self._loose:
            return nearly_label(self._rule, self._role)
        if isinstance(parse_integer(text), int):
            return is_a_number(self._rule, self._role)
        return self._no_label(text)


def read_labels(rule: ColumnRule, cells: Sequence[str], role: Role) -> NDArray[np.int64] | None:
    """Read a column at once, if there is nothing whatever to be said about it."""
    if not rule.names:
        labels = read_numbers(cells)
        return labels if labels is not None and np.isin(labels, list(legal_labels(rule, role))).all() else None
    ids = ids_by_name(rule, role)
    try:
        return np.fromiter(map(ids.__getitem__, cells), np.int64, len(cells))
    except KeyError:
        return None


def read_numbers(cells: Sequence[str]) -> NDArray[np.int64] | None:
    """Read a column of whole numbers at once; None where any is not as ``parse_integer`` reads it."""
    numbers = read_integers("\n".join(cells), columns=1, separator=",")
    return numbers[:, 0] if numbers is not None and len(numbers) == len(cells) else None
