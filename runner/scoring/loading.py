"""Finds a task's scorer, makes it with the task's options and checks it; runs in a confined child only."""

import difflib
import importlib.util
import inspect
import math
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import cast

from runner.confine import JsonValue
from runner.scoring.contract import Metric, Scorer

SCORER_FILE = "scorer.py"
GROUP = "proctor.scorers"

_WANTED = "score_case(reference, prediction)"
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


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


def scorer_place(folder: Path, challenge: str, scorer: str) -> str:
    """Where a scorer is to be looked for, for people."""
    beside = scorer.rpartition(".")[0] == challenge
    return str(folder / SCORER_FILE) if beside else f"entry point {scorer!r} of {GROUP}"


def load_scorer(folder: Path, challenge: str, scorer: str, options: Mapping[str, JsonValue]) -> Scorer:
    """Load ``<challenge>.<name>`` from the ``scorer.py`` beside challenge.yaml, or else an installed package's.

    Args:
        folder: The challenge's.
        challenge: Its name.
        scorer: As the task names it.
        options: What the scorer is made with.

    Raises:
        BadScorerError: There is none, or it lacks what a scorer must have, or its options are others.
    """
    owner, _, name = scorer.rpartition(".")
    found = _beside(folder, name) if owner == challenge else _installed(folder, challenge, scorer)
    called = name if owner == challenge else scorer
    made = _made(found, called, options, where=str(folder / "challenge.yaml"))
    for fault in (_metrics_fault(made), _signature_fault(made), _aggregate_fault(made)):
        if fault:
            raise BadScorerError(f"{called!r} is no scorer: {fault}", where=scorer_place(folder, challenge, scorer))
    return cast("Scorer", made)


def aggregates(scorer: Scorer) -> bool:
    """Whether a scorer has figures over cases of its own."""
    return getattr(scorer, "aggregate", None) is not None


def _beside(folder: Path, name: str) -> object:
    path = folder / SCORER_FILE
    if not path.is_file():
        raise BadScorerError(f"there is no {SCORER_FILE} beside challenge.yaml", where=str(folder))
    module = _import(path)
    found = getattr(module, name, None)
    if found is None:
        named = [one for one, value in vars(module).items() if one[0] != "_" and not isinstance(value, ModuleType)]
        raise BadScorerError(f"{SCORER_FILE} has no {name!r}{_guess(name, named)}", where=str(path))
    return found


def _installed(folder: Path, challenge: str, scorer: str) -> object:
    for found in entry_points(group=GROUP, name=scorer):
        loaded: object = found.load()
        return loaded
    known = sorted({found.name for found in entry_points(group=GROUP)})
    what = (
        f"there is no scorer {scorer!r}{_guess(scorer, known)}: it must be {challenge!r}, a dot, and a name from "
        f"{SCORER_FILE}, or the name of an installed one: {', '.join(known) or 'there is none'}"
    )
    raise BadScorerError(what, where=str(folder / "challenge.yaml"))


def _guess(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _import(path: Path) -> ModuleType:
    name = f"proctor_scorer_{path.parent.name}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.append(str(path.parent))  # so that a scorer may be spread over several files
    spec.loader.exec_module(module)
    return module


def _made(found: object, scorer: str, options: Mapping[str, JsonValue], *, where: str) -> object:
    """A class or a function is called with the options; anything else is the scorer itself."""
    if isinstance(found, type) or (callable(found) and not hasattr(found, "score_case")):
        _check_options(found, scorer, options, where=where)
        made: object = found(**options)
        return made
    if options:
        what = f"{scorer!r} is an object and takes no options, but the task has {', '.join(map(repr, options))}"
        raise BadScorerError(what, where=where)
    return found


def _check_options(make: Callable[..., object], scorer: str, options: Mapping[str, JsonValue], *, where: str) -> None:
    try:
        signature = inspect.signature(make)
    except ValueError:
        return  # written in C: nobody can say
    known = {name: one for name, one in signature.parameters.items() if one.kind in _BY_NAME}
    words = f"it has {', '.join(known) or 'none'}"
    any_name = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in signature.parameters.values())
    for name in options:
        if name not in known and not any_name:
            raise BadScorerError(f"{scorer!r} has no option {name!r}{_guess(name, [*known])}: {words}", where=where)
    for name, one in known.items():
        if one.default is one.empty and name not in options:
            raise BadScorerError(f"{scorer!r} needs the option {name!r}: {words}", where=where)
    try:
        signature.bind(**options)
    except TypeError as error:
        raise BadScorerError(f"{scorer!r} cannot be made with options by name: {error}", where=where) from error


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
    if not callable(method):
        return f"it must have a method {_WANTED}"
    return _method_fault("score_case", method, _WANTED, arguments=2)


def _aggregate_fault(found: object) -> str:
    method = getattr(found, "aggregate", None)
    if method is None:
        return ""
    if not callable(method):
        return "its attribute 'aggregate' must be a method aggregate(cases)"
    return _method_fault("aggregate", method, "aggregate(cases)", arguments=1)


def _method_fault(name: str, method: Callable[..., object], wanted: str, *, arguments: int) -> str:
    try:
        signature = inspect.signature(method)
    except ValueError:
        return ""  # written in C: nobody can say
    try:
        signature.bind(*[object()] * arguments)
    except TypeError:
        return f"its method must be {wanted}, but is {name}{signature}"
    return ""
