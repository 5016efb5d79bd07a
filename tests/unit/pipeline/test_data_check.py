"""Everything that does not fit in a data folder is named before anything runs on it."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runner.catalog import LoadedChallenge, find_challenge, load_challenge
from runner.challenge import Challenge
from runner.confine import Confine
from runner.errors import UsageError
from runner.pipeline.challenge_new import new_challenge
from runner.pipeline.data_check import CheckedData, check_data


@pytest.fixture(scope="module")
def confine() -> Iterator[Confine]:
    with Confine(preload=("runner.formats.frame_table",)) as confined:
        yield confined


@pytest.fixture
def toy(tmp_path: Path) -> LoadedChallenge:
    new_challenge("toy", tmp_path, kind="frame_table")
    return load_challenge(tmp_path / "toy")


def data_of(toy: LoadedChallenge) -> Path:
    return toy.folder / "sample"


def checked(toy: LoadedChallenge, confine: Confine) -> CheckedData:
    return check_data(toy, data_of(toy), confine=confine, advance=lambda *_: None)


def changed(toy: LoadedChallenge, **sections: Any) -> LoadedChallenge:
    """The same challenge with some sections replaced."""
    values = {**toy.challenge.model_dump(by_alias=True), **sections}
    return replace(toy, challenge=Challenge.model_validate(values))


def test_a_folder_that_fits(toy: LoadedChallenge, confine: Confine) -> None:
    told: list[tuple[int, int, str]] = []
    found = check_data(toy, data_of(toy), confine=confine, advance=lambda *far: told.append(far))
    assert told == [(0, 2, "01"), (1, 2, "02"), (2, 2, "")]
    assert (found.fits, found.problems, found.notes) == (True, (), ())
    assert [(one.case, one.frames, one.media_seconds, one.inputs, one.references) for one in found.cases] == [
        ("01", 8, 8.0, (), {"phases": ""}),
        ("02", 8, 8.0, (), {"phases": ""}),
    ]


def test_a_case_without_a_length_has_none(tmp_path: Path, confine: Confine) -> None:
    new_challenge("toy", tmp_path, kind="answer")
    found = checked(load_challenge(tmp_path / "toy"), confine)
    assert [(one.case, one.frames, one.media_seconds) for one in found.cases] == [
        ("01", None, None), ("02", None, None), ("03", None, None),
    ]  # fmt: skip


def test_what_is_missing_is_named_once(toy: LoadedChallenge, confine: Confine) -> None:
    data = data_of(toy)
    (data / "references" / "01.csv").unlink()
    for frame in (data / "inputs" / "02").iterdir():
        frame.unlink()
    found = checked(toy, confine)
    no_reference = f"case '01' has no reference {data}/references/01.csv"
    no_frames = f"case '02' has no frames '*.png' in {data}/inputs/02"
    assert set(found.problems) == {no_reference, no_frames}
    assert len(found.problems) == 2
    first, second = found.cases
    assert (first.inputs, first.references) == ((), {"phases": no_reference})
    assert (second.inputs, second.references) == ((no_frames,), {"phases": ""})


def test_a_reference_that_does_not_fit_is_named_with_all_that_is_wrong(toy: LoadedChallenge, confine: Confine) -> None:
    path = data_of(toy) / "references" / "02.csv"
    rows = path.read_text().splitlines()
    rows[3] = "2,dancing"
    path.write_text("\n".join(rows[:-1]) + "\n")
    found = checked(toy, confine)
    assert found.cases[0].references == {"phases": ""}
    (problem,) = found.problems
    assert found.cases[1].references == {"phases": problem}
    assert problem.startswith(f"case '02', reference {path}: ")
    assert "'dancing'" in problem
    assert "; " in problem  # the row that is missing, and the label


def test_inputs_of_unequal_length_are_named(toy: LoadedChallenge, confine: Confine) -> None:
    data = data_of(toy)
    shutil.copytree(data / "inputs", data / "right")
    (data / "right" / "02" / "00007.png").unlink()
    (data / "kinematics").mkdir()
    for case in ("01", "02"):
        (data / "kinematics" / f"{case}.tsv").write_text("x\ty\n" + "1\t2\n" * 8)
        (data / "kinematics" / f"{case}.txt").write_text("of any length")
    stereo = changed(
        toy,
        cases={
            "inputs": {
                "left": {"kind": "frames", "path": "inputs/{case}"},
                "right": {"kind": "frames", "path": "right/{case}"},
                "arms": {"kind": "table", "path": "kinematics/{case}.tsv"},
                "camera": {"kind": "file", "path": "kinematics/{case}.txt"},
            },
            "references": "references/{case}.csv",
            "fps": 1,
        },
        invocation={"args": ["{left}", "{output}.csv"]},
    )
    assert checked(stereo, confine).problems == ("case '02' has 7 frames in right, and 8 in left",)
    (data / "kinematics" / "01.tsv").write_text("x\ty\n" + "1\t2\n" * 9)
    assert checked(stereo, confine).problems == (
        "case '01' has 9 frames in arms, and 8 in left",
        "case '02' has 7 frames in right, and 8 in left",
    )


def test_a_video_must_be_as_long_as_the_case_where_frames_are_streamed(tmp_path: Path, confine: Confine) -> None:
    petraw = load_challenge(find_challenge("petraw2021"))
    data = tmp_path / "data"
    shutil.copytree(petraw.folder / "sample", data)
    shutil.copy(data / "videos" / "002.mp4", data / "videos" / "001.mp4")
    invocation = petraw.challenge.invocation.model_dump(by_alias=True)
    for stream, problems in (
        ({}, ("case '001' has 91 frames in video, and 113 in kinematics",)),
        (None, ()),
    ):
        loaded = changed(petraw, invocation={**invocation, "stream": stream})
        found = check_data(loaded, data, confine=confine, advance=lambda *_: None)
        assert found.problems == problems


def test_a_reference_of_no_case_is_noted(toy: LoadedChallenge, confine: Confine) -> None:
    references = data_of(toy) / "references"
    shutil.copy(references / "01.csv", references / "09.csv")
    found = checked(toy, confine)
    assert found.fits
    assert found.notes == ("the reference references/09.csv is of no case",)


def test_a_folder_without_cases_is_a_problem(toy: LoadedChallenge, confine: Confine) -> None:
    shutil.rmtree(data_of(toy) / "inputs")
    (data_of(toy) / "inputs").mkdir()
    found = checked(toy, confine)
    assert found.problems == ("no case matches cases.inputs: 'inputs/{case}'",)
    with pytest.raises(UsageError, match="there is no data folder"):
        check_data(toy, data_of(toy) / "gone", confine=confine, advance=lambda *_: None)


def test_a_reference_that_tasks_share_is_read_once(
    toy: LoadedChallenge, confine: Confine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from runner.pipeline import data_check  # noqa: PLC0415

    read: list[Path] = []
    monkeypatch.setattr(data_check, "read_reference", lambda _confine, _rule, path, **_: read.append(path))
    task = toy.challenge.model_dump(by_alias=True)["tasks"]["phases"]
    two = changed(toy, tasks={"phases": task, "again": task})
    assert [one.references for one in checked(two, confine).cases] == [{"phases": "", "again": ""}] * 2
    assert [path.name for path in read] == ["01.csv", "02.csv"]
