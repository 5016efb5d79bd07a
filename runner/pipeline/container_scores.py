"""The scores that scorers in containers gave, kept on disk beside what they are of. Needs no engine.

A digest says what they are of: the scorer's image, its section of challenge.yaml, and the bytes of every prediction and
reference it was shown. Where one of these is another one, the scores do not fit, and the scorer runs again.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from runner.catalog import LoadedChallenge
from runner.challenge import ScorerImage
from runner.dataset import Case
from runner.errors import UsageError
from runner.judge import CaseOutcome
from runner.pipeline.attempts import kept_prediction
from runner.pipeline.record import RunRecord
from runner.plan import entered_tasks
from runner.provenance import DataHashes
from runner.scoring.contract import CaseScore
from runner.store import RunFolder, read_value
from runner.submissions import Status, Submission

SCORING_CONTRACT = 1
"""Raised only when what a scorer in a container is shown changes; part of every digest."""


@dataclass(frozen=True, kw_only=True)
class ContainerScores:
    """What a scorer's container gave for one submission and task.

    Attributes:
        digest: Hash of all that could change it.
        image: ID of the scorer's image.
        scores: By case: every metric, and None where it is not defined.
    """

    digest: str
    image: str
    scores: Mapping[str, Mapping[str, float | None]]


@dataclass(frozen=True, kw_only=True)
class ToScore:
    """The accepted predictions of a submission in a task that a container scores.

    Attributes:
        submission: Whose.
        task: Name.
        rule: Its scorer.
        outcomes: By case, those that were accepted; never none.
        contents: Hash of the section, and of the predictions and references.
    """

    submission: Submission
    task: str
    rule: ScorerImage
    outcomes: Mapping[str, CaseOutcome]
    contents: str

    def digest(self, image_id: str) -> str:
        """What scores by this image are of."""
        return hashlib.sha256(f"{SCORING_CONTRACT}\0{image_id}\0{self.contents}".encode()).hexdigest()

    def stored(self, run: RunFolder, image_id: str = "") -> ContainerScores | None:
        """The scores on disk, where they fit.

        Args:
            run: Where they are.
            image_id: The image they must be by; empty: any.
        """
        path = run.container_scores(self.submission.slug, self.task)
        if not path.is_file():
            return None
        found = read_value(path, ContainerScores)
        fits = found.digest == self.digest(found.image) and image_id in ("", found.image)
        return found if fits else None


def all_to_score(
    run: RunFolder, record: RunRecord, loaded: LoadedChallenge, cases: Mapping[str, Case]
) -> tuple[ToScore, ...]:
    """Everything of a run that a container scores; every case of it has its outcome.

    Raises:
        UsageError: An outcome or a prediction is missing.
    """
    tasks = [name for name, task in loaded.challenge.tasks.items() if task.scorer_image is not None]
    if not tasks:
        return ()
    hashes = DataHashes(cache=run.private / "hashes.json")
    entered = [
        (submission, task)
        for task in tasks
        for submission in record.submissions
        if submission.status is not Status.WITHDRAWN and task in entered_tasks(loaded.challenge, submission)
    ]
    found = []
    for submission, task in entered:
        outcomes = {name: read_value(run.outcome(submission.slug, task, name), CaseOutcome) for name in cases}
        found.append(to_score(run, loaded, cases, hashes, submission=submission, task=task, outcomes=outcomes))
    hashes.save()
    return tuple(one for one in found if one is not None)


def to_score(
    run: RunFolder,
    loaded: LoadedChallenge,
    cases: Mapping[str, Case],
    hashes: DataHashes,
    *,
    submission: Submission,
    task: str,
    outcomes: Mapping[str, CaseOutcome],
) -> ToScore | None:
    """What of a submission a task's container scores; None where nothing of it was accepted.

    Raises:
        UsageError: A prediction that was accepted is not there any more.
    """
    rule = loaded.challenge.tasks[task]
    assert rule.scorer_image is not None
    accepted = {name: outcome for name, outcome in outcomes.items() if outcome.verdict.accepted}
    shown = []
    for name, outcome in accepted.items():
        path = kept_prediction(run, outcome, rule.format)
        if not path.exists():
            raise UsageError(
                "a prediction that was accepted is not there any more",
                where=str(path),
                remedy="put the file back, or delete the case's outcome.json, then: proctor resume RUN",
            )
        shown.append((name, hashes.tree(path), hashes.tree(cases[name].references[task])))
    if not shown:
        return None
    facts = {"task": task, "section": rule.scorer_image.model_dump(mode="json"), "shown": shown}
    contents = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    return ToScore(submission=submission, task=task, rule=rule.scorer_image, outcomes=accepted, contents=contents)


def scores_on_disk(
    run: RunFolder, record: RunRecord, loaded: LoadedChallenge, cases: Mapping[str, Case]
) -> Mapping[tuple[str, str], Mapping[str, CaseScore]]:
    """The scores of every submission by slug and task, all of a task by the same image.

    Raises:
        UsageError: Some are not there, or do not fit what they would be of.
    """
    found: dict[tuple[str, str], Mapping[str, CaseScore]] = {}
    images: dict[str, str] = {}
    for one in all_to_score(run, record, loaded, cases):
        stored = one.stored(run, images.get(one.task, ""))
        if stored is None:
            raise UsageError(
                f"what the scorer's container gave for {one.submission.submission!r} in task {one.task!r} is not "
                "there, or is of other predictions, references or rules, or by another image",
                where=str(run.container_scores(one.submission.slug, one.task)),
                remedy=f"proctor score {run.root}",
            )
        images[one.task] = stored.image
        found[one.submission.slug, one.task] = {
            case: CaseScore(values=values, frames=len(cases[case].frames)) for case, values in stored.scores.items()
        }
    return found
