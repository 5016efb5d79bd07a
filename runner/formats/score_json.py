"""Reads the scores of frames from a JSON object that is keyed by frame id; to be called in a confined child."""

import json
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from runner.challenge.formats import FrameScoresFormat
from runner.confine import JsonValue
from runner.formats.contract import Role
from runner.formats.lenience import ScoreLenience
from runner.formats.readers.json_faults import Top
from runner.formats.readers.json_text import read_json
from runner.formats.readers.problems import ProblemList
from runner.formats.score_rule import Fault, check_scores, id_words, json_caps, score_words


def read_json_scores(
    rule: FrameScoresFormat,
    descriptor: int,
    *,
    ids: Sequence[str] | None,
    role: Role,
    problems: ProblemList,
    lenience: ScoreLenience,
) -> NDArray[np.float64]:
    """Read a file of scores.

    Args:
        rule: What it must look like.
        descriptor: The file, open for reading.
        ids: The id of each frame, in order; None where nobody knows: then the frames are those of the file, by number
            or in the order of their sorted names.
        role: A reference may hold further keys.
        problems: What is wrong is added here.
        lenience: How frames without scores, and scores of no frame, are taken; both are counted here.

    Returns:
        Shape ``(frames, classes)``; of no meaning where there is a problem.
    """
    caps = json_caps(rule, None if ids is None else len(ids))
    entries = read_json(descriptor, caps=caps, top=Top.OBJECT, problems=problems)
    if entries == {} and ids is None:
        problems.add(Fault.NO_FRAMES)
    if not isinstance(entries, dict):
        return np.empty((0, rule.classes))
    known = _ids_of(rule, entries) if ids is None else ids
    found = _match(rule, known, entries, problems, lenience)
    if not found and not problems.count and lenience.fill is not None:
        problems.add(Fault.NO_FRAMES)
    return _Reader(rule, len(known), role, problems, lenience).read(found)


def _ids_of(rule: FrameScoresFormat, entries: Mapping[str, JsonValue]) -> Sequence[str]:
    if rule.frame_ids == "number":
        return [str(rule.first + place) for place in range(len(entries))]
    return sorted(entries)


def _match(
    rule: FrameScoresFormat,
    ids: Sequence[str],
    entries: Mapping[str, JsonValue],
    problems: ProblemList,
    lenience: ScoreLenience,
) -> Mapping[int, JsonValue]:
    """What stands there for each frame; an id that is nearly that of a missing frame is taken for it."""
    places = {name: frame for frame, name in enumerate(ids)}
    found = {places[name]: value for name, value in entries.items() if name in places}
    if len(found) == len(entries):
        return found
    loose = {_loosely(name): frame for frame, name in enumerate(ids) if frame not in found}
    for entry, (name, value) in enumerate(entries.items(), 1):
        if name in places:
            continue
        frame = loose.get(_loosely(name))
        if frame is not None and frame not in found:
            found[frame] = value
            what = Fault.NEARLY.format(entry=entry, frame=frame + 1, frames=len(ids), ids=id_words(rule))
            problems.add(what, value=name)
        elif lenience.drops:
            lenience.dropped += 1
        else:
            problems.add(Fault.STRANGER.format(entry=entry, frames=len(ids), ids=id_words(rule)), value=name)
    return found


def _loosely(name: str) -> str:
    """An id without what people write now so and now so: folders, extension, leading zeros, spaces, case."""
    last = name.replace("\\", "/").rpartition("/")[2].strip().lower()
    return (last.rpartition(".")[0] or last).lstrip("0")


class _Reader:
    """Reads what stands there for each frame, and says what is wrong with it."""

    def __init__(
        self, rule: FrameScoresFormat, frames: int, role: Role, problems: ProblemList, lenience: ScoreLenience
    ) -> None:
        self._rule = rule
        self._frames = frames
        self._strict = role is Role.PREDICTION and rule.extra_keys == "refuse"
        self._problems = problems
        self._lenience = lenience
        self._words = score_words(rule)
        self._where = ""

    def read(self, found: Mapping[int, JsonValue]) -> NDArray[np.float64]:
        scores = np.zeros((self._frames, self._rule.classes))
        missing = 0
        for frame in range(self._frames):
            if frame not in found:
                missing += 1
                scores[frame] = self._lenience.fill or 0.0
                continue
            self._report_missing(frame - missing, missing)
            missing = 0
            self._where = f"frame {frame + 1} of {self._frames}: "
            listed = self._list(found[frame])
            if listed is not None:
                scores[frame] = listed
                check_scores(self._rule, scores[frame], self._where, self._problems)
        self._report_missing(self._frames - missing, missing)
        return scores

    def _report_missing(self, first: int, count: int) -> None:
        if self._lenience.fill is not None:
            self._lenience.filled += count
        elif count:
            fault = Fault.ONE_MISSING if count == 1 else Fault.SOME_MISSING
            what = fault.format(frame=first + 1, end=first + count, frames=self._frames, count=count)
            self._problems.add(what)

    def _say(self, fault: Fault, *, value: str | None = None, **fields: int) -> None:
        self._problems.add(fault.format(where=self._where, **self._words, **fields), value=value)

    def _list(self, value: JsonValue) -> NDArray[np.float64] | None:
        """The scores of a frame; None where there is no list of so many numbers."""
        inner = self._inside(value) if self._rule.key else value
        if inner is None and self._rule.key:
            return None
        if not isinstance(inner, list):
            self._say(Fault.NO_LIST)
            return None
        if len(inner) != self._rule.classes:
            fault = Fault.SHORT if len(inner) < self._rule.classes else Fault.LONG
            self._say(fault, value=str(len(inner)))
            return None
        return self._numbers(inner)

    def _inside(self, value: JsonValue) -> JsonValue:
        """What stands under the key; None where nothing does, which has been said."""
        key = self._rule.key
        if not isinstance(value, dict):
            self._say(Fault.NO_OBJECT)
            return None
        for name in value:
            if name != key and self._strict:
                self._say(Fault.EXTRA_KEY, value=name)
        if key not in value:
            self._say(Fault.NO_KEY)
        elif value[key] is None:
            self._say(Fault.NO_LIST)
        return value.get(key)

    def _numbers(self, scores: Sequence[JsonValue]) -> NDArray[np.float64] | None:
        if not {type(score) for score in scores} <= {int, float}:
            wrong = [place for place, score in enumerate(scores) if type(score) not in (int, float)]
            self._say(Fault.NO_NUMBER, count=len(wrong), place=wrong[0], value=json.dumps(scores[wrong[0]])[:100])
            return None
        return np.array(scores, dtype=np.float64)
