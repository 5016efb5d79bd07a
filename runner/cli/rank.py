"""``proctor rank``: ranks a run, or any table of scores, with the uncertainty of every rank."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from runner.cli.options import Json

if TYPE_CHECKING:
    from runner.pipeline.rank import Combined, Questions, RunsWanted


def rank(
    table: Annotated[
        Path,
        typer.Argument(help="A CSV file with a row for each team and case, or a run folder.", metavar="SCORES.csv|RUN"),
    ],
    method: Annotated[
        str | None,
        typer.Option(
            help="mean_then_rank, median_then_rank, rank_then_mean, rank_then_median or test_based.",
            metavar="NAME",
            show_default="mean_then_rank",
        ),
    ] = None,
    lower: Annotated[bool, typer.Option("--lower-is-better", help="The smaller the value, the better.")] = False,
    metric: Annotated[
        str | None, typer.Option(help="Which metric, where the table holds several.", metavar="NAME")
    ] = None,
    combine: Annotated[
        list[str] | None,
        typer.Option(
            help="A metric of a combined ranking by the weighted mean of ranks; give it for each metric.",
            metavar="NAME[=WEIGHT][:lower]",
        ),
    ] = None,
    ties: Annotated[str | None, typer.Option(help="min or average.", metavar="NAME", show_default="min")] = None,
    precision: Annotated[
        int | None, typer.Option(help="Decimals that count; float noise splits no ties.", show_default="6")
    ] = None,
    missing: Annotated[
        str | None,
        typer.Option(
            help="A missing value: fail, exclude or worst (with --worst).", metavar="NAME", show_default="fail"
        ),
    ] = None,
    worst: Annotated[float | None, typer.Option(help="What --missing worst counts it as.")] = None,
    policies: Annotated[
        bool, typer.Option("--policies", help="Where values are missing: the ranks under every policy.")
    ] = False,
    significance: Annotated[
        str | None,
        typer.Option(help="Tests between the teams: one-sided or two-sided, signed-rank.", metavar="SIDES"),
    ] = None,
    adjust: Annotated[
        str | None,
        typer.Option(
            help="P-values: none, holm or benjamini-hochberg.",
            metavar="NAME",
            show_default="holm between teams, none between tasks",
        ),
    ] = None,
    alpha: Annotated[float | None, typer.Option(help="Level of every test.", show_default="0.05")] = None,
    compare_tasks: Annotated[
        bool, typer.Option("--compare-tasks", help="Test the tasks of each team against each other, two-sided.")
    ] = False,
    resamples: Annotated[int, typer.Option(help="How often cases are resampled; 0 for not at all.", min=0)] = 1000,
    seed: Annotated[int, typer.Option(help="For the random numbers; the same seed gives the same figures.")] = 0,
    challenger: Annotated[
        bool,
        typer.Option("--compat-challenger", help="Resample as challengeR 1.0.5 does, to compare with its figures."),
    ] = False,
    provisional: Annotated[
        bool, typer.Option("--provisional", help="Of a run: rank although cases are pending, and say so.")
    ] = False,
    random_runs: Annotated[
        int,
        typer.Option(
            help="Test over so many random runs of consecutive frames; a table then has a row a frame.",
            min=0,
            metavar="N",
        ),
    ] = 0,
    run_length: Annotated[int, typer.Option(help="Frames of each random run.", min=1)] = 100,
    frame: Annotated[
        str | None,
        typer.Option(help="Column of the frame, with --random-runs.", metavar="COLUMN", show_default="frame"),
    ] = None,
    team: Annotated[str | None, typer.Option(help="Column of the team.", metavar="COLUMN", show_default="team")] = None,
    case: Annotated[str | None, typer.Option(help="Column of the case.", metavar="COLUMN", show_default="case")] = None,
    value: Annotated[
        str | None, typer.Option(help="Column of the score.", metavar="COLUMN", show_default="value")
    ] = None,
    task: Annotated[
        str | None, typer.Option(help="Column of the task; may be missing.", metavar="COLUMN", show_default="task")
    ] = None,
    json: Json = False,
) -> None:
    """Rank a run or a table of scores, and say how sure every rank is.

    Example: [bold]proctor rank scores.csv --value ad_accuracy --case sequence[/]

    Example: [bold]proctor rank final --significance one-sided --random-runs 30[/]
    """
    from runner.errors import UsageError

    of_table = {
        "--method": method, "--lower-is-better": lower or None, "--metric": metric, "--combine": combine or None,
        "--ties": ties, "--precision": precision, "--missing": missing, "--worst": worst, "--team": team,
        "--case": case, "--value": value, "--task": task, "--frame": frame,
    }  # fmt: skip
    questions = _questions(
        significance=significance, adjust=adjust, combine=combine, compare_tasks=compare_tasks, policies=policies
    )
    if alpha is not None and not 0 < alpha < 1:
        raise UsageError(f"--alpha {alpha!r} is not between 0 and 1", remedy="give a level such as 0.05")
    if table.is_dir():
        given = [name for name, text in of_table.items() if text is not None]
        if given:
            raise UsageError(
                f"{given[0]} is for a table; a run is ranked as its challenge says",
                remedy=f"leave it out, or rank the run's table: proctor rank {table / 'scores.csv'} --team submission",
            )
        _rank_run(
            table, questions, alpha=alpha, resamples=resamples, seed=seed, challenger=challenger,
            provisional=provisional, runs=_runs(random_runs, run_length, None), as_json=json,
        )  # fmt: skip
        return
    if provisional:
        raise UsageError(
            f"--provisional is for a run folder, and {str(table)!r} is none",
            remedy="give the folder that proctor evaluate wrote",
        )
    if (frame is not None and not random_runs) or (combine and random_runs):
        raise UsageError(
            "--random-runs goes with --frame, and not with --combine",
            remedy="give a table with a row a frame and --random-runs 30, or one with a row a case and --combine",
        )
    _rank_table(
        table, questions, {"team": team, "case": case, "value": value, "task": task},
        {"method": method, "ties": ties, "precision": precision, "alpha": alpha}, metric=metric, lower=lower,
        missing=missing or "fail", worst=worst, resamples=resamples, seed=seed, challenger=challenger,
        runs=_runs(random_runs, run_length, frame), as_json=json,
    )  # fmt: skip


def _runs(number: int, length: int, column: str | None) -> "RunsWanted | None":
    from runner.pipeline.rank import RunsWanted

    return RunsWanted(number=number, length=length, column=column or "frame") if number else None


def _questions(
    *, significance: str | None, adjust: str | None, combine: Sequence[str] | None, compare_tasks: bool, policies: bool
) -> "Questions":
    """What is asked beside the ranks.

    Raises:
        UsageError: A word is not known.
    """
    from runner.errors import UsageError
    from runner.pipeline.rank import Questions
    from runner.ranking.signed_rank import Alternative
    from runner.ranking.significance import Adjustment

    sides = {"one-sided": Alternative.GREATER, "two-sided": Alternative.TWO_SIDED}
    if significance is not None and significance not in sides:
        raise UsageError(
            f"--significance {significance!r} is not known", remedy=f"give one of: {', '.join(sides)}"
        )  # fmt: skip
    words = [one.value for one in Adjustment]
    if adjust is not None and adjust not in words:
        raise UsageError(f"--adjust {adjust!r} is not known", remedy=f"give one of: {', '.join(words)}")
    return Questions(
        significance=None if significance is None else sides[significance],
        adjustment=None if adjust is None else Adjustment(adjust),
        compare_tasks=compare_tasks,
        policies=policies,
        combine=_combined(combine or ()),
    )


def _combined(texts: Sequence[str]) -> "tuple[Combined, ...]":
    """Metrics as ``NAME[=WEIGHT][:lower]``.

    Raises:
        UsageError: A weight is no number above 0, or a metric is named twice.
    """
    import math

    from runner.errors import UsageError
    from runner.pipeline.rank import Combined

    found: list[Combined] = []
    for text in texts:
        plain = text.removesuffix(":lower")
        name, weight = plain.rsplit("=", 1) if "=" in plain else (plain, "1")
        try:
            number = float(weight)
        except ValueError:
            number = math.nan
        if not name or not math.isfinite(number) or number <= 0:
            raise UsageError(
                f"--combine {text!r} is not NAME, NAME=WEIGHT or NAME=WEIGHT:lower with a weight above 0",
                remedy="write it like --combine dice=2 --combine distance:lower",
            )
        if name in [one.metric for one in found]:
            raise UsageError(f"--combine names {name!r} twice", remedy="give it once, with the sum of the weights")
        found.append(Combined(metric=name, weight=number, higher_is_better=plain == text))
    return tuple(found)


def _rank_run(
    folder: Path, questions: "Questions", *, alpha: float | None, resamples: int, seed: int, challenger: bool,
    provisional: bool, runs: "RunsWanted | None", as_json: bool,
) -> None:  # fmt: skip
    from runner.cli.ranked import run_value, show_run
    from runner.cli.screen import show_json
    from runner.pipeline.rank_run import RunRankRequest, rank_run
    from runner.store import RunFolder

    ranked = rank_run(
        RunRankRequest(
            run=RunFolder(root=folder), resamples=resamples, seed=seed, challenger=challenger, questions=questions,
            alpha=alpha, provisional=provisional, runs=runs,
        )
    )  # fmt: skip
    if as_json:
        show_json(run_value(ranked))
        return
    show_run(ranked)


def _rank_table(
    path: Path, questions: "Questions", columns: dict[str, str | None], rule: dict[str, str | int | float | None], *,
    metric: str | None, lower: bool, missing: str, worst: float | None, resamples: int, seed: int, challenger: bool,
    runs: "RunsWanted | None", as_json: bool,
) -> None:  # fmt: skip
    from runner.challenge import MissingCase, RankingRule
    from runner.cli.ranked import ranked_value, show_ranked
    from runner.cli.screen import show_json
    from runner.errors import UsageError
    from runner.pipeline.long_table import Columns
    from runner.pipeline.rank import METHODS, RankRequest, rank_table

    rule = {"method": "mean_then_rank", **{name: given for name, given in rule.items() if given is not None}}
    if rule["method"] not in METHODS:
        raise UsageError(f"--method {rule['method']!r} is not known", remedy=f"give one of: {', '.join(METHODS)}")
    if rule["method"] == "test_based" and questions.adjustment is not None:
        if questions.adjustment not in ("none", "holm"):
            raise UsageError(
                f"--method test_based cannot adjust by {questions.adjustment.value}",
                remedy="give --adjust none or holm",
            )
        rule["adjust"] = questions.adjustment.value
    if rule.get("ties", "min") not in ("min", "average"):
        raise UsageError(f"--ties {rule['ties']!r} is not known", remedy="give min or average")
    known = (MissingCase.FAIL, MissingCase.EXCLUDE, MissingCase.WORST)
    if missing not in known:
        raise UsageError(f"--missing {missing!r} is not known", remedy=f"give one of: {', '.join(known)}")
    ranked = rank_table(
        RankRequest(
            table=path, columns=Columns(**{name: given for name, given in columns.items() if given is not None}),
            metric=metric, rule=RankingRule.model_validate(rule), higher_is_better=not lower,
            missing=MissingCase(missing), worst=worst, resamples=resamples, seed=seed, challenger=challenger,
            questions=questions, runs=runs,
        )
    )  # fmt: skip
    if as_json:
        show_json(ranked_value(ranked))
        return
    show_ranked(ranked, str(rule["method"]))
