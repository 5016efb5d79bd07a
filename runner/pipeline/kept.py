"""What a run keeps of some submissions in one task: accepted predictions, read again, and the references to them."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from runner.catalog import LoadedChallenge
from runner.challenge import Task
from runner.confine import Confine
from runner.dataset import Case
from runner.ensembles import Example, Method, can_be_fitted, methods_for
from runner.errors import UsageError
from runner.formats.contract import Prediction
from runner.formats.reading import read_again
from runner.judge import CaseOutcome
from runner.pipeline.attempts import due_of, kept_prediction
from runner.pipeline.evaluate import reopen
from runner.pipeline.looking_ahead import CausalityRecord, with_leaks
from runner.pipeline.record import RunRecord, read_record
from runner.pipeline.references import reference_of
from runner.plan import entered_tasks
from runner.provenance import DataHashes
from runner.scoring.contract import CaseScore
from runner.scoring.run import aggregate_cases, score_case
from runner.store import RunFolder, read_value
from runner.submissions import Submission

OTHER_DATA = "run the same submissions on a second data set with proctor evaluate, and name that run with --fit"

_NO_INPUTS = hashlib.sha256().hexdigest()
"""The hash of a case whose inputs were never there."""


@dataclass(frozen=True, kw_only=True)
class Kept:
    """What a run keeps of some submissions in a task.

    Attributes:
        run: The run.
        record: What it is.
        loaded: Its challenge.
        cases: By real name.
        confine: Where files are read and scorers run.
        task_name: Name of the task.
        outcomes: By submission and case, all accepted.
    """

    run: RunFolder
    record: RunRecord
    loaded: LoadedChallenge
    cases: Mapping[str, Case]
    confine: Confine
    task_name: str
    outcomes: Mapping[str, Mapping[str, CaseOutcome]]

    @property
    def task(self) -> Task:
        """The task."""
        return self.loaded.challenge.tasks[self.task_name]

    @property
    def members(self) -> tuple[str, ...]:
        """By name, in an order of our own: whatever order they are named in, the figures are the same to the bit."""
        return tuple(sorted(self.outcomes))

    def check_methods(self, methods: Sequence[Method]) -> None:
        """Refuse what does not fit the task.

        Raises:
            UsageError: A method does not, or the task's scores are none of ours to work out.
        """
        where = f"task {self.task_name!r}"
        if self.task.scorer_image is not None:
            raise UsageError(
                "its scorer runs in a container, which is shown submissions only", where=where,
                remedy="make ensembles in a task with a scorer in Python",
            )  # fmt: skip
        fitting = methods_for(self.task.format)
        for method in methods:
            if method not in fitting:
                words = ", ".join(one.value for one in fitting) or "none"
                raise UsageError(
                    f"--method {method.value} does not fit predictions of kind {self.task.format.kind!r}",
                    where=where, remedy=f"methods that do: {words}",
                )  # fmt: skip
            if method.is_learned and not can_be_fitted(self.task.format, self.task.format_of_references):
                raise UsageError(
                    f"--method {method.value} needs references that say of each frame what a perfect prediction would",
                    where=where, remedy="choose mean, majority or weighted",
                )  # fmt: skip

    def example(self, case: Case) -> Example:
        """What the members said of a case, in their order, and what is true.

        Raises:
            UsageError: A file is not what it was.
        """
        predictions = tuple(self._prediction(member, case) for member in self.members)
        return Example(predictions=predictions, reference=self._reference(case))

    def _reference(self, case: Case) -> Prediction:
        return reference_of(self.confine, self.task, self.task_name, case)

    def _prediction(self, member: str, case: Case) -> Prediction:
        path = kept_prediction(self.run, self.outcomes[member][case.name], self.task.format)
        reading = read_again(self.confine, self.task.format, path, due=due_of(case))
        if reading.prediction is None:
            raise UsageError(
                f"a prediction that was accepted cannot be read any more: {reading.problems[0].what}",
                where=str(path),
                remedy="put the file back, or leave that member out",
            )
        return reading.prediction

    def score(self, case: Case, reference: Prediction, prediction: Prediction) -> CaseScore:
        """Score a prediction for a case, of these or of others."""
        return score_case(self.confine, self.loaded, self.task_name, reference, prediction, frames=len(case.frames))

    def over_all(self, scores: Sequence[CaseScore]) -> Mapping[str, float | None]:
        """The figures over all cases."""
        return aggregate_cases(self.confine, self.loaded, self.task_name, scores)

    def digests(self) -> Iterator[tuple[str, str]]:
        """Names of cases, each with a hash of its inputs or of a reference of it, as they were or are."""
        hashes = DataHashes(cache=self.run.private / "hashes.json")
        for before in self.record.cases:
            if before.inputs != _NO_INPUTS:
                yield before.name, before.inputs
            yield from ((before.name, digest) for digest in before.references.values())
        for name, case in self.cases.items():
            yield name, hashes.tree(case.references[self.task_name])


def opened(run: RunFolder, members: Sequence[str], task: str | None, confine: Confine) -> Kept:
    """Find what a finished run keeps of some submissions.

    Args:
        run: The run.
        members: Submissions, by name.
        task: Name; None: the only one that all of them entered.
        confine: Where files are read and scorers run.

    Raises:
        UsageError: One is unknown or lacks an accepted prediction, or the task is not theirs.
    """
    record = read_record(run)
    loaded, cases = reopen(run, record)
    known = {one.submission: one for one in record.submissions}
    for name in members:
        if name not in known:
            raise UsageError(
                f"--of {name!r} is no submission of the run", where=str(run.root),
                remedy=f"it has {', '.join(map(repr, known))}",
            )  # fmt: skip
    chosen = [known[name] for name in members]
    task_name = _task_of(loaded, chosen, task)
    outcomes = {one.submission: _outcomes(run, loaded, one, task_name, cases) for one in chosen}
    return Kept(
        run=run, record=record, loaded=loaded, cases=cases, confine=confine, task_name=task_name, outcomes=outcomes
    )


def _task_of(loaded: LoadedChallenge, chosen: Sequence[Submission], task: str | None) -> str:
    entered = [set(entered_tasks(loaded.challenge, one)) for one in chosen]
    shared = [name for name in loaded.challenge.tasks if all(name in tasks for tasks in entered)]
    words = ", ".join(shared) or "none"
    if task is None and len(shared) == 1:
        return shared[0]
    if task is None:
        raise UsageError(f"the members share several tasks, or none: {words}", remedy="name one with --task")
    if task not in shared:
        raise UsageError(f"--task {task!r} is none that all members entered", remedy=f"they share: {words}")
    return task


def _outcomes(
    run: RunFolder, loaded: LoadedChallenge, submission: Submission, task: str, cases: Mapping[str, Case]
) -> Mapping[str, CaseOutcome]:
    """A member's outcomes, all accepted."""
    who = f"submission {submission.submission!r}, task {task!r}"
    paths = {name: run.outcome(submission.slug, task, name) for name in cases}
    for name, path in paths.items():
        if not path.is_file():
            raise UsageError(
                f"case {name!r} has no outcome", where=who, remedy=f"leave it out, or: proctor resume {run.root}"
            )
    outcomes = {name: read_value(path, CaseOutcome) for name, path in paths.items()}
    found = run.causality(submission.slug, task)
    if found.is_file():
        outcomes = with_leaks(loaded.challenge.causality, read_value(found, CausalityRecord), outcomes)
    for name, outcome in outcomes.items():
        if not outcome.verdict.accepted:
            raise UsageError(
                f"case {name!r} has no accepted prediction: {outcome.verdict.word.value}, {outcome.verdict.sentence}",
                where=who,
                remedy="leave that member out",
            )
    return outcomes


def refuse_test_cases(kept: Kept, fit: Kept) -> None:
    """Refuse to fit on what is tested, and on what is no run of the same task.

    Raises:
        UsageError: A case has the name, the inputs or a reference of a case of the test; or the tasks differ.
    """
    where = str(fit.run.root)
    tested, challenge = kept.loaded.challenge, fit.loaded.challenge
    if tested.name != challenge.name or kept.task.format != fit.task.format:
        raise UsageError(
            f"--fit is a run of {challenge.name!r} {challenge.version}, whose task {fit.task_name!r} is not that of "
            f"{tested.name!r} {tested.version}",
            where=where, remedy="give a run of the same challenge",
        )  # fmt: skip
    for name in fit.cases:
        if name in kept.cases:
            raise UsageError(
                f"case {name!r} is a case of the test, and ensembles are not fitted on those", where=where,
                remedy=f"{OTHER_DATA}; a case of other data needs another name",
            )  # fmt: skip
    of_test = {digest: name for name, digest in kept.digests()}
    for name, digest in fit.digests():
        if digest in of_test:
            raise UsageError(
                f"case {name!r} has the inputs or the reference of case {of_test[digest]!r} of the test, and ensembles "
                "are not fitted on those",
                where=where, remedy=OTHER_DATA,
            )  # fmt: skip
