"""Writes what standings say: scores and leaderboards as tables. The same standings give the same bytes."""

import csv
import io
from collections.abc import Iterable, Sequence

from pydantic import JsonValue

from runner.pipeline.looking_ahead import BY_CONSTRUCTION
from runner.pipeline.record import RunRecord
from runner.pipeline.standings import Board, Row, Standings
from runner.pipeline.streams import streams_of
from runner.safe_text import for_csv, for_json
from runner.store import RunFolder, write_whole

_DECIMALS = 6


def _csv(rows: Iterable[Sequence[str]]) -> bytes:
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    for row in rows:
        writer.writerow([for_csv(field) for field in row])
    return sink.getvalue().encode()


def show_number(value: float) -> str:
    """A score as the tables print it."""
    return f"{value:.{_DECIMALS}f}"


def show_rank(rank: float | None) -> str:
    """A rank: ``1``, ``2.5``, or nothing."""
    return "" if rank is None else f"{rank:g}"


def team_of(row: Row) -> str:
    """A row's team for people, with a star where it handed in again."""
    return f"{row.submission.team} *" if row.resubmitted else row.submission.team


def _verdicts(row: Row) -> str:
    words = [case.outcome.verdict.word.value for case in row.cases]
    return ", ".join(f"{word} {words.count(word)}" for word in dict.fromkeys(words))


def _scores(standings: Standings) -> Iterable[Sequence[str]]:
    yield ("task", "submission", "team", "status", "case", "verdict", "metric", "value")
    for board in standings.boards:
        for row in board.rows:
            entry = row.submission
            head = (board.task, entry.submission, entry.team, entry.status.value)
            for case in row.cases:
                word = case.outcome.verdict.word.value
                for metric in board.metrics:
                    value = case.score.values[metric.name] if case.score else None
                    shown = "" if value is None else show_number(value)
                    yield (*head, case.outcome.case, word, metric.name, shown)


def _leaderboard(standings: Standings) -> Iterable[Sequence[str]]:
    names = list(dict.fromkeys(metric.name for board in standings.boards for metric in board.metrics))
    yield (
        "task",
        "rank",
        "submission",
        "team",
        "status",
        *names,
        "accepted",
        "cases",
        "verdicts",
        "not_ranked_because",
    )
    for board in standings.boards:
        for row in board.rows:
            values = [show_number(row.values[name]) if name in row.values else "" for name in names]
            entry = row.submission
            yield (
                board.task, show_rank(row.rank), entry.submission, entry.team, entry.status.value, *values,
                str(row.accepted), str(len(row.cases)), _verdicts(row), row.reason,
            )  # fmt: skip


def row_value(row: Row) -> dict[str, JsonValue]:
    """A row of a leaderboard for programs."""
    causality: list[JsonValue] = [
        {"case": f.case, "outcome": f.verdict.outcome.value, "sentence": f.verdict.sentence, "pending": f.pending}
        for f in (row.causality.findings if row.causality else ())
    ]
    if row.causality and row.causality.by_construction:
        causality.append({"case": None, "outcome": "passed", "sentence": BY_CONSTRUCTION, "pending": False})
    cases: list[JsonValue] = [
        {
            "case": case.outcome.case,
            "verdict": case.outcome.verdict.word.value,
            "blame": case.outcome.verdict.blame.value,
            "sentence": case.outcome.verdict.sentence,
            "seconds": case.outcome.seconds,
            "limit": case.outcome.limit,
            "scores": dict(case.score.values) if case.score else None,
        }
        for case in row.cases
    ]
    return {
        "rank": row.rank,
        "submission": row.submission.submission,
        "team": row.submission.team,
        "status": row.submission.status.value,
        "resubmitted": row.resubmitted,
        "not_ranked_because": row.reason,
        "values": dict(row.values),
        "causality": causality,
        "cases": cases,
    }


def board_value(board: Board) -> dict[str, JsonValue]:
    """A leaderboard for programs."""
    return {
        "task": board.task,
        "metrics": [metric.name for metric in board.metrics],
        "excluded_cases": list(board.excluded),
        "rows": [row_value(row) for row in board.rows],
    }


def standings_value(record: RunRecord, standings: Standings) -> dict[str, JsonValue]:
    """The standings for programs; the file ``leaderboard.json``."""
    return {
        "challenge": record.challenge,
        "version": record.challenge_version,
        "digest": record.challenge_digest,
        "boards": [board_value(board) for board in standings.boards],
        "pending": list(standings.pending),
    }


def write_scores(run: RunFolder, standings: Standings) -> None:
    """Write ``scores.csv``."""
    write_whole(run.scores, _csv(_scores(standings)))


def write_leaderboard(run: RunFolder, record: RunRecord, standings: Standings) -> None:
    """Write ``leaderboard.csv`` and ``leaderboard.json``; while cases are pending there is none.

    An older leaderboard is removed then, so that nobody takes it for the present one.
    """
    if standings.pending:
        run.leaderboard_csv.unlink(missing_ok=True)
        run.leaderboard_json.unlink(missing_ok=True)
        return
    write_whole(run.leaderboard_csv, _csv(_leaderboard(standings)))
    text = for_json(standings_value(record, standings), indent=1)
    write_whole(run.leaderboard_json, text.encode() + b"\n")


_LATENCY = ("start_up", "first_frame", "mean", "p50", "p95", "p99", "longest", "period")


def write_latency(run: RunFolder, standings: Standings) -> None:
    """Write ``latency.csv``, a row a streamed case with times in seconds; none where nothing was streamed."""
    rows = []
    seen: set[tuple[str, str, str]] = set()
    for board in standings.boards:
        for row in board.rows:
            found = streams_of(run, (case.outcome for case in row.cases))
            for (task, case), facts in found.items():
                key = (row.submission.submission, task, case)
                if key not in seen:
                    seen.add(key)
                    times = [getattr(facts, name) for name in _LATENCY]
                    rows.append(
                        (
                            *key, *("" if one is None else f"{one:.6f}" for one in times), str(facts.released),
                            str(facts.answered), str(facts.missed), str(facts.over_period),
                            "yes" if facts.online_compatible else "no",
                        )
                    )  # fmt: skip
    if not rows:
        run.latency.unlink(missing_ok=True)
        return
    header = ("submission", "task", "case", *_LATENCY, "released", "answered", "missed", "over_period", "online")
    write_whole(run.latency, _csv([header, *rows]))
