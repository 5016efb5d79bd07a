"""Lays standings out as the view of the organisers' report, and writes it."""

from collections.abc import Mapping
from itertools import zip_longest

from runner.catalog import LoadedChallenge
from runner.challenge import (
    AnswersCompared,
    CausalityMethod,
    CausalityRule,
    Challenge,
    FrameTableFormat,
    MissingCase,
    Pacing,
    RankingRule,
)
from runner.confine import Confine
from runner.dataset import Case
from runner.formats.contract import FrameTable, Prediction, Problem, Role
from runner.formats.reading import read_output
from runner.gpu.words import used_in_words
from runner.images import PinnedImage
from runner.job import JobResult
from runner.judge import CaseOutcome, problem_words
from runner.pipeline.attempts import due_of, kept_prediction
from runner.pipeline.evidence import causality_sections, labels_of, latency_sections
from runner.pipeline.host import HostFacts
from runner.pipeline.publish import team_of
from runner.pipeline.record import RunRecord
from runner.pipeline.references import reference_of
from runner.pipeline.standings import Board, Row, ScoredCase, Standings
from runner.plan import budget_for, shortfalls, show_limit
from runner.policy import loosened, policy_named
from runner.report import segments_of
from runner.report.html import render
from runner.report.view import (
    CaseRow,
    Chip,
    Fact,
    HintLine,
    Leaderboard,
    PendingCase,
    ProblemLine,
    RankedLine,
    ReportView,
    Ribbon,
    SubmissionSection,
    TaskSection,
    Tone,
    UnrankedLine,
)
from runner.store import RunFolder, read_value, write_whole
from runner.verdict import Verdict

_BANNER = "contains hidden references, do not publish"
_MISSING_WORDS = {
    MissingCase.WORST: "A case without a valid prediction counts as the worst value of each metric.",
    MissingCase.CHANCE: "A case without a valid prediction counts as the chance value of each metric.",
    MissingCase.EXCLUDE: "A case for which a ranked submission has no valid prediction is left out for all.",
    MissingCase.FAIL: "A submission without a valid prediction for every case is not ranked.",
}


def write_report(
    run: RunFolder,
    record: RunRecord,
    standings: Standings,
    *,
    loaded: LoadedChallenge,
    cases: Mapping[str, Case],
    confine: Confine,
) -> None:
    """Write the organisers' report of a run."""
    view = _Layout(run, record, loaded.challenge, cases, confine).view(standings)
    write_whole(run.report, render(view).encode())


class _Layout:
    """Turns standings into a view; reads references and predictions for the ribbons."""

    def __init__(
        self, run: RunFolder, record: RunRecord, challenge: Challenge, cases: Mapping[str, Case], confine: Confine
    ) -> None:
        self._run, self._record, self._challenge = run, record, challenge
        self._cases, self._confine = cases, confine
        self._references: dict[tuple[str, str], Prediction] = {}

    def view(self, standings: Standings) -> ReportView:
        record, challenge = self._record, self._challenge
        pending = [
            PendingCase(
                submission=row.submission.submission, case=case.outcome.case, reason=case.outcome.verdict.sentence
            )
            for board in standings.boards
            for row in board.rows
            for case in row.cases
            if case.outcome.verdict.pending
        ]
        return ReportView(
            title=challenge.title,
            challenge=challenge.name,
            version=challenge.version,
            digest=record.challenge_digest,
            banner=_BANNER if challenge.data == "hidden" else "",
            run=self._facts(),
            leaderboards=tuple(self._leaderboard(board) for board in standings.boards),
            submissions=self._submissions(standings),
            assumptions=_assumptions(challenge),
            pending=tuple(pending),
        )

    def _facts(self) -> tuple[Fact, ...]:
        record = self._record
        facts = [
            Fact(name="started", value=record.started),
            Fact(name="proctor", value=record.proctor),
            Fact(name="cases", value=f"{len(record.cases)}, {sum(case.frames for case in record.cases)} frames"),
        ]
        if record.host is not None:
            engine = record.host.engine
            facts += [
                Fact(name="engine", value=f"{engine.name} {engine.version}, {engine.operating_system}"),
                Fact(name="output held by", value=record.host.output),
                Fact(name="policy", value=_policy(record.host)),
                Fact(name="system calls", value=f"filtered by {record.host.seccomp} profile"),
                Fact(name="GPUs", value=_gpus(record.host)),
                *self._tightened(),
            ]
        if self._challenge.reference_hardware:
            facts.append(Fact(name="reference hardware", value=self._challenge.reference_hardware))
        return tuple(facts)

    def _tightened(self) -> list[Fact]:
        assert self._record.host is not None
        limits, longest = self._challenge.limits, max(case.media_seconds for case in self._record.cases)
        budget = budget_for(limits, self._record.settings.ceiling, self._record.host.size, media_seconds=longest)
        return [
            Fact(
                name=f"{short.limit} here",
                value=f"{show_limit(short.limit, short.here)}, the challenge gives "
                f"{show_limit(short.limit, short.challenge)}",
            )
            for short in shortfalls(limits, budget, media_seconds=longest)
        ]

    def _leaderboard(self, board: Board) -> Leaderboard:
        primary, others = board.metrics[0], board.metrics[1:]
        task, rule = self._challenge.tasks[board.task], self._challenge.ranking
        higher = task.primary.higher_is_better
        ends = sorted((primary.worst, 1.0 if higher else 0.0))
        return Leaderboard(
            title=task.title or board.task,
            value_name=primary.title,
            value_decimals=min(4, rule.precision),
            better="higher is better" if higher else "lower is better",
            method=f"{_method(board, rule)}; ties: {rule.ties}; rounded to {rule.precision} decimals before ranking",
            metrics=tuple(metric.title for metric in others),
            strip=(ends[0], ends[1]) if ends[0] < ends[1] else None,
            ranked=tuple(
                RankedLine(
                    rank=row.rank,
                    team=team_of(row),
                    submission=row.submission.submission,
                    value=row.values[primary.name],
                    metrics=tuple(row.values.get(metric.name) for metric in others),
                    cases=tuple(value for case in row.cases if (value := _primary(case, primary.name)) is not None),
                )
                for row in board.rows
                if row.rank is not None
            ),
            unranked=tuple(
                UnrankedLine(
                    team=row.submission.team,
                    submission=row.submission.submission,
                    reason=row.reason,
                    value=row.values.get(primary.name),
                    metrics=tuple(row.values.get(metric.name) for metric in others),
                )
                for row in board.rows
                if row.rank is None
            ),
        )

    def _submissions(self, standings: Standings) -> tuple[SubmissionSection, ...]:
        rows: dict[str, list[tuple[Board, Row]]] = {}
        for board in standings.boards:
            for row in board.rows:
                rows.setdefault(row.submission.submission, []).append((board, row))
        return tuple(self._submission(entries) for entries in rows.values())

    def _submission(self, entries: list[tuple[Board, Row]]) -> SubmissionSection:
        submission = entries[0][1].submission
        image = self._run.image(submission.slug)
        facts = [Fact(name="image", value=submission.image or "none: files were handed in")]
        if image.is_file():
            facts.append(Fact(name="pinned as", value=read_value(image, PinnedImage).id))
        if submission.received:
            facts.append(Fact(name="received", value=submission.received))
        return SubmissionSection(
            submission=submission.submission,
            team=submission.team,
            status=submission.status.value,
            standing=_standing([row for _, row in entries]),
            facts=tuple(facts),
            tasks=tuple(self._task(board, row) for board, row in entries if row.cases),
            causality=tuple(
                section
                for board, row in entries
                if row.causality
                for section in causality_sections(
                    row.causality, self._challenge.tasks[board.task], fps=self._challenge.cases.fps or 1.0
                )
            ),
            latency=latency_sections(
                self._run, [case.outcome for _, row in entries for case in row.cases], realtime=self._realtime
            ),
        )

    @property
    def _realtime(self) -> bool:
        stream = self._challenge.invocation.stream
        return stream is not None and stream.pacing is Pacing.REALTIME

    def _task(self, board: Board, row: Row) -> TaskSection:
        task = self._challenge.tasks[board.task]
        return TaskSection(
            title=task.title or board.task,
            metrics=tuple(metric.title for metric in board.metrics),
            cases=tuple(self._case(board, case) for case in row.cases),
        )

    def _case(self, board: Board, case: ScoredCase) -> CaseRow:
        outcome = case.outcome
        verdict = outcome.verdict
        prediction, problems, count = self._prediction(board.task, outcome)
        return CaseRow(
            case=outcome.case,
            verdict=_verdict_chip(verdict),
            blame=verdict.blame.value,
            sentence=verdict.sentence,
            notes=verdict.notes,
            hints=tuple(HintLine(cause=hint.cause, fix=hint.fix) for hint in verdict.hints),
            problems=problems,
            problem_count=count,
            run_seconds=outcome.seconds,
            limit_seconds=outcome.limit or None,
            used=self._used(outcome),
            scores=tuple(case.score.values[metric.name] if case.score else None for metric in board.metrics),
            ribbons=self._ribbons(board.task, outcome.case, prediction),
        )

    def _used(self, outcome: CaseOutcome) -> tuple[str, ...]:
        """What the attempt that counts used besides time."""
        task, case = outcome.ran_as or (outcome.task, outcome.case)
        path = self._run.attempt(outcome.submission, task, case, "full", outcome.attempt) / "result.json"
        return used_in_words(read_value(path, JobResult).usage) if path.is_file() else ()

    def _prediction(self, task: str, outcome: CaseOutcome) -> tuple[Prediction | None, tuple[ProblemLine, ...], int]:
        rule = self._challenge.tasks[task].format
        path = kept_prediction(self._run, outcome, rule)
        drawn = isinstance(rule, FrameTableFormat)  # the others have no ribbon, and large ones take long to read
        if not outcome.attempt or not path.exists() or (outcome.verdict.accepted and not drawn):
            return None, (), 0
        due = due_of(self._cases[outcome.case])
        reading = read_output(self._confine, rule, path, due=due, role=Role.PREDICTION)
        problems = tuple(_problem_line(problem) for problem in reading.problems)
        return reading.prediction, problems, reading.problem_count

    def _reference(self, task: str, case: str) -> Prediction:
        if (task, case) not in self._references:
            told, found = self._challenge.tasks[task], self._cases[case]
            self._references[task, case] = reference_of(self._confine, told, task, found)
        return self._references[task, case]

    def _ribbons(self, task: str, case: str, prediction: Prediction | None) -> tuple[Ribbon, ...]:
        """The labels of each column over time; other predictions have no ribbon."""
        if not isinstance(prediction, FrameTable):
            return ()
        reference = self._reference(task, case)
        truth = reference.columns if isinstance(reference, FrameTable) else {}
        return tuple(
            Ribbon(
                title=name,
                frames=prediction.frames,
                fps=self._challenge.cases.fps or 1.0,
                labels=labels_of(self._challenge.tasks[task], name),
                reference=segments_of(truth[name]) if name in truth else None,
                prediction=segments_of(labels),
            )
            for name, labels in prediction.columns.items()
        )


def _problem_line(problem: Problem) -> ProblemLine:
    return ProblemLine(place=problem.column or "", what=problem_words(problem, with_value=True))


def _verdict_chip(verdict: Verdict) -> Chip:
    tone = Tone.GOOD if verdict.accepted else Tone.WAITING if verdict.pending else Tone.BAD
    return Chip(word=verdict.word.value, tone=tone)


def _standing(rows: list[Row]) -> Chip:
    if any(case.outcome.verdict.pending for row in rows for case in row.cases):
        return Chip(word="pending", tone=Tone.WAITING)
    if any(row.rank is not None for row in rows):
        return Chip(word="ranked", tone=Tone.GOOD)
    if any(row.values for row in rows) and all(row.submission.status.ranked is False for row in rows):
        return Chip(word="shown only", tone=Tone.NEUTRAL)
    return Chip(word="not ranked", tone=Tone.BAD)


def _gpus(host: HostFacts) -> str:
    named = zip_longest(host.gpus, host.gpu_names, fillvalue="")
    devices = "; ".join(f"{uuid} ({name})" if name else uuid for uuid, name in named)
    return f"{devices}{f'; given by {host.gpu_access}' if host.gpu_access else ''}" or "none used"


def _policy(host: HostFacts) -> str:
    """What the containers were held to, and what that allows beyond the strict policy."""
    return "; ".join([f"{host.policy.value}{_runtime(host.runtime)}", *loosened(policy_named(host.policy))])


def _runtime(name: str) -> str:
    return f", runtime {name}" if name else ""


def _primary(case: ScoredCase, metric: str) -> float | None:
    return case.score.values[metric] if case.score else None


def _method(board: Board, rule: RankingRule) -> str:
    if board.aggregates and rule.method == "mean_then_rank":
        return "the scorer's own figure over all cases, then rank"
    return rule.method.replace("_", " ")


def _significance(rule: RankingRule) -> str:
    """What a ranking by tests needs to be repeated."""
    if rule.method != "test_based":
        return ""
    adjusted = "without adjustment" if rule.adjust == "none" else f"adjusted by {rule.adjust.capitalize()}'s method"
    return f", one-sided Wilcoxon signed-rank tests at p ≤ {rule.alpha:g}, {adjusted}"


def _assumptions(challenge: Challenge) -> tuple[str, ...]:
    """The policies in sentences, for a methods section."""
    rule = challenge.ranking
    ties = "smallest rank" if rule.ties == "min" else "mean of their ranks"
    sentences = [
        f"Ranks follow {rule.method.replace('_', ' ')}{_significance(rule)}; ties take the {ties}.",
        "Run time is the engine's FinishedAt minus StartedAt; image pull and container creation do not count.",
        "A run that missed its limit by at most 20 %, or beside others, was repeated alone; the better time counts.",
    ]
    sentences += [f"Task {name}: {_MISSING_WORDS[task.missing_case]}" for name, task in challenge.tasks.items()]
    checked = challenge.causality
    if checked.method != "off":
        sentences.append(
            f"Causality was checked on {_cases(checked)}{_cuts(checked)}. A change was confirmed by repetition, and by "
            f"an altered future of the same length where another case could lend frames. A leak means: "
            f"{checked.on_leak.value}; a dependence on length: {checked.length_dependence.value}. "
            "A method that was given its frames one by one is causal by construction and was not cut."
        )
    sentences.append("A submission without any accepted case is not ranked.")
    which = "Every submission of a team is ranked" if rule.counts == "all" else "Of a team, the last submission counts"
    sentences.append(f"{which}; a star marks one that was handed in again.")
    return tuple(sentences)


def _cases(rule: CausalityRule) -> str:
    cases = "all cases" if rule.on == "all" else f"{rule.on} case{'s' if rule.on != 1 else ''}"
    return f"{cases}, drawn at random" if rule.on != "all" else cases


def _cuts(rule: CausalityRule) -> str:
    clip = f" of the first {rule.clip} frames" if rule.clip else ""
    match rule.method:
        case CausalityMethod.EXHAUSTIVE:
            compared = "the last answer" if rule.rule is AnswersCompared.LAST else "every answer"
            return f", by every prefix{clip}, {compared} of each compared with that for the whole"
        case CausalityMethod.CUT_RUN:
            return ", each cut once at a place of its own"
        case CausalityMethod.ALTERED_FUTURE:
            return f", with at most {rule.cuts} places{clip} from which on another case's frames were shown"
        case _:
            return f", with at most {rule.cuts} cuts{clip}"
