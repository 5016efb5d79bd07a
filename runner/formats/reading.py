"""Reads what a container, or an organiser, wrote for a case: the one door to every format."""

from pathlib import Path

from runner.challenge import (
    AnswerFormat,
    ArraysFormat,
    FormatSection,
    FrameScoresFormat,
    FrameTableFormat,
    LabelImagesFormat,
)
from runner.confine import Confine
from runner.errors import UsageError
from runner.formats import answer, arrays, frame_scores, frame_table, label_images, outside
from runner.formats.contract import Due, Prediction, Problem, Reading, Role
from runner.formats.readers.problems import MAX_KEPT


def read_output(confine: Confine, rule: FormatSection, path: Path, *, due: Due, role: Role) -> Reading:
    """Read a case's file, or the folder of a format with a file a frame, in children that can do nothing else.

    Args:
        confine: Where children come from.
        rule: What it must look like.
        path: The file, or the folder that holds a file for each frame, named as the frame.
        due: The case.
        role: A prediction's problems are values; a reference must have none.

    Raises:
        UsageError: A reference has problems.
        HostFault: No child could be started.
    """
    match rule:
        case FrameTableFormat():
            reading = frame_table.confined_read(confine, rule, path, frames=due.count, role=role)
        case FrameScoresFormat():
            reading = frame_scores.confined_read(confine, rule, path, due=due, role=role)
        case LabelImagesFormat():
            reading = label_images.confined_read(confine, rule, path, due=due, role=role)
        case ArraysFormat():
            reading = arrays.confined_read(confine, rule, path, due=due, role=role)
        case AnswerFormat():
            reading = answer.confined_read(confine, rule, path, due=due, role=role)
        case _:
            reading = outside.confined_read(confine, rule, path, due=due, role=role)
    if role is Role.REFERENCE and reading.prediction is None:
        raise bad_reference(path, reading)
    return reading


def read_again(confine: Confine, rule: FormatSection, path: Path, *, due: Due) -> Reading:
    """Read a prediction that was accepted.

    Label images are not looked at beforehand once more: each is checked when it is read, and is a host's fault then.

    Raises:
        HostFault: No child could be started.
    """
    if isinstance(rule, LabelImagesFormat):
        return label_images.confined_read(confine, rule, path, due=due, role=Role.PREDICTION, sound=True)
    return read_output(confine, rule, path, due=due, role=Role.PREDICTION)


def beside(rule: FormatSection, reading: Reading, *, stray: int) -> Reading:
    """A reading, refused where files and folders that are not due stand beside what was read and may not.

    Args:
        rule: Says whether they may.
        reading: What was read.
        stray: How many there are in the whole output folder.
    """
    if rule.extra_files == "ignore" or not stray:
        return reading
    what = "file or folder that is" if stray == 1 else "files or folders that are"
    problem = Problem(what=f"the output folder holds {stray} {what} not due")
    return Reading(
        prediction=None, problems=(problem, *reading.problems)[:MAX_KEPT], problem_count=reading.problem_count + 1
    )


def read_reference(confine: Confine, rule: FormatSection, path: Path, *, due: Due) -> Prediction:
    """Read a reference.

    Raises:
        UsageError: It has problems, all of them named.
        HostFault: No child could be started.
    """
    prediction = read_output(confine, rule, path, due=due, role=Role.REFERENCE).prediction
    assert prediction is not None
    return prediction


def bad_reference(path: Path, reading: Reading) -> UsageError:
    """What is wrong with a reference; to be raised."""
    sentences = [one.what + (f" (there: {one.value})" if one.value else "") for one in reading.problems]
    more = reading.problem_count - len(sentences)
    if more > 0:
        sentences.append(f"and {more} more")
    return UsageError(
        "; ".join(sentences),
        where=str(path),
        remedy="mend the reference, or the task's format in challenge.yaml",
    )
