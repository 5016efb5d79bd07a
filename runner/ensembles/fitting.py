"""Fits what a method needs, on predictions and references that are not those of the test."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from runner.challenge import FormatSection
from runner.ensembles.blending import Blend
from runner.ensembles.method import Method
from runner.ensembles.network import Network, train
from runner.ensembles.stacks import range_of, stacked, truths
from runner.ensembles.weights import Errors
from runner.formats.contract import Prediction

Values = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Example:
    """A case to fit on.

    Attributes:
        predictions: One a member, always in the same order.
        reference: What is true.
    """

    predictions: Sequence[Prediction]
    reference: Prediction


def fitted(
    method: Method,
    examples: Sequence[Example],
    rule: FormatSection,
    reference_rule: FormatSection,
    *,
    seed: int = 0,
) -> Blend:
    """Fit a learned method.

    Args:
        method: ``learned``, ``learned-per-class`` or ``network``.
        examples: Cases that are not those of the test.
        rule: The predictions' format.
        reference_rule: The references' (see ``can_be_fitted``).
        seed: For the network's first weights; the others need none.

    Returns:
        What is to be used. A column that no example has in its predictions and its reference is not in it.

    Raises:
        ValueError: There is no frame to learn from, or shapes differ.
    """
    pairs = _pairs(examples, rule, reference_rule)
    if not pairs or not all(map(_has_frame, pairs.values())):
        raise ValueError("there is no frame to learn from")
    if method is Method.NETWORK:
        return Blend(method=method, networks={name: _network(found, rule, seed) for name, found in pairs.items()})
    low, _ = range_of(rule)
    weights = {}
    for name, found in pairs.items():
        first, *others = (Errors.of(stack, truth, lowest=low) for stack, truth in found)
        errors = sum(others, first)
        per_class = method is Method.LEARNED_PER_CLASS
        weights[name] = errors.class_weights() if per_class else errors.member_weights()
    return Blend(method=method, weights=weights)


_Pairs = Mapping[str, list[tuple[Values, Values]]]


def _pairs(examples: Sequence[Example], rule: FormatSection, reference_rule: FormatSection) -> _Pairs:
    """By column, stack and truth of every example that has both."""
    found: dict[str, list[tuple[Values, Values]]] = {}
    for example in examples:
        stacks = stacked(example.predictions, rule)
        for name, truth in truths(example.reference, rule, reference_rule).items():
            if name in stacks:
                found.setdefault(name, []).append((stacks[name], truth))
    return found


def _has_frame(found: list[tuple[Values, Values]]) -> bool:
    """Whether the truth of any frame is known."""
    return any(not np.isnan(truth).any(axis=1).all() for _, truth in found)


def _together(found: list[tuple[Values, Values]]) -> tuple[Values, Values]:
    stack = np.concatenate([one for one, _ in found], axis=1)
    truth = np.concatenate([one for _, one in found])
    known = ~np.isnan(truth).any(axis=1)
    return stack[:, known], truth[known]


def _network(found: list[tuple[Values, Values]], rule: FormatSection, seed: int) -> Network:
    low, high = range_of(rule)
    stack, truth = _together(found)
    return train(stack, (truth - low) / (high - low), np.random.default_rng(seed))
