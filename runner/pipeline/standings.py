"""What the outcomes on disk amount to: scores, ranks, and why somebody has none. Needs no engine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from runner.catalog import LoadedChallenge
from runner.challenge import CausalityRule, LeakPolicy, MissingCase, Task
from runner.challenge.challenge import ConsequenceScope
from runner.confine import Confine
from runner.dataset import Case
from runner.formats.contract import FrameTable
from runner.formats.frame_table import Role, confined_read
from runner.judge import CaseOutcome
from runner.pipeline.looking_ahead import CausalityRecord, policy_for, with_leaks
from runner.pipeline.record import RunRecord
from runner.ranking.methods import rank
from runner.ranking.table import ScoreTable, apply_missing
from runner.scoring.contract import CaseScore, Metric
from runner.scoring.run import describe_scorer, score_case
from runner.store import RunFolder, read_value
from runner.submissions import Status, Submission
from runner.verdict import VerdictWord

_STATUS_WORDS = {
    Status.NON_COMPETING: "takes part outside the competition",
    Status.BASELINE: "is a baseline",
    Status.POST_CHALLENGE: "came in after the challenge",
    Status.WITHDRAWN: "was withdrawn and not run",
}


@dataclass(frozen=True, kw_only=True)
class ScoredCase:
    """A case of an entry: its verdict and, where it was accepted, its scores.

    Attributes:
        outcome: With ``not-causal`` where that was proved.
        score: None where there is no valid prediction.
    """

    outcome: CaseOutcome
    score: CaseScore | None


@dataclass(frozen=True, kw_only=True)
class Row:
    """An entry in a task's leaderboard.

    Attributes:
        submission: As it was entered.
        rank: None where it is not ranked.
        reason: Why it is not ranked, in our words; empty where it is.
        values: Mean over cases by metric, the missing-case policy applied; empty where nothing was scored.
        cases: Every case, in order; empty for a withdrawn entry.
        causality: What was found; None where nothing was tested.
    """

    submission: Submission
    rank: float | None
    reason: str
    values: Mapping[str, float]
    cases: tuple[ScoredCase, ...]
    causality: CausalityRecord | None

    @property
    def accepted(self) -> int:
        """How many cases were accepted."""
        return sum(case.outcome.verdict.accepted for case in self.cases)


@dataclass(frozen=True, kw_only=True)
class Board:
    """A task's leaderboard.

    Attributes:
        task: Name.
        metrics: The columns, the primary one first.
        rows: Ranked ones first, in order, then the others.
        excluded: Cases left out for all, under ``missing_case: exclude``.
    """

    task: str
    metrics: tuple[Metric, ...]
    rows: tuple[Row, ...]
    excluded: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Standings:
    """All of a run's leaderboards, and what is still pending."""

    boards: tuple[Board, ...]
    pending: tuple[str, ...]


def entered(submission: Submission, task: str) -> bool:
    """True where a submission takes part in a task."""
    return not submission.tasks or task in submission.tasks


def work_out(
    run: RunFolder, record: RunRecord, loaded: LoadedChallenge, cases: Mapping[str, Case], confine: Confine
) -> Standings:
    """Score and rank what is on disk.

    Raises:
        ScorerFault: The organisers' scorer failed; nothing on disk is changed.
        UsageError: A reference cannot be read, or an outcome is missing.
    """
    boards = tuple(
        _Scoring(run=run, record=record, loaded=loaded, cases=cases, confine=confine, task_name=name, task=task).board()
        for name, task in loaded.challenge.tasks.items()
    )
    pending = tuple(
        f"{row.submission.submission}, task {board.task}, case {case.outcome.case}: {case.outcome.verdict.sentence}"
        for board in boards
        for row in board.rows
        for case in row.cases
        if case.outcome.verdict.pending
    ) + tuple(
        f"{row.submission.submission}, task {board.task}, causality on case {finding.case}"
        for board in boards
        for row in board.rows
        if row.causality
        for finding in row.causality.findings
        if finding.pending
    )
    return Standings(boards=boards, pending=pending)


@dataclass(frozen=True, kw_only=True)
class _Scoring:
    """One task being scored."""

    run: RunFolder
    record: RunRecord
    loaded: LoadedChallenge
    cases: Mapping[str, Case]
    confine: Confine
    task_name: str
    task: Task

    def board(self) -> Board:
        metrics = _primary_first(describe_scorer(self.confine, self.loaded, self.task_name), self.task)
        references = {name: self._reference(case) for name, case in self.cases.items()}
        rows = [
            self._unranked_row(submission, references)
            for submission in self.record.submissions
            if entered(submission, self.task_name)
        ]
        return _ranked(rows, metrics, task=self.task, loaded=self.loaded, cases=tuple(self.cases), name=self.task_name)

    def _reference(self, case: Case) -> FrameTable:
        reading = confined_read(
            self.confine, self.task.format, case.reference, frames=len(case.frames), role=Role.REFERENCE
        )
        assert reading.table is not None
        return reading.table

    def _unranked_row(self, submission: Submission, references: Mapping[str, FrameTable]) -> Row:
        if submission.status is Status.WITHDRAWN:
            return Row(
                submission=submission,
                rank=None,
                reason=_STATUS_WORDS[submission.status],
                values={},
                cases=(),
                causality=None,
            )
        causality = self._causality(submission)
        outcomes = {
            name: read_value(self.run.outcome(submission.slug, self.task_name, name), CaseOutcome)
            for name in self.cases
        }
        rule = self.loaded.challenge.causality
        if causality is not None:
            outcomes = with_leaks(rule, causality, outcomes)
        cases = tuple(
            ScoredCase(
                outcome=outcome, score=self._score(outcome, references[name]) if outcome.verdict.accepted else None
            )
            for name, outcome in outcomes.items()
        )
        reason = _why_not_ranked(submission, cases, causality, self.task, self.loaded)
        return Row(submission=submission, rank=None, reason=reason, values={}, cases=cases, causality=causality)

    def _causality(self, submission: Submission) -> CausalityRecord | None:
        path = self.run.causality(submission.slug, self.task_name)
        return read_value(path, CausalityRecord) if path.is_file() else None

    def _score(self, outcome: CaseOutcome, reference: FrameTable) -> CaseScore:
        name = self.task.format.file.replace("{case}", "prediction")
        folder = self.run.attempt(outcome.submission, outcome.task, outcome.case, "full", outcome.attempt)
        path = folder / "predictions" / name
        reading = confined_read(self.confine, self.task.format, path, frames=reference.frames, role=Role.PREDICTION)
        assert reading.table is not None
        return score_case(self.confine, self.loaded, self.task_name, reference, reading.table)


def _primary_first(metrics: Sequence[Metric], task: Task) -> tuple[Metric, ...]:
    return tuple(sorted(metrics, key=lambda metric: metric.name != task.primary.metric))


def _why_not_ranked(
    submission: Submission,
    cases: tuple[ScoredCase, ...],
    causality: CausalityRecord | None,
    task: Task,
    loaded: LoadedChallenge,
) -> str:
    """The first reason that holds; empty where there is none."""
    if any(case.outcome.verdict.pending for case in cases):
        return "is pending: the host failed"
    refused = _refused(cases, loaded)
    if refused:
        return refused
    rule = loaded.challenge.causality
    if causality is not None and policy_for(rule, causality) is LeakPolicy.UNRANKED:
        return _leak_words(rule, causality)
    missing = [case for case in cases if not case.outcome.verdict.accepted]
    if missing and task.missing_case is MissingCase.FAIL:
        return f"has no valid prediction for {len(missing)} of {len(cases)} cases"
    return "" if submission.status.ranked else _STATUS_WORDS[submission.status]


def _refused(cases: tuple[ScoredCase, ...], loaded: LoadedChallenge) -> str:
    consequence = loaded.challenge.consequence
    for case in cases:
        verdict = case.outcome.verdict
        if verdict.accepted or verdict.pending or verdict.word is VerdictWord.SCORER_FAULT:
            continue
        if consequence.scope_of(verdict.word.value) is ConsequenceScope.SUBMISSION:
            return f"is refused, {verdict.word.value}: {verdict.sentence}"
    if not any(case.outcome.verdict.accepted for case in cases):
        words = sorted({case.outcome.verdict.word.value for case in cases})
        return f"has no accepted case ({', '.join(words)}): {cases[0].outcome.verdict.sentence}"
    return ""


def _leak_words(rule: CausalityRule, causality: CausalityRecord) -> str:
    for finding in causality.findings:
        only = CausalityRecord(findings=(finding,))
        if policy_for(rule, only) is LeakPolicy.UNRANKED:
            return f"is not ranked by the challenge's rule, {finding.verdict.outcome.value}: {finding.verdict.sentence}"
    raise AssertionError("unreachable: the policy came from one of the findings")


def _ranked(
    rows: list[Row],
    metrics: tuple[Metric, ...],
    *,
    task: Task,
    loaded: LoadedChallenge,
    cases: tuple[str, ...],
    name: str,
) -> Board:
    """Apply the missing-case policy, aggregate, and rank those that are to be ranked."""
    competing = [row for row in rows if not row.reason]
    excluded = _excluded(competing, cases, task)
    scored = [row for row in rows if row.accepted]
    values = {row.submission.submission: _values(row, metrics, task, excluded) for row in scored}
    ranks: dict[str, float] = {}
    if competing and len(excluded) < len(cases):
        primary = metrics[0]
        table = _table(competing, primary, tuple(c for c in cases if c not in excluded))
        full = apply_missing(table, task.missing_case, worst=primary.worst, chance=primary.chance)
        ranking = rank(full, loaded.challenge.ranking, higher_is_better=task.primary.higher_is_better)
        ranks = {entry.submission: entry.rank for entry in ranking.rows}
    done = [
        Row(
            submission=row.submission,
            rank=ranks.get(row.submission.submission),
            reason=row.reason or ("" if ranks else "is not ranked: every case is left out for all"),
            values=values.get(row.submission.submission, {}),
            cases=row.cases,
            causality=row.causality,
        )
        for row in rows
    ]
    order = {row.submission.submission: number for number, row in enumerate(rows)}
    done.sort(key=lambda r: (r.rank is None, r.rank or 0.0, not r.values, order[r.submission.submission]))
    return Board(task=name, metrics=metrics, rows=tuple(done), excluded=excluded)


def _excluded(competing: list[Row], cases: tuple[str, ...], task: Task) -> tuple[str, ...]:
    if task.missing_case is not MissingCase.EXCLUDE:
        return ()
    missing = {case.outcome.case for row in competing for case in row.cases if case.score is None}
    return tuple(name for name in cases if name in missing)


def _table(rows: list[Row], metric: Metric, cases: tuple[str, ...]) -> ScoreTable:
    values = np.full((len(rows), len(cases)), np.nan)
    for i, row in enumerate(rows):
        for case in row.cases:
            if case.score is not None and case.outcome.case in cases:
                values[i, cases.index(case.outcome.case)] = case.score.values[metric.name]
    return ScoreTable(submissions=tuple(row.submission.submission for row in rows), cases=cases, values=values)


def _values(row: Row, metrics: tuple[Metric, ...], task: Task, excluded: tuple[str, ...]) -> dict[str, float]:
    """Means over cases; a case without a prediction counts as the task's policy says."""
    cases = tuple(case.outcome.case for case in row.cases if case.outcome.case not in excluded)
    if not cases:
        return {}
    policy = task.missing_case
    if policy in (MissingCase.EXCLUDE, MissingCase.FAIL):
        # Of a row that is only shown: the mean of what it has.
        means = {m.name: np.nanmean(_table([row], m, cases).values) for m in metrics}
    else:
        means = {
            m.name: apply_missing(_table([row], m, cases), policy, worst=m.worst, chance=m.chance).values.mean()
            for m in metrics
        }
    return {name: float(mean) for name, mean in means.items()}
