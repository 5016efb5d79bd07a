"""Tables of names that strangers chose: harmless in a spreadsheet and on a terminal, and still the same names."""

import csv
import io
import json
import unicodedata
from pathlib import Path

import pytest

from runner.judge import CaseOutcome
from runner.pipeline.publish import write_leaderboard, write_scores
from runner.pipeline.record import RunRecord
from runner.pipeline.standings import Board, Row, ScoredCase, Standings
from runner.scoring.contract import CaseScore, Metric
from runner.settings import Settings
from runner.store import RunFolder
from runner.submissions import read_submissions
from runner.verdict import Verdict, VerdictWord

HOSTILE = [
    "=cmd|' /C calc'!A0",
    "+1+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(1+1)*cmd|' /C calc'!A0",
    "\t=1+1",
    "\n=1+1",
    "a;=1+1",
    'a"\n=1+1,"=2',
    "<script>alert(1)</script>",
    "</script><script>alert(1)//",
    "\x1b[2J\x1b]0;title\x07red",
    "\x9b31m",
    "\u202egnp.exe\u2066",
    "two\nlines\r\nthree\u2028four",
    "zero\u200bwidth\ufeff",
]
METRICS = tuple(
    Metric(name=name, title=name, worst=-1.0, chance=None, higher_is_better=True) for name in ("mcc", "other")
)


def standings(tmp_path: Path, name: str) -> Standings:
    """One row of a submission whose name, team and case are this text, as the submissions file says them."""
    path = tmp_path / "teams.yaml"
    path.write_text(json.dumps({"submissions": [{"submission": name, "team": name, "image": "x:1"}]}))
    (submission,) = read_submissions(path, ("t",))
    assert (submission.submission, submission.team) == (name.strip(), name.strip())
    verdict = Verdict(word=VerdictWord.ACCEPTED, sentence=name)
    outcome = CaseOutcome(
        submission=submission.slug, task="t", case=name, verdict=verdict, digest="d", attempt=1, seconds=1.0, limit=2.0
    )
    values = {"mcc": -0.25, "other": 1.0}
    score = CaseScore(values=dict(values))
    row = Row(
        submission=submission, rank=None, reason=name, values=values,
        cases=(ScoredCase(outcome=outcome, score=score),), causality=None,
    )  # fmt: skip
    return Standings(boards=(Board(task="t", metrics=METRICS, rows=(row,), excluded=(name,)),), pending=())


def written(tmp_path: Path, name: str) -> RunFolder:
    run = RunFolder(root=tmp_path / "run")
    record = RunRecord(
        proctor="0", challenge="toy", challenge_version="1", challenge_digest="d", data=tmp_path, cases=(),
        submissions=(), base=tmp_path, settings=Settings(), sources={}, allow_cpu=True, started="",
    )  # fmt: skip
    found = standings(tmp_path, name)
    write_scores(run, found)
    write_leaderboard(run, record, found)
    return run


def invisible(text: str) -> set[str]:
    return {character for character in text if unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"}}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("separator", [",", ";"])
def test_no_cell_of_a_table_is_a_formula(tmp_path: Path, name: str, separator: str) -> None:
    run = written(tmp_path, name)
    for path in (run.scores, run.leaderboard_csv):
        text = path.read_text(encoding="utf-8")
        assert invisible(text) <= {"\n"}
        cells = [cell for row in csv.reader(io.StringIO(text), delimiter=separator) for cell in row]
        starts = [cell for cell in cells if cell.lstrip().startswith(("=", "+", "-", "@", "＝", "＋", "－", "＠"))]
        assert starts == (["-0.250000"] * (len(starts) > 0) if separator == "," else [])


@pytest.mark.parametrize("name", HOSTILE)
def test_a_row_stays_a_row_and_its_numbers_stay_numbers(tmp_path: Path, name: str) -> None:
    run = written(tmp_path, name)
    header, row = csv.reader(io.StringIO(run.leaderboard_csv.read_text(encoding="utf-8")))
    assert len(row) == len(header)
    assert (row[header.index("mcc")], row[header.index("other")]) == ("-0.250000", "1.000000")
    scores = list(csv.DictReader(io.StringIO(run.scores.read_text(encoding="utf-8"))))
    assert [float(entry["value"]) for entry in scores] == [-0.25, 1.0]


@pytest.mark.parametrize("name", HOSTILE)
def test_the_json_says_the_name_as_it_is_and_shows_every_character(tmp_path: Path, name: str) -> None:
    text = written(tmp_path, name).leaderboard_json.read_text(encoding="utf-8")
    assert invisible(text) <= {"\n"}
    assert "</script" not in text
    (board,) = json.loads(text)["boards"]
    (row,) = board["rows"]
    assert (row["submission"], row["team"], row["not_ranked_because"]) == (name.strip(), name.strip(), name)
    assert (board["excluded_cases"], row["cases"][0]["sentence"]) == ([name], name)
