"""A run's files are written whole or not at all, and one runner at a time works on them."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from runner.budget import Usage
from runner.errors import HostFault, UsageError
from runner.job import JobResult, KillReason
from runner.store import RunFolder, locked, read_value, write_value, write_whole
from runner.tally import Tally
from runner.verdict import Hint, Verdict, VerdictWord

REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, kw_only=True)
class Toy:
    """A value with the kinds of field ours have."""

    name: str
    path: Path
    seconds: float
    pairs: tuple[tuple[str, int], ...]
    verdict: Verdict | None = None


VALUE = Toy(
    name="Zürich \u202e", path=Path("/a b"), seconds=0.1, pairs=(("x", 1),),
    verdict=Verdict(word=VerdictWord.CRASHED, sentence="s", hints=(Hint(cause="c", fix="f"),)),
)  # fmt: skip


def test_a_value_reads_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "value.json"
    write_value(path, VALUE)
    assert read_value(path, Toy) == VALUE
    assert [entry.name for entry in path.parent.iterdir()] == ["value.json"]


def test_a_name_of_a_stranger_is_harmless_where_its_file_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "value.json"
    hostile = replace(VALUE, name="\u202e\x9b31m\x1b[2J\u2028</script>")
    write_value(path, hostile)
    assert read_value(path, Toy) == hostile
    text = path.read_text(encoding="utf-8")
    assert "\\u202e\\u009b31m\\u001b[2J\\u2028\\u003c/script>" in text
    assert not set("\u202e\x9b\x1b\u2028") & set(text)


def test_a_result_of_before_outputs_were_watched_still_loads(tmp_path: Path) -> None:
    usage = Usage(engine_seconds=1.0, monotonic_seconds=1.0, output_bytes=0, alone=True)
    over = JobResult(
        job="full", digest="d", attempt=1, exit=None, killed=KillReason.OUTPUT, usage=usage, intake=None,
        overshoot=Tally(bytes=5, entries=2),
    )  # fmt: skip
    path = tmp_path / "result.json"
    write_value(path, over)
    assert read_value(path, JobResult) == over
    old = json.loads(path.read_bytes())
    del old["overshoot"]
    path.write_text(json.dumps(old))
    assert read_value(path, JobResult) == replace(over, overshoot=None)


def test_writing_replaces_the_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "f"
    write_whole(path, b"a long first text")
    write_whole(path, b"short")
    assert path.read_bytes() == b"short"


def test_a_link_in_the_files_place_is_replaced_not_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_bytes(b"victim")
    (tmp_path / "f").symlink_to(tmp_path / "victim")
    write_whole(tmp_path / "f", b"new")
    assert ((tmp_path / "victim").read_bytes(), (tmp_path / "f").is_symlink()) == (b"victim", False)


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,nr_inodes=8", "tmpfs", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.root
def test_a_full_disk_loses_nothing(tiny: Path) -> None:
    path = tiny / "outcome.json"
    write_whole(path, b"old" * 1000)
    with pytest.raises(HostFault) as caught:
        write_whole(path, b"n" * 200_000)
    assert caught.value.what == (
        "outcome.json could not be written: No space left on device; nothing that was there is lost"
    )
    assert (caught.value.where, caught.value.exit_code) == (str(path), 5)
    assert path.read_bytes() == b"old" * 1000
    assert [entry.name for entry in tiny.iterdir()] == ["outcome.json"]


@pytest.mark.root
def test_a_disk_without_inodes_loses_nothing(tiny: Path) -> None:
    path = tiny / "outcome.json"
    write_whole(path, b"old")
    fillers = [tiny / f"{number}" for number in range(os.statvfs(tiny).f_ffree)]
    for filler in fillers:
        filler.touch()
    with pytest.raises(HostFault, match="No space left on device"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert sorted(entry.name for entry in tiny.iterdir()) == sorted([*(f.name for f in fillers), "outcome.json"])


def test_a_folder_that_cannot_be_made_is_a_fault_of_the_host(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(HostFault, match=r"x could not be written: File exists; nothing"):
        write_whole(tmp_path / "file" / "x", b"")


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"null", b"[]", b"{}", b"\xff\xfe", b'{"name": 1', b"[" * 100_000, b'{"name": "n", "path": "/p"}',
     b'{"name":"n","path":"/p","seconds":"fast","pairs":[]}', b'{"name":"n","path":"/p","seconds":1,"pairs":[["x"]]}',
     b'{"name":"n","path":"/p","seconds":1,"pairs":[],"verdict":{"word":"great","sentence":"s"}}', b"\0" * 4096],
    ids=lambda text: text[:40],
)  # fmt: skip
def test_a_damaged_value_says_so(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "value.json"
    path.write_bytes(text)
    with pytest.raises(UsageError) as caught:
        read_value(path, Toy)
    assert caught.value.what.startswith("value.json is damaged: ")
    assert "\n" not in caught.value.what
    assert (caught.value.where, caught.value.remedy) == (str(path), "delete it, then: proctor resume RUN")


def test_a_missing_value_says_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        read_value(tmp_path / "run.json", Toy)
    assert str(caught.value) == f"{tmp_path}: there is no run.json (is this a run folder?)"


class TestLocked:
    def test_the_folder_is_made_private(self, tmp_path: Path) -> None:
        run = RunFolder(root=tmp_path / "a" / "run")
        with locked(run):
            assert run.root.stat().st_mode & 0o777 == 0o700
            assert (run.root / ".lock").read_text() == str(os.getpid())

    def test_a_folder_that_is_there_becomes_private(self, tmp_path: Path) -> None:
        tmp_path.chmod(0o755)
        with locked(RunFolder(root=tmp_path)):
            assert tmp_path.stat().st_mode & 0o777 == 0o700

    def test_a_second_runner_is_told_the_pid_of_the_first(self, tmp_path: Path) -> None:
        script = (
            "import sys\nfrom pathlib import Path\nfrom runner.store import RunFolder, locked\n"
            "with locked(RunFolder(root=Path(sys.argv[1]))):\n    print('held', flush=True); sys.stdin.read()\n"
        )
        run, command = RunFolder(root=tmp_path), [sys.executable, "-c", script, str(tmp_path)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=REPOSITORY) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"held\n"
            with pytest.raises(UsageError) as caught, locked(run):
                pass
            assert caught.value.what == f"another proctor (pid {process.pid}) works on this run folder"
            assert caught.value.where == str(tmp_path)
            # The refused one has not taken the first one's pid away.
            assert (tmp_path / ".lock").read_text() == str(process.pid)
            process.kill()
        with locked(run):
            assert (tmp_path / ".lock").read_text() == str(os.getpid())

    def test_twice_in_one_process(self, tmp_path: Path) -> None:
        run = RunFolder(root=tmp_path)
        with locked(run), pytest.raises(UsageError, match=rf"pid {os.getpid()}\b"), locked(run):
            pass

    def test_it_is_given_back_after_an_error(self, tmp_path: Path) -> None:
        run = RunFolder(root=tmp_path)
        with pytest.raises(ZeroDivisionError), locked(run):
            raise ZeroDivisionError
        with locked(run):
            pass

    def test_a_file_in_the_folders_place(self, tmp_path: Path) -> None:
        (tmp_path / "run").touch()
        with pytest.raises(UsageError) as caught, locked(RunFolder(root=tmp_path / "run")):
            pass
        assert str(caught.value) == (
            f"{tmp_path}/run: the run folder cannot be made: File exists (give another folder with --out)"
        )


def test_the_layout() -> None:
    run = RunFolder(root=Path("/r"))
    paths = {
        run.record: "run.json", run.private: "private", run.challenge: "challenge", run.scores: "scores.csv",
        run.leaderboard_csv: "leaderboard.csv", run.leaderboard_json: "leaderboard.json",
        run.report: "report.organiser.html", run.image("s"): "submissions/s/image.json",
        run.causality("s", "t"): "submissions/s/t/causality.json", run.case("s", "t", "c"): "submissions/s/t/c",
        run.outcome("s", "t", "c"): "submissions/s/t/c/outcome.json",
        run.attempt("s", "t", "c", "cut-0007", 2): "submissions/s/t/c/cut-0007/attempt-2",
    }  # fmt: skip
    assert {str(path): f"/r/{text}" for path, text in paths.items()} == {f"/r/{t}": f"/r/{t}" for t in paths.values()}


@pytest.mark.parametrize(
    "name", ["../../../etc/passwd", "/etc/passwd", "..", ".", "", "a/b", "a\0b", "a\nb", "é" * 300]
)
def test_no_name_of_a_task_or_case_leaves_the_folder(name: str) -> None:
    run = RunFolder(root=Path("/r"))
    case = run.case("s", name, name)
    assert case.parts[:4] == ("/", "r", "submissions", "s")
    assert len(case.parts) == 6
    assert all(part.replace("-", "").isalnum() and part.isascii() for part in case.parts[4:])
