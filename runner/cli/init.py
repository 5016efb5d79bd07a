"""``proctor init``: writes a folder to start from."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from runner.cli.options import Challenge, profile_of

if TYPE_CHECKING:
    from runner.challenge import Challenge as ChallengeRules


def init(
    challenge: Challenge,
    folder: Annotated[Path, typer.Argument(help="A new folder.", metavar="DIR")],
    profile: Annotated[
        str, typer.Option(help="stream: a container that is given its frames one by one.", metavar="default|stream")
    ] = "default",
) -> None:
    """Write a submission to start from: it builds and passes at once.

    Example: [bold]proctor init pitvis2023 my-method[/]
    """
    from runner.catalog import find_challenge, load_challenge
    from runner.cli.rules import rules
    from runner.submissions import Profile
    from runner.template import write_template

    streams = profile_of(profile) is Profile.STREAM
    loaded = load_challenge(find_challenge(challenge))
    values = {"challenge": challenge, **_values(rules(loaded.challenge), loaded.challenge.title)}
    if streams:
        values["answers"] = _answers(loaded.challenge)
    else:
        _require_fit(loaded.challenge)
    written = write_template("stream" if streams else "batch", folder, values=values)
    for path in written:
        typer.echo(f"wrote {path}")
    name = folder.resolve().name.lower()
    asked = " --profile stream" if streams else ""
    typer.echo(f"\nnext\n  docker build -t {name} {folder}\n  proctor check {name} --challenge {challenge}{asked}")


_ANSWERED = {"int_time", "int_step", "int_instrument1", "int_instrument2"}
"""Columns of what the template writes."""


def _require_fit(challenge: "ChallengeRules") -> None:
    """Require that the template, as it is written, passes the challenge's check.

    Raises:
        UsageError: It would not.
    """
    from runner.challenge import FrameTableFormat
    from runner.errors import UsageError

    for name, task in challenge.tasks.items():
        rule = task.format
        columns = {rule.index.column, *rule.columns} if isinstance(rule, FrameTableFormat) else {rule.kind}
        if not columns <= _ANSWERED or rule.file != "{case}.csv" or challenge.invocation.args[-1:] != ("{output}.csv",):
            raise UsageError(
                f"there is no template yet that writes {rule.file} as task {name!r} of {challenge.name} asks",
                remedy=f"write a container by its rules: proctor challenge show {challenge.name}; to see how the parts "
                "fit: proctor init pitvis2023 DIR",
            )


def _answers(challenge: "ChallengeRules") -> str:
    """What the template for streams answers each frame, by task, as JSON.

    Raises:
        UsageError: The challenge does not stream, or the template cannot answer it.
    """
    import json

    from runner.challenge.streamed import example_answer
    from runner.errors import UsageError
    from runner.plan import shared_runs
    from runner.submissions import Profile

    remedy = f"write a container by its rules: proctor challenge show {challenge.name}"
    if challenge.invocation.stream is None:
        raise UsageError(f"{challenge.name} does not stream frames", remedy="leave --profile out")
    answers = {name: example_answer(task.format) for name, task in challenge.tasks.items()}
    for shared in shared_runs(challenge, tuple(challenge.tasks), profile=Profile.STREAM):
        if len(set(shared.files.values())) > 1 or any(answers[name] is None for name in shared.names):
            named = ", ".join(shared.names)
            raise UsageError(
                f"there is no template yet that streams answers for {named} of {challenge.name}", remedy=remedy
            )
    return "{\n" + ",\n".join(f"  {json.dumps(name)}: {json.dumps(answer)}" for name, answer in answers.items()) + "\n}"


def _values(rows: list[tuple[str, str]], title: str) -> dict[str, str]:
    from runner.safe_text import for_markdown, for_plain

    table = "\n".join(f"| {for_markdown(name)} | {for_markdown(value)} |" for name, value in rows)
    return {"title": for_plain(title), "heading": for_markdown(title), "rules": f"| what | rule |\n|---|---|\n{table}"}
