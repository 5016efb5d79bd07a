"""Desks leave nothing, and only what a provably dead runner left is swept."""

import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from runner import mounts
from runner.ownership import Owner, current_owner, provably_dead
from runner.workspace import Leftover, Workspace, default_root, discard, leftovers, neutral_name, open_workspace

ME = current_owner()
REPOSITORY = Path(__file__).resolve().parents[2]


def test_a_neutral_name_says_nothing() -> None:
    names = {neutral_name() for _ in range(100)}
    assert len(names) == 100
    assert {len(name) for name in names} == {16}
    assert set("".join(names)) <= set("0123456789abcdef")


def test_a_desk_is_fresh_and_leaves_nothing(tmp_path: Path) -> None:
    office = Workspace(folder=tmp_path)
    with office.desk() as first, office.desk() as second:
        assert first != second
        assert (first.parent, list(first.iterdir())) == (tmp_path, [])
        (first / "a").mkdir()
        (first / "a" / "b").write_text("x")
    assert list(tmp_path.iterdir()) == []


def test_a_desk_leaves_nothing_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), Workspace(folder=tmp_path).desk():
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_a_workspace_names_its_owner_and_leaves_nothing(tmp_path: Path) -> None:
    root = tmp_path / "work"
    with open_workspace(root, ME) as office:
        assert (office.folder / "owner").read_text() == str(ME)
        assert office.folder.parent == root
        # Containers' users pass through, but do not list what else is there.
        assert (root.stat().st_mode & 0o777, office.folder.stat().st_mode & 0o777) == (0o711, 0o711)
        assert leftovers(root, ME) == ()
        with office.desk():
            pass
    assert list(root.iterdir()) == []


def test_a_workspace_below_a_relative_path_is_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with open_workspace(Path("work"), ME) as office:
        assert office.folder.parent == tmp_path / "work"


def test_leftovers_are_other_runners_folders_with_what_they_say_of_their_owner(tmp_path: Path) -> None:
    texts = {"1-mine": str(ME), "2-other": str(replace(ME, pid=1)), "3-damaged": "nobody", "4-not-ascii": "ä"}
    for name, text in texts.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "owner").write_text(text, encoding="utf-8")
    (tmp_path / "5-leases").mkdir()
    (tmp_path / "6-file").write_text("x")
    assert leftovers(tmp_path, ME) == (
        Leftover(folder=tmp_path / "2-other", owner=str(replace(ME, pid=1))),
        Leftover(folder=tmp_path / "3-damaged", owner="nobody"),
        Leftover(folder=tmp_path / "4-not-ascii", owner="\ufffd\ufffd"),
    )


def test_no_workspace_has_no_leftovers(tmp_path: Path) -> None:
    assert leftovers(tmp_path / "none", ME) == ()


def test_what_a_killed_runner_left_is_found_and_deleted(tmp_path: Path) -> None:
    script = (
        "import os, sys\nfrom pathlib import Path\nfrom runner.ownership import current_owner\n"
        "from runner.workspace import open_workspace\n"
        "with open_workspace(Path(sys.argv[1]), current_owner()) as w, w.desk() as d:\n"
        "    (d / 'frame.png').write_text('hidden')\n    os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], cwd=REPOSITORY, check=False)
    assert done.returncode == -9
    (left,) = leftovers(tmp_path, ME)
    owner = Owner.parse(left.owner)
    assert owner is not None
    assert provably_dead(owner, ME) is True
    assert [path.name for path in left.folder.rglob("*.png")] == ["frame.png"]
    discard(left.folder)
    assert list(tmp_path.iterdir()) == []


def test_discarding_what_is_not_there_is_silent(tmp_path: Path) -> None:
    discard(tmp_path / "none")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.root
def test_an_ordinary_user_deletes_read_only_views() -> None:
    """A view's folders are mode 0555: nothing can be deleted from them as they are, except by root."""
    script = (
        "import os, sys\nfrom pathlib import Path\nfrom runner.workspace import Workspace\n"
        "os.setgid(65534); os.setuid(65534)\n"
        "with Workspace(folder=Path(sys.argv[1])).desk() as desk:\n"
        "    (desk / 'v' / 'c').mkdir(parents=True); (desk / 'v' / 'c' / '0.png').write_text('hidden')\n"
        "    (desk / 'v' / 'c').chmod(0o555); (desk / 'v').chmod(0o555)\n"
    )
    # Not tmp_path: pytest keeps ordinary users out of it.
    with tempfile.TemporaryDirectory() as office:
        os.chown(office, 65534, 65534)
        done = subprocess.run(
            [sys.executable, "-c", script, office], cwd=REPOSITORY, check=False, capture_output=True, text=True
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert list(Path(office).iterdir()) == []


@pytest.mark.root
def test_discard_unmounts_first_also_through_a_link(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    desk = link / "desk"
    desk.mkdir()
    for name in ("a b", "c"):
        mounts.mount_new(desk / f"{name}.img", desk / name, blanks=desk, size=1 << 20, inodes=16, uid=1, gid=1)
        (desk / name / "file").write_text("x")
    assert {path.name for path in mounts.mounted_below(desk)} == {"a b", "c"}
    discard(desk)
    assert list(real.iterdir()) == []
    assert mounts.mounted_below(real) == ()


def test_the_default_root_tells_a_container_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert default_root() == Path("/var/lib/proctor/work")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert default_root() == Path("/cache/proctor/work")
