"""A scorer that is an image: shown predictions and references, held to the sandbox, run again once it is mended."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from runner.engine import Engine
from runner.pipeline.container_scores import ContainerScores
from runner.store import RunFolder, read_value
from tests.engine.conftest import BASE, Images, Ran, leftovers, proctor

pytestmark = [pytest.mark.engine, pytest.mark.root]

SCORER = "proctor-test/a-scorer:1"
GOOD = """
import json, os, pathlib, sys
given, out = map(pathlib.Path, sys.argv[1:])
assert os.environ["PROCTOR_TASK"] == "words"
def read(side, case):
    (path,) = (given / (side + "s") / case).iterdir()
    assert path.name == side + ".json"
    return json.loads(path.read_text())["n"]
cases = {}
for folder in sorted((given / "predictions").iterdir()):
    guess, truth = read("prediction", folder.name), read("reference", folder.name)
    cases[folder.name] = {"error": abs(guess - truth), "share": guess / truth if truth else None}
(out / "scores.json").write_text(json.dumps({"cases": cases}))
"""
CRASHES = (
    GOOD
    + """
print("about to fail")
raise SystemExit("the lookup table is missing")
"""
)
NAN = GOOD.replace('"error": abs(guess - truth)', '"error": float("nan")')
TOO_FEW = GOOD.replace("sorted((given", "list((given").replace(".iterdir()):", ".iterdir())[:1]:")
# Whatever it reaches it puts into the scores, which then are not those of a scorer that is held to its sandbox.
REACHES_OUT = GOOD.replace(
    '(out / "scores.json")',
    """
import socket
reached = []
def tries(what, act):
    try:
        act()
    except OSError:
        return
    reached.append(what)
inputs = [path for path in given.rglob("*") if path.is_file()]
assert len(inputs) == 4
for path in inputs:
    tries(str(path), lambda: path.open("r+b"))
    tries("chmod " + str(path), lambda: path.chmod(0o777))
tries("a new input", lambda: (given / "more").write_text(""))
tries("its own tree", lambda: pathlib.Path("/app/more").write_text(""))
for address in ("172.17.0.1", "1.1.1.1"):
    tries(address, lambda: socket.create_connection((address, 80), timeout=2))
if [name for _, name in socket.if_nameindex() if name.startswith("eth")]:
    reached.append("a network")
if os.getuid() == 0 or "PATH" not in os.environ:
    reached.append("root")
for place in ("predictions", "references"):
    assert sorted(os.listdir(given / place)) == ["01", "02"]
if reached:
    sys.exit("reached: " + ", ".join(reached))
(out / "scores.json")""",
)
METHOD = """
import json, pathlib, sys
text, output = map(pathlib.Path, sys.argv[1:])
output.write_text(json.dumps({"n": len(text.read_text().split())}))
"""
TEXTS = {"01": "a text of five words", "02": "two words"}


def scorer_image(engine: Engine, folder: Path, source: str) -> None:
    """The organisers' image, under the same name each time; a mended one takes the place of the one before."""
    folder.mkdir(parents=True)
    (folder / "score.py").write_text(source)
    (folder / "Dockerfile").write_text(
        f'FROM {BASE}\nCOPY score.py /app/score.py\nRUN chmod -R a+rX /app\nENTRYPOINT ["python3", "/app/score.py"]\n'
    )
    engine.build(folder, reference=SCORER, arguments={}, deadline=300, log=lambda _line: None)


@dataclass(frozen=True)
class Scene:
    """A challenge that a container scores, a team with an image and one with files, and the run's folder."""

    engine: Engine
    folder: Path
    settings: Path

    @property
    def run(self) -> Path:
        return self.folder / "run"

    def scorer(self, source: str) -> None:
        scorer_image(self.engine, self.folder / f"scorer-{len(list(self.folder.glob('scorer-*')))}", source)

    def evaluate(self) -> Ran:
        return proctor(
            "evaluate", self.folder / "words", "--data", self.folder / "words/sample", "--submissions",
            self.folder / "teams.yaml", "--out", self.run, "--settings", self.settings,
        )  # fmt: skip

    def board(self) -> dict[str, tuple[float | None, dict[str, float]]]:
        """By submission, its rank and its figures."""
        (board,) = json.loads((self.run / "leaderboard.json").read_text())["boards"]
        return {row["submission"]: (row["rank"], row["values"]) for row in board["rows"]}

    def stored(self, slug: str) -> ContainerScores:
        return read_value(RunFolder(root=self.run).container_scores(slug, "words"), ContainerScores)


@pytest.fixture
def scene(engine: Engine, images: Images, settings: Path, tmp_path: Path) -> Iterator[Scene]:
    sample = tmp_path / "words" / "sample"
    for folder in (sample / "inputs", sample / "references", tmp_path / "files"):
        folder.mkdir(parents=True)
    for case, text in TEXTS.items():
        (sample / "inputs" / f"{case}.txt").write_text(text)
        (sample / "references" / f"{case}.json").write_text(json.dumps({"n": len(text.split())}))
        (tmp_path / "files" / f"{case}.json").write_text(json.dumps({"n": len(text.split()) + 1}))
    bad = (
        "crashed", "out-of-memory", "timed-out", "too-much-output", "unsafe-output", "missing-output", "bad-output",
        "not-causal",
    )  # fmt: skip
    challenge: dict[str, Any] = {
        "name": "words", "version": "1.0", "title": "Words", "platform": "linux/amd64", "data": "hidden",
        "cases": {
            "inputs": {"text": {"kind": "file", "path": "inputs/{case}.txt"}},
            "references": "references/{case}.json",
        },
        "invocation": {"mode": "case", "args": ["{text}", "{output}.json"]},
        "limits": {"run_time": {"fixed": "60 s"}, "memory": "256 MiB", "shm": "16 MiB", "cpus": 1},
        "causality": {"method": "off", "on": 1, "on_leak": "report", "length_dependence": "report"},
        "tasks": {
            "words": {
                "title": "Words", "scorer": "container", "missing_case": "worst",
                "scorer_image": {
                    "image": SCORER, "args": ["{input}", "{output}"],
                    "limits": {"run_time": {"fixed": "60 s"}, "memory": "256 MiB", "shm": "16 MiB", "cpus": 1},
                    "metrics": {
                        "error": {"title": "Error", "worst": 10, "higher_is_better": False},
                        "share": {"title": "Share", "worst": 0, "higher_is_better": True},
                    },
                },
                "format": {"kind": "answer", "file": "{case}.json", "fields": {"n": {"type": "integer"}}},
                "primary": {"metric": "error", "higher_is_better": False},
            }
        },
        "consequence": dict.fromkeys(bad, "case"),
        "ranking": {"method": "mean_then_rank"}, "feedback": {"metrics": "shown"},
    }  # fmt: skip
    (tmp_path / "words" / "challenge.yaml").write_text(json.dumps(challenge))
    method = images.script("counts-words", tmp_path / "method", METHOD)
    listed = [
        {"submission": "counts", "team": "One", "image": method},
        {"submission": "files", "team": "Two", "predictions": "files"},
    ]
    (tmp_path / "teams.yaml").write_text(json.dumps({"submissions": listed}))
    yield Scene(engine, tmp_path, settings)
    engine.remove_image(SCORER)
    assert leftovers(engine) == []


BOARD = {
    "counts": (1.0, {"error": 0.0, "share": 1.0}),
    "files": (2.0, {"error": 1.0, "share": (6 / 5 + 3 / 2) / 2}),
}


def test_a_good_scorer_ranks_and_is_run_again_only_where_something_changed(scene: Scene) -> None:
    scene.scorer(GOOD)
    ran = scene.evaluate()
    assert ran.code == 0, ran.err
    assert scene.board() == BOARD
    assert "scoring counts, task words, in a container" in ran.err
    first = scene.stored("files")
    assert first.scores == {"01": {"error": 1.0, "share": 6 / 5}, "02": {"error": 1.0, "share": 3 / 2}}

    # Nothing has changed: no container, and no engine where there is none.
    ran = proctor("score", scene.run)
    assert (ran.code, "in a container" in ran.err) == (0, False), ran.err
    assert scene.board() == BOARD

    # Another reference, which only the scorer sees; then another scorer under the same name.
    (scene.folder / "words/sample/references/01.json").write_text('{"n": 7}')
    ran = proctor("score", scene.run)
    assert ran.code == 0, ran.err
    assert scene.board()["files"] == (1.0, {"error": 1.0, "share": (6 / 7 + 3 / 2) / 2})
    assert proctor("report", scene.run).code == 0
    scene.scorer(GOOD.replace("abs(guess - truth)", "2.0 * abs(guess - truth)"))
    ran = proctor("score", scene.run)
    assert ran.code == 0, ran.err
    assert scene.board()["files"][1]["error"] == 2.0
    assert scene.stored("files").image != first.image


def test_a_scorer_that_crashes_ends_the_run_and_loses_nothing(scene: Scene) -> None:
    scene.scorer(CRASHES)
    ran = scene.evaluate()
    assert ran.code == 4
    said = " ".join(ran.err.split())
    assert (
        "the scorer's container failed on 'counts' in task 'words': crashed: the program ended with exit code 1" in said
    )
    assert "the scorer printed: about to fail" in said
    assert "the scorer printed: the lookup table is missing" in said
    assert "mend the scorer's image, then: proctor score RUN; nothing else has to run anew" in said
    outcomes = sorted(scene.run.glob("submissions/*/words/0*/outcome.json"))
    assert len(outcomes) == 4
    before = {path: path.stat().st_mtime_ns for path in outcomes}
    assert not list(scene.run.glob("submissions/*/words/scores.container.json"))
    assert not (scene.run / "leaderboard.json").exists()
    scene.scorer(GOOD)
    ran = proctor("resume", scene.run)
    assert ran.code == 0, ran.err
    assert scene.board() == BOARD
    assert {path: path.stat().st_mtime_ns for path in outcomes} == before


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        (NAN, "bad-output: scores.json has 2 problems: line 1, column 28: NaN and infinity are not JSON"),
        (TOO_FEW, "bad-output: scores.json has 1 problem: case '0"),
        (
            "raise SystemExit(0)",
            "missing-output: the program ended with exit code 0 but did not write scores.json; the",
        ),
        ("import time\ntime.sleep(60)", "timed-out: ran "),
    ],
    ids=("nan", "too-few", "nothing", "endless"),
)
def test_scores_that_are_none_are_the_organisers_to_mend(scene: Scene, source: str, sentence: str) -> None:
    scene.scorer(source)
    ran = scene.evaluate()
    assert ran.code == 4
    said = " ".join(ran.err.split())
    assert f"the scorer's container failed on 'counts' in task 'words': {sentence}" in said
    assert not list(scene.run.glob("submissions/*/words/scores.container.json"))


def test_a_scorer_is_held_to_the_sandbox(scene: Scene) -> None:
    scene.scorer(REACHES_OUT)
    ran = scene.evaluate()
    assert ran.code == 0, ran.err
    assert scene.board() == BOARD


def test_files_are_scored_and_a_participant_is_told_what_was_not_tried(scene: Scene) -> None:
    scene.scorer(GOOD)
    scored = proctor(
        "score", scene.folder / "words", "--predictions", scene.folder / "files", "--references",
        scene.folder / "words/sample", "--out", scene.folder / "scored",
    )  # fmt: skip
    assert scored.code == 0, scored.err
    (board,) = json.loads((scene.folder / "scored/leaderboard.json").read_text())["boards"]
    assert [row["values"] for row in board["rows"]] == [BOARD["files"][1]]

    check = (
        "check",
        "proctor-test/counts-words:1",
        "--challenge",
        scene.folder / "words",
        "--settings",
        scene.settings,
    )
    ran = proctor(*check)
    assert ran.code == 0, ran.err
    assert "score         error 0.0000, share 1.0000 (over 2 cases" in ran.out
    scene.engine.remove_image(SCORER)
    ran = proctor(*check)
    assert ran.code == 0, ran.err
    assert "scorer not tried: it runs in a container, whose image is not here (not tested)" in ran.out
    scene.scorer(GOOD)

    said = proctor("challenge", "check", scene.folder / "words")
    assert said.code == 0, said.err
    assert "the scorer was not tried: it runs in a container" in " ".join(said.out.split())
