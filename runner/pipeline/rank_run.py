"""Ranks what a run has on disk as its challenge says, so far or in full, and says how sure each rank is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from runner.catalog import LoadedChallenge
from runner.challenge import MissingCase, RankingRule, Task
from runner.confine import Confine
from runner.dataset import Case
from runner.errors import HostFault, UsageError
from runner.formats.contract import FrameScores, FrameTable, LabelImages, Prediction
from runner.formats.reading import read_again
from runner.pipeline.attempts import due_of, kept_prediction
from runner.pipeline.evaluate import reopen
from runner.pipeline.long_table import Columns
from runner.pipeline.rank import (
    Questions,
    RandomRuns,
    RankedTable,
    RankedTask,
    RankRequest,
    RunsWanted,
    rank_task,
    ranked_table,
    require_windows,
    runs_tested,
)
from runner.pipeline.record import RunRecord, read_record
from runner.pipeline.references import reference_of
from runner.pipeline.standings import Board, Row, why_not_ranked, work_out
from runner.ranking.table import ScoreTable
from runner.ranking.windows import Window, draw_windows
from runner.scoring.run import score_case
from runner.store import RunFolder, locked

_DRAWS = 20
"""So many windows are drawn for each that is wanted, before too few are held to be scorable."""


@dataclass(frozen=True, kw_only=True)
class RunRankRequest:
    """What ``proctor rank RUN`` is asked for.

    Attributes:
        run: The run.
        resamples: How often cases are resampled; 0: not at all.
        seed: For the random numbers.
        challenger: Resample as challengeR 1.0.5 does.
        questions: What is asked beside the ranks.
        alpha: Level of the tests; None: the challenge's.
        provisional: Rank although cases are pending.
        runs: Random runs of consecutive frames to compare the submissions over; None: none.
    """

    run: RunFolder
    resamples: int
    seed: int
    challenger: bool
    questions: Questions
    alpha: float | None = None
    provisional: bool = False
    runs: RunsWanted | None = None


@dataclass(frozen=True, kw_only=True)
class RunTask:
    """A task of a run, ranked.

    Attributes:
        ranked: The ranking, in which a submission's name stands for its team.
        metric: Name of the primary metric.
        resubmitted: Ranked submissions whose team handed in before.
        unranked: Why others are not ranked, by submission.
        left_out: Cases that are left out for all, since one is pending or the metric is not defined there.
        own_figure: The leaderboard ranks the scorer's own figure over all cases; here it is the cases' figures.
    """

    ranked: RankedTask
    metric: str
    resubmitted: tuple[str, ...]
    unranked: Mapping[str, str]
    left_out: tuple[str, ...]
    own_figure: bool


@dataclass(frozen=True, kw_only=True)
class RankedRun:
    """A run, ranked.

    Attributes:
        method: The challenge's ranking method.
        tasks: Its tasks.
        table: The same tasks, and what is said over all of them.
        pending: What is still to be run; with any the ranking is provisional.
    """

    method: str
    tasks: tuple[RunTask, ...]
    table: RankedTable
    pending: tuple[str, ...]

    @property
    def watermark(self) -> str:
        """What must stand beside a provisional ranking; empty where it is final."""
        return f"PROVISIONAL: {len(self.pending)} pending, ranks may change" if self.pending else ""


def rank_run(request: RunRankRequest) -> RankedRun:
    """Rank a run from its files; nothing is written, and no container runs.

    Raises:
        HostFault: Cases are pending, and no provisional ranking was asked for.
        UsageError: The run is not finished, its data are gone, or something was asked that it cannot answer.
        ScorerFault: The scorer failed.
    """
    record = read_record(request.run)
    with locked(request.run), Confine() as confine:
        loaded, cases = reopen(request.run, record)
        standings = work_out(request.run, record, loaded, cases, confine)
        if standings.pending and not request.provisional:
            raise HostFault(
                f"{len(standings.pending)} pending, so there is no ranking yet: {standings.pending[0]}",
                where=str(request.run.root),
                remedy=f"proctor resume {request.run.root}, or rank what is there: --provisional",
            )
        found = [
            _Board(request=request, loaded=loaded, record=record, cases=cases, confine=confine, board=board).ranked()
            for board in standings.boards
        ]
    how = RankRequest(
        table=request.run.scores, columns=Columns(), metric=None, rule=_rule(request, loaded),
        higher_is_better=True, missing=MissingCase.FAIL, worst=None, resamples=0, seed=request.seed,
        challenger=request.challenger, questions=request.questions,
    )  # fmt: skip
    if request.questions.compare_tasks and len({task.metric for task, _ in found}) > 1:
        raise UsageError(
            "the tasks are ranked by different metrics, "
            + ", ".join(f"{task.ranked.task}: {task.metric}" for task, _ in found),
            remedy="leave --compare-tasks out: a difference between two metrics says nothing",
        )
    tasks = tuple(task for task, _ in found)
    tables = {task.ranked.task: table for task, table in found}
    return RankedRun(
        method=loaded.challenge.ranking.method,
        tasks=tasks,
        table=ranked_table(tuple(task.ranked for task in tasks), tables, how),
        pending=standings.pending,
    )


def _rule(request: RunRankRequest, loaded: LoadedChallenge) -> RankingRule:
    rule = loaded.challenge.ranking
    return rule if request.alpha is None else rule.model_copy(update={"alpha": request.alpha})


def so_far(rows: Sequence[Row], task: str, loaded: LoadedChallenge, record: RunRecord) -> tuple[Row, ...]:
    """Rows as they would stand were nothing due of their pending cases.

    Returns:
        In the order of the submissions file; with an empty reason those that are in the ranking so far.
    """
    order = [submission.submission for submission in record.submissions]
    last = {row.submission.team: row.submission.submission for row in _in_order(rows, order) if _competes(row)}
    done = []
    for row in _in_order(rows, order):
        known = tuple(case for case in row.cases if not case.outcome.verdict.pending)
        reason = row.reason
        if len(known) < len(row.cases):
            rule = loaded.challenge.tasks[task]
            reason = why_not_ranked(row.submission, known, row.causality, rule, loaded) if known else "has no case yet"
            followed = loaded.challenge.ranking.counts == "last" and _competes(row)
            if not reason and followed and last[row.submission.team] != row.submission.submission:
                reason = f"was followed by {last[row.submission.team]}: the last submission of a team counts"
        done.append(replace(row, reason=reason))
    return tuple(done)


def _in_order(rows: Sequence[Row], order: Sequence[str]) -> list[Row]:
    return sorted(rows, key=lambda row: order.index(row.submission.submission))


def _competes(row: Row) -> bool:
    return row.submission.status.ranked


@dataclass(frozen=True, kw_only=True)
class _Board:
    """One task of a run being ranked."""

    request: RunRankRequest
    loaded: LoadedChallenge
    record: RunRecord
    cases: Mapping[str, Case]
    confine: Confine
    board: Board

    def ranked(self) -> tuple[RunTask, ScoreTable]:
        """The task ranked, and the scores it was ranked by."""
        board, request = self.board, self.request
        rows = so_far(board.rows, board.task, self.loaded, self.record)
        competing = [row for row in rows if not row.reason]
        task, primary = self.loaded.challenge.tasks[board.task], board.metrics[0]
        left_out = self._left_out(competing)
        cases = tuple(name for name in self.cases if name not in left_out)
        # Those that the policy alone keeps out are handed to it, so that it can be compared with others.
        listed = [row for row in rows if not row.reason or self._lacks_cases_only(row, task)]
        names = tuple(row.submission.submission for row in listed)
        if names and not cases:
            raise UsageError(
                f"task {board.task!r} has no case to rank over: every one is pending, or its {primary.name} is not "
                "defined",
                where=str(request.run.root),
                remedy=f"proctor resume {request.run.root}",
            )
        table = ScoreTable.of(names, cases, [[_value(row, case, primary.name) for case in cases] for row in listed])
        rule = _rule(request, self.loaded)
        how = RankRequest(
            table=request.run.scores, columns=Columns(), metric=None, rule=rule,
            higher_is_better=primary.higher_is_better, missing=task.missing_case, worst=primary.worst,
            resamples=request.resamples, seed=request.seed, challenger=request.challenger,
            questions=request.questions,
        )  # fmt: skip
        ranked = rank_task(board.task, table, how, chance=primary.chance)
        if request.runs is not None:
            ranked = replace(ranked, random_runs=self._random_runs(competing, how, request.runs))
        in_it = {team.team for team in ranked.teams}
        return RunTask(
            ranked=ranked,
            metric=primary.name,
            resubmitted=tuple(
                row.submission.submission for row in competing if row.resubmitted and row.submission.submission in in_it
            ),
            unranked={row.submission.submission: row.reason for row in rows if row.reason},
            left_out=left_out,
            own_figure=board.aggregates,
        ), table  # fmt: skip

    def _lacks_cases_only(self, row: Row, task: Task) -> bool:
        if task.missing_case is not MissingCase.FAIL or self.loaded.challenge.ranking.counts == "last":
            return False
        known = tuple(case for case in row.cases if not case.outcome.verdict.pending)
        lenient = task.model_copy(update={"missing_case": MissingCase.WORST})
        return bool(known) and not why_not_ranked(row.submission, known, row.causality, lenient, self.loaded)

    def _left_out(self, competing: Sequence[Row]) -> tuple[str, ...]:
        name = self.board.metrics[0].name
        out = {
            case.outcome.case
            for row in competing
            for case in row.cases
            if case.outcome.verdict.pending or (case.score is not None and case.score.values[name] is None)
        }
        return tuple(name for name in self.cases if name in out)

    def _random_runs(self, competing: Sequence[Row], how: RankRequest, wanted: RunsWanted) -> RandomRuns:
        """Score every competing row over the same windows, drawn from the cases that all of them have."""
        task = self.board.task
        if self.loaded.challenge.tasks[task].scorer_image is not None:
            raise UsageError(
                f"task {task!r} has a scorer in a container, which scores whole cases only",
                remedy="leave --random-runs out",
            )
        shared = [
            name for name in self.cases
            if competing and all(c.score is not None for row in competing for c in row.cases if c.outcome.case == name)
        ]  # fmt: skip
        read = {name: self._read(name, competing) for name in shared}
        lengths = {name: _frames(reference, task) for name, (reference, _) in read.items()}
        kept: list[Window] = []
        values: list[list[float]] = []
        drawn = 0
        for window in islice(draw_windows(lengths, length=wanted.length, seed=how.seed), wanted.number * _DRAWS):
            drawn += 1
            scores = self._score(window, *read[window.case])
            if None not in scores:
                kept.append(window)
                values.append([score for score in scores if score is not None])
            if len(kept) == wanted.number:
                break
        require_windows(task, kept, wanted, drawn=drawn, where=str(self.request.run.root))
        names = tuple(row.submission.submission for row in competing)
        table = ScoreTable.of(names, tuple(window.name for window in kept), np.array(values).T)
        return runs_tested(tuple(kept), table, how, undefined=drawn - len(kept))

    def _read(self, name: str, competing: Sequence[Row]) -> tuple[Prediction, list[Prediction]]:
        task, case = self.loaded.challenge.tasks[self.board.task], self.cases[name]
        reference = reference_of(self.confine, task, self.board.task, case)
        predictions = []
        for row in competing:
            (outcome,) = (one.outcome for one in row.cases if one.outcome.case == name)
            path = kept_prediction(self.request.run, outcome, task.format)
            prediction = read_again(self.confine, task.format, path, due=due_of(case)).prediction
            assert prediction is not None, "the board was worked out from it"
            predictions.append(prediction)
        return reference, predictions

    def _score(self, window: Window, reference: Prediction, predictions: Sequence[Prediction]) -> list[float | None]:
        cut = cut_to(reference, window)
        return [
            score_case(
                self.confine, self.loaded, self.board.task, cut, cut_to(one, window), frames=window.length
            ).values[self.board.metrics[0].name]
            for one in predictions
        ]  # fmt: skip


def _value(row: Row, case: str, metric: str) -> float:
    (found,) = (one for one in row.cases if one.outcome.case == case)
    value = found.score.values[metric] if found.score is not None else None
    return np.nan if value is None else value


def _frames(prediction: Prediction, task: str) -> int:
    if isinstance(prediction, FrameTable | FrameScores | LabelImages):
        return prediction.frames
    raise UsageError(
        f"task {task!r} asks for one answer a case, so that there are no runs of frames to draw",
        remedy="leave --random-runs out",
    )


def cut_to(prediction: Prediction, window: Window) -> Prediction:
    """What a prediction says of the frames of a window.

    Raises:
        TypeError: It does not go by frames.
    """
    frames = window.frames
    match prediction:
        case FrameTable():
            return FrameTable(columns={name: column[frames] for name, column in prediction.columns.items()})
        case FrameScores():
            return FrameScores(scores=prediction.scores[frames])
        case LabelImages():
            return LabelImages(
                frames=window.length, read=lambda: islice(prediction.read(), frames.start, frames.stop)
            )  # fmt: skip
        case _:
            raise TypeError(f"{type(prediction).__name__} does not go by frames")
