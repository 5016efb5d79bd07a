"""What a container can leave in its output folder to harm whoever reads it, and what becomes of each.

Every tree is made as root on a real file system, as a container without our limits could make it. The secret beside it
stands for the references: none of its bytes may be taken, nothing may hang, and the whole tree must be deleted.
"""

import contextlib
import os
import socket
import stat
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from runner.job import Intake, IntakeRefusal
from runner.outputs import Wanted, take_file
from runner.workspace import discard

NAME = "n.csv"
CAP = 1 << 20
SECRET = b"SECRET,REFERENCE\n" * 10

NOT_REGULAR, SEVERAL, LARGE, MISSING = (
    IntakeRefusal.NOT_REGULAR, IntakeRefusal.SEVERAL_LINKS, IntakeRefusal.TOO_LARGE, IntakeRefusal.MISSING,
)  # fmt: skip


@dataclass(frozen=True)
class Tree:
    """Where the attack takes place."""

    root: Path

    @property
    def out(self) -> Path:
        """The output folder."""
        return self.root / "out"

    @property
    def file(self) -> Path:
        """Where the expected file should be."""
        return self.out / NAME

    @property
    def secret(self) -> Path:
        """A file of the host."""
        return self.root / "secret"

    def take(self) -> Intake:
        """Take the expected file out; the kinds of the other names are tested elsewhere."""
        return replace(take_file(self.out, Wanted(path=NAME), self.root / "taken", cap=CAP, full=False), other_names=())


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    tree = Tree(tmp_path)
    tree.out.mkdir()
    tree.secret.write_bytes(SECRET)
    return tree


def link_to_secret(tree: Tree) -> None:
    tree.file.symlink_to(tree.secret)


def link_to_environment(tree: Tree) -> None:
    tree.file.symlink_to("/proc/self/environ")


def link_to_open_file(tree: Tree) -> None:
    tree.file.symlink_to("/dev/fd/0")


def dangling_link(tree: Tree) -> None:
    tree.file.symlink_to("nowhere")


def link_loop(tree: Tree) -> None:
    tree.file.symlink_to(NAME)


def linked_folder(tree: Tree) -> None:
    (tree.root / "references").mkdir()
    (tree.root / "references" / NAME).write_bytes(SECRET)
    tree.file.symlink_to(tree.root / "references")


def hard_link(tree: Tree) -> None:
    tree.file.hardlink_to(tree.secret)


def hard_links_among_themselves(tree: Tree) -> None:
    tree.file.write_bytes(b"x")
    for number in range(2):
        (tree.out / f"{number}").hardlink_to(tree.file)


def named_pipe(tree: Tree) -> None:
    os.mkfifo(tree.file)


def endless_device(tree: Tree) -> None:
    os.mknod(tree.file, stat.S_IFCHR | 0o666, os.makedev(1, 5))


def disk_device(tree: Tree) -> None:
    os.mknod(tree.file, stat.S_IFBLK | 0o666, os.makedev(7, 0))


def unix_socket(tree: Tree) -> None:
    with contextlib.chdir(tree.out), socket.socket(socket.AF_UNIX) as server:
        server.bind(NAME)


def folder_in_its_place(tree: Tree) -> None:
    tree.file.mkdir()
    (tree.file / NAME).write_bytes(b"x")


def sparse_terabyte(tree: Tree) -> None:
    with tree.file.open("wb") as sink:
        sink.truncate(1 << 40)


def one_byte_too_many(tree: Tree) -> None:
    tree.file.write_bytes(b"x" * (CAP + 1))


def name_in_other_case(tree: Tree) -> None:
    (tree.out / "N.CSV").write_bytes(b"x")


REFUSED: list[tuple[Callable[[Tree], None], IntakeRefusal, str, int]] = [
    (link_to_secret, NOT_REGULAR, "a symbolic link", 0),
    (link_to_environment, NOT_REGULAR, "a symbolic link", 0),
    (link_to_open_file, NOT_REGULAR, "a symbolic link", 0),
    (dangling_link, NOT_REGULAR, "a symbolic link", 0),
    (link_loop, NOT_REGULAR, "a symbolic link", 0),
    (linked_folder, NOT_REGULAR, "a symbolic link", 0),
    (hard_link, SEVERAL, "a file with 2 links", 0),
    (hard_links_among_themselves, SEVERAL, "a file with 3 links", 2),
    (named_pipe, NOT_REGULAR, "a named pipe", 0),
    (unix_socket, NOT_REGULAR, "a socket", 0),
    (folder_in_its_place, NOT_REGULAR, "a folder", 0),
    (sparse_terabyte, LARGE, "1099511627776 bytes of 1048576 allowed", 0),
    (one_byte_too_many, LARGE, "1048577 bytes of 1048576 allowed", 0),
    (name_in_other_case, MISSING, "", 1),
]
DEVICES = [(endless_device, NOT_REGULAR, "a device", 0), (disk_device, NOT_REGULAR, "a device", 0)]


@pytest.mark.parametrize(
    ("attack", "refusal", "detail", "others"),
    [*REFUSED, *(pytest.param(*device, marks=pytest.mark.root) for device in DEVICES)],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_it_is_refused_unread_and_deleted(
    tree: Tree, attack: Callable[[Tree], None], refusal: IntakeRefusal, detail: str, others: int
) -> None:
    attack(tree)
    assert tree.take() == Intake(file=NAME, refusal=refusal, detail=detail, other_entries=others)
    assert not (tree.root / "taken").exists()
    discard(tree.out)
    assert not tree.out.exists()
    assert tree.secret.read_bytes() == SECRET


def setuid_file(tree: Tree) -> None:
    tree.file.chmod(0o6777)


def file_from_the_future(tree: Tree) -> None:
    os.utime(tree.file, (8_589_934_592, 8_589_934_592))


def file_from_before_all_time(tree: Tree) -> None:
    os.utime(tree.file, (-(1 << 31), -(1 << 31)))


def names_that_break_terminals_and_encodings(tree: Tree) -> None:
    for name in (b"a\nb", b"\xff\xfe", b"-rf", b"\x1b[2J", b"x" * 255, "\u202e".encode(), b" ", b"*"):
        (tree.out / os.fsdecode(name)).write_bytes(b"x")


def neighbours_of_every_kind(tree: Tree) -> None:
    (tree.out / "link").symlink_to("/")
    (tree.out / "twin").hardlink_to(tree.secret)
    os.mkfifo(tree.out / "pipe")


@pytest.mark.parametrize(
    ("attack", "others"),
    [(setuid_file, 0), (file_from_the_future, 0), (file_from_before_all_time, 0),
     (names_that_break_terminals_and_encodings, 8), (neighbours_of_every_kind, 3)],
    ids=lambda value: value.__name__ if callable(value) else "",
)  # fmt: skip
def test_it_does_no_harm_the_file_is_taken_and_all_is_deleted(
    tree: Tree, attack: Callable[[Tree], None], others: int
) -> None:
    tree.file.write_bytes(b"t,step\n")
    attack(tree)
    assert tree.take() == Intake(file=NAME, size=7, other_entries=others)
    taken = tree.root / "taken"
    assert taken.read_bytes() == b"t,step\n"
    # Only the bytes come along: neither mode nor times.
    assert taken.stat().st_mode & 0o7111 == 0
    assert abs(taken.stat().st_mtime - tree.secret.stat().st_mtime) < 60
    discard(tree.out)
    assert not tree.out.exists()
    assert tree.secret.read_bytes() == SECRET


@pytest.mark.root
def test_modes_that_forbid_everything(tree: Tree) -> None:
    tree.file.write_bytes(b"x")
    (tree.out / "locked").mkdir()
    (tree.out / "locked" / "x").write_bytes(b"x")
    for path in (tree.out / "locked" / "x", tree.out / "locked", tree.file, tree.out):
        path.chmod(0)
    assert tree.take() == Intake(file=NAME, size=1, other_entries=1)
    discard(tree.out)
    assert not tree.out.exists()


def test_the_output_folder_itself_is_not_followed(tree: Tree) -> None:
    (tree.root / "references").mkdir()
    (tree.root / "references" / NAME).write_bytes(SECRET)
    tree.out.rmdir()
    tree.out.symlink_to(tree.root / "references")
    with pytest.raises(NotADirectoryError):
        tree.take()
    assert not (tree.root / "taken").exists()


def test_a_file_that_holds_more_than_its_size_says() -> None:
    """As one that grows while it is read; the kernel's own files say that they are empty."""
    target = Path(os.devnull).parent / "shm" / f"proctor-test-{os.getpid()}"
    assert Path("/proc/cpuinfo").stat().st_size == 0
    intake = take_file(Path("/proc"), Wanted(path="cpuinfo"), target, cap=10, full=False)
    assert (intake.refusal, intake.detail, intake.size) == (LARGE, "more than the 10 bytes allowed", 0)
    assert not target.exists()


def test_folders_three_thousand_deep(tree: Tree) -> None:
    tree.file.write_bytes(b"x")
    before = Path.cwd()
    try:
        os.chdir(tree.out)
        for _ in range(3000):
            Path("d").mkdir()
            os.chdir("d")
        Path("secret").symlink_to(tree.secret)
    finally:
        os.chdir(before)
    assert tree.take() == Intake(file=NAME, size=1, other_entries=1)
    discard(tree.out)
    assert not tree.out.exists()
    assert tree.secret.read_bytes() == SECRET


def test_a_hundred_thousand_names() -> None:
    """They are not counted to the end; the file is found by its name, wherever it stands among them."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as root:  # in memory, for speed
        tree = Tree(Path(root))
        tree.out.mkdir()
        folder = os.open(tree.out, os.O_RDONLY)
        for number in range(100_000):
            os.mknod(f"{number:05d}", dir_fd=folder)
        os.close(folder)
        assert tree.take() == Intake(file=NAME, refusal=MISSING, other_entries=10_000)
        tree.file.write_bytes(b"x")
        taken = tree.take()
        assert (taken.size, taken.refusal) == (1, None)
        assert taken.other_entries in (9_999, 10_000)
        discard(tree.out)
        assert not tree.out.exists()


def test_a_file_swapped_while_it_is_taken_never_gives_the_secret(tree: Tree) -> None:
    """No container lives when a file is taken; where one did, it would still be the file that was looked at.

    Hard links are no part of this: an output is a file system of its own, and none leads out of that.
    """
    good, link = tree.root / "good", tree.root / "link"
    good.write_bytes(b"good")
    stop, swaps = threading.Event(), 0

    def swap() -> None:
        nonlocal swaps
        while not stop.is_set():
            link.symlink_to(tree.secret)
            link.rename(tree.file)
            good.write_bytes(b"good")
            good.rename(tree.file)
            swaps += 1

    thread = threading.Thread(target=swap)
    thread.start()
    both: set[tuple[IntakeRefusal | None, bytes]] = {(None, b"good"), (NOT_REGULAR, b"")}
    seen: set[tuple[IntakeRefusal | None, bytes]] = set()
    try:
        while swaps < 300 or not seen >= both:
            target = tree.root / "taken"
            intake = take_file(tree.out, Wanted(path=NAME), target, cap=CAP, full=False)
            seen.add((intake.refusal, target.read_bytes() if target.exists() else b""))
            target.unlink(missing_ok=True)
    finally:
        stop.set()
        thread.join()
    assert {content for _, content in seen} == {b"good", b""}
