"""Reads the references of cases, and finds the cases of a data folder by them alone, for files that were handed in."""

from dataclasses import replace
from pathlib import Path

from runner.catalog import LoadedChallenge
from runner.challenge import FrameScoresFormat, LabelImagesFormat, Task
from runner.confine import Confine
from runner.dataset import Case, case_names, find_cases, references_of
from runner.errors import UsageError
from runner.formats.contract import Due, FrameScores, FrameTable, Prediction
from runner.formats.reading import read_reference
from runner.pipeline.attempts import due_of


def reference_of(confine: Confine, task: Task, name: str, case: Case) -> Prediction:
    """Read what is true of a case in a task of this name.

    Raises:
        UsageError: It has problems, all of them named.
        HostFault: No child could be started.
    """
    return read_reference(confine, task.format_of_references, case.references[name], due=due_of(case))


def cases_of_references(confine: Confine, loaded: LoadedChallenge, root: Path) -> tuple[Case, ...]:
    """The cases of a data folder; where its inputs are missing, the references say how long each is.

    Raises:
        UsageError: A reference is missing or has problems, or names of frames are needed that only inputs tell.
    """
    first = next(iter(loaded.challenge.cases.rules.values())).path.split("{case}")[0]
    if (root / first.rpartition("/")[0]).is_dir() and first:
        return find_cases(root, loaded.challenge)
    patterns = references_of(loaded.challenge)
    names = sorted({name for pattern in patterns.values() for name in case_names(root, pattern, key="references")})
    if not names:
        raise UsageError(
            f"no reference matches {next(iter(patterns.values()))!r}", where=str(root),
            remedy="give the data folder with --references, laid out as challenge.yaml says",
        )  # fmt: skip
    cases = [
        Case(
            name=name,
            inputs=(),
            frames=(),
            media_seconds=0.0,
            references={task: root / pattern.replace("{case}", name) for task, pattern in patterns.items()},
        )
        for name in names
    ]
    return tuple(replace(case, frames=_frames(confine, loaded, case)) for case in cases)


def _frames(confine: Confine, loaded: LoadedChallenge, case: Case) -> tuple[str, ...]:
    """Names of the frames as far as the references tell them; numbers where nobody needs the names."""
    for name, task in loaded.challenge.tasks.items():
        rule, path = task.format_of_references, case.references[name]
        if isinstance(rule, LabelImagesFormat):
            return tuple(sorted(found.name for found in path.glob("*.png")))
        if isinstance(task.format, FrameScoresFormat) and task.format.frame_ids != "number":
            raise UsageError(
                f"the predictions of task {name!r} go by the names of the frames, which only the inputs tell",
                where=str(path),
                remedy="give a data folder that holds the inputs as well",
            )
        reference = read_reference(confine, rule, path, due=Due())
        if isinstance(reference, FrameTable | FrameScores):
            return tuple(map(str, range(reference.frames)))
    return ()
