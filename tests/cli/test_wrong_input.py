"""Wrong input: one message with place and remedy, the right exit code, no traceback, nothing written."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "challenges/pitvis2023/sample"


@dataclass(frozen=True)
class Ran:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


def proctor(*arguments: str | Path, **environment: str) -> Ran:
    """Run ``proctor`` to its end."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PROCTOR_")}
    kept |= {"PYTHONPATH": str(ROOT), "XDG_CONFIG_HOME": "/nonexistent", **environment}
    command = [sys.executable, "-m", "runner.cli", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=kept, timeout=120)
    return Ran(done.returncode, done.stdout, done.stderr)


def _evaluate(
    tmp_path: Path, *, challenge: str | Path = "pitvis2023", data: Path = SAMPLE, teams: str = "", **env: str
) -> Ran:
    path = tmp_path / "teams.yaml"
    path.write_text(teams or "submissions:\n  - {submission: a, team: A, image: proctor-test/none:1}\n")
    return proctor(
        "evaluate", challenge, "--data", data, "--submissions", path, "--out", tmp_path / "run", "--allow-cpu", **env
    )


def _told(ran: Ran, code: int, *words: str) -> None:
    assert ran.code == code, ran.out + ran.err
    assert "Traceback" not in ran.err
    for word in words:
        assert word in ran.err, ran.err


def test_an_unknown_key_of_challenge_yaml_is_named_with_line_and_suggestion(tmp_path: Path) -> None:
    folder = tmp_path / "challenge"
    folder.mkdir()
    text = (ROOT / "challenges/pitvis2023/challenge.yaml").read_text().replace("  memory: 32 GiB", "  memroy: 32 GiB")
    (folder / "challenge.yaml").write_text(text)
    line = next(number for number, found in enumerate(text.splitlines(), 1) if "memroy" in found)
    _told(_evaluate(tmp_path, challenge=folder), 2, f"challenge.yaml:{line}", "memroy", "memory")
    assert not (tmp_path / "run").exists()


def test_an_unknown_challenge_is_named_with_what_there_is(tmp_path: Path) -> None:
    _told(_evaluate(tmp_path, challenge="pitvis2032"), 2, "pitvis2032", "pitvis2023")


def test_a_missing_data_folder_is_named(tmp_path: Path) -> None:
    _told(_evaluate(tmp_path, data=tmp_path / "nowhere"), 2, "nowhere", "--data")


def test_a_doubled_submission_is_named_with_its_lines(tmp_path: Path) -> None:
    teams = "submissions:\n  - {submission: a, team: A, image: x}\n  - {submission: a, team: B, image: y}\n"
    _told(_evaluate(tmp_path, teams=teams), 2, "'a'", "twice", "teams.yaml")


def _without_streams(tmp_path: Path) -> Path:
    """A challenge that does not offer to stream frames."""
    folder = tmp_path / "challenge"
    folder.mkdir()
    lines = (ROOT / "challenges/pitvis2023/challenge.yaml").read_text().splitlines(keepends=True)
    (folder / "challenge.yaml").write_text("".join(line for line in lines if not line.startswith("  stream:")))
    return folder


def test_a_profile_that_is_none_is_named_with_those_there_are() -> None:
    ran = proctor("check", "method:1", "--challenge", "pitvis2023", "--profile", "streaming")
    _told(ran, 2, "--profile 'streaming'", "default, stream")


def test_a_profile_that_is_not_offered_is_refused_before_anything_runs(tmp_path: Path) -> None:
    folder = _without_streams(tmp_path)
    teams = "submissions:\n  - {submission: a, team: A, image: x, profile: stream}\n"
    _told(_evaluate(tmp_path, challenge=folder, teams=teams), 2, "teams.yaml, line 2", "'stream'", "invocation.stream")
    assert not (tmp_path / "run").exists()
    ran = proctor("check", "method:1", "--challenge", folder, "--data", SAMPLE, "--profile", "stream")
    _told(ran, 2, "pitvis2023 does not stream frames", "--profile")


def test_an_engine_that_does_not_run_is_named_with_the_way_to_start_it(tmp_path: Path) -> None:
    ran = _evaluate(tmp_path, DOCKER_HOST=f"unix://{tmp_path}/none.sock")
    _told(ran, 3, "none.sock", "next")


@pytest.mark.engine
@pytest.mark.root
def test_an_image_that_does_not_exist_is_named_with_its_submission(tmp_path: Path) -> None:
    teams = "submissions:\n  - {submission: a, team: A, image: gone.tar}\n"
    _told(_evaluate(tmp_path, teams=teams), 2, "submission 'a'", "gone.tar")


@pytest.mark.engine
@pytest.mark.root
def test_several_images_that_do_not_exist_are_all_named(tmp_path: Path) -> None:
    teams = (
        "submissions:\n  - {submission: a, team: A, image: 'sha256:" + "0" * 64 + "'}\n"
        "  - {submission: b, team: B, image: gone.tar}\n"
    )
    _told(_evaluate(tmp_path, teams=teams), 2, "2 images", "submission 'a'", "submission 'b'", "gone.tar")


@pytest.mark.engine
@pytest.mark.root
def test_a_registry_that_does_not_answer_is_named_and_leaves_the_submission_pending(tmp_path: Path) -> None:
    teams = "submissions:\n  - {submission: a, team: A, image: '127.0.0.1:1/none:1'}\n"
    ran = _evaluate(tmp_path, teams=teams, PROCTOR_PULL_DEADLINE="1 s")
    _told(ran, 5, "pending", "127.0.0.1:1/none:1", "connection refused", "proctor resume")


@pytest.mark.engine
@pytest.mark.root
def test_a_folder_for_an_image_is_refused_with_the_flag_that_allows_it(tmp_path: Path) -> None:
    (tmp_path / "method").mkdir()
    teams = "submissions:\n  - {submission: a, team: A, image: ./method}\n"
    _told(_evaluate(tmp_path, teams=teams), 2, "submission 'a'", "is a folder", "--build-untrusted")


def test_a_network_that_is_not_known_is_named_with_those_that_are() -> None:
    ran = proctor("check", "x", "--challenge", "pitvis2023", "--build-network", "hots")
    _told(ran, 2, "--build-network 'hots'", "default, none, host")


def test_a_run_folder_of_another_challenge_is_refused(tmp_path: Path) -> None:
    from runner.pipeline.record import RunRecord  # noqa: PLC0415
    from runner.settings import Settings  # noqa: PLC0415
    from runner.store import write_value  # noqa: PLC0415

    record = RunRecord(
        proctor="0", challenge="other", challenge_version="3", challenge_digest="ab" * 32, data=SAMPLE, cases=(),
        submissions=(), base=tmp_path, settings=Settings(), sources={}, allow_cpu=True, started="",
    )  # fmt: skip
    write_value(tmp_path / "run" / "run.json", record)
    before = (tmp_path / "run" / "run.json").read_bytes()
    ran = _evaluate(tmp_path, DOCKER_HOST=f"unix://{tmp_path}/none.sock")
    # The engine is asked first: a host that cannot run anything says so before anything is read or written.
    assert ran.code == 3
    assert (tmp_path / "run" / "run.json").read_bytes() == before


@pytest.mark.engine
def test_a_run_folder_of_another_challenge_is_refused_and_kept(tmp_path: Path) -> None:
    test_a_run_folder_of_another_challenge_is_refused(tmp_path)
    before = (tmp_path / "run" / "run.json").read_bytes()
    _told(_evaluate(tmp_path), 2, "'other' version 3", "--out")
    assert (tmp_path / "run" / "run.json").read_bytes() == before


def test_a_folder_that_is_no_run_is_named() -> None:
    _told(proctor("resume", "/tmp"), 2, "is not a run folder", "--out")


def test_a_wrong_setting_names_its_source(tmp_path: Path) -> None:
    _told(_evaluate(tmp_path, PROCTOR_JOBS="none"), 2, "jobs", "'none'", "environment")


def test_a_wrong_flag_is_a_usage_error() -> None:
    ran = proctor("evaluate", "--dat", "x")
    assert ran.code == 2
    assert "Traceback" not in ran.err


def test_check_without_an_engine_names_the_way_to_start_it(tmp_path: Path) -> None:
    ran = proctor("check", "x", "--challenge", "pitvis2023", DOCKER_HOST=f"unix://{tmp_path}/none.sock")
    _told(ran, 3, "none.sock")


def test_init_does_not_overwrite(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    _told(proctor("init", "pitvis2023", tmp_path), 2, "not empty")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_table_that_cannot_be_ranked_is_told_where(tmp_path: Path) -> None:
    table = tmp_path / "scores.csv"
    table.write_text("team,case,value\na,1,0.5\na,2,high\n")
    _told(proctor("rank", table), 2, "scores.csv, line 3", "'high' is not a finite number", "empty")
    _told(proctor("rank", table, "--team", "who"), 2, "no column 'who'", "'team', 'case', 'value'", "--team NAME")
    _told(proctor("rank", tmp_path / "none.csv"), 2, "none.csv", "cannot be read")
    _told(proctor("rank", table, "--method", "best"), 2, "'best'", "mean_then_rank")
    _told(proctor("rank", table, "--ties", "x"), 2, "--ties 'x'", "min or average")
    _told(proctor("rank", table, "--missing", "x"), 2, "--missing 'x'", "exclude")


def test_data_that_does_not_fit_is_listed_whole(tmp_path: Path) -> None:
    shutil.copytree(SAMPLE, tmp_path / "data")
    (tmp_path / "data" / "references" / "01.csv").unlink()
    (tmp_path / "data" / "references" / "02.csv").write_text("int_time,int_step\n0,99\n")
    ran = proctor("data", "check", "pitvis2023", "--data", tmp_path / "data")
    assert (ran.code, ran.err) == (2, "")
    assert f"✗ case '01' has no reference {tmp_path}/data/references/01.csv" in ran.out
    assert f"✗ case '02', reference {tmp_path}/data/references/02.csv: " in ran.out
    assert "2 cases, 102 frames, 1 min 42 s of media: 4 problems" in ran.out
    found = json.loads(proctor("data", "check", "pitvis2023", "--data", tmp_path / "data", "--json").out)
    assert (found["fits"], len(found["problems"]), len(found["cases"])) == (False, 4, 2)


def test_a_broken_video_is_named(tmp_path: Path) -> None:
    (tmp_path / "videos").mkdir()
    (tmp_path / "videos" / "01.mp4").write_text("none")
    ran = proctor("data", "prepare", tmp_path / "videos", tmp_path / "out", "--fps", "1")
    assert (ran.code, ran.err) == (2, "")
    assert f"✗ 01: {tmp_path}/videos/01.mp4: the video cannot be read: Invalid data found" in ran.out
    assert "0 of 1 cases, 0 frames" in ran.out
    _told(proctor("data", "prepare", tmp_path, tmp_path / "out", "--fps", "fast"), 2, "--fps 'fast'", "30000/1001")
    _told(proctor("data", "prepare", tmp_path, tmp_path / "out", "--fps", "1", "--format", "gif"), 2, "png, jpg")


def test_a_challenge_that_makes_no_sense_ends_with_1(tmp_path: Path) -> None:
    proctor("challenge", "new", "toy", "--dir", tmp_path, "--kind", "answer")
    scorer = tmp_path / "toy" / "scorer.py"
    scorer.write_text(scorer.read_text().replace("max(0.0, 1 - ", "min(1.0, "))
    ran = proctor("challenge", "check", tmp_path / "toy")
    assert (ran.code, ran.err) == (1, "")
    assert "✗ words: worst predictions score 1, which is better than the reference itself, 0" in ran.out
    (tmp_path / "toy" / "challenge.yaml").write_text("name: toy\n")
    _told(proctor("challenge", "check", tmp_path / "toy"), 2, "challenge.yaml:1", "is missing")


def test_an_archive_that_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as sink:
        sink.writestr("../challenge.yaml", "name: toy")
    ran = proctor("challenge", "show", tmp_path / "x.zip", XDG_CACHE_HOME=str(tmp_path / "cache"))
    _told(ran, 2, "'../challenge.yaml' is no name for a file of a challenge", "x.zip")
    assert {path.name for path in tmp_path.iterdir()} == {"x.zip", "cache"}


def test_score_of_files_says_what_it_lacks(tmp_path: Path) -> None:
    predictions = SAMPLE / "predictions"
    _told(proctor("score", "pitvis2023", "--predictions", predictions), 2, "--references", "--out")
    _told(proctor("score", tmp_path, "--references", SAMPLE), 2, "go with --predictions", "name the files")
    asked = ("score", "pitvis2023", "--references", SAMPLE, "--out", tmp_path / "scored", "--predictions")
    _told(proctor(*asked, tmp_path / "none"), 2, "there is no folder of predictions", "none")
    (tmp_path / "empty" / "team").mkdir(parents=True)
    _told(proctor(*asked, tmp_path / "empty"), 2, "nothing that is due lies in", "'01.csv'", "real name of each case")
    asked = ("score", "pitvis2023", "--predictions", predictions, "--out", tmp_path / "other", "--references")
    _told(proctor(*asked, tmp_path / "empty"), 2, "there is no folder", "references")


def test_handed_in_files_that_are_wrong_have_their_verdict(tmp_path: Path) -> None:
    team = tmp_path / "teams" / "first"
    shutil.copytree(SAMPLE / "predictions", team)
    (team / "01.csv").write_text("int_time,int_step\n0,1\n")
    (team / "02.csv").unlink()
    (team / "02.csv").symlink_to("/etc/passwd")
    shutil.copytree(SAMPLE / "predictions", tmp_path / "teams" / "second")
    ran = proctor(
        "score", "pitvis2023", "--predictions", tmp_path / "teams", "--references", SAMPLE,
        "--out", tmp_path / "scored", "--json",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    rows = {row["submission"]: row for row in json.loads(ran.out)["boards"][0]["rows"]}
    assert [case["verdict"] for case in rows["first"]["cases"]] == ["bad-output", "unsafe-output"]
    assert rows["first"]["cases"][1]["sentence"] == "<case>.csv is a symbolic link, not a regular file of its own"
    assert rows["first"]["rank"] is None
    assert rows["second"]["rank"] == 1.0
    assert {case["verdict"] for case in rows["second"]["cases"]} == {"accepted"}


def test_files_are_scored_into_a_new_folder_only(tmp_path: Path) -> None:
    teams = tmp_path / "teams"
    shutil.copytree(SAMPLE / "predictions", teams / "first")
    (teams / "second").symlink_to(SAMPLE / "references")  # would be a perfect score
    asked = ("score", "pitvis2023", "--predictions", teams, "--references", SAMPLE, "--out", tmp_path / "scored")
    ran = proctor(*asked, "--json")
    assert ran.code == 0, ran.err
    assert [row["submission"] for row in json.loads(ran.out)["boards"][0]["rows"]] == ["first"]
    _told(proctor(*asked), 2, "holds a run already", "give a new folder with --out", "proctor score")
    assert proctor("score", tmp_path / "scored").code == 0


def test_check_of_a_task_that_is_none() -> None:
    ran = proctor("check", "x", "--challenge", "pitvis2023", "--task", "stpes")
    _told(ran, 2, "there is no task 'stpes' in pitvis2023", "steps, instruments, both")


def test_init_of_a_stream_that_no_template_answers(tmp_path: Path) -> None:
    asked = ("init", "robseg2018", tmp_path / "mine", "--profile", "stream")
    _told(proctor(*asked), 2, "no template yet that streams answers for scenes", "proctor challenge show robseg2018")
    _told(proctor(*asked[:3], "--profile", "streem"), 2, "'streem' is not known", "default, stream")
    assert not (tmp_path / "mine").exists()


@pytest.mark.parametrize("name", ["petraw2021", "cholectriplet2021", "robseg2018"])
def test_init_of_a_challenge_without_a_template(name: str, tmp_path: Path) -> None:
    _told(proctor("init", name, tmp_path / "mine"), 2, "there is no template yet", f"proctor challenge show {name}")
    assert not (tmp_path / "mine").exists()
