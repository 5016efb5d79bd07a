"""Several submissions' predictions become one; pure."""

from runner.ensembles.blending import Blend, combined
from runner.ensembles.fitting import Example, fitted
from runner.ensembles.method import Method, methods_for
from runner.ensembles.stacks import can_be_fitted
from runner.ensembles.weights import score_weights

__all__ = ["Blend", "Example", "Method", "can_be_fitted", "combined", "fitted", "methods_for", "score_weights"]
