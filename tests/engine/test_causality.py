"""``proctor causality`` and the check inside an evaluation, on the real engine.

Scores, labels and images are compared, of frames, videos and tables, with a container a case and with one for all.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from runner.engine import Engine
from tests.engine.conftest import ROOT, Images, Ran, leftovers, proctor

pytestmark = [pytest.mark.engine, pytest.mark.root]

# What a program answers for frame t, of the features of all frames: `seen(t)` is causal with LOOK = 0.
LOOK = """
LOOK = %d
def seen(features, t):
    return features[min(t + LOOK, len(features) - 1)]
"""
SCORES = """
import json, pathlib, zlib
for listed in pathlib.Path("/input/data").glob("*.txt"):
    paths = listed.read_text().split()
    features = [zlib.crc32(pathlib.Path("/input", path).read_bytes()) for path in paths]
    answers = {}
    for t, path in enumerate(paths):
        value = seen(features, t)
        answers[pathlib.Path(path).stem] = {"recognition": [((value >> c % 24) & 255) / 255 for c in range(100)]}
    pathlib.Path("/output", listed.stem + ".json").write_text(json.dumps(answers))
"""
# The sizes of a video's packets stand in a table of its own; nothing has to be decoded to look at them.
PETRAW = """
import os, pathlib, struct, zlib
task = os.environ["PROCTOR_TASK"]
for case in pathlib.Path("/input").iterdir():
    if task == "video":
        data = (case / "video.mp4").read_bytes()
        at = data.index(b"stsz") + 8
        same, count = struct.unpack(">II", data[at:at + 8])
        features = [same] * count if same else struct.unpack(">%dI" % count, data[at + 8:at + 8 + 4 * count])
    else:
        features = [zlib.crc32(row.encode()) for row in (case / "kinematics.tsv").read_text().splitlines()[1:]]
    names = ("Idle", "Transfer Left to Right", "Transfer Right to Left")
    rows = ["%d\\t%s\\n" % (t, names[seen(features, t) % 3]) for t in range(len(features))]
    out = pathlib.Path("/output", task)
    out.mkdir(exist_ok=True)
    (out / (case.name + ".txt")).write_text("Frame\\tPhase\\n" + "".join(rows))
"""
MASKS = """
import pathlib, struct, sys, zlib
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
frames = sorted(pathlib.Path(sys.argv[1], "left").iterdir())
features = [zlib.crc32(frame.read_bytes()) for frame in frames]
out = pathlib.Path(sys.argv[2])
out.mkdir()
for t, frame in enumerate(frames):
    marked = seen(features, t) % 1280
    row = b"\\0" + bytes(3 * marked) + bytes((0, 255, 0)) * (1280 - marked)
    head = struct.pack(">IIBBBBB", 1280, 1024, 8, 2, 0, 0, 0)
    image = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(row * 1024, 1)) + chunk(b"IEND", b"")
    (out / frame.name).write_bytes(b"\\x89PNG\\r\\n\\x1a\\n" + image)
"""


@pytest.fixture
def method(images: Images, tmp_path: Path) -> Callable[..., str]:
    """An image of a program that looks so many frames ahead."""
    return lambda name, source, look=0: images.script(
        f"causality-{name}-{look}", tmp_path / f"{name}-{look}", LOOK % look + source
    )


@pytest.fixture
def causality(settings: Path, engine: Engine) -> Callable[..., tuple[Ran, Mapping[str, Any]]]:
    """Run ``proctor causality``; what it printed, and its JSON."""

    def run(image: str, challenge: str, *more: str | Path) -> tuple[Ran, Mapping[str, Any]]:
        ran = proctor(
            "causality", image, "--challenge", challenge, "--settings", settings, "--seed", "4", "--json", *more
        )
        assert leftovers(engine) == []
        return ran, json.loads(ran.out) if ran.out else {}

    return run


@pytest.mark.parametrize(("look", "code", "outcome"), [(0, 0, "passed"), (1, 1, "leaking")])
def test_scores_of_a_data_set(
    method: Callable[..., str], causality: Callable[..., tuple[Ran, Mapping[str, Any]]], look: int, code: int,
    outcome: str, tmp_path: Path,
) -> None:  # fmt: skip
    kept = tmp_path / "kept"
    ran, value = causality(
        method("scores", SCORES, look), "cholectriplet2021", "--cuts", "3", "--jobs", "2", "--keep", kept
    )
    assert ran.code == code, ran.err
    record = value["tasks"]["recognition"]
    (finding,) = record["findings"]
    assert (record["summary"]["outcome"], value["leaking"], value["refusal"]) == (outcome, bool(look), None)
    assert value["rule"]["method"] == "targeted"
    assert (value["plan"]["seed"], (kept / "private" / "seed").read_text()) == ("4", "4\n")
    assert "× a plain evaluation; at most" in ran.err
    (record_file,) = kept.glob("submissions/*/recognition/causality.json")
    assert json.loads(record_file.read_text())["findings"] == record["findings"]
    jobs = {path.parent.parent.name for path in kept.glob("submissions/*/recognition/*/*/attempt-1/result.json")}
    assert {"alone", "alone-1"} <= jobs
    if look:
        leak = finding["verdict"]["first_leak"]
        assert (leak["cut"]["kind"], leak["future_frames"]) == ("altered-future", 1)
        assert leak["frame"] == leak["cut"]["frames"] - 1
        assert finding["ribbons"]["views"][0]["cut"]["frames"] == leak["cut"]["frames"]
    else:
        assert finding["verdict"]["cuts_tested"] == 3
        assert record["pace"]["runs"] == 5


@pytest.mark.parametrize(
    ("task", "look", "more", "code"),
    [
        ("video", 0, ("--method", "targeted", "--cuts", "3"), 0),
        ("video", 2, ("--clip", "4"), 1),
        ("video", 0, ("--clip", "4"), 0),
        ("kinematics", 1, ("--method", "altered-future", "--cuts", "6"), 1),
    ],
)
def test_a_video_and_a_table(
    method: Callable[..., str], causality: Callable[..., tuple[Ran, Mapping[str, Any]]], task: str, look: int,
    more: tuple[str, ...], code: int,
) -> None:  # fmt: skip
    ran, value = causality(method("petraw", PETRAW, look), "petraw2021", "--task", task, "--jobs", "2", *more)
    assert ran.code == code, ran.err
    (finding,) = value["tasks"][task]["findings"]
    assert finding["verdict"]["outcome"] == ("leaking" if look else "passed"), finding["verdict"]["detail"]
    if "--clip" in more:
        assert (finding["frames"], value["rule"]["rule"]) == (4, "last")
        assert finding["verdict"]["cuts_possible"] == 3


def test_images_of_a_challenge_that_asks_for_no_check(
    method: Callable[..., str], causality: Callable[..., tuple[Ran, Mapping[str, Any]]]
) -> None:
    ran, value = causality(method("masks", MASKS, 1), "robseg2018", "--cuts", "2", "--jobs", "2")
    assert ran.code == 1, ran.err
    (finding,) = value["tasks"]["scenes"]["findings"]
    assert finding["ribbons"]["column"] == "image digest"
    assert finding["ribbons"]["whole"]["answers"] == [0, 1, 1]


def test_what_cannot_be_tested(
    method: Callable[..., str], causality: Callable[..., tuple[Ran, Mapping[str, Any]]], settings: Path
) -> None:
    ran, value = causality(method("broken", "raise SystemExit(3)"), "robseg2018")
    assert (ran.code, value["refusal"]["verdict"], value["tasks"]) == (1, "crashed", {})
    ran, value = causality("nowhere/to-be-found:1", "robseg2018", "--cuts", "0")
    assert (ran.code, value) == (2, {})
    assert "--cuts 0" in ran.err
    human = proctor(
        "causality", method("masks", MASKS), "--challenge", "robseg2018", "--settings", settings, "--cuts", "1",
        "--seed", "4",
    )  # fmt: skip
    assert human.code == 0, human.err
    assert "✓ passed: No answer changed when later frames were withheld" in human.out
    assert "seed 4" in human.out


def test_an_evaluation_by_one_cut_a_case(method: Callable[..., str], settings: Path, tmp_path: Path) -> None:
    """One container has all cases, so that one more start tests a cut of each."""
    folder = tmp_path / "challenge"
    folder.mkdir()
    own = ROOT / "challenges" / "cholectriplet2021"
    text = (own / "challenge.yaml").read_text()
    assert "method: targeted\n  on: 1\n" in text
    (folder / "challenge.yaml").write_text(text.replace("method: targeted\n  on: 1\n", "method: cut-run\n  on: all\n"))
    (folder / "scorer.py").write_bytes((own / "scorer.py").read_bytes())
    listed = [
        {"submission": name, "team": f"Team {name}", "image": method("scores", SCORES, look)}
        for name, look in (("clean", 0), ("leaking", 1))
    ]
    (tmp_path / "teams.yaml").write_text(json.dumps({"submissions": listed}))
    out = tmp_path / "run"
    ran = proctor(
        "evaluate", folder, "--data", own / "sample", "--submissions", tmp_path / "teams.yaml", "--out", out,
        "--settings", settings, "--allow-cpu", "--seed", "5",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    (board,) = json.loads((out / "leaderboard.json").read_text())["boards"]
    rows = {row["submission"]: row for row in board["rows"]}
    assert rows["clean"]["rank"] == 1.0
    assert {case["verdict"] for case in rows["leaking"]["cases"]} == {"not-causal"}
    starts = {
        name: sorted(path.parent.name for path in (out / "submissions" / name).rglob("attempt-1"))
        for name in ("clean", "leaking")
    }
    assert starts["clean"] == ["cut-run", "full"]
    assert {"altered-run", "altered-run-1", "altered-run-2", "cut-run-1", "cut-run-2", "repeat-1", "repeat-2"} < set(
        starts["leaking"]
    )
