"""Scores files that somebody already has, of one team or of a folder of teams: a run without their containers."""

from dataclasses import dataclass
from pathlib import Path

from runner.catalog import LoadedChallenge
from runner.confine import Confine
from runner.dataset import Case
from runner.errors import UsageError
from runner.pipeline.evaluate import Finished, finish
from runner.pipeline.events import Observer, RunsPlanned, Step
from runner.pipeline.handed_in import Reception, output_of
from runner.pipeline.record import record_of_files
from runner.pipeline.references import cases_of_references
from runner.pipeline.scorer_container import EngineDoor, settle_scores_apart
from runner.store import RunFolder, locked
from runner.submissions import Submission


@dataclass(frozen=True, kw_only=True)
class FilesRequest:
    """What ``proctor score CHALLENGE --predictions`` is asked for.

    Attributes:
        loaded: The challenge.
        predictions: Files of one team as its container would write them, or a folder of such folders, a team each.
        references: The data folder; its inputs may be missing.
        out: A new folder for the run.
    """

    loaded: LoadedChallenge
    predictions: Path
    references: Path
    out: Path


def score_files(request: FilesRequest, observe: Observer, *, door: EngineDoor) -> Finished:
    """Read, judge, score and rank handed-in files.

    Args:
        request: What is asked for.
        observe: Is told what happens.
        door: How scorers in containers come by an engine; others need none.

    Raises:
        UsageError: A folder is missing, or holds nothing that is due; or a run is there already.
        ScorerFault: The scorer failed.
    """
    run = RunFolder(root=request.out)
    if run.record.exists():
        # What was taken once is not taken again: new files beside old scores would be a trap.
        raise UsageError(
            f"{str(request.out)!r} holds a run already",
            remedy=f"give a new folder with --out; to score what it holds again: proctor score {request.out}",
        )
    with locked(run), Confine() as confine:
        cases = cases_of_references(confine, request.loaded, request.references)
        teams = teams_of(request.loaded, request.predictions, cases)
        observe(Step(text=f"{_counted(len(teams), 'team')}, {_counted(len(cases), 'case')}"))
        record = record_of_files(run, request.loaded, request.references, cases, teams)
        by_name = {case.name: case for case in cases}
        reception = Reception(
            run=run, challenge=request.loaded.challenge, cases=by_name, base=Path(), confine=confine, observe=observe
        )
        observe(
            RunsPlanned(
                total=sum(reception.count(team)[0] for team in teams), done=0, tasks=len(request.loaded.challenge.tasks)
            )
        )
        for team in teams:
            reception.settle(team)
        settle_scores_apart(
            run, record, loaded=request.loaded, cases=by_name, confine=confine, observe=observe, door=door
        )
        return finish(run, record, loaded=request.loaded, cases=by_name, confine=confine, observe=observe)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def teams_of(loaded: LoadedChallenge, folder: Path, cases: tuple[Case, ...]) -> tuple[Submission, ...]:
    """Who handed in: the folder itself where it holds a file that is due, else each folder in it that does.

    A link among those is nobody's: it may lead to the references.

    Raises:
        UsageError: Nobody.
    """
    if not folder.is_dir():
        raise UsageError(
            f"there is no folder of predictions {str(folder)!r}", remedy="give the folder with --predictions"
        )
    due = [
        output_of(task.format, name, case).path.replace("{case}", case.name)
        for name, task in loaded.challenge.tasks.items()
        for case in cases
    ]
    if any((folder / path).exists() for path in due):
        return (_team(folder),)
    found = [
        _team(below)
        for below in sorted(folder.iterdir())
        if below.is_dir() and not below.is_symlink() and any((below / path).exists() for path in due)
    ]
    if not found:
        raise UsageError(
            f"nothing that is due lies in {str(folder)!r} or in a folder of it, such as {due[0]!r}",
            where=str(folder),
            remedy="name the files as a container would write them, with the real name of each case",
        )
    return tuple(found)


def _team(folder: Path) -> Submission:
    return Submission(submission=folder.name, team=folder.name, predictions=str(folder.resolve()))
