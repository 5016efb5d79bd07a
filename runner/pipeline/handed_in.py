"""Takes predictions that somebody handed in as files: the same intake, formats and verdicts as for a container's.

Run time and causality cannot be tested then, and the verdict says so. Files are taken once, at the start: a folder that
changes later changes nothing in a run.
"""

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from runner.challenge import Challenge, FormatSection
from runner.confine import Confine
from runner.dataset import Case
from runner.due_tree import DueTree
from runner.errors import HostFault, UsageError
from runner.formats.contract import Due, Reading, Role
from runner.formats.reading import beside, read_output
from runner.job import Intake, IntakeRefusal, Output
from runner.judge import CaseOutcome, problems_in_words
from runner.outputs import Wanted, take_file
from runner.pipeline.attempts import due_of, kept_prediction
from runner.pipeline.events import CaseEnded, Observer
from runner.plan import entered_tasks
from runner.store import RunFolder, read_value, write_value
from runner.submissions import Submission
from runner.verdict import Verdict, VerdictWord

HANDED_IN = "handed in"
"""In place of a job's digest."""


@dataclass(frozen=True, kw_only=True)
class Reception:
    """Where handed-in files come from and go to.

    Attributes:
        run: Where they are kept.
        challenge: Says what is due.
        cases: By real name.
        base: Folder that relative paths start from.
        confine: Where they are read.
        observe: Is told what happens.
    """

    run: RunFolder
    challenge: Challenge
    cases: Mapping[str, Case]
    base: Path
    confine: Confine
    observe: Observer

    def settle(self, submission: Submission) -> None:
        """Give every task and case of a submission its verdict, where it has none yet.

        Raises:
            UsageError: There is no such folder.
            HostFault: A file could not be read or kept.
        """
        # The folder itself is the organisers' to name, by a link as well; inside it no link is followed.
        folder = (self.base / submission.predictions).resolve()
        due = self._due(submission)
        for task, case in self._parts(submission):
            known = self._known(submission, task, case)
            outcome = known or self._taken_or_fault(submission, task, case, folder, due)
            if known is None:
                write_value(self.run.outcome(submission.slug, task, case.name), outcome)
            self.observe(
                CaseEnded(
                    submission=submission.submission,
                    team=submission.team,
                    task=task,
                    case=case.name,
                    verdict=outcome.verdict,
                    seconds=0.0,
                )
            )

    def count(self, submission: Submission) -> tuple[int, int]:
        """How many tasks and cases it has, and how many of them have their verdict."""
        parts = list(self._parts(submission))
        return len(parts), sum(self._known(submission, task, case) is not None for task, case in parts)

    def _parts(self, submission: Submission) -> Iterator[tuple[str, Case]]:
        for task in entered_tasks(self.challenge, submission):
            for case in self.cases.values():
                yield task, case

    def _due(self, submission: Submission) -> DueTree:
        """All that is due of a submission, in whichever task and case."""
        outputs = (output_of(self.challenge.tasks[task].format, task, case) for task, case in self._parts(submission))
        return DueTree((output.path.replace("{case}", output.case), output.names) for output in outputs)

    def _known(self, submission: Submission, task: str, case: Case) -> CaseOutcome | None:
        path = self.run.outcome(submission.slug, task, case.name)
        outcome = read_value(path, CaseOutcome) if path.is_file() else None
        return outcome if outcome is not None and outcome.digest == HANDED_IN else None

    def _taken_or_fault(self, submission: Submission, task: str, case: Case, folder: Path, due: DueTree) -> CaseOutcome:
        try:
            return self._taken(submission, task, case, folder, due)
        except OSError as error:
            raise HostFault(
                f"a handed-in file could not be read or kept: {error.strerror or error}",
                where=str(error.filename or folder),
                remedy="make room, or mend the disk, then begin again",
            ) from error

    def _taken(self, submission: Submission, task: str, case: Case, folder: Path, wholly: DueTree) -> CaseOutcome:
        if not folder.is_dir():
            raise UsageError(
                f"there is no folder of predictions {str(folder)!r}",
                where=f"submission {submission.submission!r}",
                remedy="mend predictions: in the submissions file; its path starts at the file's own folder",
            )
        rule, due = self.challenge.tasks[task].format, due_of(case)
        output = output_of(rule, task, case)
        home = self.run.attempt(submission.slug, task, case.name, "full", 1)
        if home.exists():
            shutil.rmtree(home)  # of an earlier start that was cut short
        target = home / "predictions" / output.kept
        target.parent.mkdir(parents=True)
        wanted = Wanted(
            path=output.path.replace("{case}", case.name), files=output.names,
            due=wholly if rule.extra_files == "refuse" else None,
        )  # fmt: skip
        intake = take_file(folder, wanted, target, cap=self.challenge.limits.output, full=False)
        verdict = self._verdict(rule, due, target, output=output, intake=intake)
        outcome = CaseOutcome(
            submission=submission.slug, task=task, case=case.name, verdict=verdict, digest=HANDED_IN, attempt=1,
            seconds=None, limit=0.0,
        )  # fmt: skip
        assert kept_prediction(self.run, outcome, rule) == target
        return outcome

    def _verdict(self, rule: FormatSection, due: Due, path: Path, *, output: Output, intake: Intake) -> Verdict:
        if intake.refusal is not None:
            return _refused(output, intake)
        reading = read_output(self.confine, rule, path, due=due, role=Role.PREDICTION)
        reading = beside(rule, reading, stray=intake.stray)
        return _read(output, due, reading, public=self.challenge.data == "public")


def output_of(rule: FormatSection, task: str, case: Case) -> Output:
    """Where a task's prediction for a case is due."""
    stems = case.stems if "{frame}" in rule.file else ()
    return Output(case=case.name, file=rule.file.replace("{task}", task), frames=len(case.frames), stems=stems)


def _refused(output: Output, intake: Intake) -> Verdict:
    match intake.refusal:
        case IntakeRefusal.MISSING:
            word, what = VerdictWord.MISSING_OUTPUT, f"there is no {output.shown} among the predictions"
        case IntakeRefusal.TOO_LARGE:
            word, what = VerdictWord.TOO_MUCH_OUTPUT, f"{output.shown} has {intake.detail}"
        case _:
            word, what = VerdictWord.UNSAFE_OUTPUT, f"{output.shown} is {intake.detail}, not a regular file of its own"
    return Verdict(word=word, sentence=what)


def _read(output: Output, due: Due, reading: Reading, *, public: bool) -> Verdict:
    if reading.prediction is None:
        sentence = problems_in_words(output.shown, reading, public=public)
        return Verdict(word=VerdictWord.BAD_OUTPUT, sentence=sentence)
    answered = f"{due.count} frames answered" if due.count else "answered"
    sentence = f"{answered}; handed in as files: run time and causality were not tested"
    return Verdict(word=VerdictWord.ACCEPTED, sentence=sentence, notes=reading.notes)
