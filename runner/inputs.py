"""Lays out what a job may see, cut to the frames it is shown.

Every view has its own copies with constant times: link counts, locks and file notifications on a shared inode would
tell a container that other views of the same case exist.
"""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from runner.challenge import InputKind
from runner.dataset import Case, Input
from runner.job import Cut, CutKind

_CONSTANT_TIME = (1_000_000_000, 1_000_000_000)


@dataclass(frozen=True, kw_only=True)
class CaseView:
    """What a job is shown of one case.

    Attributes:
        case: The case.
        donor: Whose frames follow an altered future; they take the names of those they replace.
        earlier: Predictions of earlier tasks: file or folder by its place below the input folder, with ``{case}``.
    """

    case: Case
    donor: Case | None = None
    earlier: Mapping[str, Path] | None = None


def frames_of_view(frames: Sequence[str], cut: Cut | None, donor: Sequence[str] | None) -> Iterator[tuple[int, bool]]:
    """For each frame shown, in order: its number, and whether it is the donor's.

    Args:
        frames: The case's.
        cut: Where it ends or turns; None: nowhere.
        donor: The other case's, for an altered future.
    """
    for number in range(len(frames)):
        if cut is None or number < cut.frames:
            yield number, False
        elif cut.kind is CutKind.ALTERED_FUTURE:
            assert donor is not None
            # Half a sequence away: at the same place two sequences tend to show the same phase.
            yield (number + len(donor) // 2) % len(donor), True


def lay_out(
    view: Path,
    shown: Mapping[str, CaseView],
    *,
    inputs: Sequence[str],
    cut: Cut | None = None,
    lists: Mapping[str, str] | None = None,
) -> None:
    """Write what a job is shown to a folder.

    Args:
        view: A fresh folder; what is mounted.
        shown: By the neutral name of each case.
        inputs: Names of the inputs that are shown.
        cut: Where the cases end or turn; None: nowhere.
        lists: Text files written beside them, and what a line of each is, as challenge.yaml says it.

    Raises:
        FileExistsError: Something is there already.
    """
    view.mkdir(parents=True, exist_ok=True)
    for name, one in shown.items():
        for number, given in enumerate(one.case.inputs):
            if given.name in inputs:
                donor = one.donor.inputs[number] if one.donor is not None else None
                _lay_out_input(view / given.inside.replace("{case}", name), given, cut, donor)
        for place, path in (one.earlier or {}).items():
            _copy_tree(path, view / place.replace("{case}", name))
    for place, line in (lists or {}).items():
        _write_list(view, place, line, shown, cut)
    for folder, _, files in os.walk(view, topdown=False):
        for file in files:
            _seal(Path(folder) / file, 0o444)
        _seal(Path(folder), 0o555)


def _seal(path: Path, mode: int) -> None:
    path.chmod(mode)
    os.utime(path, _CONSTANT_TIME)


def _lay_out_input(target: Path, given: Input, cut: Cut | None, donor: Input | None) -> None:
    if given.kind is InputKind.FRAMES:
        target.mkdir(parents=True)
        for place, (number, theirs) in enumerate(
            frames_of_view(given.frames, cut, donor.frames if donor is not None else None)
        ):
            source = donor if theirs and donor is not None else given
            shutil.copyfile(source.path / source.frames[number], target / given.frames[place])
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        raise FileExistsError(str(target))
    if given.kind is InputKind.TABLE and cut is not None:
        target.write_bytes(b"".join(_rows_of_view(given, cut, donor)))
    else:
        shutil.copyfile(given.path, target)


def _rows_of_view(given: Input, cut: Cut, donor: Input | None) -> Iterator[bytes]:
    """Rows of a table, its header first; a donor's rows stand in the places of those they replace."""
    header, rows = _rows(given)
    yield from header
    other = _rows(donor)[1] if donor is not None else None
    places = [str(number) for number in range(len(rows))]
    for number, theirs in frames_of_view(places, cut, None if other is None else [str(n) for n in range(len(other))]):
        yield other[number] if theirs and other is not None else rows[number]


def _rows(given: Input) -> tuple[list[bytes], list[bytes]]:
    lines = given.path.read_bytes().splitlines(keepends=True)
    lines = [line if line.endswith((b"\n", b"\r")) else line + b"\n" for line in lines]
    return lines[: given.header], lines[given.header :]


def _copy_tree(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copyfile(source, target)


def _write_list(view: Path, place: str, line: str, shown: Mapping[str, CaseView], cut: Cut | None) -> None:
    """Write a list file: a file a case where its name has ``{case}``, else one for all."""
    written: dict[str, list[str]] = {}
    for name, one in shown.items():
        lines = written.setdefault(place.replace("{case}", name), [])
        stems = one.case.stems if cut is None or cut.kind is not CutKind.PREFIX else one.case.stems[: cut.frames]
        for stem in stems if "{frame}" in line else ("",):
            lines.append(line.replace("{case}", name).replace("{frame}", stem))
    for path, lines in written.items():
        target = view / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("x", encoding="utf-8", errors="surrogateescape") as sink:
            sink.writelines(f"{text}\n" for text in lines)
