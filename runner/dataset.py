"""Finds the cases of a data folder: their frames, their references, their media time."""

import fnmatch
import os
import re
from dataclasses import dataclass
from pathlib import Path

from runner.challenge import CaseFiles
from runner.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Case:
    """One sequence.

    Attributes:
        name: The real id, as the organisers know it; never shown to a container.
        folder: Where its frames lie.
        frames: Names of its frames, in order.
        fps: Frames a second.
        reference: Its reference file.
    """

    name: str
    folder: Path
    frames: tuple[str, ...]
    fps: float
    reference: Path

    @property
    def media_seconds(self) -> float:
        """Length of the sequence in seconds."""
        return len(self.frames) / self.fps


def frame_names(folder: Path, pattern: str) -> tuple[str, ...]:
    """Names of the frames of a folder, sorted; links and folders are not frames."""
    with os.scandir(folder) as entries:
        names = [e.name for e in entries if e.is_file(follow_symlinks=False) and fnmatch.fnmatchcase(e.name, pattern)]
    return tuple(sorted(names))


def _case_names(root: Path, pattern: str) -> tuple[str, ...]:
    before, after = pattern.split("{case}")
    above, _, prefix = before.rpartition("/")
    parent = root / above
    suffix = after.partition("/")[0]
    if not parent.is_dir():
        raise UsageError(
            f"there is no folder {str(parent)!r}",
            where=str(root),
            remedy=f"challenge.yaml says cases.inputs: {pattern!r}; give the folder that holds it with --data",
        )
    shape = re.compile(re.escape(prefix) + r"(.+)" + re.escape(suffix))
    found = (shape.fullmatch(entry.name) for entry in parent.iterdir() if not entry.name.startswith("."))
    return tuple(sorted(match[1] for match in found if match))


def find_cases(root: Path, files: CaseFiles) -> tuple[Case, ...]:
    """Read a data folder.

    Raises:
        UsageError: The folder is missing, holds no case, or a case has no frames or no reference; all of them named.
    """
    if not root.is_dir():
        raise UsageError(
            f"there is no data folder {str(root)!r}", remedy="give the folder that holds the cases with --data"
        )
    cases, problems = [], []
    for name in _case_names(root, files.inputs):
        folder = root / files.inputs.replace("{case}", name)
        reference = root / files.references.replace("{case}", name)
        frames = frame_names(folder, files.frames) if folder.is_dir() else ()
        if not frames:
            problems.append(f"case {name!r} has no frames {files.frames!r} in {folder}")
        if not reference.is_file():
            problems.append(f"case {name!r} has no reference {reference}")
        cases.append(Case(name=name, folder=folder, frames=frames, fps=files.fps, reference=reference))
    if not cases:
        problems.append(f"no case matches cases.inputs: {files.inputs!r}")
    if problems:
        raise UsageError(
            "; ".join(problems), where=str(root), remedy="mend the data folder, or the section cases of challenge.yaml"
        )
    return tuple(cases)
