"""Lays out what a job may see, cut to the frames it is shown.

Every view has its own copies with constant times: link counts, locks and file notifications on a shared inode would
tell a container that other views of the same case exist.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from runner.dataset import Case
from runner.job import Cut, CutKind

_CONSTANT_TIME = (1_000_000_000, 1_000_000_000)


def frames_of_view(case: Case, cut: Cut | None, donor: Case | None) -> Iterator[tuple[str, Path]]:
    """Name inside the view and file of each frame, in order.

    Args:
        case: The sequence.
        cut: Where it ends or turns; None: nowhere.
        donor: Whose frames follow an altered future; they take the names of those they replace.
    """
    for number, name in enumerate(case.frames):
        if cut is None or number < cut.frames:
            yield name, case.folder / name
        elif cut.kind is CutKind.ALTERED_FUTURE:
            assert donor is not None
            # Half a sequence away: at the same place two sequences tend to show the same phase.
            elsewhere = (number + len(donor.frames) // 2) % len(donor.frames)
            yield name, donor.folder / donor.frames[elsewhere]


def lay_out(view: Path, *, name: str, case: Case, cut: Cut | None, donor: Case | None) -> None:
    """Copy the frames a job is shown to ``view/name``.

    Args:
        view: A fresh folder; what is mounted.
        name: A neutral name for the case.
        case: The sequence.
        cut: Where it ends or turns; None: nowhere.
        donor: Whose frames follow an altered future.
    """
    folder = view / name
    folder.mkdir(parents=True)
    for frame, source in frames_of_view(case, cut, donor):
        target = folder / frame
        shutil.copyfile(source, target)
        target.chmod(0o444)
        os.utime(target, _CONSTANT_TIME)
    for made in (folder, view):
        made.chmod(0o555)
        os.utime(made, _CONSTANT_TIME)
