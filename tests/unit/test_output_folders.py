"""Predictions below folders, and with a file a frame, are taken as carefully as a single file at the top."""

import io
import os
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner import outputs
from runner.budget import Budget
from runner.due_tree import DueTree
from runner.engine import Engine, FileFacts, FileKind
from runner.job import Intake, IntakeRefusal
from runner.outputs import HOLDER_MOUNT, VolumePlace, Wanted, take_file

NESTED = Wanted(path="task/n.txt")
MASKS = Wanted(path="masks/n", files=("0.png", "1.png", "2.png"))
CAP = 1000

Make = Callable[[Path], None]


def write(path: Path, content: bytes = b"x") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def nested(root: Path) -> None:
    write(root / "task/n.txt", b"answer")


def masks(root: Path) -> None:
    for number in range(3):
        write(root / f"masks/n/{number}.png", bytes([number]) * 100)


def linked_above(root: Path) -> None:
    write(root / "other/n.txt", b"answer")
    (root / "task").symlink_to("other")


def linked_out(root: Path) -> None:
    (root / "task").symlink_to("/etc")


def linked_folder(root: Path) -> None:
    write(root / "masks/other/0.png")
    (root / "masks/n").symlink_to("other")


def linked_mask(root: Path) -> None:
    masks(root)
    (root / "masks/n/1.png").unlink()
    (root / "masks/n/1.png").symlink_to("/etc/passwd")


def twice_linked_mask(root: Path) -> None:
    masks(root)
    os.link(root / "masks/n/2.png", root / "masks/again.png")


def folder_for_a_mask(root: Path) -> None:
    masks(root)
    (root / "masks/n/1.png").unlink()
    write(root / "masks/n/1.png/x")


def file_above(root: Path) -> None:
    write(root / "task", b"a file")


def one_missing(root: Path) -> None:
    masks(root)
    (root / "masks/n/1.png").unlink()
    write(root / "masks/n/strange.png")


def large_together(root: Path) -> None:
    for number in range(3):
        write(root / f"masks/n/{number}.png", bytes(400))


def empty(root: Path) -> None:
    (root / "masks/n").mkdir(parents=True)


def nothing(root: Path) -> None:
    write(root / "elsewhere")


MISSING, LINK = IntakeRefusal.MISSING, IntakeRefusal.NOT_REGULAR
CASES: dict[str, tuple[Make, Wanted, Intake, set[str]]] = {
    "nested": (nested, NESTED, Intake(file="task/n.txt", size=6), {"taken"}),
    "masks": (masks, MASKS, Intake(file="masks/n", size=300), {"0.png", "1.png", "2.png"}),
    "a mask is missing": (one_missing, MASKS, Intake(file="masks/n", size=200), {"0.png", "2.png"}),
    "no mask": (empty, MASKS, Intake(file="masks/n"), set()),
    "no folder": (nothing, MASKS, Intake(file="masks/n", refusal=MISSING), set()),
    "no folder above": (nothing, NESTED, Intake(file="task/n.txt", refusal=MISSING), set()),
    "linked above": (
        linked_above, NESTED,
        Intake(file="task/n.txt", refusal=LINK, detail="in task, which is a symbolic link"), set(),
    ),
    "linked out": (
        linked_out, NESTED,
        Intake(file="task/n.txt", refusal=LINK, detail="in task, which is a symbolic link"), set(),
    ),
    "a file above": (
        file_above, NESTED, Intake(file="task/n.txt", refusal=LINK, detail="in task, which is a file"), set()
    ),
    "linked folder": (linked_folder, MASKS, Intake(file="masks/n", refusal=LINK, detail="a symbolic link"), set()),
    "linked mask": (linked_mask, MASKS, Intake(file="masks/n/1.png", refusal=LINK, detail="a symbolic link"), set()),
    "a folder for a mask": (
        folder_for_a_mask, MASKS, Intake(file="masks/n/1.png", refusal=LINK, detail="a folder"), set()
    ),
}  # fmt: skip
OWN_WORDS: dict[str, tuple[Make, IntakeRefusal]] = {
    "twice linked": (twice_linked_mask, IntakeRefusal.SEVERAL_LINKS),
    "too large together": (large_together, IntakeRefusal.TOO_LARGE),
}
"""What the two ways of holding an output say in words of their own."""


class Tarred:
    """An engine whose volume holds what lies in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read_tree(self, _container: str, _path: str) -> Iterator[bytes]:
        sink = io.BytesIO()
        with tarfile.open(fileobj=sink, mode="w") as tar:
            tar.add(self._folder, arcname="hold")
        yield sink.getvalue()

    def read_file(self, _container: str, path: str, *, max_bytes: int) -> FileFacts | None:
        assert max_bytes == 0
        there = self._folder / path.removeprefix(f"{HOLDER_MOUNT}/")
        return FileFacts(kind=FileKind.FILE, size=0, mode=0, content=b"") if os.path.lexists(there) else None


@pytest.fixture(params=["folder", "volume"])
def take(
    request: pytest.FixtureRequest, tmp_path: Path, make_budget: Callable[..., Budget]
) -> Callable[[Make, Wanted], Intake]:
    """Take an output out of a folder, and of a volume."""

    def taken(make: Make, wanted: Wanted) -> Intake:
        out = tmp_path / "out"
        out.mkdir()
        make(out)
        target = tmp_path / "taken"
        if request.param == "folder":
            found = take_file(out, wanted, target, cap=CAP, full=False)
        else:
            place = VolumePlace(
                cast("Engine", Tarred(out)), "v", "holder", make_budget(output_bytes=1 << 20, output_files=64)
            )
            found = place.take(replace(wanted, most=CAP), target)
        return replace(found, other_entries=0, other_names=())

    return taken


@pytest.mark.parametrize("name", CASES)
def test_what_is_taken(take: Callable[[Make, Wanted], Intake], tmp_path: Path, name: str) -> None:
    make, wanted, intake, files = CASES[name]
    assert take(make, wanted) == intake
    target = tmp_path / "taken"
    there = {path.name for path in target.iterdir()} if target.is_dir() else {"taken"} if target.exists() else set()
    assert there == files
    if intake.refusal is not None:
        assert not target.exists()


@pytest.mark.parametrize("name", OWN_WORDS)
def test_what_is_refused(take: Callable[[Make, Wanted], Intake], tmp_path: Path, name: str) -> None:
    make, refusal = OWN_WORDS[name]
    assert take(make, MASKS).refusal is refusal
    assert not (tmp_path / "taken").exists()


def test_what_other_tasks_leave_counts_for_nothing(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv", "note.txt"):
        write(tmp_path / "out" / name)
    wanted: dict[str, Any] = {"path": "a.csv"}
    for siblings, others in ((frozenset(), 2), (frozenset({"b.csv"}), 1)):
        (tmp_path / "taken").unlink(missing_ok=True)
        found = take_file(tmp_path / "out", Wanted(**wanted, siblings=siblings), tmp_path / "taken", cap=9, full=False)
        assert (found.refusal, found.other_entries) == (None, others)


def test_a_folder_that_its_owner_shut_is_opened(tmp_path: Path) -> None:
    masks(tmp_path / "out")
    (tmp_path / "out/masks/n").chmod(0)
    (tmp_path / "out/masks").chmod(0)
    assert take_file(tmp_path / "out", MASKS, tmp_path / "taken", cap=CAP, full=False).size == 300


DUE = DueTree([("task/n.txt", ()), ("masks/n", ("0.png", "1.png")), ("b.csv", ())])


@pytest.mark.parametrize(
    ("path", "stray"),
    [
        ("task", False), ("task/n.txt", False), ("masks", False), ("masks/n", False), ("masks/n/1.png", False),
        ("b.csv", False), ("a.csv", True), ("task/m.txt", True), ("masks/m", True), ("masks/n/2.png", True),
        ("masks/n/2.png/x", False), ("other", True), ("other/n.txt", False), ("task/n.txt/x", False), ("n.txt", True),
    ],
)  # fmt: skip
def test_what_is_not_due_counts_where_it_meets_what_is(path: str, stray: bool) -> None:
    assert DUE.is_stray(path) is stray
    assert DUE.folders == ("masks", "masks/n", "task")


def all_that_is_due(root: Path) -> None:
    for path in ("task/n.txt", "masks/n/0.png", "masks/n/1.png", "b.csv"):
        write(root / path)


def some_more(root: Path) -> None:
    all_that_is_due(root)
    for path in ("a.csv", "task/.n.txt.swp", "masks/n/2.png", "masks/m/0.png", "masks/m/1.png", "other/deep/er/x"):
        write(root / path)
    (root / "masks/n/link").symlink_to("0.png")


def half_of_it(root: Path) -> None:
    write(root / "masks/n/0.png")
    (root / "task").symlink_to("masks")
    write(root / "b.csv/x")


def only_strays(root: Path) -> None:
    write(root / "x/y")
    (root / "task").mkdir()


@pytest.mark.parametrize(
    ("make", "stray"), [(all_that_is_due, 0), (some_more, 6), (half_of_it, 0), (only_strays, 1), (lambda _: None, 0)]
)
def test_what_is_not_due_is_counted_in_the_whole_output(
    take: Callable[[Make, Wanted], Intake], make: Make, stray: int
) -> None:
    assert take(make, Wanted(path="task/n.txt", due=DUE)).stray == stray


def test_it_is_not_counted_where_nobody_asks(take: Callable[[Make, Wanted], Intake]) -> None:
    assert take(some_more, Wanted(path="task/n.txt")).stray == 0


def test_what_is_not_due_may_be_very_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "_MAX_ENTRIES", 5)
    for number in range(4):
        write(tmp_path / f"out/{number}")
        write(tmp_path / f"out/task/{number}")
    found = take_file(tmp_path / "out", Wanted(path="b.csv", due=DUE), tmp_path / "taken", cap=CAP, full=False)
    assert (found.refusal, found.stray) == (MISSING, 5)


PIECE = st.sampled_from(["task", "masks", "n", "n.txt", "0.png", "x"])


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(PIECE, min_size=1, max_size=4), max_size=8))
def test_a_folder_and_a_volume_count_the_same(
    tmp_path_factory: pytest.TempPathFactory, make_budget: Callable[..., Budget], trees: list[list[str]]
) -> None:
    root = tmp_path_factory.mktemp("tree")
    (root / "out").mkdir()
    for parts in trees:
        path = root / "out" / "/".join(parts)
        if not any(above.is_file() for above in [path, *path.parents]) and not path.exists():
            write(path)
    wanted = Wanted(path="b.csv", due=DUE)
    place = VolumePlace(cast("Engine", Tarred(root / "out")), "v", "holder", make_budget())
    found = take_file(root / "out", wanted, root / "1", cap=CAP, full=False)
    assert found.stray == place.take(wanted, root / "2").stray
    paths = [str(path.relative_to(root / "out")) for path in (root / "out").rglob("*")]
    assert found.stray == sum(DUE.is_stray(path) for path in paths)
