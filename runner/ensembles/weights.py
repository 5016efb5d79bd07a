"""How much a member weighs: by its score, or by least squares on other data.

Weights are never negative and their sum is 1, so that a blend stays within the range of its members. Then the error
of a blend is the blend of the members' errors, Σ w_m (x_m − y), and its mean square is wᵀ Q w, Q being the members'
mean products of errors. The smallest wᵀ Q w over such w is found by non-negative least squares without any penalty for
the sum: for u = s w, uᵀ Q u + (1ᵀ u − 1)² is least over s at q / (1 + q), q = wᵀ Q w, which rises with q.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky
from scipy.optimize import nnls

Values = NDArray[np.float64]

RIDGE = 1e-3
"""How strongly weights are drawn to equal ones, as a share of the members' mean square error."""


def score_weights(values: Sequence[float], *, worst: float, higher_is_better: bool) -> Values:
    """Weights in proportion to what each member is better than the worst possible value.

    Where the worst value is 0 and higher is better, a member weighs as its score. Where nobody is better than the worst
    value, all weigh the same.

    Args:
        values: A metric's value of each member, on data that are not those of the test.
        worst: The metric's worst value.
        higher_is_better: Its direction.

    Returns:
        Shape ``(members,)``, in [0, 1], with sum 1.
    """
    gains = np.array(values, dtype=np.float64) - worst
    gains = np.maximum(gains if higher_is_better else -gains, 0.0)
    return gains / gains.sum() if gains.sum() > 0 else np.full(len(gains), 1 / len(gains))


@dataclass(frozen=True, kw_only=True)
class Errors:
    """What the members' errors amount to over some frames; two of them can be added.

    Attributes:
        products: Sums over frames of products of errors, shape ``(classes, members, members)``.
        positives: Sums over frames of what is true, above its lowest value, shape ``(classes,)``.
        frames: How many frames.
    """

    products: Values
    positives: Values
    frames: int

    @classmethod
    def of(cls, stack: Values, truth: Values, *, lowest: float) -> "Errors":
        """Of one case.

        Args:
            stack: Shape ``(members, frames, classes)``.
            truth: Shape ``(frames, classes)``; a row of NaN is left out.
            lowest: The value of what is not there.

        Raises:
            ValueError: The shapes differ.
        """
        if stack.shape[1:] != truth.shape:
            raise ValueError(f"predictions of shape {stack.shape[1:]} and references of shape {truth.shape}")
        known = ~np.isnan(truth).any(axis=1)
        errors = stack[:, known] - truth[known]
        return cls(
            products=np.einsum("mfc,nfc->cmn", errors, errors),
            positives=(truth[known] - lowest).sum(axis=0),
            frames=int(known.sum()),
        )

    def __add__(self, other: "Errors") -> "Errors":
        return Errors(
            products=self.products + other.products,
            positives=self.positives + other.positives,
            frames=self.frames + other.frames,
        )

    def member_weights(self, *, ridge: float = RIDGE) -> Values:
        """The weights of least mean square error over all classes, shape ``(members,)``."""
        return _least(self.products.sum(axis=0), ridge)

    def class_weights(self, *, ridge: float = RIDGE) -> Values:
        """As ``member_weights`` for each class, shape ``(members, classes)``.

        A class that is never there says nothing of who finds it: it has the weights over all classes.
        """
        plain = self.member_weights(ridge=ridge)
        columns = [
            _least(products, ridge) if there > 0 else plain
            for products, there in zip(self.products, self.positives.tolist(), strict=True)
        ]
        return np.stack(columns, axis=1)


def _least(products: Values, ridge: float) -> Values:
    """The non-negative weights of sum 1 for which wᵀ (products + ridge) w is least."""
    members = len(products)
    scale = float(np.trace(products)) / members
    if scale <= 0:
        return np.full(members, 1 / members)  # nobody errs
    root = cholesky(products / scale + ridge * np.eye(members))
    found, _ = nnls(np.vstack([root, np.ones(members)]), np.append(np.zeros(members), 1.0))
    return np.asarray(found / found.sum(), dtype=np.float64)
