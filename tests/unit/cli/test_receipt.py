"""``proctor receipt`` and ``proctor purge``: what they say, in words and as JSON, and how they end."""

import io
import json
from pathlib import Path

import pytest

from runner.cli.boundary import run_cli
from runner.receipt.contents import PURGE_FILE
from tests.finished_run import STEP_OF, make_run


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A finished run with a signed receipt; the key lies beside it."""
    made = make_run(tmp_path).root
    assert run_cli(["receipt", "key", str(tmp_path / "key")]) == 0
    assert run_cli(["receipt", "write", str(made), "--key", str(tmp_path / "key")]) == 0
    told = capsys.readouterr().out
    assert f"of {len(STEP_OF)} files" in told
    assert "signed with key" in told
    return made


def verify(run: Path, *options: str) -> int:
    return run_cli(["receipt", "verify", str(run), "--public", str(run.parent / "key.pub"), *options])


def test_a_whole_run_ends_with_0(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify(run) == 0
    assert f"all is as it was: {len(STEP_OF)} files, the data of 2 cases, signed with key" in capsys.readouterr().out


def test_a_changed_run_ends_with_1_and_says_what_is_doubtful(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run / "leaderboard.csv").write_bytes(b"")
    assert verify(run, "--skip-data") == 1
    told = capsys.readouterr().out
    assert "leaderboard.csv was changed, from 27 bytes to 0: the ranking (step leaderboard) is doubtful" in told
    assert "next write it anew: proctor report RUN" in told
    assert f"1 thing is not as it was: {len(STEP_OF)} files, the data not read, signed with key" in told
    assert verify(run, "--json") == 1
    value = json.loads(capsys.readouterr().out)
    assert (value["whole"], value["cases"], value["purged"]) == (False, 2, 0)
    (only,) = value["findings"]
    assert (only["path"], only["what"], only["step"]) == ("leaderboard.csv", "changed", "leaderboard")
    assert only["dependents"] == ["report"]


def test_a_strangers_name_does_nothing_on_a_terminal(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run / "\x1b[2J[red]").write_bytes(b"")
    assert verify(run, "--skip-data") == 1
    told = capsys.readouterr().out
    assert "\x1b" not in told
    assert "␛[2J[red] was added" in told


def test_many_findings_are_cut_off(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(50):
        (run / f"more-{number:02}").write_bytes(b"")
    assert verify(run, "--skip-data") == 1
    told = capsys.readouterr().out
    assert told.count("was added") == 40
    assert "and 10 more: --json" in told
    assert "50 things are not as they were" in told


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("receipt", "verify", "RUN", "--public", "nowhere"), "cannot be read"),
        (("receipt", "verify", "nowhere"), "no receipt.json"),
        (("receipt", "write", "RUN"), "has a receipt"),
        (("receipt", "write", "nowhere"), "not a run folder"),
        (("receipt", "key", "RUN"), "exists"),
        (("purge", "RUN"), "nothing is named"),
        (("purge", "nowhere", "--images"), "not a run folder"),
        (("purge", "RUN", "--predictions", "--yes"), "could be anybody's"),
    ],
)
def test_wrong_input_ends_with_2(
    run: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    assert run_cli([str(run) if word == "RUN" else word for word in arguments]) == 2
    told = capsys.readouterr().err
    assert words in told
    assert "next" in told


def test_an_unsigned_receipt_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path).root
    assert run_cli(["receipt", "write", str(run)]) == 0
    assert "not signed: whoever can change a file can write another receipt" in capsys.readouterr().out
    assert run_cli(["receipt", "write", str(run), "--replace", "--json"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert value == {"receipt": str(run / "receipt.json"), "files": len(STEP_OF), "public_key": ""}
    assert run_cli(["receipt", "verify", str(run)]) == 0
    assert "note the receipt is not signed" in capsys.readouterr().out


def test_a_purge_asks_and_without_anybody_to_answer_deletes_nothing(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    arguments = ["purge", str(run), "--predictions", "--key", str(run.parent / "key")]
    assert run_cli(arguments) == 2
    assert "add --yes" in capsys.readouterr().err
    assert not (run / PURGE_FILE).exists()


class Terminal(io.StringIO):
    """Somebody at a keyboard."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "code"), [("n\n", 130), ("\n", 130), ("y\n", 0)])
def test_a_purge_does_as_it_is_answered(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, answer: str, code: int
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    arguments = ["purge", str(run), "--predictions", "--key", str(run.parent / "key")]
    assert run_cli(arguments) == code
    assert "3 files of predictions" in capsys.readouterr().err
    assert (run / PURGE_FILE).exists() is (code == 0)


def test_a_purge_says_what_went_and_the_receipt_says_so_too(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["purge", str(run), "--predictions", "--yes", "--key", str(run.parent / "key"), "--json"]
    assert run_cli(arguments) == 0
    value = json.loads(capsys.readouterr().out)
    assert sorted(value["files"]) == sorted(path for path, step in STEP_OF.items() if step == "predictions")
    assert verify(run) == 0
    assert "files, 3 of them purged, the data of 2 cases" in capsys.readouterr().out
