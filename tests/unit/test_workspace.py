"""Desks leave nothing, and only what a provably dead runner left is swept."""

import os
import re
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from runner import mounts, workspace
from runner.ownership import Owner, current_owner, provably_dead
from runner.workspace import (
    Leftover,
    Workspace,
    default_root,
    discard,
    discard_workspace,
    leftovers,
    neutral_name,
    open_workspace,
)

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
        assert office.folder.parent == root
        assert set(root.iterdir()) == {office.folder, root / f"{office.folder.name}.owner"}
        assert (root / f"{office.folder.name}.owner").readlink() == Path(str(ME))
        # What a container sees of a host is the path of what is mounted: no part of it may say anything.
        assert re.fullmatch("[0-9a-f]{16}", office.folder.name)
        assert list(office.folder.iterdir()) == []
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
    other = str(replace(ME, pid=1))
    names = [f"{number:016x}" for number in range(5)]
    for name, text in zip(names, [str(ME), other, "nobody", "\udcff", other], strict=True):
        if name != names[4]:  # recorded, and not made yet
            (tmp_path / name).mkdir()
        (tmp_path / f"{name}.owner").symlink_to(text)
    (tmp_path / "leases").mkdir()
    (tmp_path / "leases.owner").symlink_to(other)
    (tmp_path / f"{5:016x}").mkdir()
    (tmp_path / f"{6:016x}.owner").write_text(other)
    (tmp_path / f"{7:016x}.owner.bak").symlink_to(other)
    assert leftovers(tmp_path, ME) == (
        Leftover(folder=tmp_path / names[1], owner=other),
        Leftover(folder=tmp_path / names[2], owner="nobody"),
        Leftover(folder=tmp_path / names[3], owner="\udcff"),
        Leftover(folder=tmp_path / names[4], owner=other),
    )


def test_no_workspace_has_no_leftovers(tmp_path: Path) -> None:
    assert leftovers(tmp_path / "none", ME) == ()


_KILLED = """
import os, sys
from pathlib import Path
from runner import workspace
from runner.ownership import current_owner

def end(*arguments, **named):
    os.kill(os.getpid(), 9)

real = {{name: getattr(os, name) for name in ("mkdir", "symlink", "unlink")}}
{arm}
with workspace.open_workspace(Path(sys.argv[1]), current_owner()) as office, office.desk() as desk:
    (desk / "frame.png").write_text("hidden")
    {inside}
"""


@pytest.mark.parametrize(
    ("arm", "inside", "left_there"),
    [
        # Between the record and the folder.
        ("os.mkdir = lambda path, *more: real['mkdir'](path, *more) if Path(path).name == 'work' else end()", "",
         ["owner"]),
        # The folder is there, and empty.
        ("workspace.Workspace = end", "", ["folder", "owner"]),
        ("", "end()", ["folder", "frame", "owner"]),
        # The folder is gone, its record not.
        ("os.unlink = lambda path, **more: end() if str(path).endswith('.owner') else real['unlink'](path, **more)", "",
         ["owner"]),
    ],
    ids=["recorded", "made", "used", "discarded"],
)  # fmt: skip
def test_what_a_runner_leaves_that_is_killed_at_any_moment_is_known_to_be_its_own(
    tmp_path: Path, arm: str, inside: str, left_there: list[str]
) -> None:
    root = tmp_path / "work"
    done = subprocess.run(
        [sys.executable, "-c", _KILLED.format(arm=arm, inside=inside), str(root)], cwd=REPOSITORY, check=False
    )
    assert done.returncode == -9
    kinds = {".owner": "owner", "": "folder", ".png": "frame"}
    found = sorted(kinds[path.suffix] for path in root.rglob("*") if path.parent == root or path.suffix)
    assert found == left_there
    (left,) = leftovers(root, ME)
    owner = Owner.parse(left.owner)
    assert owner is not None
    assert provably_dead(owner, ME) is True
    discard_workspace(left.folder)
    assert list(root.iterdir()) == []


def test_a_runner_killed_before_it_recorded_itself_leaves_nothing(tmp_path: Path) -> None:
    root = tmp_path / "work"
    script = _KILLED.format(arm="os.symlink = end", inside="")
    done = subprocess.run([sys.executable, "-c", script, str(root)], cwd=REPOSITORY, check=False)
    assert done.returncode == -9
    assert list(root.iterdir()) == []


def test_a_folder_that_cannot_be_deleted_stays_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, record = tmp_path / "0123456789abcdef", tmp_path / "0123456789abcdef.owner"
    folder.mkdir()
    record.symlink_to(str(replace(ME, started="1")))
    monkeypatch.setattr(workspace, "_delete", lambda _folder: None)
    discard_workspace(folder)
    assert leftovers(tmp_path, ME) == (Leftover(folder=folder, owner=str(replace(ME, started="1"))),)
    monkeypatch.undo()
    discard_workspace(folder)
    assert list(tmp_path.iterdir()) == []
    discard_workspace(folder)  # another runner was quicker


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
