"""Frames one by one on the real engine: two challenges, as a participant checks and as organisers evaluate."""

import csv
import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runner.engine import Engine
from tests.engine.conftest import BASE, ROOT, Images, leftovers, proctor

pytestmark = [pytest.mark.engine, pytest.mark.root]

CHALLENGES = ROOT / "challenges"

CLIENT = """
import hashlib, json, os, sys

known = json.load(open("/app/known.json"))

def say(**message):
    print(json.dumps(message), flush=True)

def predict(inputs):
    KEY
    return known[key]

seen = hashlib.sha256()
assert json.loads(sys.stdin.readline())["task"] == os.environ["PROCTOR_TASK"]
say(type="hello", protocol=1, frames="WAY")
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "frame":
        say(type="answer", index=message["index"], answer=predict(message["inputs"]))
print("done", file=sys.stderr)
"""
_FROM_FRAMES = 'seen.update(open(inputs["frames"]["path"], "rb").read()); key = seen.hexdigest()'
_FROM_ROWS = """
    import base64
    assert base64.b64decode(inputs["video"]["image"])[:8] == bytes([137, 80, 78, 71, 13, 10, 26, 10])
    key = hashlib.sha256(inputs["kinematics"]["row"].encode()).hexdigest()
"""


@pytest.fixture
def client(images: Images, tmp_path: Path) -> Callable[..., str]:
    """Build an image of a client that knows the answers."""

    def build(name: str, known: dict[str, Any], key: str, *, way: str = "path") -> str:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "known.json").write_text(json.dumps(known))
        (folder / "predict.py").write_text(CLIENT.replace("KEY", key.strip()).replace("WAY", way))
        (folder / "Dockerfile").write_text(
            f'FROM {BASE}\nCOPY predict.py known.json /app/\nENTRYPOINT ["python3", "/app/predict.py"]\n'
        )
        return images.folder(name, folder)

    return build


def rows_of(path: Path, separator: str) -> Iterator[dict[str, str]]:
    with path.open() as source:
        yield from csv.DictReader(source, delimiter=separator)


def test_pitvis_checked_frame_by_frame(client: Callable[..., str], tmp_path: Path, engine: Engine) -> None:
    sample, known = CHALLENGES / "pitvis2023" / "sample", {}
    for reference in (sample / "references").glob("*.csv"):
        seen = hashlib.sha256()
        frames = sorted((sample / "inputs" / reference.stem).iterdir())
        for frame, row in zip(frames, rows_of(reference, ","), strict=True):
            seen.update(frame.read_bytes())
            names = ("int_step", "int_instrument1", "int_instrument2")
            known[seen.hexdigest()] = {name: int(row[name]) for name in names}
    image = client("stream-pitvis", known, _FROM_FRAMES)
    ran = proctor(
        "check", image, "--challenge", "pitvis2023", "--profile", "stream", "--keep", tmp_path / "kept", "--json"
    )
    assert ran.code == 0, ran.out + ran.err
    stages = {stage["name"]: stage for stage in json.loads(ran.out)["stages"]}
    assert stages["causality"]["state"] == "passed"
    assert stages["causality"]["sentence"] == (
        "task steps, instruments, both, passed by construction: no frame was there before its turn; no cut was run"
    )
    assert stages["score"]["sentence"].startswith("task steps: mean_f1_edit 1.0000")
    notes = stages["run"]["notes"]
    assert [note.partition(":")[0] for note in notes] == ["task steps, case 01", "task steps, case 02"]
    for note in notes:
        assert "start-up" in note
        assert "frames slower than the camera's 1.00 s" in note
        assert "online-compatible: " in note
    attempt = tmp_path / "kept" / "submissions"
    (times,) = attempt.glob("*/steps/01/full/attempt-1/timing.csv")
    assert len(list(rows_of(times, ","))) == len(list((sample / "inputs" / "01").iterdir()))
    assert (times.parent / "log.txt").read_text() == "done\n"
    assert leftovers(engine) == []


def test_petraw_evaluated_frame_by_frame(client: Callable[..., str], tmp_path: Path, engine: Engine) -> None:
    sample, known = CHALLENGES / "petraw2021" / "sample", {}
    for reference in (sample / "references").glob("*.txt"):
        lines = (sample / "kinematics" / f"{reference.stem}.tsv").read_text().splitlines()[1:]
        for line, row in zip(lines, rows_of(reference, "\t"), strict=True):
            known[hashlib.sha256(line.encode()).hexdigest()] = {k: v for k, v in row.items() if k != "Frame"}
    image = client("stream-petraw", known, _FROM_ROWS, way="inline")
    entry = {"submission": "good", "team": "A", "image": image, "tasks": ["video_kinematics"], "profile": "stream"}
    submissions = tmp_path / "teams.yaml"
    submissions.write_text(json.dumps({"submissions": [entry]}))
    out = tmp_path / "run"
    ran = proctor("evaluate", "petraw2021", "--data", sample, "--submissions", submissions, "--out", out, "--allow-cpu")
    assert ran.code == 0, ran.err
    again = proctor("resume", out)
    assert again.code == 0, again.err
    boards = {board["task"]: board for board in json.loads((out / "leaderboard.json").read_text())["boards"]}
    (row,) = boards["video_kinematics"]["rows"]
    assert (row["rank"], row["values"]["ad_accuracy"]) == (1.0, 1.0)
    (home,) = (path.parent for path in (out / "submissions" / "good").glob("*/causality.json"))
    assert json.loads((home / "causality.json").read_text())["by_construction"]
    for case, frames in (("001", 113), ("002", 91)):
        assert [path.name for path in (home / case / "full").iterdir()] == ["attempt-1"], "nothing was run again"
        facts = json.loads((home / case / "full" / "attempt-1" / "result.json").read_text())["stream"]
        assert (facts["breach"], facts["released"], facts["answered"], facts["way"]) == ("", frames, frames, "inline")
        assert sum(facts["counts"]) == frames
        assert 0 < facts["p50"] <= facts["p95"] <= facts["p99"] <= facts["longest"]
    assert leftovers(engine) == []
