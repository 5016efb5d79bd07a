"""Finds a challenge's scorer and checks it before it is used; runs in a confined child only."""

import importlib.util
import inspect
import math
import sys
from pathlib import Path
from typing import cast

from runner.scoring.contract import Metric, Scorer

SCORER_FILE = "scorer.py"


class BadScorerError(Exception):
    """A scorer is missing or is none; names the culprit.

    Args:
        what: What is wrong.
        where: File, and line where there is one.
    """

    def __init__(self, what: str, *, where: str) -> None:
        super().__init__(what)
        self.what = what
        self.where = where


def load_scorer(folder: Path, challenge: str, scorer: str) -> Scorer:
    """Load ``<challenge>.<attribute>`` from the ``scorer.py`` beside challenge.yaml.

    Raises:
        BadScorerError: There is none, or it lacks what a scorer must have.
    """
    owner, _, attribute = scorer.rpartition(".")
    path = folder / SCORER_FILE
    if owner != challenge or not attribute.isidentifier():
        what = f"the scorer {scorer!r} must be {challenge!r}, a dot, and a name from {SCORER_FILE}"
        raise BadScorerError(what, where=str(folder / "challenge.yaml"))
    if not path.is_file():
        raise BadScorerError(f"there is no {SCORER_FILE} beside challenge.yaml", where=str(folder))
    module = _import(path)
    found = getattr(module, attribute, None)
    if found is None:
        raise BadScorerError(f"{SCORER_FILE} has no {attribute!r}", where=str(path))
    _check(found, attribute, path)
    return cast("Scorer", found)


def _import(path: Path) -> object:
    name = f"proctor_scorer_{path.parent.name}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.append(str(path.parent))  # so that a scorer may be spread over several files
    spec.loader.exec_module(module)
    return module


def _check(found: object, name: str, path: Path) -> None:
    for fault in (_metrics_fault(found), _signature_fault(found)):
        if fault:
            raise BadScorerError(f"{name!r} is no scorer: {fault}", where=str(path))


def _metrics_fault(found: object) -> str:
    metrics = getattr(found, "metrics", None)
    if not isinstance(metrics, (list, tuple)) or not metrics:
        return "its attribute 'metrics' must be a tuple of Metric, and not empty"
    strangers = [metric for metric in metrics if not isinstance(metric, Metric)]
    if strangers:
        return f"'metrics' holds {strangers[0]!r}, which is no Metric"
    names = [metric.name for metric in metrics]
    if len(set(names)) != len(names):
        return f"'metrics' names one twice: {', '.join(names)}"
    stated = [value for metric in metrics for value in (metric.worst, metric.chance) if value is not None]
    return "" if all(map(math.isfinite, stated)) else "a worst or chance value of 'metrics' is not finite"


def _signature_fault(found: object) -> str:
    method = getattr(found, "score_case", None)
    wanted = "score_case(reference, prediction)"
    if isinstance(found, type) or not callable(method):
        return f"it must be an object with a method {wanted}"
    try:
        signature = inspect.signature(method)
        signature.bind(object(), object())
    except (TypeError, ValueError):
        return f"its method must be {wanted}, but is score_case{inspect.signature(method)}"
    return ""
