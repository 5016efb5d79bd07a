"""A network of two layers that sees every member's every class, trained on other data."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

Values = NDArray[np.float64]

HIDDEN = 16
"""Units of the first layer."""

DECAY = 1e-3
"""Weight of the squared weights beside the mean cross-entropy."""

_STEPS = 200


@dataclass(frozen=True, kw_only=True, eq=False)
class Network:
    """``sigmoid(tanh(z A + a) B + b)``, z being the members' values less their means, divided by their deviations.

    Attributes:
        means: Of the inputs, shape ``(members * classes,)``.
        deviations: As ``means``; 1 for an input that never changes.
        first: A, shape ``(members * classes, hidden)``.
        first_bias: a, shape ``(hidden,)``.
        second: B, shape ``(hidden, classes)``.
        second_bias: b, shape ``(classes,)``.
    """

    means: Values
    deviations: Values
    first: Values
    first_bias: Values
    second: Values
    second_bias: Values

    def answer(self, stack: Values) -> Values:
        """Values in (0, 1) of shape ``(frames, classes)`` for a stack of shape ``(members, frames, classes)``."""
        scaled = (_inputs(stack) - self.means) / self.deviations
        hidden = np.tanh(scaled @ self.first + self.first_bias)
        return np.asarray(expit(hidden @ self.second + self.second_bias))


def train(
    stack: Values, truth: Values, rng: np.random.Generator, *, hidden: int = HIDDEN, decay: float = DECAY
) -> Network:
    """Train a network: least mean cross-entropy and decay, by L-BFGS from random weights.

    Args:
        stack: Shape ``(members, frames, classes)``, frames of all cases one after the other.
        truth: In [0, 1], shape ``(frames, classes)``.
        rng: Where the first weights come from; the same state gives the same network on the same machine.
        hidden: Units of the first layer.
        decay: See ``DECAY``.

    Raises:
        ValueError: There is no frame, or the shapes differ.
    """
    inputs = _inputs(stack)
    if not len(inputs) or stack.shape[1:] != truth.shape:
        raise ValueError(f"predictions of shape {stack.shape[1:]} and references of shape {truth.shape}")
    means, deviations = inputs.mean(axis=0), inputs.std(axis=0)
    deviations = np.where(deviations > 1e-9, deviations, 1.0)
    scaled, classes = (inputs - means) / deviations, truth.shape[1]
    shapes = ((inputs.shape[1], hidden), (hidden,), (hidden, classes), (classes,))
    start = [rng.normal(scale=shape[0] ** -0.5, size=shape) if len(shape) == 2 else np.zeros(shape) for shape in shapes]

    def loss(flat: Values) -> tuple[float, Values]:
        return _loss(_split(flat, shapes), scaled, truth, decay)

    found = minimize(loss, _joined(start), jac=True, method="L-BFGS-B", options={"maxiter": _STEPS})
    first, first_bias, second, second_bias = _split(found.x, shapes)
    return Network(
        means=means, deviations=deviations, first=first, first_bias=first_bias, second=second, second_bias=second_bias
    )


def _loss(weights: list[Values], scaled: Values, truth: Values, decay: float) -> tuple[float, Values]:
    """Mean cross-entropy and decay, and their gradient."""
    first, first_bias, second, second_bias = weights
    hidden = np.tanh(scaled @ first + first_bias)
    logits = hidden @ second + second_bias
    value = float((np.logaddexp(0.0, logits) - truth * logits).mean())
    value += decay * float((first**2).sum() + (second**2).sum()) / 2
    back = (expit(logits) - truth) / truth.size
    hidden_back = (back @ second.T) * (1 - hidden**2)
    gradient = [
        scaled.T @ hidden_back + decay * first, hidden_back.sum(axis=0),
        hidden.T @ back + decay * second, back.sum(axis=0),
    ]  # fmt: skip
    return value, _joined(gradient)


def _inputs(stack: Values) -> Values:
    members, frames, classes = stack.shape
    return stack.transpose(1, 0, 2).reshape(frames, members * classes)


def _joined(arrays: list[Values]) -> Values:
    return np.concatenate([array.ravel() for array in arrays])


def _split(flat: Values, shapes: tuple[tuple[int, ...], ...]) -> list[Values]:
    places = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
    return [piece.reshape(shape) for piece, shape in zip(np.split(flat, places), shapes, strict=True)]
