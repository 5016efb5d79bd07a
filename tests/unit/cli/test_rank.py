"""The words of ``proctor rank``, what it refuses, and what it shows of names that strangers chose."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from runner.cli.rank import _combined, rank
from runner.errors import UsageError
from runner.pipeline.rank import Combined
from tests.unit.ranking.test_against_oracles import ORACLES

PETRAW = (str(ORACLES / "petraw_results.csv"), "--case", "sequence", "--value", "ad_accuracy", "--resamples", "50")


def run(*arguments: str) -> str:
    """What the command prints; its errors are raised."""
    application = typer.Typer()
    application.command()(rank)
    done = CliRunner().invoke(application, list(arguments), env={"NO_COLOR": "1", "COLUMNS": "200"})
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.output


def words(text: str) -> list[str]:
    """The lines without what aligns them."""
    return [" ".join(line.split()) for line in text.splitlines()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dice", Combined(metric="dice")),
        ("dice=2.5", Combined(metric="dice", weight=2.5)),
        ("distance:lower", Combined(metric="distance", higher_is_better=False)),
        ("a=b=3:lower", Combined(metric="a=b", weight=3.0, higher_is_better=False)),
    ],
)
def test_a_metric_its_weight_and_its_direction(text: str, expected: Combined) -> None:
    assert _combined([text]) == (expected,)


@pytest.mark.parametrize("text", ["", "=2", "dice=", "dice=0", "dice=-1", "dice=nan", "dice=inf", "dice=x", ":lower"])
def test_a_weight_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not NAME, NAME=WEIGHT or NAME=WEIGHT:lower"):
        _combined([text])


def test_a_metric_is_named_once() -> None:
    with pytest.raises(UsageError, match="names 'dice' twice"):
        _combined(["dice", "dice=2"])


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("--significance", "both"), "--significance 'both' is not known"),
        (("--adjust", "bonferroni"), "--adjust 'bonferroni' is not known"),
        (("--alpha", "1"), "--alpha 1.0 is not between 0 and 1"),
        (("--method", "best"), "--method 'best' is not known"),
        (("--ties", "max"), "--ties 'max' is not known"),
        (("--missing", "chance"), "--missing 'chance' is not known"),
        (("--provisional",), "--provisional is for a run folder"),
        (("--random-runs", "30"), "there is no column 'frame'"),
        (("--frame", "x"), "--random-runs goes with --frame, and not with --combine"),
        (("--random-runs", "30", "--combine", "x"), "--random-runs goes with --frame, and not with --combine"),
        (
            ("--method", "test_based", "--adjust", "benjamini-hochberg"),
            "--method test_based cannot adjust by benjamini",
        ),
    ],
)
def test_what_is_not_known_is_told(arguments: tuple[str, ...], what: str) -> None:
    with pytest.raises(UsageError) as caught:
        run(*PETRAW, *arguments)
    assert caught.value.what.startswith(what)
    assert caught.value.remedy


@pytest.mark.parametrize(
    "option", [("--method", "test_based"), ("--lower-is-better",), ("--team", "x"), ("--worst", "0")]
)
def test_a_run_is_ranked_as_its_challenge_says(tmp_path: Path, option: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match=f"{option[0]} is for a table"):
        run(str(tmp_path), *option)


def test_a_folder_that_is_no_run_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"is not a run folder: it has no run\.json"):
        run(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_the_tasks_of_a_team_stand_below_the_ranks() -> None:
    lines = words(run(*PETRAW, "--compare-tasks"))
    assert "tasks of one team, two-sided signed-rank tests, not adjusted" in lines
    assert "SK 1, 2 60 90.7678, 89.6595 0.052" in lines
    assert "SK 4, 5 60 91.6125, 91.3705 0.273" in lines
    assert "Hutom 1, 4 60 90.5077, 91.3403 0.002 significant" in lines


def test_a_map_is_shown_best_first() -> None:
    lines = words(run(*PETRAW, "--significance", "one-sided"))
    head = "row better than column, p of signed-rank tests, holm over 20 tests, differences to 6 decimals, * p ≤ 0.05"
    at = lines.index(head)
    assert lines[at + 1] == "SK Hutom MediCIS NCC_NEXT MedAIR"
    assert lines[at + 2].startswith("SK ")


def test_the_same_for_programs() -> None:
    found = json.loads(run(*PETRAW, "--compare-tasks", "--significance", "two-sided", "--json"))
    assert len(found["task_comparisons"]) == 43
    task = found["tasks"][1]
    assert (task["significance"]["alternative"], task["significance"]["tests"]) == ("two-sided", 15)
    assert task["significance"]["p"][0][0] is None
    assert task["influences"][0]["sentence"] == "without case 006 the order of 3 and 4 flips (MediCIS, SK)"
    assert task["influences"][0]["flips"] == [["MediCIS", "SK"]]
    assert 0.8 < task["kendall_tau"]["mean"] < 1.0
    assert task["kendall_tau"]["undefined"] == 0
    assert (task["policies"], task["combined"]) == ([], None)


def test_policies_and_combined_metrics_are_shown_and_names_do_nothing(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    evil = "\x1b[31m[bold]x"
    path.write_text(
        "metric,team,case,value\n"
        + "".join(f"{m},{team},{case},{value}\n" for m in ("[red]m", "n") for team, case, value in
                  ((evil, "1", "0.9"), (evil, "2", ""), ("b", "1", "0.5"), ("b", "2", "0.6")))
    )  # fmt: skip
    text = run(
        str(path), "--combine", "[red]m", "--combine", "n=2", "--missing", "exclude", "--policies", "--significance",
        "one-sided",
    )  # fmt: skip
    assert "\x1b" not in text
    lines = words(text)
    assert "missing as exclude, 1 cases: 1 ␛[31m[bold]x, 2 b" in lines
    assert "missing as fail, 2 cases: 1 b; 2 ranks differ" in lines
    assert "missing as worst: not possible, missing_case: worst needs a value, and the scorer states None" in lines
    assert "metrics combined, 1 cases, weighted mean of ranks" in lines
    assert any(line.startswith("rank team mean rank [red]m n") for line in lines)
    assert any(line.startswith("1 ␛[31m[bold]x 1.0000 1 1") for line in lines)


@pytest.mark.parametrize(("adjust", "wins"), [((), 12), (("--adjust", "none"), 12), (("--adjust", "holm"), 11)])
def test_a_ranking_by_tests_adjusts_as_it_is_asked(adjust: tuple[str, ...], wins: int) -> None:
    found = json.loads(run(*PETRAW, "--method", "test_based", "--json", *adjust))
    assert sum(team["value"] * 5 for team in found["tasks"][1]["teams"]) == pytest.approx(wins)
