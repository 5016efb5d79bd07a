"""Finds the cases of a data folder: their inputs, their references, their length."""

import fnmatch
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from runner.challenge import CaseFiles, Challenge, InputKind, InputRule
from runner.errors import UsageError
from runner.video import video_length


@dataclass(frozen=True, kw_only=True)
class Input:
    """One input of a case.

    Attributes:
        name: As challenge.yaml names it.
        kind: What it is.
        path: The file, or the folder of frames.
        inside: Its place below the input folder inside the container, with ``{case}``.
        frames: Of ``frames``: names of the files, in order.
        header: Of ``table``: the first row is no frame.
    """

    name: str
    kind: InputKind
    path: Path
    inside: str
    frames: tuple[str, ...] = ()
    header: bool = True

    def files(self) -> Iterator[tuple[str, Path]]:
        """Every file of it by its name below ``path``; a file's own name is empty."""
        if self.kind is InputKind.FRAMES:
            yield from ((name, self.path / name) for name in self.frames)
        else:
            yield "", self.path


@dataclass(frozen=True, kw_only=True)
class Case:
    """One case, such as a sequence.

    Attributes:
        name: The real id, as the organisers know it; never shown to a container.
        inputs: What a container may be shown.
        frames: Names of its frames, in order; numbers from 0 where its length is that of a table or a video; empty
            where no input has a length.
        media_seconds: Its length in seconds; 0 where it has none.
        references: By task, a file or a folder.
    """

    name: str
    inputs: tuple[Input, ...]
    frames: tuple[str, ...]
    media_seconds: float
    references: Mapping[str, Path]

    @property
    def stems(self) -> tuple[str, ...]:
        """Names of the frames without their extension."""
        return tuple(name.rpartition(".")[0] or name for name in self.frames)


def frame_names(folder: Path, pattern: str) -> tuple[str, ...]:
    """Names of the frames of a folder, sorted; links and folders are not frames."""
    with os.scandir(folder) as entries:
        names = [e.name for e in entries if e.is_file(follow_symlinks=False) and fnmatch.fnmatchcase(e.name, pattern)]
    return tuple(sorted(names))


def table_rows(path: Path, *, header: bool) -> int:
    """Rows of a text table that are frames; a last line needs no line end.

    Raises:
        OSError: It cannot be read.
    """
    lines, last = 0, b"\n"
    with path.open("rb") as source:
        while block := source.read(1 << 20):
            lines += block.count(b"\n")
            last = block[-1:]
    return max(0, lines + (last != b"\n") - header)


def case_names(root: Path, pattern: str, *, key: str) -> tuple[str, ...]:
    """What ``{case}`` stands for in a pattern of paths, sorted; names that begin with a dot are none.

    Raises:
        UsageError: The folder above does not exist.
    """
    before, after = pattern.split("{case}")
    above, _, prefix = before.rpartition("/")
    parent = root / above
    suffix, _, below = after.partition("/")
    if not parent.is_dir():
        raise UsageError(
            f"there is no folder {str(parent)!r}",
            where=str(root),
            remedy=f"challenge.yaml says {key}: {pattern!r}; give the folder that holds it with --data",
        )
    shape = re.compile(re.escape(prefix) + r"(.+)" + re.escape(suffix))
    found = (
        (shape.fullmatch(entry.name), entry)
        for entry in parent.iterdir()
        if not entry.name.startswith(".") and (not below or entry.is_dir())
    )
    return tuple(sorted(match[1] for match, _ in found if match))


def references_of(challenge: Challenge) -> Mapping[str, str]:
    """The pattern of each task's references."""
    return {name: task.references or challenge.cases.references for name, task in challenge.tasks.items()}


def find_cases(root: Path, challenge: Challenge) -> tuple[Case, ...]:
    """Read a data folder.

    Raises:
        UsageError: The folder is missing, holds no case, or a case lacks an input or a reference; all of them named.
    """
    cases, problems = survey(root, challenge)
    if problems:
        raise UsageError(
            "; ".join(problems), where=str(root), remedy="mend the data folder, or the section cases of challenge.yaml"
        )
    return cases


def survey(root: Path, challenge: Challenge) -> tuple[tuple[Case, ...], tuple[str, ...]]:
    """The cases of a data folder as far as they are there, and what is wrong with them.

    Raises:
        UsageError: The folder is missing.
    """
    if not root.is_dir():
        raise UsageError(
            f"there is no data folder {str(root)!r}", remedy="give the folder that holds the cases with --data"
        )
    rules = challenge.cases.rules
    first = rules[challenge.cases.timed] if challenge.cases.timed else next(iter(rules.values()))
    names = case_names(root, first.path, key="cases.inputs")
    cases: list[Case] = []
    problems: list[str] = []
    for name in names:
        found = _Finding(root, name, challenge.cases, problems)
        cases.append(found.case(references_of(challenge)))
    if not names:
        problems.append(f"no case matches cases.inputs: {first.path!r}")
    return tuple(cases), tuple(dict.fromkeys(problems))


class _Finding:
    """Looks for one case; what is wrong with it goes into a list."""

    def __init__(self, root: Path, name: str, files: CaseFiles, problems: list[str]) -> None:
        self._root, self._name, self._files, self._problems = root, name, files, problems

    def case(self, references: Mapping[str, str]) -> Case:
        inputs = tuple(self._input(name, rule) for name, rule in self._files.rules.items())
        frames, seconds = self._length(inputs)
        return Case(
            name=self._name, inputs=inputs, frames=frames, media_seconds=seconds,
            references={task: self._reference(pattern) for task, pattern in references.items()},
        )  # fmt: skip

    def _path(self, pattern: str) -> Path:
        return self._root / pattern.replace("{case}", self._name)

    def _reference(self, pattern: str) -> Path:
        path = self._path(pattern)
        if not path.is_file() and not path.is_dir():
            self._problems.append(f"case {self._name!r} has no reference {path}")
        return path

    def _input(self, name: str, rule: InputRule) -> Input:
        path = self._path(rule.path)
        frames: tuple[str, ...] = ()
        if rule.kind is InputKind.FRAMES:
            frames = frame_names(path, rule.frames) if path.is_dir() else ()
            if not frames:
                self._problems.append(f"case {self._name!r} has no frames {rule.frames!r} in {path}")
        elif not path.is_file():
            self._problems.append(f"case {self._name!r} has no {name} {path}")
        return Input(name=name, kind=rule.kind, path=path, inside=rule.inside, frames=frames, header=rule.header)

    def _length(self, inputs: tuple[Input, ...]) -> tuple[tuple[str, ...], float]:
        timed = next((one for one in inputs if one.name == self._files.timed), None)
        if timed is None:
            return (), 0.0
        fps = self._files.fps
        assert fps is not None
        if timed.kind is InputKind.FRAMES:
            return timed.frames, len(timed.frames) / fps
        if not timed.path.is_file():
            return (), 0.0
        if timed.kind is InputKind.VIDEO:
            try:
                count = video_length(timed.path)
            except UsageError as error:
                self._problems.append(f"case {self._name!r}: {error.what} ({error.where})")
                return (), 0.0
        else:
            count = table_rows(timed.path, header=timed.header)
        if not count:
            self._problems.append(f"case {self._name!r} has no frames: {timed.path} is empty")
        return tuple(map(str, range(count))), count / fps


def frames_case(
    name: str, folder: Path, frames: tuple[str, ...], *, fps: float, references: Mapping[str, Path]
) -> Case:
    """A case whose only input is a folder of frames."""
    given = Input(name="frames", kind=InputKind.FRAMES, path=folder, inside="{case}", frames=frames)
    return Case(name=name, inputs=(given,), frames=frames, media_seconds=len(frames) / fps, references=references)
