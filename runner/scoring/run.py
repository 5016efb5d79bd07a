"""The parent's side of scoring: the organisers' code runs in a confined child, and its answer is checked."""

import os
from collections.abc import Mapping
from typing import BinaryIO

from pydantic import TypeAdapter, ValidationError

from runner.catalog import LoadedChallenge
from runner.challenge import MissingCase, Task
from runner.confine import Confine, ConfinedFailure, JsonValue, Privileges, Reply
from runner.confine.wire import pack
from runner.errors import ConfigError, ScorerFault
from runner.formats.contract import FrameTable
from runner.scoring.contract import CaseScore, Metric

SCORE_DEADLINE = 300.0
"""Seconds the organisers' code may take for one case."""

SCORE_MEMORY = 8 << 30
"""Bytes it may use."""

_REMEDY = "mend the scorer and run proctor score again; nothing has to run anew"
_METRICS = TypeAdapter(tuple[Metric, ...])
_VALUES = TypeAdapter(dict[str, float])


def describe_scorer(confine: Confine, loaded: LoadedChallenge, task: str) -> tuple[Metric, ...]:
    """Ask a task's scorer what it measures, and check that challenge.yaml agrees with it.

    Ask once and keep the answer: each call costs a child that loads the organisers' code.

    Raises:
        ScorerFault: The scorer cannot be loaded, or is none.
        ConfigError: challenge.yaml ranks by what the scorer does not measure.
    """
    reply = _call(confine, loaded, task, "describe")
    try:
        metrics = _METRICS.validate_python(reply.header.get("metrics"))
    except ValidationError as error:
        raise ScorerFault("its description is malformed", where=_where(loaded), remedy=_REMEDY) from error
    _check_primary(loaded, task, metrics)
    return metrics


def _check_primary(loaded: LoadedChallenge, name: str, metrics: tuple[Metric, ...]) -> None:
    task = loaded.challenge.tasks[name]
    where = f"{loaded.folder / 'challenge.yaml'}: tasks.{name}"
    by_name = {metric.name: metric for metric in metrics}
    primary = by_name.get(task.primary.metric)
    if primary is None:
        what = f"primary.metric is {task.primary.metric!r}, which the scorer does not measure"
        raise ConfigError(what, where=where, remedy=f"it measures {', '.join(by_name)}")
    if primary.higher_is_better != task.primary.higher_is_better:
        what = f"primary.higher_is_better contradicts the scorer's {primary.name!r}"
        raise ConfigError(what, where=where, remedy="change the one that is wrong")
    if task.missing_case is MissingCase.CHANCE and primary.chance is None:
        what = f"missing_case is 'chance', but the scorer states no chance value for {primary.name!r}"
        raise ConfigError(what, where=where, remedy="state one in scorer.py, or choose another policy")


def score_case(
    confine: Confine, loaded: LoadedChallenge, task: str, reference: FrameTable, prediction: FrameTable
) -> CaseScore:
    """Score one case with the task's scorer.

    Args:
        confine: Where children come from.
        loaded: The challenge.
        task: Name of one of its tasks.
        reference: Labels of the reference.
        prediction: Labels of the submission, of the same number of frames.

    Raises:
        ScorerFault: The scorer failed: the last line of its traceback, with file and line.
        HostFault: No child could be started.
    """
    with _packed({"reference": reference, "prediction": prediction}) as tables:
        reply = _call(confine, loaded, task, "score", tables)
    try:
        return CaseScore(values=_VALUES.validate_python(reply.header.get("values"), strict=True))
    except ValueError as error:
        raise ScorerFault("its scores are malformed", where=_where(loaded), remedy=_REMEDY) from error


def _packed(tables: Mapping[str, FrameTable]) -> BinaryIO:
    """Tables in an anonymous file, so that they pass by descriptor and the fork server never sees them."""
    arrays = {f"{role}/{name}": column for role, table in tables.items() for name, column in table.columns.items()}
    file = os.fdopen(os.memfd_create("tables", os.MFD_CLOEXEC), "w+b")
    file.write(pack(Reply(header={}, arrays=arrays)))
    file.flush()
    return file


def _call(confine: Confine, loaded: LoadedChallenge, task: str, function: str, tables: BinaryIO | None = None) -> Reply:
    request: dict[str, JsonValue] = {
        "folder": str(loaded.folder.resolve()),
        "challenge": loaded.challenge.name,
        "scorer": _task(loaded, task).scorer,
    }
    try:
        reply = confine.call(
            f"runner.scoring.child.{function}",
            request,
            descriptors=[] if tables is None else [tables.fileno()],
            deadline=SCORE_DEADLINE,
            memory=SCORE_MEMORY,
            privileges=Privileges.KEEP,
        )
    except ConfinedFailure as failure:
        what = f"the scorer of task {task!r} did not answer: {failure.detail}"
        raise ScorerFault(what, where=_where(loaded), remedy=_REMEDY) from failure
    if "fault" in reply.header:
        where = str(reply.header.get("where"))
        raise ScorerFault(str(reply.header["fault"]), where=where, remedy=_REMEDY)
    return reply


def _task(loaded: LoadedChallenge, name: str) -> Task:
    return loaded.challenge.tasks[name]


def _where(loaded: LoadedChallenge) -> str:
    return str(loaded.folder / "scorer.py")
