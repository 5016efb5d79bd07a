"""Lays out what a job may see, cut to the frames it is shown.

Every view has its own copies with constant times: link counts, locks and file notifications on a shared inode would
tell a container that other views of the same case exist. A longer prefix is copied anew as well, and not grown from a
shorter one: the time at which an inode last changed cannot be set, and would tell the old frames from the new ones.
"""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from runner import video_copies, video_cuts
from runner.challenge import InputKind
from runner.dataset import Case, Input
from runner.job import Cut, CutKind, frames_of

_CONSTANT_TIME = (1_000_000_000, 1_000_000_000)


@dataclass(frozen=True, kw_only=True)
class VideoCopy:
    """A copy without loss of a video's first ``frames`` frames, which can be cut after each of them."""

    path: Path
    frames: int


@dataclass(frozen=True, kw_only=True)
class CaseView:
    """What a job is shown of one case.

    Attributes:
        case: The case.
        donor: Whose frames follow an altered future; they take the names of those they replace.
        earlier: Predictions of earlier tasks: file or folder by its place below the input folder, with ``{case}``.
        cut: Where it ends or turns; None: nowhere.
        length: How long an altered future is, where that is less than the case.
        copies: Copies without loss of its videos, by input, which a clip is cut from; else each clip is copied anew.
    """

    case: Case
    donor: Case | None = None
    earlier: Mapping[str, Path] | None = None
    cut: Cut | None = None
    length: int | None = None
    copies: Mapping[str, VideoCopy] | None = None


def frames_of_view(
    frames: int, cut: Cut | None, donor: int | None, *, length: int | None = None
) -> Iterator[tuple[int, bool]]:
    """For each frame shown, in order: its number, and whether it is the donor's.

    Args:
        frames: How many the case has.
        cut: Where it ends or turns; None: nowhere.
        donor: How many the other case has, for an altered future.
        length: How long an altered future is; None: as long as the case.
    """
    for number in range(frames_of(frames, cut, length=length)):
        if cut is None or number < cut.frames:
            yield number, False
        else:
            assert donor is not None
            # Half a sequence away: at the same place two sequences tend to show the same phase.
            yield (number + donor // 2) % donor, True


def lay_out(
    view: Path,
    shown: Mapping[str, CaseView],
    *,
    inputs: Sequence[str],
    lists: Mapping[str, str] | None = None,
) -> None:
    """Write what a job is shown to a folder.

    Args:
        view: A fresh folder; what is mounted.
        shown: By the neutral name of each case.
        inputs: Names of the inputs that are shown.
        lists: Text files written beside them, and what a line of each is, as challenge.yaml says it.

    Raises:
        FileExistsError: Something is there already.
    """
    view.mkdir(parents=True, exist_ok=True)
    for name, one in shown.items():
        for number, given in enumerate(one.case.inputs):
            if given.name in inputs:
                _lay_out_input(view / given.inside.replace("{case}", name), one, number)
        for place, path in (one.earlier or {}).items():
            _copy_tree(path, view / place.replace("{case}", name))
    for place, line in (lists or {}).items():
        _write_list(view, place, line, shown)
    for folder, _, files in os.walk(view, topdown=False):
        for file in files:
            _seal(Path(folder) / file, 0o444)
        _seal(Path(folder), 0o555)


def _seal(path: Path, mode: int) -> None:
    path.chmod(mode)
    os.utime(path, _CONSTANT_TIME)


def _lay_out_input(target: Path, view: CaseView, number: int) -> None:
    """Write one input of a case, by its number."""
    given, donor = view.case.inputs[number], view.donor.inputs[number] if view.donor is not None else None
    if given.kind is InputKind.FRAMES:
        target.mkdir(parents=True)
        for place, (frame, theirs) in enumerate(_frames(view, len(given.frames), len(donor.frames) if donor else None)):
            source = donor if theirs and donor is not None else given
            shutil.copyfile(source.path / source.frames[frame], target / given.frames[place])
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        raise FileExistsError(str(target))
    if given.kind is InputKind.TABLE and view.cut is not None:
        target.write_bytes(b"".join(_rows_of_view(given, view, donor)))
    elif given.kind is InputKind.VIDEO and view.cut is not None:
        _lay_out_video(target, given, view, donor)
    else:
        shutil.copyfile(given.path, target)


def _frames(view: CaseView, frames: int, donor: int | None) -> Iterator[tuple[int, bool]]:
    return frames_of_view(frames, view.cut, donor, length=view.length)


def _rows_of_view(given: Input, view: CaseView, donor: Input | None) -> Iterator[bytes]:
    """Rows of a table, its header first; a donor's rows stand in the places of those they replace."""
    header, rows = _rows(given)
    yield from header
    other = _rows(donor)[1] if donor is not None else None
    for number, theirs in _frames(view, len(rows), None if other is None else len(other)):
        yield other[number] if theirs and other is not None else rows[number]


def _lay_out_video(target: Path, given: Input, view: CaseView, donor: Input | None) -> None:
    """Write a shorter video: its own packets for a prefix, a copy without loss for all that cannot be cut so."""
    cut, frames = view.cut, len(view.case.frames)
    assert cut is not None
    own = min(cut.frames, frames)
    if cut.kind is CutKind.PREFIX:
        video_cuts.cut(given.path, target, own)
        return
    copy = (view.copies or {}).get(given.name) if cut.kind is CutKind.CLIP else None
    if copy is not None and own <= copy.frames:
        if own == copy.frames:
            shutil.copyfile(copy.path, target)
        else:
            video_cuts.cut(copy.path, target, own)
        return
    theirs = frames_of(frames, cut, length=view.length) - own
    if not theirs:
        video_copies.copy_without_loss(given.path, target, own)
        return
    assert donor is not None
    video_copies.copy_without_loss(given.path, target, own, then=(donor.path, theirs))


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


def _write_list(view: Path, place: str, line: str, shown: Mapping[str, CaseView]) -> None:
    """Write a list file: a file a case where its name has ``{case}``, else one for all."""
    written: dict[str, list[str]] = {}
    for name, one in shown.items():
        lines = written.setdefault(place.replace("{case}", name), [])
        stems = one.case.stems[: frames_of(len(one.case.frames), one.cut, length=one.length)]
        for stem in stems if "{frame}" in line else ("",):
            lines.append(line.replace("{case}", name).replace("{frame}", stem))
    for path, lines in written.items():
        target = view / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("x", encoding="utf-8", errors="surrogateescape") as sink:
            sink.writelines(f"{text}\n" for text in lines)
