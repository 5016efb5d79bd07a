"""What the outcomes on disk amount to: scores, ranks, and why somebody has none. Needs no engine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from runner.catalog import LoadedChallenge
from runner.challenge import CausalityRule, LeakPolicy, MissingCase, Task
from runner.challenge.challenge import ConsequenceScope
from runner.confine import Confine
from runner.dataset import Case
from runner.errors import ConfigError, UsageError
from runner.formats.contract import Prediction
from runner.formats.reading import read_again
from runner.judge import CaseOutcome
from runner.pipeline.attempts import due_of, kept_prediction
from runner.pipeline.container_scores import scores_on_disk
from runner.pipeline.looking_ahead import CausalityRecord, policy_for, with_leaks
from runner.pipeline.record import RunRecord
from runner.pipeline.references import reference_of
from runner.plan import entered_tasks
from runner.ranking.methods import rank
from runner.ranking.table import ScoreTable, apply_missing
from runner.scoring.contract import CaseScore, Metric
from runner.scoring.run import aggregate_cases, describe_scorer, score_case
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
        resubmitted: Its team handed in for this task before, as the submissions file has it.
    """

    submission: Submission
    rank: float | None
    reason: str
    values: Mapping[str, float]
    cases: tuple[ScoredCase, ...]
    causality: CausalityRecord | None
    resubmitted: bool = False

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
        aggregates: The figures over cases are the scorer's own, and not means.
    """

    task: str
    metrics: tuple[Metric, ...]
    rows: tuple[Row, ...]
    excluded: tuple[str, ...] = ()
    aggregates: bool = False


@dataclass(frozen=True, kw_only=True)
class Standings:
    """All of a run's leaderboards, and what is still pending."""

    boards: tuple[Board, ...]
    pending: tuple[str, ...]


def work_out(
    run: RunFolder, record: RunRecord, loaded: LoadedChallenge, cases: Mapping[str, Case], confine: Confine
) -> Standings:
    """Score and rank what is on disk.

    Raises:
        ScorerFault: The organisers' scorer failed; nothing on disk is changed.
        UsageError: A reference cannot be read, or an outcome is missing, or what a scorer's container gave.
    """
    given = scores_on_disk(run, record, loaded, cases)
    boards = tuple(
        _Scoring(
            run=run, record=record, loaded=loaded, cases=cases, confine=confine, task_name=name, task=task, given=given
        ).board()
        for name, task in loaded.challenge.tasks.items()
        if any(name in entered_tasks(loaded.challenge, submission) for submission in record.submissions)
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
    """One task being scored; ``given`` is what scorers in containers gave, by slug and task."""

    run: RunFolder
    record: RunRecord
    loaded: LoadedChallenge
    cases: Mapping[str, Case]
    confine: Confine
    task_name: str
    task: Task
    given: Mapping[tuple[str, str], Mapping[str, CaseScore]]

    def board(self) -> Board:
        described = describe_scorer(self.confine, self.loaded, self.task_name)
        references = {
            name: reference_of(self.confine, self.task, self.task_name, case)
            for name, case in self.cases.items()
            if not self.task.scorer_image
        }
        rows = [
            self._unranked_row(submission, references)
            for submission in self.record.submissions
            if self.task_name in entered_tasks(self.loaded.challenge, submission)
        ]
        rows = _marked(rows, last_counts=self.loaded.challenge.ranking.counts == "last")
        metrics = _primary_first(described.metrics, self.task)
        return _Ranking(scoring=self, metrics=metrics, aggregates=described.aggregates).board(rows)

    def _unranked_row(self, submission: Submission, references: Mapping[str, Prediction]) -> Row:
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
            ScoredCase(outcome=outcome, score=self._score(outcome, references) if outcome.verdict.accepted else None)
            for outcome in outcomes.values()
        )
        reason = why_not_ranked(submission, cases, causality, self.task, self.loaded)
        return Row(submission=submission, rank=None, reason=reason, values={}, cases=cases, causality=causality)

    def _causality(self, submission: Submission) -> CausalityRecord | None:
        path = self.run.causality(submission.slug, self.task_name)
        return read_value(path, CausalityRecord) if path.is_file() else None

    def _score(self, outcome: CaseOutcome, references: Mapping[str, Prediction]) -> CaseScore:
        if self.task.scorer_image is not None:
            return self.given[outcome.submission, self.task_name][outcome.case]
        case, rule = self.cases[outcome.case], self.task.format
        path = kept_prediction(self.run, outcome, rule)
        reading = read_again(self.confine, rule, path, due=due_of(case))
        if reading.prediction is None:
            raise UsageError(
                f"a prediction that was accepted cannot be read any more: {reading.problems[0].what}",
                where=str(path),
                remedy="put the file back, or delete the case's outcome.json, then: proctor resume RUN",
            )
        return score_case(
            self.confine, self.loaded, self.task_name, references[case.name], reading.prediction,
            frames=len(case.frames),
        )  # fmt: skip


def _marked(rows: list[Row], *, last_counts: bool) -> list[Row]:
    """Mark who handed in again; where only the last of a team counts, the others are not ranked."""
    last: dict[str, str] = {}
    again: set[str] = set()
    for row in rows:
        if row.submission.status.ranked:
            if row.submission.team in last:
                again.add(row.submission.submission)
            last[row.submission.team] = row.submission.submission
    marked = []
    for row in rows:
        own = row.submission
        counted = last.get(own.team, own.submission)
        reason = row.reason
        if last_counts and own.status.ranked and counted != own.submission and not reason:
            reason = f"was followed by {counted}: the last submission of a team counts"
        marked.append(replace(row, reason=reason, resubmitted=own.submission in again))
    return marked


def _primary_first(metrics: Sequence[Metric], task: Task) -> tuple[Metric, ...]:
    return tuple(sorted(metrics, key=lambda metric: metric.name != task.primary.metric))


def why_not_ranked(
    submission: Submission,
    cases: tuple[ScoredCase, ...],
    causality: CausalityRecord | None,
    task: Task,
    loaded: LoadedChallenge,
) -> str:
    """The first reason that holds for not ranking a submission over these cases; empty where there is none."""
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


@dataclass(frozen=True, kw_only=True)
class _Ranking:
    """A task's rows being aggregated and ranked.

    Attributes:
        scoring: The task.
        metrics: The primary one first.
        aggregates: The scorer's figures over cases are not the means of the cases' figures.
    """

    scoring: _Scoring
    metrics: tuple[Metric, ...]
    aggregates: bool

    def board(self, rows: list[Row]) -> Board:
        """Apply the missing-case policy, aggregate, and rank those that are to be ranked."""
        cases = tuple(self.scoring.cases)
        excluded = self._excluded([row for row in rows if not row.reason])
        figures = {row.submission.submission: self._figures(row, excluded) for row in rows if row.accepted}
        primary = self.metrics[0]
        rows = [self._with_reason(row, figures.get(row.submission.submission, {})) for row in rows]
        competing = [row for row in rows if not row.reason]
        ranks: dict[str, float] = {}
        if competing and len(excluded) < len(cases):
            table = self._table(competing, tuple(case for case in cases if case not in excluded), figures)
            rule = self.scoring.loaded.challenge.ranking
            ranking = rank(table, rule, higher_is_better=primary.higher_is_better)
            ranks = {entry.submission: entry.rank for entry in ranking.rows}
        done = [
            replace(
                row,
                rank=ranks.get(row.submission.submission),
                reason=row.reason or ("" if ranks else "is not ranked: every case is left out for all"),
                values=figures.get(row.submission.submission, {}),
            )
            for row in rows
        ]
        order = {row.submission.submission: number for number, row in enumerate(rows)}
        done.sort(key=lambda r: (r.rank is None, r.rank or 0.0, not r.values, order[r.submission.submission]))
        return Board(
            task=self.scoring.task_name,
            metrics=self.metrics,
            rows=tuple(done),
            excluded=excluded,
            aggregates=self.aggregates,
        )

    def _excluded(self, competing: list[Row]) -> tuple[str, ...]:
        if self.scoring.task.missing_case is not MissingCase.EXCLUDE:
            return ()
        missing = {case.outcome.case for row in competing for case in row.cases if case.score is None}
        return tuple(name for name in self.scoring.cases if name in missing)

    def _with_reason(self, row: Row, figures: Mapping[str, float]) -> Row:
        primary = self.metrics[0]
        if row.reason or primary.name in figures or not figures:
            return row
        return replace(row, reason=f"is not ranked: {primary.title} is defined for none of its cases")

    def _figures(self, row: Row, excluded: tuple[str, ...]) -> dict[str, float]:
        """Every metric over cases; a case without a prediction counts as the task's policy says."""
        scores = [self._counted(case) for case in row.cases if case.outcome.case not in excluded]
        counted = [score for score in scores if score is not None]
        if not counted:
            return {}
        found = aggregate_cases(self.scoring.confine, self.scoring.loaded, self.scoring.task_name, counted)
        return {name: value for name, value in found.items() if value is not None}

    def _counted(self, case: ScoredCase) -> CaseScore | None:
        policy = self.scoring.task.missing_case
        if case.score is not None or policy in (MissingCase.EXCLUDE, MissingCase.FAIL):
            return case.score  # of a row that is only shown: what it has
        worst = policy is MissingCase.WORST
        values = {metric.name: metric.worst if worst else metric.chance for metric in self.metrics}
        return CaseScore(values=values, frames=len(self.scoring.cases[case.outcome.case].frames))

    def _table(self, rows: list[Row], cases: tuple[str, ...], figures: Mapping[str, Mapping[str, float]]) -> ScoreTable:
        """The values that are ranked: of every case, or the figure over all where the scorer works that out itself."""
        primary, rule = self.metrics[0], self.scoring.loaded.challenge.ranking
        names = tuple(row.submission.submission for row in rows)
        if self.aggregates and rule.method == "mean_then_rank":
            over_all = np.array([[figures[name][primary.name]] for name in names])
            return ScoreTable(submissions=names, cases=("all cases",), values=over_all)
        values = np.full((len(rows), len(cases)), np.nan)
        for i, row in enumerate(rows):
            for case in row.cases:
                if case.score is not None and case.outcome.case in cases:
                    values[i, cases.index(case.outcome.case)] = self._value(case.outcome.case, case.score)
        table = ScoreTable(submissions=names, cases=cases, values=values)
        return apply_missing(table, self.scoring.task.missing_case, worst=primary.worst, chance=primary.chance)

    def _value(self, case: str, score: CaseScore) -> float:
        primary, loaded = self.metrics[0], self.scoring.loaded
        value = score.values[primary.name]
        if value is None:
            raise ConfigError(
                f"ranking.method {loaded.challenge.ranking.method!r} needs {primary.name!r} of every case, and it is "
                f"not defined for case {case!r}",
                where=f"{loaded.folder / 'challenge.yaml'}: ranking.method",
                remedy="rank by mean_then_rank, which ranks what the scorer's aggregate answers",
            )
        return value
