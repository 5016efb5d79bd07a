"""Which step of a run a file belongs to, what depends on that step, and what to do where it is doubtful. Pure."""

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple


class Step(StrEnum):
    """A step of a run, in the order they come; the last three are no steps, and nothing of a run depends on them."""

    SETTINGS = "settings"
    CHALLENGE = "challenge"
    DATA = "data"
    IMAGE = "image"
    PREFLIGHT = "preflight"
    ATTEMPTS = "attempts"
    PREDICTIONS = "predictions"
    OUTCOMES = "outcomes"
    CAUSALITY = "causality"
    SCORES = "scores"
    LEADERBOARD = "leaderboard"
    ENSEMBLES = "ensembles"
    REPORT = "report"
    OTHER = "other"
    PURGE = "purge"
    RECEIPT = "receipt"


_FEEDS: Mapping[Step, tuple[Step, ...]] = {
    Step.SETTINGS: (Step.ATTEMPTS, Step.OUTCOMES, Step.CAUSALITY, Step.SCORES),
    Step.CHALLENGE: (Step.PREFLIGHT, Step.ATTEMPTS, Step.OUTCOMES, Step.CAUSALITY, Step.SCORES),
    Step.DATA: (Step.ATTEMPTS, Step.OUTCOMES, Step.CAUSALITY, Step.SCORES),
    Step.IMAGE: (Step.PREFLIGHT, Step.ATTEMPTS),
    Step.PREFLIGHT: (Step.OUTCOMES,),
    Step.ATTEMPTS: (Step.PREDICTIONS, Step.OUTCOMES, Step.CAUSALITY),
    Step.PREDICTIONS: (Step.OUTCOMES, Step.CAUSALITY, Step.SCORES, Step.ENSEMBLES),
    Step.OUTCOMES: (Step.CAUSALITY, Step.SCORES, Step.LEADERBOARD, Step.ENSEMBLES),
    Step.CAUSALITY: (Step.LEADERBOARD,),
    Step.SCORES: (Step.LEADERBOARD,),
    Step.LEADERBOARD: (Step.REPORT,),
}
"""What each step is read by; a step that is missing here is read by none."""

_NO_STEPS = (Step.OTHER, Step.PURGE, Step.RECEIPT)


class About(NamedTuple):
    """What a step holds, as the subject of a sentence, and what to do where it is doubtful."""

    holds: str
    remedy: str


_BACK = "put it back from a copy"
_AGAIN = "write it anew: proctor report RUN"
ABOUT: Mapping[Step, About] = {
    Step.SETTINGS: About("what the run was told to do", f"{_BACK}; without one, evaluate again with another --out"),
    Step.CHALLENGE: About("the challenge's rules and scorer", f"{_BACK}; without one, evaluate again"),
    Step.DATA: About("what the methods were shown and compared with", "put the data back, or evaluate again"),
    Step.IMAGE: About(
        "which image was run", f"{_BACK}; without one, delete the submission's folder, then: proctor resume RUN"
    ),
    Step.PREFLIGHT: About("what was found in the image", f"{_BACK}, or delete it, then: proctor resume RUN"),
    Step.ATTEMPTS: About(
        "what was run and what came of it",
        f"{_BACK}; without one, delete that case's folder, then: proctor resume RUN",
    ),
    Step.PREDICTIONS: About(
        "what the method answered", f"{_BACK}; without one, delete that case's folder, then: proctor resume RUN"
    ),
    Step.OUTCOMES: About("the verdict on that case", f"{_BACK}, or delete it, then: proctor resume RUN"),
    Step.CAUSALITY: About(
        "what was found of the method's causality", f"{_BACK}, or delete it, then: proctor resume RUN"
    ),
    Step.SCORES: About("what the predictions were worth", "write them anew: proctor score RUN"),
    Step.LEADERBOARD: About("the ranking", _AGAIN),
    Step.ENSEMBLES: About("what ensembles of the methods reached", "make them anew: proctor ensemble RUN"),
    Step.REPORT: About("the report", _AGAIN),
    Step.OTHER: About("a file that proctor did not write", "move it out of the run folder, or put it back as it was"),
    Step.PURGE: About("which of the missing files were deleted on purpose", f"{_BACK}: purged.json"),
    Step.RECEIPT: About(
        "everything that the receipt says",
        "put receipt.json back from a copy; without one, nothing shows whether this run is as it was",
    ),
}

_FOLDERS = {"private": Step.SETTINGS, "challenge": Step.CHALLENGE}
_TOP = {
    "run.json": Step.SETTINGS, "scores.csv": Step.SCORES, "latency.csv": Step.SCORES,
    "leaderboard.csv": Step.LEADERBOARD, "leaderboard.json": Step.LEADERBOARD,
    "ensembles.csv": Step.ENSEMBLES, "ensembles.json": Step.ENSEMBLES,
}  # fmt: skip
_BELOW_SUBMISSION = {"image.json": Step.IMAGE, "preflight.json": Step.PREFLIGHT}
_BELOW_TASK = {"causality.json": Step.CAUSALITY, "scores.container.json": Step.SCORES}
_ATTEMPT = re.compile(r"attempt-[0-9]+")


def step_of(path: str) -> Step:
    """The step that a file belongs to.

    Args:
        path: Below the run folder, with ``/`` between its parts.

    Returns:
        The step; ``other`` where proctor writes no such file.
    """
    parts = path.split("/")
    if parts[0] == "submissions":
        return _step_of_submission(parts)
    if len(parts) > 1:
        return _FOLDERS.get(parts[0], Step.OTHER)
    return Step.REPORT if path.startswith("report.") else _TOP.get(path, Step.OTHER)


def _step_of_submission(parts: Sequence[str]) -> Step:
    match parts:
        case [_, _, name]:
            return _BELOW_SUBMISSION.get(name, Step.OTHER)
        case [_, _, _, name]:
            return _BELOW_TASK.get(name, Step.OTHER)
        case [_, _, _, _, "outcome.json"]:
            return Step.OUTCOMES
        case [_, _, _, _, _, attempt, *rest] if rest and _ATTEMPT.fullmatch(attempt):
            return Step.PREDICTIONS if rest[0] == "predictions" and len(rest) > 1 else Step.ATTEMPTS
        case _:
            return Step.OTHER


def dependents_of(step: Step) -> tuple[Step, ...]:
    """All steps that depend on a step, on whatever way, in their order; on the receipt hangs every one."""
    if step is Step.RECEIPT:
        return tuple(one for one in Step if one not in _NO_STEPS)
    reached: set[Step] = set()
    open_ends: list[Step] = [step]
    while open_ends:
        for fed in _FEEDS.get(open_ends.pop(), ()):
            if fed not in reached:
                reached.add(fed)
                open_ends.append(fed)
    return tuple(one for one in Step if one in reached)


def doubt_in_words(step: Step) -> str:
    """What is doubtful where something of a step is, and what depends on it: the rest of a sentence."""
    names = [one.value for one in dependents_of(step)]
    head = f"{ABOUT[step].holds} (step {step.value}) is doubtful"
    if not names:
        return f"{head}, and no other step depends on it"
    listed = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
    return f"{head}, and with it {listed}"
