"""A folder that is only watched: what exceeds it is found and stopped, while it is written or at the end."""

import errno
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runner import tally as tallying
from runner import watched
from runner.budget import Budget
from runner.errors import HostFault
from runner.job import Intake, IntakeRefusal, NameKind
from runner.outputs import Wanted
from runner.tally import Tally
from runner.watched import WatchedPlace, watched_place
from runner.workspace import discard

KIB, MIB = 1 << 10, 1 << 20
NAME = "n.csv"
LONG = 20.0
"""Seconds after which a thing that must happen counts as not happening."""


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "desk"
    folder.mkdir()
    yield folder
    discard(folder)
    assert not folder.exists()


@pytest.fixture
def place(desk: Path, make_budget: Callable[..., Budget]) -> Iterator[WatchedPlace]:
    budget = make_budget(output_bytes=MIB, output_files=16)
    with watched_place(desk, name="w", budget=budget, uid=os.getuid(), gid=os.getgid()) as made:
        yield made


class Killer:
    """Counts how often a container was to be killed, and lets somebody wait for it."""

    def __init__(self) -> None:
        self.kills = 0
        self._asked = threading.Condition()

    def __call__(self) -> None:
        with self._asked:
            self.kills += 1
            self._asked.notify_all()

    def wait(self, kills: int) -> None:
        with self._asked:
            assert self._asked.wait_for(lambda: self.kills >= kills, LONG)


class Looks:
    """Lets somebody wait until the folder was looked at again."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._count = 0
        self._looked = threading.Condition()
        really = tallying.tally

        def look(folder: Path, *, most: int) -> Tally:
            found = really(folder, most=most)
            with self._looked:
                self._count += 1
                self._looked.notify_all()
            return found

        monkeypatch.setattr(watched, "tally", look)

    def wait(self, more: int) -> None:
        with self._looked:
            wanted = self._count + more
            assert self._looked.wait_for(lambda: self._count >= wanted, LONG)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    return Looks(monkeypatch)


def fill(place: WatchedPlace, name: str, size: int) -> None:
    """At once: a watcher must not meet a half of it."""
    whole = place.mounted.parent / "whole"
    whole.write_bytes(b"x" * size)
    whole.rename(place.mounted / name)


class TestWatching:
    def test_what_keeps_within_its_size_is_left_alone(self, place: WatchedPlace, looks: Looks) -> None:
        killer = Killer()
        with place.watching(killer):
            fill(place, "a", MIB)
            looks.wait(5)
        assert (killer.kills, place.overshoot()) == (0, None)

    @pytest.mark.parametrize(
        ("sizes", "found"),
        [([MIB + 4096], Tally(bytes=MIB + 4096, entries=1)), ([600 * KIB] * 2, Tally(bytes=1200 * KIB, entries=2)),
         ([0] * 17, Tally(bytes=0, entries=17)), ([0] * 40, Tally(bytes=0, entries=17))],
    )  # fmt: skip
    def test_more_is_killed_again_and_again_until_the_container_is_gone(
        self, place: WatchedPlace, sizes: list[int], found: Tally
    ) -> None:
        killer = Killer()
        with place.watching(killer):
            for number, size in enumerate(sizes):
                fill(place, f"{number}", size)
            killer.wait(3)
        assert place.overshoot() == found
        kills = killer.kills
        threading.Event().wait(3 * watched.LOOK_EVERY)
        assert killer.kills == kills, "nobody watches any more"

    def test_as_many_files_as_allowed(self, place: WatchedPlace, looks: Looks) -> None:
        killer = Killer()
        with place.watching(killer):
            for each in range(16):
                fill(place, f"{each}", 1)
            looks.wait(5)
        assert killer.kills == 0

    def test_a_file_with_a_hole_is_as_long_as_it_says(self, place: WatchedPlace) -> None:
        killer = Killer()
        with place.watching(killer):
            with (place.mounted / "a").open("wb") as file:
                file.truncate(1 << 40)
            killer.wait(1)
        assert place.overshoot() == Tally(bytes=1 << 40, entries=1)

    def test_folders_too_deep_to_look_into(self, place: WatchedPlace, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tallying, "DEEPEST", 3)
        killer = Killer()
        with place.watching(killer):
            (place.mounted / "a/b/c/d").mkdir(parents=True)
            killer.wait(1)
        overshoot = place.overshoot()
        assert overshoot is not None
        assert overshoot.too_deep is True

    def test_the_most_that_was_seen_counts_though_it_is_gone(self, place: WatchedPlace, tmp_path: Path) -> None:
        killer = Killer()
        with place.watching(killer):
            fill(place, "a", 3 * MIB)
            killer.wait(1)
            (place.mounted / "a").unlink()
            fill(place, NAME, 5)
        intake = place.take(Wanted(path=NAME), tmp_path / "taken")
        assert place.overshoot() == Tally(bytes=3 * MIB, entries=1)
        assert (intake.size, intake.full) == (5, True)

    def test_the_most_stays_where_less_is_still_too_much(self, place: WatchedPlace, tmp_path: Path) -> None:
        killer = Killer()
        with place.watching(killer):
            fill(place, "a", 3 * MIB)
            killer.wait(1)
            fill(place, "a", 2 * MIB)
        place.take(Wanted(path=NAME), tmp_path / "taken")
        assert place.overshoot() == Tally(bytes=3 * MIB, entries=1)

    def test_what_was_seen_once_and_not_again_is_no_overshoot(
        self, place: WatchedPlace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A file that is replaced during a look can be counted twice."""
        answers = [Tally(bytes=2 * MIB, entries=1), Tally(bytes=MIB, entries=1)] * 3
        left = list(answers)
        seen = threading.Event()

        def look(folder: Path, *, most: int) -> Tally:
            if not left:
                seen.set()
                return answers[-1]
            return left.pop(0)

        monkeypatch.setattr(watched, "tally", look)
        killer = Killer()
        with place.watching(killer):
            assert seen.wait(LONG)
        assert (killer.kills, place.overshoot()) == (0, None)

    def test_a_folder_shut_for_a_moment_is_looked_at_again(
        self, place: WatchedPlace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        really, left = tallying.tally, [PermissionError(errno.EACCES, "shut")] * 3

        def look(folder: Path, *, most: int) -> Tally:
            if left:
                raise left.pop()
            return really(folder, most=most)

        monkeypatch.setattr(watched, "tally", look)
        killer = Killer()
        fill(place, "a", 2 * MIB)
        with place.watching(killer):
            killer.wait(1)
        assert left == []

    def test_a_folder_that_stays_shut_is_no_empty_one(
        self, place: WatchedPlace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        def look(folder: Path, *, most: int) -> Tally:
            raise PermissionError(errno.EACCES, "shut")

        monkeypatch.setattr(watched, "tally", look)
        with place.watching(Killer()):
            pass
        with pytest.raises(PermissionError):
            place.take(Wanted(path=NAME), tmp_path / "taken")

    def test_whatever_stops_the_watch_stops_the_container_and_is_told(
        self, place: WatchedPlace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def look(folder: Path, *, most: int) -> Tally:
            raise OSError(errno.EIO, "broken")

        monkeypatch.setattr(watched, "tally", look)
        killer = Killer()
        with pytest.raises(OSError, match="broken"), place.watching(killer):
            killer.wait(3)  # the first can come before the container has started

    def test_what_went_wrong_with_the_run_itself_comes_first(self, place: WatchedPlace) -> None:
        with pytest.raises(ZeroDivisionError), place.watching(Killer()):
            raise ZeroDivisionError

    def test_a_disk_without_room_to_spare_is_the_hosts(
        self, place: WatchedPlace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A file that is deleted and still open is in no folder, but on the disk."""
        killer = Killer()
        watch = place.watching(killer)
        watch.__enter__()
        monkeypatch.setattr(watched, "SPARE_ROOM", 1 << 60)
        killer.wait(1)
        with pytest.raises(HostFault, match="no room for an output that is only watched"):
            watch.__exit__(None, None, None)
        assert place.overshoot() is None


class TestTake:
    def test_a_good_file(self, place: WatchedPlace, tmp_path: Path) -> None:
        fill(place, NAME, 5)
        assert place.take(Wanted(path=NAME), tmp_path / "taken") == Intake(file=NAME, size=5)
        assert place.overshoot() is None

    def test_more_than_allowed_is_found_at_the_end_at_the_latest(self, place: WatchedPlace, tmp_path: Path) -> None:
        fill(place, NAME, 5)
        fill(place, "features", 2 * MIB)
        intake = place.take(Wanted(path=NAME), tmp_path / "taken")
        assert (intake.size, intake.full) == (5, True)
        assert place.overshoot() == Tally(bytes=2 * MIB + 4096, entries=2)

    def test_a_file_over_the_cap_is_not_taken(self, place: WatchedPlace, tmp_path: Path) -> None:
        fill(place, NAME, MIB + 1)
        assert place.take(Wanted(path=NAME), tmp_path / "taken").refusal is IntakeRefusal.TOO_LARGE
        assert not (tmp_path / "taken").exists()

    def test_a_hard_link_and_a_link_are_refused(self, place: WatchedPlace, tmp_path: Path) -> None:
        fill(place, "z", 5)
        (place.mounted / NAME).hardlink_to(place.mounted / "z")
        assert place.take(Wanted(path=NAME), tmp_path / "taken").refusal is IntakeRefusal.SEVERAL_LINKS
        (place.mounted / NAME).unlink()
        (place.mounted / NAME).symlink_to("/etc/passwd")
        assert place.take(Wanted(path=NAME), tmp_path / "taken").refusal is IntakeRefusal.NOT_REGULAR


class TestPlace:
    @pytest.mark.root
    def test_it_is_the_jobs_own_and_out_of_reach_of_others(
        self, desk: Path, make_budget: Callable[..., Budget]
    ) -> None:
        with watched_place(desk, name="w", budget=make_budget(), uid=200_007, gid=200_008, mode=0o777) as place:
            facts, above = place.mounted.stat(), place.mounted.parent.stat()
            assert (facts.st_uid, facts.st_gid, facts.st_mode & 0o7777) == (200_007, 200_008, 0o777)
            assert (above.st_uid, above.st_mode & 0o7777, place.mounted.parent.parent) == (0, 0o700, desk)

    def test_it_is_not_made_where_the_disk_is_too_small(self, desk: Path, make_budget: Callable[..., Budget]) -> None:
        budget = make_budget(output_bytes=1 << 60)
        with (
            pytest.raises(HostFault, match=r"no room for an output that is only watched: [0-9]+ bytes are missing"),
            watched_place(desk, name="w", budget=budget, uid=os.getuid(), gid=os.getgid()),
        ):
            pytest.fail("it was made")

    def test_whatever_was_left_there_is_deleted(self, place: WatchedPlace) -> None:
        """The desk's fixture asserts it."""
        before = Path.cwd()
        os.chdir(place.mounted)
        try:
            for _ in range(3000):
                Path("d").mkdir()
                os.chdir("d")
        finally:
            os.chdir(before)
        Path(place.mounted / "dead").symlink_to("/nonexistent")
        fill(place, "shut", 5)
        (place.mounted / "shut").chmod(0)
        (place.mounted / "no-way-in" / "x").mkdir(parents=True)
        (place.mounted / "no-way-in").chmod(0)

    @pytest.mark.root
    def test_without_root_what_a_container_shut_is_taken_and_deleted(self, make_budget: Callable[..., Budget]) -> None:
        os.setegid(12345)
        os.seteuid(12345)
        try:
            desk = Path(os.path.realpath(os.environ.get("TMPDIR", "/tmp"))) / f"proctor-test-{os.getpid()}"
            desk.mkdir()
            with watched_place(desk, name="w", budget=make_budget(), uid=12345, gid=12345) as place:
                fill(place, NAME, 5)
                (place.mounted / "d").mkdir()
                fill(place, "d/x", 5)
                for path, mode in ((place.mounted / NAME, 0), (place.mounted / "d", 0), (place.mounted, 0o100)):
                    path.chmod(mode)
                assert place.take(Wanted(path=NAME), desk / "taken") == Intake(
                    file=NAME, size=5, other_entries=1, other_names=(NameKind.FOLDER,)
                )
                place.mounted.chmod(0)
            with watched_place(desk, name="e", budget=make_budget(), uid=12345, gid=12345) as empty:
                empty.mounted.chmod(0o400)
                assert empty.take(Wanted(path=NAME), desk / "none") == Intake(file=NAME, refusal=IntakeRefusal.MISSING)
            discard(desk)
            assert not desk.exists()
        finally:
            os.seteuid(0)
            os.setegid(0)
