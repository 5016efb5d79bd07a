"""Whatever is changed, removed or added after a receipt was written is found, and named with its step."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from runner.errors import UsageError
from runner.pipeline.receipt import Verified, VerifyRequest, verify_receipt, write_receipt
from runner.pipeline.record import RunRecord
from runner.receipt.contents import RECEIPT_FILE
from runner.receipt.keys import make_key, public_file
from runner.receipt.steps import Step, dependents_of
from runner.store import RunFolder, locked, read_value, write_value
from tests.finished_run import STEP_OF, leave_pending, make_run


@pytest.fixture
def key(tmp_path: Path) -> Path:
    make_key(tmp_path / "key")
    return tmp_path / "key"


@pytest.fixture
def run(tmp_path: Path, key: Path) -> RunFolder:
    """A finished run with a signed receipt, and data of its own."""
    made = make_run(tmp_path)
    write_receipt(made, key=key)
    return made


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A finished run with a signed receipt, to be copied; the key lies beside it."""
    folder = tmp_path_factory.mktemp("original")
    make_key(folder / "key")
    made = make_run(folder)
    write_receipt(made, key=folder / "key")
    return made


@pytest.fixture
def copy(tmp_path: Path, original: RunFolder) -> RunFolder:
    """A copy of that run, which needs no data: a hundred of them are quickly made."""
    return RunFolder(root=shutil.copytree(original.root, tmp_path / "copy"))


def verify(run: RunFolder, key: Path | None = None, *, skip_data: bool = True) -> Verified:
    public = public_file(key) if key is not None else None
    return verify_receipt(VerifyRequest(run=run, public=public, skip_data=skip_data))


def differing(found: Verified) -> list[tuple[str, str, str]]:
    return [(one.path, one.what.value, one.step.value) for one in found.findings]


def test_a_run_that_nobody_touched_is_whole(run: RunFolder, key: Path) -> None:
    found = verify(run, key, skip_data=False)
    assert (found.whole, found.files, found.purged, found.cases, found.notes) == (True, len(STEP_OF), 0, 2, ())


def test_the_receipt_covers_every_file_below_its_step(run: RunFolder) -> None:
    listed = json.loads((run.root / RECEIPT_FILE).read_bytes())["content"]["files"]
    assert {path: step for step, files in listed.items() for path in files} == STEP_OF


def test_the_summary_says_what_was_run(run: RunFolder) -> None:
    summary = json.loads((run.root / RECEIPT_FILE).read_bytes())["content"]["summary"]
    image = "sha256:" + "a" * 64
    assert summary["images"] == {"team-1": {"id": image, "source": "x:1", "origin": f"registry/x@{image}"}}
    assert summary["scorer"]["tasks"]["steps"] == {"scorer": "pitvis2023.Steps", "images": [image]}
    assert summary["scorer"]["tasks"]["instruments"] == {"scorer": "pitvis2023.Instruments", "images": []}
    assert summary["policy"]["name"] == "strict"
    lengths = [len(summary[name]) for name in ("data", "results")]
    assert [*lengths, len(summary["challenge"]["digest"]), len(summary["policy"]["digest"])] == [64] * 4


@pytest.mark.parametrize(("path", "step"), STEP_OF.items())
def test_a_changed_byte_is_found(copy: RunFolder, original: RunFolder, path: str, step: str) -> None:
    file = copy.root / path
    before, data = file.stat(), bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    found = verify(copy, original.root.parent / "key")
    assert differing(found) == [(path, "changed", step)]
    (only,) = found.findings
    assert only.sentence.startswith(f"{path} was changed, with its {len(data)} bytes kept in number: ")
    assert f"(step {step}) is doubtful" in only.sentence
    assert only.dependents == dependents_of(Step(step))
    assert all(one.value in only.sentence for one in only.dependents)
    assert only.remedy


@pytest.mark.parametrize(("path", "step"), STEP_OF.items())
def test_a_file_that_is_missing_is_found(copy: RunFolder, original: RunFolder, path: str, step: str) -> None:
    (copy.root / path).unlink()
    assert differing(verify(copy, original.root.parent / "key")) == [(path, "missing", step)]


@pytest.mark.parametrize(("path", "step"), STEP_OF.items())
def test_a_link_in_place_of_a_file_is_found(copy: RunFolder, original: RunFolder, path: str, step: str) -> None:
    (copy.root / path).rename(copy.root.parent / "kept")
    (copy.root / path).symlink_to(copy.root.parent / "kept")
    found = verify(copy, original.root.parent / "key")
    assert differing(found) == [(path, "changed", step)]
    assert "is no regular file any more" in found.findings[0].sentence


@pytest.mark.parametrize(
    ("path", "step"),
    [
        ("more.txt", "other"), ("private/more", "settings"), ("challenge/more.py", "challenge"),
        ("submissions/team-2/image.json", "image"), ("submissions/team-2/preflight.json", "preflight"),
        ("submissions/team-1/other/causality.json", "causality"),
        ("submissions/team-1/steps/03/outcome.json", "outcomes"),
        ("submissions/team-1/steps/01/full/attempt-2/result.json", "attempts"),
        ("submissions/team-1/steps/01/full/attempt-1/predictions/more.csv", "predictions"),
        ("report.public.html", "report"), ("submissions/team-1/other/scores.container.json", "scores"),
    ],
)  # fmt: skip
def test_a_file_that_was_added_is_found(copy: RunFolder, original: RunFolder, path: str, step: str) -> None:
    (copy.root / path).parent.mkdir(parents=True, exist_ok=True)
    (copy.root / path).write_bytes(b"")
    assert differing(verify(copy, original.root.parent / "key")) == [(path, "added", step)]


def test_a_name_that_is_no_text_is_found_and_harmless(run: RunFolder, key: Path) -> None:
    Path(os.fsdecode(os.fsencode(run.root) + b"/\xff\x1b[2J")).write_bytes(b"")
    assert differing(verify(run, key)) == [("\udcff\x1b[2J", "added", "other")]


def test_all_that_differs_is_found_at_once(run: RunFolder, key: Path) -> None:
    (run.root / "scores.csv").write_bytes(b"longer than it was, by far and by much\n")
    run.report.unlink()
    (run.root / "a").write_bytes(b"")
    found = verify(run, key)
    assert differing(found) == [
        ("a", "added", "other"), ("report.organiser.html", "missing", "report"), ("scores.csv", "changed", "scores"),
    ]  # fmt: skip
    assert "from 22 bytes to 39" in found.findings[2].sentence


def _input(data: Path) -> None:
    (data / "inputs/01/00000.png").write_bytes(b"other")


def _reference(data: Path) -> None:
    path = data / "references/02.csv"
    path.write_bytes(path.read_bytes() + b"\n")


def _case(data: Path) -> None:
    for path in (data / "inputs/02").iterdir():
        path.unlink()
    (data / "inputs/02").rmdir()
    (data / "references/02.csv").unlink()


def _frame(data: Path) -> None:
    (data / "inputs/01/00001.png").unlink()


@pytest.mark.parametrize(
    ("change", "path", "what"),
    [
        (_input, "case '01', inputs,", "changed"), (_reference, "case '02', reference of task 'steps',", "changed"),
        (_case, "case '02'", "missing"), (_frame, "case '01', inputs,", "changed"),
    ],
)  # fmt: skip
def test_changed_data_are_found(
    tmp_path: Path, run: RunFolder, key: Path, change: Callable[[Path], None], path: str, what: str
) -> None:
    change(tmp_path / "data")
    assert (path, what, "data") in differing(verify(run, key, skip_data=False))
    assert verify(run, key).whole


def test_data_that_cannot_be_read_any_more_differ(tmp_path: Path, run: RunFolder, key: Path) -> None:
    (tmp_path / "data/references").rename(tmp_path / "elsewhere")
    assert differing(verify(run, key, skip_data=False)) == [("the data folder", "changed", "data")]


def test_data_elsewhere_are_not_tested_unless_they_are_named(tmp_path: Path, run: RunFolder) -> None:
    (tmp_path / "data").rename(tmp_path / "moved")
    found = verify(run, skip_data=False)
    assert (found.whole, found.cases) == (True, 0)
    assert any("name it with --data" in note for note in found.notes)
    named = verify_receipt(VerifyRequest(run=run, data=tmp_path / "moved"))
    assert (named.whole, named.cases) == (True, 2)


def resealed(run: RunFolder, **changes: str) -> None:
    """Write other text into the receipt's outermost fields, laid out as it was."""
    path = run.root / RECEIPT_FILE
    text = path.read_text(encoding="utf-8")
    value = json.loads(text)
    for name, change in changes.items():
        text = text.replace(value[name], change)
    path.write_text(text, encoding="utf-8")


def test_a_changed_signature_is_found(run: RunFolder, key: Path) -> None:
    resealed(run, signature="0" * 128)
    (only,) = verify(run, key).findings
    assert (only.path, only.step.value) == (RECEIPT_FILE, "receipt")
    assert "its signature does not fit" in only.sentence
    assert len(only.dependents) == 13


def test_a_changed_text_of_the_receipt_is_found(run: RunFolder, key: Path) -> None:
    path = run.root / RECEIPT_FILE
    path.write_text(path.read_text(encoding="utf-8").replace('"x:1"', '"y:1"'), encoding="utf-8")
    (only,) = verify(run, key).findings
    assert "its digest does not fit what it says" in only.sentence


@pytest.mark.parametrize("data", [b"", b"{}", b"\x00\xff"])
def test_a_receipt_that_cannot_be_read_is_found(run: RunFolder, data: bytes) -> None:
    (run.root / RECEIPT_FILE).write_bytes(data)
    found = verify(run)
    assert differing(found) == [(RECEIPT_FILE, "changed", "receipt")]
    assert found.notes == ("no file was compared: the receipt cannot be read",)


def test_another_key_is_found(tmp_path: Path, run: RunFolder) -> None:
    make_key(tmp_path / "other")
    assert verify(run).whole
    (only,) = verify(run, tmp_path / "other").findings
    assert "is signed with another key" in only.sentence
    (tmp_path / "run/scores.csv").write_bytes(b"better")
    write_receipt(run, key=tmp_path / "other", replace=True)
    assert differing(verify(run, tmp_path / "key")) == [(RECEIPT_FILE, "changed", "receipt")]


def test_whose_key_it_is_is_said_to_be_untested(run: RunFolder) -> None:
    assert any("give the organisers' with --public" in note for note in verify(run).notes)


def test_an_unsigned_receipt_finds_changes_and_says_what_it_is(tmp_path: Path, key: Path) -> None:
    run = make_run(tmp_path)
    assert write_receipt(run, key=None).public_key == ""
    found = verify(run)
    assert found.whole
    assert any("the receipt is not signed" in note for note in found.notes)
    assert "is not signed" in verify(run, key).findings[0].sentence
    run.scores.write_bytes(b"")
    assert differing(verify(run)) == [("scores.csv", "changed", "scores")]


def test_the_same_run_and_key_give_the_same_bytes(run: RunFolder, key: Path) -> None:
    before = (run.root / RECEIPT_FILE).read_bytes()
    write_receipt(run, key=key, replace=True)
    assert (run.root / RECEIPT_FILE).read_bytes() == before


def test_a_receipt_is_replaced_only_on_demand(run: RunFolder, key: Path) -> None:
    run.scores.write_bytes(b"other")
    with pytest.raises(UsageError, match="vouch for whatever was changed since"):
        write_receipt(run, key=key)
    assert not verify(run, key).whole
    write_receipt(run, key=key, replace=True)
    assert verify(run, key).whole


def test_a_run_that_is_not_finished_gets_none(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    leave_pending(run, "02")
    with pytest.raises(UsageError, match="not finished: 1 of 2 cases"):
        write_receipt(run, key=None)
    run.outcome("team-1", "steps", "01").unlink()
    with pytest.raises(UsageError, match="not finished: 0 of 2 cases"):
        write_receipt(run, key=None)


def test_a_run_without_leaderboard_gets_none(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    run.leaderboard_json.unlink()
    with pytest.raises(UsageError, match="no leaderboard yet"):
        write_receipt(run, key=None)


def test_a_run_that_ranks_nobody_needs_no_leaderboard(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    run.leaderboard_json.unlink()
    write_value(run.record, replace(read_value(run.record, RunRecord), for_ensemble=True))
    write_receipt(run, key=None)
    assert verify(run).whole


def test_a_run_whose_challenge_is_another_one_gets_none(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    (run.challenge / "scorer.py").write_text("steps = None\n")
    with pytest.raises(UsageError, match="not the one that it began with"):
        write_receipt(run, key=None)


def test_a_link_in_a_run_gets_no_receipt(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    (run.root / "link").symlink_to("run.json")
    with pytest.raises(UsageError, match="'link' is no regular file"):
        write_receipt(run, key=None)


def test_a_run_somebody_works_on_gets_none(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    with locked(run), pytest.raises(UsageError, match="another proctor"):
        write_receipt(run, key=None)


def test_what_is_no_run_is_refused_and_stays_as_it_was(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no receipt\.json"):
        verify(RunFolder(root=tmp_path / "nowhere"))
    with pytest.raises(UsageError, match="not a run folder"):
        write_receipt(RunFolder(root=tmp_path / "nowhere"), key=None)
    assert list(tmp_path.iterdir()) == []
