"""A folder of a stranger is counted by handle, whole, and never further than it must."""

import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runner.tally import DEEPEST, Tally, tally
from runner.workspace import discard

KIB, MIB = 1 << 10, 1 << 20


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def disk(path: Path) -> int:
    return path.lstat().st_blocks * 512


class TestBytes:
    def test_an_empty_folder_holds_nothing_and_does_not_count_itself(self, tmp_path: Path) -> None:
        assert tally(tmp_path, most=9) == Tally(bytes=0, entries=0)

    def test_a_file_counts_as_what_it_takes_of_the_disk(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_bytes(b"x")
        assert tally(tmp_path, most=9) == Tally(bytes=disk(tmp_path / "a"), entries=1)
        assert disk(tmp_path / "a") > 1

    def test_a_file_with_a_hole_counts_by_its_length(self, tmp_path: Path) -> None:
        with (tmp_path / "a").open("wb") as file:
            file.truncate(1 << 40)
        assert tally(tmp_path, most=9) == Tally(bytes=1 << 40, entries=1)

    def test_room_taken_past_the_end_counts(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_bytes(b"x" * MIB)
        with (tmp_path / "a").open("rb+") as file:
            os.posix_fallocate(file.fileno(), 0, 3 * MIB)
            file.truncate(3 * MIB)
        assert tally(tmp_path, most=9).bytes >= 3 * MIB

    def test_files_and_folders_at_any_depth_are_added(self, tmp_path: Path) -> None:
        inner = tmp_path / "d" / "e"
        inner.mkdir(parents=True)
        for folder in (tmp_path, inner.parent, inner):
            (folder / "f").write_bytes(b"x" * 8192)
        folders = disk(inner) + disk(inner.parent)
        assert tally(tmp_path, most=9) == Tally(bytes=3 * 8192 + folders, entries=5)

    def test_a_file_of_several_names_is_counted_once_its_names_each(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_bytes(b"x" * 8192)
        (tmp_path / "b").hardlink_to(tmp_path / "a")
        assert tally(tmp_path, most=9) == Tally(bytes=8192, entries=2)


class TestStrangeThings:
    def test_no_link_is_followed(self, tmp_path: Path) -> None:
        secret, folder = tmp_path / "secret", tmp_path / "out"
        secret.mkdir()
        folder.mkdir()
        (secret / "large").write_bytes(b"x" * MIB)
        (folder / "to-folder").symlink_to(secret)
        (folder / "to-file").symlink_to(secret / "large")
        (folder / "dead").symlink_to(tmp_path / "nothing")
        (folder / "self").symlink_to(folder)
        found = tally(folder, most=9)
        assert (found.entries, found.too_deep) == (4, False)
        assert found.bytes < 64 * KIB

    def test_a_folder_that_is_a_link_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "out").symlink_to(tmp_path)
        with pytest.raises(OSError, match="Not a directory"):
            tally(tmp_path / "out", most=9)

    def test_pipes_and_sockets_hold_nobody_up(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        os.mkfifo("pipe")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("socket")
            assert tally(tmp_path, most=9) == Tally(bytes=0, entries=2)

    def test_names_of_any_bytes(self, tmp_path: Path) -> None:
        for name in (b"a\nb", b"\xff\xfe", b"-rf", b"x" * 255):
            Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).mkdir()
        assert tally(tmp_path, most=9).entries == 4


class TestBounds:
    @pytest.mark.parametrize(("files", "counted"), [(4, 4), (5, 5), (6, 6), (7, 6), (500, 6)])
    def test_it_stops_one_past_the_most(self, tmp_path: Path, files: int, counted: int) -> None:
        for number in range(files):
            (tmp_path / f"{number}").touch()
        assert tally(tmp_path, most=5).entries == counted

    def test_it_stops_in_the_deepest_folder_as_in_the_first(self, tmp_path: Path) -> None:
        for number in range(8):
            folder = tmp_path / f"{number}" / "a" / "b"
            folder.mkdir(parents=True)
            (folder / "f").touch()
        assert [tally(tmp_path, most=most).entries for most in (5, 6, 7, 31, 32)] == [6, 7, 8, 32, 32]

    @pytest.mark.parametrize(("depth", "too_deep"), [(DEEPEST - 1, False), (DEEPEST, True), (3000, True)])
    def test_folders_are_looked_into_so_far_and_that_is_said(self, tmp_path: Path, depth: int, too_deep: bool) -> None:
        before = Path.cwd()
        os.chdir(tmp_path)
        try:
            for _ in range(depth):
                Path("d").mkdir()
                os.chdir("d")
        finally:
            os.chdir(before)
        found = tally(tmp_path, most=10_000)
        discard(tmp_path)  # pytest cannot
        assert (found.too_deep, found.entries) == (too_deep, min(depth, DEEPEST))

    def test_it_stops_where_it_is_too_deep(self, tmp_path: Path) -> None:
        for number in range(5):
            (tmp_path / f"{number}" / "/".join("d" * DEEPEST)).mkdir(parents=True)
        assert tally(tmp_path, most=10_000) == Tally(bytes=DEEPEST * 4096, entries=DEEPEST, too_deep=True)

    def test_nothing_stays_open(self, tmp_path: Path) -> None:
        for number in range(20):
            (tmp_path / f"{number}" / "a").mkdir(parents=True)
        before = open_files()
        for most in (0, 3, 100):
            tally(tmp_path, most=most)
        assert open_files() == before

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(sizes=st.lists(st.integers(0, 20_000), max_size=12), most=st.integers(0, 14))
    def test_the_count_is_that_of_a_plain_walk(self, sizes: list[int], most: int) -> None:
        with tempfile.TemporaryDirectory() as text:
            for number, size in enumerate(sizes):
                (Path(text) / f"{number}").write_bytes(b"x" * size)
            found = tally(Path(text), most=most)
            paths = list(Path(text).iterdir())
        assert found.entries == min(len(sizes), most + 1)
        if len(sizes) <= most:
            assert found.bytes == sum(-(-size // 4096) * 4096 for size in sizes), paths


@pytest.mark.root
class TestWithoutRoot:
    """The organiser's own user: what a container of that user shuts is opened again, what is another's is an error."""

    @pytest.fixture
    def folder(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory() as text:
            Path(text).chmod(0o755)
            os.chown(text, 12345, 12345)
            os.setegid(12345)
            os.seteuid(12345)
            try:
                yield Path(text)
            finally:
                os.seteuid(0)
                os.setegid(0)

    @pytest.mark.parametrize("mode", [0o000, 0o400, 0o300])
    def test_a_folder_that_was_shut_is_counted(self, folder: Path, mode: int) -> None:
        inner = folder / "d"
        inner.mkdir()
        (inner / "f").write_bytes(b"x" * MIB)
        expected = tally(folder, most=9)
        inner.chmod(mode)
        folder.chmod(mode)
        assert tally(folder, most=9) == expected
        assert (expected.entries, expected.bytes >= MIB) == (2, True)

    def test_another_users_folder_is_an_error_not_nothing(self, folder: Path) -> None:
        os.seteuid(0)
        (folder / "d").mkdir(mode=0o700)
        os.seteuid(12345)
        before = open_files()
        with pytest.raises(PermissionError):
            tally(folder, most=9)
        assert open_files() == before
