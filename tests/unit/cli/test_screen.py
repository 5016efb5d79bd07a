"""What a person sees of text that strangers chose: the text itself, and nothing that moves, colours or hides."""

import io
import json
import shutil
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from runner.cli.boundary import run_cli, tell_error
from runner.cli.init import _values
from runner.cli.outcome import stage_lines
from runner.cli.screen import ProgressScreen, board_table, safe, show_json
from runner.errors import UsageError
from runner.pipeline.check import Stage, StageState
from runner.pipeline.events import CaseEnded, CausalityEnded, HostFailed, Notice, Step
from runner.pipeline.standings import Board, Row
from runner.safe_text import for_terminal
from runner.scoring.contract import Metric
from runner.submissions import Submission
from runner.verdict import Hint, Verdict, VerdictWord

ROOT = Path(__file__).resolve().parents[3]
EVIL = "\x1b[2J\x1b]0;title\x07\x9b31m\u202eevil\u2066[bold red]x[/][/nothing]:bug:\n<script>\r\u2028end\\"
SHOWN = for_terminal(EVIL)


def invisible(text: str) -> set[str]:
    return {character for character in text if unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"}}


@settings(max_examples=300)
@given(st.text() | st.text("\\[]/a=@#: b(){}'\"1"))
@pytest.mark.parametrize(
    ("before", "after", "plain"),
    [("", "", "{}"), ("[dim]", "[/]", "{}"), ("[red]x[/] ", "[dim]y[/]", "x {}y"), ("[bold]", "[/] z", "{} z")],
)
def test_markup_shows_the_text_and_takes_none_from_it(before: str, after: str, plain: str, text: str) -> None:
    found = Text.from_markup(f"{before}{safe(text)}{after}", emoji=False)
    assert found.plain == plain.replace("{}", for_terminal(text))
    assert {str(span.style) for span in found.spans if span.start < span.end} <= {"dim", "red", "bold"}


@settings(max_examples=300)
@given(st.lists(st.text() | st.text("\\[]/a ="), min_size=2, max_size=3))
def test_two_texts_make_no_tag_together(texts: list[str]) -> None:
    found = Text.from_markup(" ".join(map(safe, texts)), emoji=False)
    assert found.plain == " ".join(map(for_terminal, texts))
    assert [span for span in found.spans if span.start < span.end] == []


def test_a_tag_that_two_names_make_ends_no_program() -> None:
    rows = tuple(
        Row(
            submission=Submission(submission=name, team="b]", image="x:1"),
            rank=rank, reason="", values={}, cases=(), causality=None,
        )
        for name, rank in (("[/a", 1.0), ("[/a", None))
    )  # fmt: skip
    sink = io.StringIO()
    Console(file=sink, width=200).print(board_table(Board(task="t", metrics=(), rows=rows)))
    assert "[/a (b])" in sink.getvalue()


def test_an_error_is_told_without_a_byte_that_acts(capsys: pytest.CaptureFixture[str]) -> None:
    tell_error(UsageError(EVIL, where=EVIL, remedy=EVIL))
    told = capsys.readouterr().err
    assert invisible(told) == {"\n"}
    assert told.count(SHOWN) == 3


def test_progress_is_told_without_a_byte_that_acts(capsys: pytest.CaptureFixture[str]) -> None:
    verdict = Verdict(word=VerdictWord.CRASHED, sentence=EVIL)
    with ProgressScreen() as screen:
        screen(Step(text=EVIL))
        screen(Notice(text=EVIL))
        screen(CaseEnded(submission=EVIL, team=EVIL, task=EVIL, case=EVIL, verdict=verdict, seconds=1.0))
        screen(CausalityEnded(submission=EVIL, case=EVIL, sentence=EVIL))
        screen(HostFailed(submission=EVIL, case=EVIL, text=EVIL, again=False))
    told = capsys.readouterr().err
    assert invisible(told) == {"\n"}
    assert told.count(SHOWN) == 11


def test_a_leaderboard_is_shown_without_a_byte_that_acts() -> None:
    submission = Submission(submission=EVIL, team=EVIL, image="x:1")
    rows = tuple(
        Row(submission=submission, rank=rank, reason=EVIL, values={}, cases=(), causality=None) for rank in (1.0, None)
    )
    metric = Metric(name=EVIL, title=EVIL, worst=0, chance=None, higher_is_better=True)
    sink = io.StringIO()
    board = Board(task=EVIL, metrics=(metric,), rows=rows, excluded=(EVIL,))
    Console(file=sink, width=1000, emoji=False).print(board_table(board))
    assert invisible(sink.getvalue()) == {"\n"}
    assert sink.getvalue().count(SHOWN) == 8


def test_a_stage_is_shown_without_a_byte_that_acts() -> None:
    stage = Stage(name="run", state=StageState.FAILED, sentence=EVIL, hints=(Hint(cause=EVIL, fix=EVIL),), log=EVIL)
    lines = [Text.from_markup(line, emoji=False).plain for line in stage_lines(stage)]
    assert invisible("".join(lines)) == set()
    assert "".join(lines).count(SHOWN) == 3
    assert "  | <script>" in lines


def test_json_for_programs_is_harmless_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    show_json({"log": EVIL, "name": "é"})
    told = capsys.readouterr().out
    assert invisible(told) == {"\n"}
    assert json.loads(told) == {"log": EVIL, "name": "é"}
    assert "é" in told


def test_a_template_is_filled_with_text_that_is_no_markup() -> None:
    values = _values([("task a|b", "[x](http://y)\n| z |")], "T\nRUN rm -rf / [x](y) <b>")
    assert values["title"] == "T␊RUN rm -rf / [x](y) <b>"
    assert values["heading"] == r"T␊RUN rm -rf / \[x\](y) &lt;b&gt;"
    assert values["rules"] == "| what | rule |\n|---|---|\n" r"| task a\|b | \[x\](http\://y)␊\| z \| |"


def test_a_challenge_is_shown_without_a_byte_that_acts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "toy"
    shutil.copytree(ROOT / "challenges/pitvis2023", folder)
    text = (folder / "challenge.yaml").read_text(encoding="utf-8")
    title = next(line for line in text.splitlines() if line.startswith("title:"))
    (folder / "challenge.yaml").write_text(text.replace(title, f"title: {json.dumps(EVIL)}"), encoding="utf-8")
    assert run_cli(["challenge", "show", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert invisible(shown) == {"\n"}
    assert shown.startswith(SHOWN + "\n")
    assert run_cli(["challenge", "show", str(folder), "--json"]) == 0
    shown = capsys.readouterr().out
    assert invisible(shown) == {"\n"}
    assert json.loads(shown)["title"] == EVIL
