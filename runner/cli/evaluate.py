"""``proctor evaluate``: every submission on every case, scores, ranks, report."""

from pathlib import Path
from typing import Annotated

import typer

from runner.cli.options import Challenge, Json, Network, Set, Settings, flags_of, network_of


def evaluate(
    challenge: Challenge,
    data: Annotated[Path, typer.Option(help="Folder with the hidden inputs and references.", metavar="DIR")],
    submissions: Annotated[Path, typer.Option(help="Who takes part, YAML or CSV.", metavar="FILE")],
    out: Annotated[
        Path, typer.Option(help="The run folder; an unfinished run of the same challenge goes on.", metavar="RUN")
    ],
    settings: Settings = None,
    allow_cpu: Annotated[
        bool, typer.Option("--allow-cpu", help="Go on without the GPU the challenge asks for.")
    ] = False,
    seed: Annotated[
        int | None, typer.Option(help="The secret seed of the causality check; default: drawn and kept.")
    ] = None,
    build_untrusted: Annotated[
        bool,
        typer.Option("--build-untrusted", help="Build submissions that are folders; says what it risks."),
    ] = False,
    build_network: Network = "default",
    for_ensemble: Annotated[
        bool,
        typer.Option(
            "--for-ensemble", help="Only keep and score predictions, on other data, for proctor ensemble --fit."
        ),
    ] = False,
    set_: Set = None,
    json: Json = False,
) -> None:
    """Run every submission on hidden data, judge, score, rank and write the report.

    Example: [bold]proctor evaluate pitvis2023 --data hidden --submissions teams.yaml --out final[/]

    Exit codes: 0 every case has a verdict (a rejection is a result), 5 some are pending.
    """
    from runner.cli.boundary import stop_on_signals
    from runner.cli.outcome import show_finished, watching
    from runner.engine.docker import connect
    from runner.pipeline import evaluate as flow
    from runner.pipeline.record import EvaluateRequest

    request = EvaluateRequest(
        challenge=challenge, data=data, submissions=submissions, out=out, settings_file=settings, flags=flags_of(set_),
        allow_cpu=allow_cpu, seed=seed, build_untrusted=build_untrusted, build_network=network_of(build_network),
        for_ensemble=for_ensemble,
    )  # fmt: skip
    with stop_on_signals() as stop, watching(stop) as observe:
        finished = flow.evaluate(request, connect=lambda url: connect(url or None), stop=stop, observe=observe)
    raise typer.Exit(show_finished(finished, as_json=json))
