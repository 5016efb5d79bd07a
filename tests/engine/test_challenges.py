"""The challenges end to end: good, bad and malformed submissions of each, and the leaderboard they must give.

A good program knows the answers: its image holds the references, found by a hash of what it is shown, since the names
it sees are neutral.
"""

import hashlib
import io
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from runner.engine import Engine
from tests.engine.conftest import BASE, ROOT, Images, leftovers, proctor

pytestmark = [pytest.mark.engine, pytest.mark.root]

CHALLENGES = ROOT / "challenges"
Board = Mapping[str, Mapping[str, Any]]


def sha(*paths: Path) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


@pytest.fixture
def built(images: Images, tmp_path: Path) -> Callable[..., str]:
    """Build an image of a program and the files it knows."""

    def build(name: str, source: str, known: Mapping[str, bytes]) -> str:
        folder = tmp_path / name
        (folder / "known").mkdir(parents=True)
        (folder / "predict.py").write_text(source)
        for key, content in known.items():
            (folder / "known" / key).write_bytes(content)
        (folder / "Dockerfile").write_text(
            f'FROM {BASE}\nCOPY predict.py /app/\nCOPY known /app/known\nENTRYPOINT ["python3", "/app/predict.py"]\n'
        )
        return images.folder(name, folder)

    return build


@pytest.fixture
def evaluated(settings: Path, tmp_path: Path, engine: Engine) -> Callable[..., dict[str, Board]]:
    """Evaluate submissions on a challenge's sample; the rows by task and submission."""

    def evaluate(
        challenge: str, entries: Mapping[str, Mapping[str, str]], *, folder: Path | None = None
    ) -> dict[str, Board]:
        listed = [{"submission": name, "team": f"Team {name}", **entry} for name, entry in entries.items()]
        submissions = tmp_path / "teams.yaml"
        submissions.write_text(json.dumps({"submissions": listed}))
        out = tmp_path / "run"
        ran = proctor(
            "evaluate", folder or challenge, "--data", CHALLENGES / challenge / "sample", "--submissions", submissions,
            "--out", out, "--settings", settings, "--allow-cpu",
        )  # fmt: skip
        assert ran.code == 0, ran.err
        assert (out / "report.organiser.html").is_file()
        assert leftovers(engine) == []
        boards = json.loads((out / "leaderboard.json").read_text())["boards"]
        return {board["task"]: {row["submission"]: row for row in board["rows"]} for board in boards}

    return evaluate


def words(row: Mapping[str, Any]) -> set[str]:
    return {case["verdict"] for case in row["cases"]}


PETRAW = """
import hashlib, os, pathlib, sys
task = os.environ["PROCTOR_TASK"]
for case in pathlib.Path("/input").iterdir():
    shown = sorted(case.iterdir())
    assert [path.name for path in shown] == {"kinematics": ["kinematics.tsv"], "video": ["video.mp4"],
        "segmentation": ["video.mp4"]}.get(task, ["kinematics.tsv", "video.mp4"]), shown
    key = hashlib.sha256(b"".join(path.read_bytes() for path in shown)).hexdigest()
    rows = [line.split("\\t") for line in open("/app/known/" + key).read().splitlines()]
    CHANGE
    out = pathlib.Path("/output", task)
    out.mkdir(exist_ok=True)
    (out / (case.name + ".txt")).write_text("".join("\\t".join(row) + "\\n" for row in rows))
"""


def unchecked(name: str, folder: Path) -> Path:
    """A challenge without its check for causality, which would cost hundreds of starts here."""
    copy = folder / "unchecked"
    copy.mkdir()
    shutil.copyfile(CHALLENGES / name / "scorer.py", copy / "scorer.py")
    text = (CHALLENGES / name / "challenge.yaml").read_text()
    for line, instead in (("  method: exhaustive\n", "  method: off\n"), ("  rule: last\n", "")):
        assert text.count(line) == 1
        text = text.replace(line, instead)
    (copy / "challenge.yaml").write_text(text)
    return copy


def test_petraw_five_tasks_from_one_image(
    built: Callable[..., str], evaluated: Callable[..., dict[str, Board]], tmp_path: Path
) -> None:
    sample, known = CHALLENGES / "petraw2021" / "sample", {}
    for reference in (sample / "references").glob("*.txt"):
        video, table = sample / f"videos/{reference.stem}.mp4", sample / f"kinematics/{reference.stem}.tsv"
        for shown in ((video,), (table,), (table, video)):
            known[sha(*shown)] = reference.read_bytes()
    changes = {
        "good": "pass",
        "without-steps": "rows = [row[:2] + row[3:] for row in rows]",
        "without-phases": "rows = [row[:1] + row[2:] for row in rows]",
        "without-left": "rows = [row[:3] + row[4:] for row in rows]",
        "bad": "rows = rows[:1] + [row[:1] + ['Idle'] * 4 for row in rows[1:]]",
        "malformed": "rows[5][1] = 'idle'; del rows[7]",
    }
    rows = {
        name: {"image": built(f"petraw-{name}", PETRAW.replace("CHANGE", changes[name]), known)} for name in changes
    }
    boards = evaluated("petraw2021", rows, folder=unchecked("petraw2021", tmp_path))
    assert list(boards) == ["video", "kinematics", "segmentation", "video_kinematics", "all"]
    for board in boards.values():
        assert (board["good"]["rank"], board["good"]["values"]["ad_accuracy"]) == (1.0, 1.0)
        for name, metric, chance in (
            ("without-phases", "ad_phase", 1 / 3), ("without-left", "ad_verb_left", 1 / 7),
            ("without-steps", "ad_step", 1 / 13),
        ):  # fmt: skip
            values = board[name]["values"]
            assert values[metric] == pytest.approx(chance, abs=1e-12)
            assert values["ad_accuracy"] == pytest.approx((3 + chance) / 4, abs=1e-12)
        order = sorted((row["rank"], name) for name, row in board.items() if row["rank"] is not None)
        assert [name for _, name in order] == ["good", "without-phases", "without-left", "without-steps", "bad"]
        assert words(board["malformed"]) == {"bad-output"}
        assert "<case>.txt has 2 problems: row 6: Phase is " in board["malformed"]["not_ranked_because"]
        assert (
            "row 8: Frame is 7 where 6 was due: the row for frame 6 is missing"
            in (board["malformed"]["not_ranked_because"])
        )


CHOLEC = """
import hashlib, json, pathlib
for listed in sorted(pathlib.Path("/input/data").glob("*.txt")):
    paths = listed.read_text().split()
    frames = [pathlib.Path("/input", path) for path in paths]
    key = hashlib.sha256(b"".join(frame.read_bytes() for frame in frames)).hexdigest()
    rows = [list(map(int, line.split(",")))[1:] for line in open("/app/known/" + key).read().splitlines()]
    answers = {frame.stem: {"recognition": row} for frame, row in zip(frames, rows, strict=True)}
    CHANGE
    pathlib.Path("/output", listed.stem + ".json").write_text(json.dumps(answers))
"""


def test_cholectriplet_one_container_for_all_videos(
    built: Callable[..., str], evaluated: Callable[..., dict[str, Board]]
) -> None:
    sample, known = CHALLENGES / "cholectriplet2021" / "sample", {}
    for reference in (sample / "triplet").glob("*.txt"):
        known[sha(*sorted((sample / "videos" / reference.stem).glob("*.png")))] = reference.read_bytes()
    changes = {
        "good": "pass",
        "bad": "answers = {key: {'recognition': [0.5] * 100} for key in answers}",
        "malformed": "answers.popitem(); answers['000001']['recognition'][3] = 2; answers['000002'] = {}",
    }
    rows = {
        name: {"image": built(f"cholec-{name}", CHOLEC.replace("CHANGE", changes[name]), known)} for name in changes
    }
    (board,) = evaluated("cholectriplet2021", rows).values()
    assert (board["good"]["rank"], board["good"]["values"]["ap_ivt"]) == (1.0, 1.0)
    assert board["bad"]["rank"] == 2.0
    assert 0 < board["bad"]["values"]["ap_ivt"] < 0.5
    assert board["malformed"]["rank"] is None
    assert words(board["malformed"]) == {"bad-output"}
    assert len({case["seconds"] for case in board["good"]["cases"]}) == 1  # of the one container


ROBSEG = """
import hashlib, os, pathlib, shutil, sys
case, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
assert sorted(os.listdir(case)) == ["calibration.txt", "left", "right"], os.listdir(case)
out.mkdir()
for frame in sorted((case / "left").iterdir()):
    key = hashlib.sha256(frame.read_bytes()).hexdigest()
    target = out / frame.name
    CHANGE
"""


def test_robseg_masks_from_containers_and_from_folders(
    built: Callable[..., str], evaluated: Callable[..., dict[str, Board]], tmp_path: Path
) -> None:
    sample, known = CHALLENGES / "robseg2018" / "sample", {}
    for sequence in (sample / "labels").iterdir():
        for label in sequence.iterdir():
            known[sha(sample / "sequences" / sequence.name / "left_frames" / label.name)] = label.read_bytes()
        shutil.copytree(sequence, tmp_path / "handed-in" / sequence.name)
    small = io.BytesIO()
    Image.new("RGB", (640, 512), (0, 255, 0)).save(small, "PNG")
    background = io.BytesIO()
    Image.new("RGB", (1280, 1024)).save(background, "PNG")
    known |= {"small": small.getvalue(), "background": background.getvalue()}
    copy = "shutil.copyfile('/app/known/' + {}, target)"
    changes = {"good": copy.format("key"), "bad": copy.format("'background'"), "malformed": copy.format("'small'")}
    rows = {
        name: {"image": built(f"robseg-{name}", ROBSEG.replace("CHANGE", changes[name]), known)} for name in changes
    }
    rows["files"] = {"predictions": "handed-in"}
    rows["half-the-files"] = {"predictions": "half"}
    shutil.copytree(tmp_path / "handed-in", tmp_path / "half")
    first = min((tmp_path / "half").iterdir())
    max(first.iterdir()).unlink()
    (board,) = evaluated("robseg2018", rows).values()
    for name in ("good", "files"):
        assert (board[name]["rank"], board[name]["values"]["overall"]) == (1.0, 1.0)
    assert board["bad"]["values"]["overall"] == 0.0
    assert words(board["malformed"]) == {"bad-output"}
    assert words(board["half-the-files"]) == {"accepted", "bad-output"}
    assert "handed in as files: run time and causality were not tested" in board["files"]["cases"][0]["sentence"]


@pytest.mark.parametrize("name", sorted(path.name for path in CHALLENGES.iterdir() if (path / "sample").is_dir()))
def test_files_of_the_sample_get_the_expected_scores(name: str, tmp_path: Path) -> None:
    sample = CHALLENGES / name / "sample"
    out = tmp_path / "scored"
    ran = proctor(
        "score", name, "--predictions", sample / "predictions", "--references", sample, "--out", out, "--json"
    )
    assert ran.code == 0, ran.err
    expected = json.loads((sample / "expected_scores.json").read_text())
    for board in json.loads(ran.out)["boards"]:
        (row,) = board["rows"]
        for case in row["cases"]:
            assert case["scores"] == pytest.approx(expected[board["task"]][case["case"]], abs=1e-6), case
        assert row["rank"] == 1.0
        ranked = proctor("rank", out / "scores.csv", "--metric", board["metrics"][0])
        assert ranked.code == 0, ranked.err
