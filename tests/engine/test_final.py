"""A final evaluation from end to end, on the real engine."""

import csv
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.engine import Engine
from tests.engine.conftest import ROOT, Images, environment, leftovers, proctor, submissions_file

pytestmark = [pytest.mark.engine, pytest.mark.root]

EXPECTED = {
    "peeks-ahead": ("not-causal", "frame"),
    "too-slow": ("timed-out", "s of 3.0 s allowed and was stopped"),
    "crashes": ("crashed", "the program ended with exit code 1"),
    "out-of-memory": ("out-of-memory", "killed for using more than the 512 MiB of memory allowed"),
    "rows-missing": ("bad-output", "missing"),
    "writes-nothing": ("missing-output", "did not write <case>.csv; the output folder is empty"),
}


def _evaluate(hidden: Path, submissions: Path, out: Path, settings: Path, *more: str) -> tuple[int, str, str]:
    ran = proctor(
        "evaluate", "pitvis2023", "--data", hidden, "--submissions", submissions, "--out", out, "--settings", settings,
        "--allow-cpu", "--seed", "5", *more,
    )  # fmt: skip
    return ran.code, ran.out, ran.err


def _timeless(text: str) -> str:
    """The text with every duration replaced: two runs take different times."""
    return re.sub(r"\d+\.\d+(?= s\b)", "#", text)


def test_each_submission_gets_its_own_verdict(
    engine: Engine, demo_image: Callable[[str], str], hidden: Path, settings: Path, tmp_path: Path
) -> None:
    rows = {name: demo_image(name) for name in ("quick", "steady", *EXPECTED)}
    out = tmp_path / "run"
    code, screen, errors = _evaluate(hidden, submissions_file(tmp_path / "teams.yaml", rows), out, settings)
    assert code == 0, errors
    board = json.loads((out / "leaderboard.json").read_text())["boards"][0]
    assert [(row["submission"], row["rank"]) for row in board["rows"][:2]] == [("steady", 1.0), ("quick", 2.0)]
    assert board["rows"][0]["values"]["mean_f1_edit"] > board["rows"][1]["values"]["mean_f1_edit"]
    others = {row["submission"]: row for row in board["rows"][2:]}
    assert others.keys() == EXPECTED.keys()
    for name, (word, words) in EXPECTED.items():
        assert others[name]["rank"] is None
        assert word in {case["verdict"] for case in others[name]["cases"]}, name
        assert words in others[name]["not_ranked_because"], others[name]["not_ranked_because"]
        assert {case["blame"] for case in others[name]["cases"] if case["verdict"] == word} == {"participant"}
    assert [row["causality"][0]["outcome"] for row in board["rows"][:2]] == ["passed", "passed"]
    assert "steady" in screen
    assert str(out / "report.organiser.html") in screen
    report = (out / "report.organiser.html").read_text()
    assert "contains hidden references" in report
    assert (out.stat().st_mode & 0o777) == 0o700
    assert leftovers(engine) == []


def test_a_killed_run_is_finished_and_repeats_nothing(
    engine: Engine, demo_image: Callable[[str], str], hidden: Path, settings: Path, tmp_path: Path
) -> None:
    rows = {name: demo_image(name) for name in ("steady", "crashes", "quick", "peeks-ahead", "rows-missing")}
    submissions = submissions_file(tmp_path / "teams.yaml", rows)
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert _evaluate(hidden, submissions, whole, settings)[0] == 0
    command: list[str | Path] = [
        sys.executable, "-m", "runner.cli", "evaluate", "pitvis2023", "--data", hidden, "--submissions", submissions,
        "--out", broken, "--settings", settings, "--allow-cpu", "--seed", "5",
    ]  # fmt: skip
    with subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        deadline = time.monotonic() + 120
        while len(list(broken.glob("submissions/*/*/*/cut-*/attempt-*/result.json"))) < 3:
            assert running.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        running.kill()
    done = {path: path.stat().st_mtime_ns for path in broken.glob("submissions/*/*/*/*/attempt-*/result.json")}
    resumed = proctor("resume", broken)
    assert resumed.code == 0, resumed.err
    assert {path: path.stat().st_mtime_ns for path in done} == done
    for name in ("leaderboard.csv", "scores.csv", "leaderboard.json"):
        one, other = (
            re.sub(r'"seconds": [\d.]+', '"seconds": 0', _timeless((run / name).read_text())) for run in (whole, broken)
        )
        assert one == other, name
    assert leftovers(engine) == []


def test_two_runners_on_one_host_do_not_disturb_each_other(
    engine: Engine, demo_image: Callable[[str], str], hidden: Path, settings: Path, tmp_path: Path
) -> None:
    submissions = submissions_file(tmp_path / "teams.yaml", {"quick": demo_image("quick")})
    commands: list[list[str | Path]] = [
        [sys.executable, "-m", "runner.cli", "evaluate", "pitvis2023", "--data", hidden, "--submissions", submissions,
         "--out", tmp_path / name, "--settings", settings, "--allow-cpu", "--seed", "5"]
        for name in ("one", "two")
    ]  # fmt: skip
    running = [subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL) for command in commands]
    assert [process.wait(timeout=200) for process in running] == [0, 0]
    one, two = ((tmp_path / name / "leaderboard.csv").read_bytes() for name in ("one", "two"))
    assert one == two
    assert leftovers(engine) == []


def test_a_moved_tag_cannot_change_a_run(
    engine: Engine, images: Images, demo_image: Callable[[str], str], hidden: Path, settings: Path, tmp_path: Path
) -> None:
    quick = images.engine.image(demo_image("quick")).id
    reference = "proctor-test/moving:1"
    folder = Path(__file__).resolve().parents[2] / "demo" / "submissions"
    images.made[reference] = engine.build(
        folder / "quick",
        reference=reference,
        arguments={"BASE_IMAGE": "proctor-base:1"},
        deadline=300,
        log=lambda _: None,
    )
    submissions = submissions_file(tmp_path / "teams.yaml", {"moving": reference})
    assert _evaluate(hidden, submissions, tmp_path / "run", settings)[0] == 0
    engine.build(
        folder / "crashes",
        reference=reference,
        arguments={"BASE_IMAGE": "proctor-base:1"},
        deadline=300,
        log=lambda _: None,
    )
    before = (tmp_path / "run" / "leaderboard.csv").read_bytes()
    assert proctor("resume", tmp_path / "run").code == 0
    assert (tmp_path / "run" / "leaderboard.csv").read_bytes() == before
    assert json.loads((tmp_path / "run/submissions/moving/image.json").read_text())["id"] == quick


def test_an_archive_runs_and_repoints_no_tag(
    engine: Engine, demo_image: Callable[[str], str], hidden: Path, settings: Path, tmp_path: Path
) -> None:
    import docker  # noqa: PLC0415

    client = docker.APIClient(version="auto")
    reference = demo_image("steady")
    with (tmp_path / "steady.tar").open("wb") as sink:
        sink.writelines(client.get_image(reference))
    before = engine.image(reference).id
    client.tag(engine.image("proctor-base:1").id, "proctor-test/steady", "1", force=True)
    submissions = submissions_file(tmp_path / "teams.yaml", {"archived": "steady.tar"})
    assert _evaluate(hidden, submissions, tmp_path / "run", settings)[0] == 0
    assert engine.image(reference).id == engine.image("proctor-base:1").id
    client.tag(before, "proctor-test/steady", "1", force=True)
    assert json.loads((tmp_path / "run/submissions/archived/image.json").read_text())["id"] == before


def test_outputs_in_volumes_give_the_same_leaderboard(
    engine: Engine, demo_image: Callable[[str], str], hidden: Path, settings: Path, tmp_path: Path
) -> None:
    rows = {name: demo_image(name) for name in ("quick", "writes-nothing")}
    submissions = submissions_file(tmp_path / "teams.yaml", rows)
    boards = []
    for method in ("loop", "volume"):
        code, _, errors = _evaluate(hidden, submissions, tmp_path / method, settings, "--set", f"output={method}")
        assert code == 0, errors
        boards.append(_timeless((tmp_path / method / "leaderboard.csv").read_text()))
    assert boards[0] == boards[1]
    assert leftovers(engine) == []


def test_a_broken_scorer_is_the_organisers_and_loses_nothing(
    demo_image: Callable[[str], str], hidden: Path, settings: Path, tmp_path: Path
) -> None:
    submissions = submissions_file(tmp_path / "teams.yaml", {"quick": demo_image("quick")})
    run, mended = tmp_path / "run", tmp_path / "pitvis2023"
    shutil.copytree(ROOT / "challenges/pitvis2023", mended)
    scorer = (mended / "scorer.py").read_text()
    (mended / "scorer.py").write_text(scorer.replace("    def score_case(", "    def score_cas(", 1))
    ran = proctor(
        "evaluate", mended, "--data", hidden, "--submissions", submissions, "--out", run, "--settings", settings,
        "--allow-cpu", "--seed", "5",
    )  # fmt: skip
    assert ran.code == 4, ran.out + ran.err
    assert "scorer" in ran.err
    assert "proctor score" in ran.err
    done = {path: path.stat().st_mtime_ns for path in run.glob("submissions/*/*/*/*/attempt-*/result.json")}
    assert len(done) > 2
    (mended / "scorer.py").write_text(scorer)
    assert proctor("score", run, "--challenge", mended).code == 0
    assert (run / "leaderboard.csv").read_text().splitlines()[1].startswith("steps,1,quick,")
    assert {path: path.stat().st_mtime_ns for path in run.glob("submissions/*/*/*/*/attempt-*/result.json")} == done


_SPY = """
import os, pathlib, sys
print(sys.argv)
for name in ("/proc/self/mountinfo", "/proc/self/environ", "/etc/hostname", "/proc/self/cgroup"):
    print(name, pathlib.Path(name).read_bytes())
for root, folders, files in os.walk("/data"):
    for name in folders + files:
        facts = os.stat(os.path.join(root, name))
        print(root, name, facts.st_nlink if name in files else "", facts.st_mtime)
pathlib.Path(sys.argv[2]).write_text("nothing")
"""


def test_no_real_id_no_reference_and_no_path_of_the_run_enters_a_container(
    images: Images, hidden: Path, settings: Path, tmp_path: Path
) -> None:
    spy = images.script("spy", tmp_path / "spy", _SPY)
    secret = tmp_path / "secret-data"
    (secret / "inputs").mkdir(parents=True)
    (secret / "references").mkdir()
    source = min((hidden / "inputs").iterdir())
    (secret / "inputs" / "canary-0815").symlink_to(source)
    reference = hidden / "references" / f"{source.name}.csv"
    (secret / "references" / "canary-0815.csv").write_bytes(reference.read_bytes())
    submissions = submissions_file(tmp_path / "teams.yaml", {"spy": spy})
    assert _evaluate(secret, submissions, tmp_path / "secret-run", settings)[0] == 0
    logs = list((tmp_path / "secret-run").glob("submissions/spy/steps/*/full/attempt-1/log.txt"))
    assert len(logs) == 1
    seen = logs[0].read_text()
    assert "mountinfo" in seen
    for forbidden in ("canary", "secret", "reference", "spy-run", "int_step", str(tmp_path)):
        assert forbidden not in seen, forbidden
    times = {line.rsplit(" ", 1)[1] for line in seen.splitlines() if line.startswith("/data/inputs/")}
    assert times == {"1000000000.0"}


def test_csv_and_json_carry_hostile_names_unharmed(
    demo_image: Callable[[str], str], hidden: Path, settings: Path, tmp_path: Path
) -> None:
    team = '=cmd|calc\u202e"<script>alert(1)</script>'
    submissions = tmp_path / "teams.yaml"
    submissions.write_text(
        json.dumps({"submissions": [{"submission": "quick", "team": team, "image": demo_image("writes-nothing")}]})
    )
    code, screen, _ = _evaluate(hidden, submissions, tmp_path / "run", settings)
    assert code == 0
    assert "\u202e" not in screen
    report = (tmp_path / "run" / "report.organiser.html").read_text()
    assert "<script" not in report
    assert "\u202e" not in report
    rows = list(csv.reader((tmp_path / "run" / "leaderboard.csv").read_text().splitlines()))
    assert not rows[1][3].startswith("=")
