"""``proctor score``: scores and ranks a run again, or files that somebody already has; runs nobody's method."""

from pathlib import Path
from typing import Annotated

import typer

from runner.cli.options import Json


def score(
    what: Annotated[
        str,
        typer.Argument(
            metavar="RUN|CHALLENGE", help="A run folder; or, with --predictions, a challenge: name, folder or archive."
        ),
    ],
    predictions: Annotated[
        Path | None,
        typer.Option(
            help="Files as a container would write them, of one team, or a folder of such folders.", metavar="DIR"
        ),
    ] = None,
    references: Annotated[
        Path | None,
        typer.Option(help="With --predictions: the data folder; its inputs may be missing.", metavar="DIR"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="With --predictions: a new folder for scores, leaderboard and report.", metavar="DIR"),
    ] = None,
    challenge: Annotated[
        str | None,
        typer.Option(help="A mended challenge whose scorer and rules are used in place of the run's copy."),
    ] = None,
    json: Json = False,
) -> None:
    """Score, rank and report a run again from its files, or files that somebody already has.

    No engine is needed, but for a scorer that runs in a container, where its scores on disk do not fit any more.

    Example: [bold]proctor score final --challenge ./pitvis2023[/]

    Example: [bold]proctor score robseg2018 --predictions teams --references data --out scored[/]
    """
    import threading

    from runner.catalog import find_challenge, load_challenge
    from runner.cli.boundary import stop_on_signals
    from runner.cli.outcome import show_finished, watching
    from runner.engine import Engine
    from runner.errors import UsageError
    from runner.pipeline import evaluate as flow
    from runner.pipeline import score_files as files
    from runner.pipeline.scorer_container import EngineDoor
    from runner.store import RunFolder

    def connect(url: str) -> Engine:
        from runner.engine import docker

        return docker.connect(url or None)

    door = EngineDoor(connect=connect, stopping=stop_on_signals)
    if predictions is None:
        if references is not None or out is not None:
            raise UsageError("--references and --out go with --predictions", remedy="name the files with --predictions")
        mended = load_challenge(find_challenge(challenge)) if challenge else None
        with watching(threading.Event()) as observe:
            finished = flow.score_again(RunFolder(root=Path(what)), observe, challenge=mended, door=door)
    else:
        if references is None or out is None:
            raise UsageError(
                "--predictions needs --references, the data folder, and --out, a new folder for what comes of it",
                remedy="proctor score CHALLENGE --predictions DIR --references DIR --out DIR",
            )
        if challenge is not None:
            raise UsageError(
                "--challenge goes with a run folder", remedy="name the challenge in its place: score CHALLENGE"
            )
        request = files.FilesRequest(
            loaded=load_challenge(find_challenge(what)), predictions=predictions, references=references, out=out
        )
        with watching(threading.Event()) as observe:
            finished = files.score_files(request, observe, door=door)
    raise typer.Exit(show_finished(finished, as_json=json))
