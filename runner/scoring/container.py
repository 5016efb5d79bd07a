"""What a scorer in a container is to write, and the reader that holds its file against that.

``scores.json`` is ``{"cases": {<case>: {<metric>: <number or null>}}}``: every case that was shown and no other, each
with every metric of challenge.yaml and no other. It was written beside a participant's files, so it is read as one.
"""

from collections.abc import Collection, Mapping
from enum import StrEnum
from pathlib import Path

from runner.challenge import ScorerImage
from runner.confine import Confine, JsonValue
from runner.formats.contract import Answer, Reading
from runner.formats.readers import json_text
from runner.formats.readers.json_faults import JsonCaps, Top
from runner.formats.readers.opened import read_file
from runner.formats.readers.problems import ProblemList
from runner.scoring.contract import CaseScore, Metric

SCORES_FILE = "scores.json"

_CASES = "cases"
_LARGEST = 10**300
_VALUE_BYTES = 80
_STRANGERS = 1000
"""Values that are not due, and are read all the same, so that what is wrong can be told."""


class Fault(StrEnum):
    """Every sentence about scores, but for those about the text they stand in."""

    TOP = 'the file must be an object with the one name "cases", which is an object'
    NO_CASE = "case {case} is missing"
    STRANGER = "there is a case that was not shown"
    NO_OBJECT = "case {case} is no object of metrics"
    NO_METRIC = "case {case} lacks the metric {metric}"
    OTHER_METRIC = "case {case} has a metric that challenge.yaml does not name"
    NO_NUMBER = "case {case}: {metric} is neither a number nor null"
    NO_PRIMARY = "case {case}: {metric} is null, and it ranks"


def metrics_of(rule: ScorerImage) -> tuple[Metric, ...]:
    """What a scorer in a container measures, as challenge.yaml says it."""
    return tuple(
        Metric(name=name, title=one.title, worst=one.worst, chance=one.chance, higher_is_better=one.higher_is_better)
        for name, one in rule.metrics.items()
    )


def scores_of(reading: Reading) -> Mapping[str, CaseScore]:
    """The scores by case, of a reading without a problem."""
    assert isinstance(reading.prediction, Answer)
    found: dict[str, CaseScore] = {}
    for case, values in reading.prediction.fields.items():
        assert isinstance(values, dict)
        found[case] = CaseScore(values={name: _number(value) for name, value in values.items()})
    return found


def _number(value: JsonValue) -> float | None:
    assert value is None or isinstance(value, (int, float))
    return None if value is None else float(value)


def read_scores(confine: Confine, path: Path, *, rule: ScorerImage, primary: str, cases: Collection[str]) -> Reading:
    """Read what a scorer's container left; its text in a child that can do nothing else.

    Args:
        confine: Where children come from.
        path: The file.
        rule: Says which metrics are due.
        primary: The metric that ranks.
        cases: Those that were shown.

    Raises:
        HostFault: No child could be started.
    """
    values = 2 * (2 + len(cases) * (1 + len(rule.metrics))) + _STRANGERS
    names = 2 * 6 * sum(map(len, (*cases, *(name for name in rule.metrics for _ in cases))))
    caps = JsonCaps(size=values * _VALUE_BYTES + names, values=values)

    def read(descriptor: int) -> Reading:
        problems = ProblemList()
        found = json_text.confined_json(confine, descriptor, caps=caps, top=Top.OBJECT, problems=problems)
        if problems.count:
            return Reading(prediction=None, problems=tuple(problems.kept), problem_count=problems.count)
        return check_scores(found, metrics=tuple(rule.metrics), primary=primary, cases=cases)

    return read_file(path, read)


def check_scores(found: JsonValue, *, metrics: Collection[str], primary: str, cases: Collection[str]) -> Reading:
    """Hold the value of the file against what is due; pure.

    Args:
        found: Every number in it is finite.
        metrics: Names of what is due for each case.
        primary: The one of them that ranks.
        cases: Those that are due.

    Returns:
        The cases as the fields of an answer, in the order of ``cases``; or every problem.
    """
    problems = ProblemList()
    given = found.get(_CASES) if isinstance(found, dict) and set(found) == {_CASES} else None
    if not isinstance(given, dict):
        problems.add(Fault.TOP)
        return Reading(prediction=None, problems=tuple(problems.kept), problem_count=problems.count)
    for name in given:
        if name not in cases:
            problems.add(Fault.STRANGER, value=name)
    for case in cases:
        if case in given:
            _check_case(case, given[case], metrics, primary, problems)
        else:
            problems.add(Fault.NO_CASE.format(case=repr(case)))
    answer = None if problems.count else Answer(fields={case: given[case] for case in cases})
    return Reading(prediction=answer, problems=tuple(problems.kept), problem_count=problems.count)


def _check_case(case: str, values: JsonValue, metrics: Collection[str], primary: str, problems: ProblemList) -> None:
    if not isinstance(values, dict):
        problems.add(Fault.NO_OBJECT.format(case=repr(case)))
        return
    for name in values:
        if name not in metrics:
            problems.add(Fault.OTHER_METRIC.format(case=repr(case)), value=name)
    for name in metrics:
        words = {"case": repr(case), "metric": repr(name)}
        if name not in values:
            problems.add(Fault.NO_METRIC.format(**words))
            continue
        value = values[name]
        number = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < _LARGEST
        if not number and value is not None:
            problems.add(Fault.NO_NUMBER.format(**words))
        if value is None and name == primary:
            problems.add(Fault.NO_PRIMARY.format(**words))
