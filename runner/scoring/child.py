"""The child's side of scoring: loads the organisers' code, runs it, and reports what it did wrong as a value."""

import json
import math
import os
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from runner.confine import JsonValue, Reply
from runner.confine.strict_json import JsonBounds, NotStrictError, parse_strictly
from runner.confine.wire import pack, unpack
from runner.formats.contract import FrameTable, Prediction
from runner.formats.image_stream import BrokenStreamError, ReadTwiceError, arriving
from runner.formats.packed import packed, unpacked
from runner.scoring.contract import Aggregating, CaseScore, Scorer
from runner.scoring.loading import BadScorerError, aggregates, load_scorer
from runner.scoring.metrics import AveragedOver, edit_score, macro_f1

MOST_DETAILS = 1 << 20
"""Bytes of a case's details, as JSON."""

DETAILS_BOUNDS = JsonBounds(depth=32, values=200_000, digits=32)
DETAILS = "details"

_SIDES = ("reference", "prediction")


def describe(request: Mapping[str, JsonValue], _descriptors: Sequence[int]) -> Reply:
    """Load a scorer and say what it measures."""

    def described(scorer: Scorer) -> Reply:
        metrics: list[JsonValue] = [asdict(metric) for metric in scorer.metrics]
        return Reply(header={"metrics": metrics, "aggregates": aggregates(scorer)})

    return _reported(request, described)


def score(request: Mapping[str, JsonValue], descriptors: Sequence[int]) -> Reply:
    """Score one case: the reference comes in the first descriptor, the prediction in the second."""
    images = request["images"]
    assert isinstance(images, list)
    reference, prediction = map(_received, descriptors, images, _SIDES)

    def scored(scorer: Scorer) -> Reply:
        found = scorer.score_case(reference, prediction)
        values, details = (found.values, found.details) if isinstance(found, CaseScore) else (found, None)
        checked = _checked(values, scorer, "score_case")
        primary = str(request["primary"])
        if primary in checked and checked[primary] is None and not aggregates(scorer):
            what = (
                f"score_case answers None for {primary!r}, which ranks: only a scorer with an aggregate of its own may"
            )
            raise BadScorerError(what, where="")
        return Reply(header={"values": checked}, arrays={} if details is None else {DETAILS: _text_of(details)})

    return _reported(request, scored)


def aggregate(request: Mapping[str, JsonValue], descriptors: Sequence[int]) -> Reply:
    """The scorer's own figures over cases; none where it has none."""
    cases = [CaseScore(**case) for case in json.loads(_content(descriptors[0]))]

    def aggregated(scorer: Scorer) -> Reply:
        if not aggregates(scorer):
            return Reply(header={"aggregates": False})
        own: Aggregating = scorer  # type: ignore[assignment]  # just asked
        return Reply(header={"values": _checked(own.aggregate(cases), scorer, "aggregate")})

    return _reported(request, aggregated)


def _received(descriptor: int, images: JsonValue, side: str) -> Prediction:
    if isinstance(images, int):
        return arriving(descriptor, frames=images, side=side)
    reply = unpack(_content(descriptor))
    return unpacked(reply.header, reply.arrays)


def _content(descriptor: int) -> bytes:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)


def _checked(values: object, scorer: Scorer, method: str) -> dict[str, JsonValue]:
    names = [metric.name for metric in scorer.metrics]
    if not isinstance(values, Mapping) or set(values) != set(names):
        given = ", ".join(map(str, values)) if isinstance(values, Mapping) else type(values).__name__
        raise BadScorerError(f"{method} must answer {', '.join(names)}, but answers {given}", where="")
    return {name: _number(values[name], name, method) for name in names}


def _number(given: object, name: str, method: str) -> float | None:
    if given is None:
        return None
    try:
        value = float(given)  # type: ignore[arg-type]  # what else it may be is seen here
    except (TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value):
        raise BadScorerError(f"{method} answers {given!r} for {name!r}", where="")
    return value


def _text_of(details: JsonValue) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    try:
        text = json.dumps(details, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadScorerError(f"the details of score_case are no plain JSON values: {error}", where="") from error
    if len(text) > MOST_DETAILS:
        what = f"the details of score_case take {len(text)} bytes as JSON; at most {MOST_DETAILS} are kept"
        raise BadScorerError(what, where="")
    try:
        parse_strictly(text, DETAILS_BOUNDS)
    except NotStrictError as error:
        what = (
            f"the details of score_case are more than {DETAILS_BOUNDS.values} values, deeper than "
            f"{DETAILS_BOUNDS.depth}, or hold a number of more than {DETAILS_BOUNDS.digits} digits"
        )
        raise BadScorerError(what, where="") from error
    return np.frombuffer(text.encode("ascii"), np.uint8)


def _reported(request: Mapping[str, JsonValue], use: Callable[[Scorer], Reply]) -> Reply:
    folder, options = Path(str(request["folder"])), request["options"]
    assert isinstance(options, dict)
    try:
        return use(load_scorer(folder, str(request["challenge"]), str(request["scorer"]), options))
    except MemoryError:
        raise
    except BrokenStreamError:
        return Reply(header={"broken": True})
    except BadScorerError as error:
        return _fault(error.what, error.where or str(request["where"]))
    except ReadTwiceError as error:
        return _fault(str(error), _place(error, folder))
    except BaseException as error:  # noqa: BLE001  the organisers' code may raise anything, SystemExit too
        return _fault(traceback.format_exception_only(error)[-1].strip(), _place(error, folder))


def _fault(what: str, where: str) -> Reply:
    return Reply(header={"fault": what[:500], "where": where})


def _place(error: BaseException, folder: Path) -> str:
    """File and line: the deepest one in the challenge's folder, else the deepest."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).parent == folder] or frames
    return f"{own[-1].filename}:{own[-1].lineno}"


def warm_up() -> None:
    """Use what most scorers use once; for the fork server."""
    labels = np.arange(3, dtype=np.int64)
    kept = labels[~np.isin(labels, np.setdiff1d(labels, labels[:2]))]
    macro_f1(kept, kept, labels=(0, 1), averaged_over=AveragedOver.REFERENCE)
    edit_score(kept, kept)
    reply = unpack(pack(packed(FrameTable(columns={"labels": labels}))))
    unpacked(reply.header, reply.arrays)
