"""The parent's side of scoring: the organisers' code runs in a confined child, and its answer is checked."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace

from pydantic import TypeAdapter, ValidationError

from runner.catalog import LoadedChallenge
from runner.challenge import MissingCase
from runner.confine import Confine, ConfinedFailure, JsonValue, Privileges, Reply
from runner.confine.strict_json import parse_strictly
from runner.confine.wire import pack
from runner.errors import ConfigError, HostFault, ScorerFault
from runner.formats.contract import LabelImages, Prediction
from runner.formats.image_stream import fed
from runner.formats.packed import packed
from runner.formats.readers.file_bytes import in_memory
from runner.scoring.child import DETAILS, DETAILS_BOUNDS, MOST_DETAILS
from runner.scoring.container import metrics_of
from runner.scoring.contract import CaseScore, Metric, aggregate
from runner.scoring.loading import scorer_place

SCORE_DEADLINE = 300.0
"""Seconds the organisers' code may take for one case, or for the figures over all."""

IMAGE_SECONDS = 0.5
"""Seconds more for each label image, which is read meanwhile."""

SCORE_MEMORY = 8 << 30
"""Bytes it may use."""

_REMEDY = "mend the scorer and run proctor score again; nothing has to run anew"
_METRICS = TypeAdapter(tuple[Metric, ...])
_VALUES = TypeAdapter(dict[str, float | None])


@dataclass(frozen=True, kw_only=True)
class Described:
    """What a scorer says of itself.

    Attributes:
        metrics: Every number it answers, in the order of the tables.
        aggregates: Its figures over cases are its own, not the means of the cases' figures.
    """

    metrics: tuple[Metric, ...]
    aggregates: bool


def describe_scorer(confine: Confine, loaded: LoadedChallenge, task_name: str) -> Described:
    """Ask a task's scorer what it measures, and check that challenge.yaml agrees with it.

    Ask once and keep the answer: each call costs a child that loads the organisers' code.

    Raises:
        ScorerFault: The scorer cannot be loaded, or is none.
        ConfigError: challenge.yaml ranks by what the scorer does not measure.
    """
    image = loaded.challenge.tasks[task_name].scorer_image
    if image is not None:
        return Described(metrics=metrics_of(image), aggregates=False)
    reply = _call(confine, loaded, task_name, "describe")
    try:
        metrics = _METRICS.validate_python(reply.header.get("metrics"))
    except ValidationError as error:
        raise _malformed("its metrics", loaded, task_name) from error
    _check_primary(loaded, task_name, metrics)
    return Described(metrics=metrics, aggregates=reply.header.get("aggregates") is True)


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
    confine: Confine,
    loaded: LoadedChallenge,
    task_name: str,
    reference: Prediction,
    prediction: Prediction,
    *,
    frames: int = 0,
) -> CaseScore:
    """Score one case with the task's scorer.

    Args:
        confine: Where children come from.
        loaded: The challenge.
        task_name: Name of one of its tasks.
        reference: What is true.
        prediction: What the submission says; label images of either are read meanwhile, one after the other.
        frames: How many the case has.

    Raises:
        ScorerFault: The scorer failed: the last line of its traceback, with file and line.
        HostFault: No child could be started, or an image could not be read.
    """
    sides = (reference, prediction)
    counts = [side.frames if isinstance(side, LabelImages) else None for side in sides]
    with ExitStack() as stack:
        reply = _call(
            confine,
            loaded,
            task_name,
            "score",
            request={"images": list[JsonValue](counts), "primary": loaded.challenge.tasks[task_name].primary.metric},
            descriptors=[stack.enter_context(_handed(side)) for side in sides],
            deadline=SCORE_DEADLINE + IMAGE_SECONDS * sum(count or 0 for count in counts),
            array_bytes=MOST_DETAILS,
        )
    return replace(_score_of(reply, loaded, task_name), frames=frames)


@contextmanager
def _handed(prediction: Prediction) -> Iterator[int]:
    """A descriptor by which a prediction passes, so that the fork server never sees it."""
    handed = fed(prediction) if isinstance(prediction, LabelImages) else in_memory(pack(packed(prediction)))
    with handed as descriptor:
        yield descriptor


def _score_of(reply: Reply, loaded: LoadedChallenge, task_name: str) -> CaseScore:
    try:
        return CaseScore(
            values=_VALUES.validate_python(reply.header.get("values"), strict=True), details=_details(reply)
        )
    except ValueError as error:
        raise _malformed("its scores", loaded, task_name) from error


def _details(reply: Reply) -> JsonValue:
    if DETAILS not in reply.arrays:
        return None
    return parse_strictly(reply.arrays[DETAILS].tobytes().decode("ascii"), DETAILS_BOUNDS)


def aggregate_cases(
    confine: Confine, loaded: LoadedChallenge, task_name: str, scores: Sequence[CaseScore]
) -> Mapping[str, float | None]:
    """The figures over cases: the scorer's own where it has an ``aggregate``, else the means, as in a container.

    Args:
        confine: Where children come from.
        loaded: The challenge.
        task_name: Name of one of its tasks.
        scores: In the order of the data; a case without a valid prediction has the values that stand for it, and no
            details.

    Raises:
        ScorerFault: The scorer failed.
        HostFault: No child could be started.
        ValueError: There is no case.
    """
    means = {name: over.mean for name, over in aggregate(scores).items()}
    if loaded.challenge.tasks[task_name].scorer_image is not None:
        return means
    with in_memory(json.dumps([asdict(score) for score in scores], allow_nan=False).encode()) as descriptor:
        reply = _call(confine, loaded, task_name, "aggregate", descriptors=[descriptor])
    if reply.header.get("aggregates") is False:
        return means
    return _score_of(reply, loaded, task_name).values


def _call(
    confine: Confine,
    loaded: LoadedChallenge,
    task_name: str,
    function: str,
    *,
    request: Mapping[str, JsonValue] | None = None,
    descriptors: Sequence[int] = (),
    deadline: float | None = None,
    array_bytes: int = 0,
) -> Reply:
    task, where = loaded.challenge.tasks[task_name], _where(loaded, task_name)
    try:
        reply = confine.call(
            f"runner.scoring.child.{function}",
            {
                "folder": str(loaded.folder.resolve()),
                "challenge": loaded.challenge.name,
                "scorer": task.scorer,
                "options": dict[str, JsonValue](task.options),
                "where": where,
                **(request or {}),
            },
            descriptors=descriptors,
            deadline=SCORE_DEADLINE if deadline is None else deadline,
            memory=SCORE_MEMORY,
            privileges=Privileges.KEEP,
            array_bytes=array_bytes,
        )
    except ConfinedFailure as failure:
        what = f"the scorer of task {task_name!r} did not answer: {failure.detail}"
        raise ScorerFault(what, where=where, remedy=_REMEDY) from failure
    if "broken" in reply.header:
        raise HostFault("label images did not reach the scorer whole", remedy="is the host out of memory?")
    if "fault" in reply.header:
        raise ScorerFault(str(reply.header["fault"]), where=str(reply.header.get("where")), remedy=_REMEDY)
    return reply


def _malformed(which: str, loaded: LoadedChallenge, task_name: str) -> ScorerFault:
    """To be raised."""
    return ScorerFault(f"{which} are malformed", where=_where(loaded, task_name), remedy=_REMEDY)


def _where(loaded: LoadedChallenge, task_name: str) -> str:
    return scorer_place(loaded.folder, loaded.challenge.name, loaded.challenge.tasks[task_name].scorer)
