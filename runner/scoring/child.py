"""The child's side of scoring: loads the organisers' code, runs it, and reports what it did wrong as a value."""

import math
import os
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from runner.confine import JsonValue, Reply
from runner.confine.wire import pack, unpack
from runner.formats.contract import FrameTable
from runner.scoring.contract import Scorer
from runner.scoring.loading import BadScorerError, load_scorer
from runner.scoring.metrics import AveragedOver, edit_score, macro_f1


def describe(request: Mapping[str, JsonValue], _descriptors: Sequence[int]) -> Reply:
    """Load a scorer and say what it measures."""
    return _reported(request, lambda scorer: {"metrics": [asdict(metric) for metric in scorer.metrics]})


def score(request: Mapping[str, JsonValue], descriptors: Sequence[int]) -> Reply:
    """Score one case; the tables come packed in the first descriptor."""
    reference, prediction = _read_tables(descriptors[0])

    def scored(scorer: Scorer) -> dict[str, JsonValue]:
        values = scorer.score_case(reference, prediction)
        return {"values": _checked(values, [metric.name for metric in scorer.metrics])}

    return _reported(request, scored)


def _read_tables(descriptor: int) -> tuple[FrameTable, FrameTable]:
    packed = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
    tables: dict[str, dict[str, np.ndarray[tuple[int, ...], np.dtype[np.int64]]]] = {}
    for name, array in unpack(packed).arrays.items():
        role, _, column = name.partition("/")
        tables.setdefault(role, {})[column] = array.astype(np.int64)
    return FrameTable(columns=tables["reference"]), FrameTable(columns=tables["prediction"])


def _checked(values: Mapping[str, float], names: Sequence[str]) -> dict[str, JsonValue]:
    if not isinstance(values, Mapping) or set(values) != set(names):
        given = ", ".join(map(str, values)) if isinstance(values, Mapping) else type(values).__name__
        what = f"score_case must answer {', '.join(names)}, but answers {given}"
        raise BadScorerError(what, where="")
    checked: dict[str, JsonValue] = {}
    for name in names:
        try:
            value = float(values[name])
        except (TypeError, ValueError):
            value = math.nan
        if not math.isfinite(value):
            raise BadScorerError(f"score_case answers {values[name]!r} for {name!r}", where="")
        checked[name] = value
    return checked


def _reported(request: Mapping[str, JsonValue], use: Callable[[Scorer], dict[str, JsonValue]]) -> Reply:
    folder = Path(str(request["folder"]))
    try:
        scorer = load_scorer(folder, str(request["challenge"]), str(request["scorer"]))
        return Reply(header=use(scorer))
    except MemoryError:
        raise
    except BadScorerError as error:
        return _fault(error.what, error.where or str(folder / "scorer.py"))
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
    unpack(pack(Reply(header={}, arrays={"labels": labels})))
