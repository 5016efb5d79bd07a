"""How far a run is, read from its files while somebody else works on it."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from runner.catalog import load_challenge
from runner.judge import CaseOutcome
from runner.pipeline.record import read_record
from runner.plan import entered_tasks
from runner.store import RunFolder, read_value
from runner.submissions import Status


@dataclass(frozen=True, kw_only=True)
class HowFar:
    """How far a submission is.

    Attributes:
        submission: As it was entered.
        done: Cases with a verdict that is not pending.
        cases: Cases in all, over its tasks.
        verdicts: How many of each.
    """

    submission: str
    done: int
    cases: int
    verdicts: Mapping[str, int]


def how_far(run: RunFolder) -> tuple[HowFar, ...]:
    """Count the verdicts on disk.

    Raises:
        UsageError: It is not a run folder.
    """
    record = read_record(run)
    challenge = load_challenge(run.challenge).challenge
    rows = []
    for submission in record.submissions:
        if submission.status is Status.WITHDRAWN:
            continue
        mine = entered_tasks(challenge, submission)
        paths = [run.outcome(submission.slug, task, case.name) for task in mine for case in record.cases]
        outcomes = [read_value(path, CaseOutcome) for path in paths if path.is_file()]
        words = Counter(outcome.verdict.word.value for outcome in outcomes)
        done = sum(not outcome.verdict.pending for outcome in outcomes)
        rows.append(HowFar(submission=submission.submission, done=done, cases=len(paths), verdicts=dict(words)))
    return tuple(rows)
