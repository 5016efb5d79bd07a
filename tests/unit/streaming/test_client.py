"""The Python client of ``templates/stream``, as a program with pipes for its streams."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runner.challenge import FrameTableFormat
from runner.challenge.streamed import example_answer

TEMPLATE = Path(__file__).resolve().parents[3] / "templates/stream"
HELLO = {"type": "hello", "protocol": 1, "frames": ["path", "inline"], "task": "t"}
BEGIN = {"type": "begin", "case": "c", "fps": 25.0, "inputs": ["frames"]}
END = {"type": "end"}


def _frame(index: int, image: str = "aGVsbG8=") -> dict[str, Any]:
    return {"type": "frame", "index": index, "time": index / 25, "inputs": {"frames": {"image": image}}}


def _play(folder: Path, body: str, *messages: dict[str, Any]) -> tuple[list[dict[str, Any]], str, int]:
    """What a program says to messages that all wait for it; its log and its exit code."""
    (folder / "predict.py").write_text(f"import os, sys\nimport proctor_stream\n{body}\n")
    done = subprocess.run(
        [sys.executable, folder / "predict.py"],
        input="".join(json.dumps(message) + "\n" for message in messages).encode(),
        env={"PYTHONPATH": str(TEMPLATE)}, capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr.decode(), done.returncode


def _answers(said: list[dict[str, Any]]) -> list[tuple[int, Any]]:
    return [(message["index"], message["answer"]) for message in said if message["type"] == "answer"]


def test_frames_are_answered_in_order_and_prints_go_to_the_log(tmp_path: Path) -> None:
    body = """
def start():
    print("starting")
def reset(case):
    os.system("echo child of " + case)
def predict(frame):
    print("frame", frame.index)
    return {"size": len(frame.image()), "time": frame.time, "path": frame.path, "read": sys.stdin.read()}
proctor_stream.run(predict, start=start, reset=reset)
"""
    said, log, code = _play(tmp_path, body, HELLO, BEGIN, _frame(0), _frame(1, "YQ=="), END)
    assert said[0] == {"type": "hello", "protocol": 1, "frames": "path"}
    assert _answers(said) == [
        (0, {"size": 5, "time": 0.0, "path": None, "read": ""}),
        (1, {"size": 1, "time": 0.04, "path": None, "read": ""}),
    ]
    assert sorted(log.splitlines()) == ["child of c", "frame 0", "frame 1", "starting"]
    assert code == 0


def test_inline_is_chosen_where_it_is_all_that_is_offered(tmp_path: Path) -> None:
    said, _, _ = _play(tmp_path, "proctor_stream.run(lambda frame: {})", {**HELLO, "frames": ["inline"]}, END)
    assert said == [{"type": "hello", "protocol": 1, "frames": "inline"}]


def test_a_frame_has_its_inputs_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"abc")
    frame = _frame(0)
    frame["inputs"] = {"kin": {"header": "t,x", "row": "0,1"}, "left": {"path": str(tmp_path / "a.png")}}
    body = "proctor_stream.run(lambda f: {'row': f.row('kin'), 'own': len(f.image('left')), 'first': len(f.image())})"
    said, _, _ = _play(tmp_path, body, HELLO, BEGIN, frame, END)
    assert _answers(said) == [(0, {"row": "0,1", "own": 3, "first": 3})]


def test_numpys_numbers_and_arrays_are_answers_too(tmp_path: Path) -> None:
    body = "import numpy as np\nproctor_stream.run(lambda f: {'step': np.int64(3), 'scores': np.array([0.5, 0.25])})"
    said, _, _ = _play(tmp_path, body, HELLO, BEGIN, _frame(0), END)
    assert _answers(said) == [(0, {"step": 3, "scores": [0.5, 0.25]})]


@pytest.mark.parametrize(
    ("predict", "told"),
    [
        ("lambda f: 1 / 0", "ZeroDivisionError: division by zero"),
        ("lambda f: 3", "TypeError: predict returned a int for frame 0, and no dict"),
        ("lambda f: {'x': object()}", "TypeError: an answer holds a object, which JSON cannot"),
        ("lambda f: {'x': float('nan')}", "ValueError: Out of range float values are not JSON compliant"),
    ],
)
def test_what_goes_wrong_is_told_and_traced(tmp_path: Path, predict: str, told: str) -> None:
    said, log, code = _play(tmp_path, f"proctor_stream.run({predict})", HELLO, BEGIN, _frame(0), END)
    assert said[1:] == [{"type": "error", "message": told}]
    assert told in log
    assert code == 1


def test_another_version_is_told(tmp_path: Path) -> None:
    said, _, code = _play(tmp_path, "proctor_stream.run(lambda frame: {})", {**HELLO, "protocol": 2})
    assert said == [{"type": "error", "message": "RuntimeError: this client speaks version 1 of the protocol"}]
    assert code == 1


def test_of_frames_that_wait_the_newest_is_answered_where_that_is_wished(tmp_path: Path) -> None:
    messages = (HELLO, BEGIN, *map(_frame, range(5)), END)
    body = "proctor_stream.run(lambda frame: {'x': frame.index}, newest_only=%s)"
    assert [index for index, _ in _answers(_play(tmp_path, body % True, *messages)[0])] == [4]
    assert [index for index, _ in _answers(_play(tmp_path, body % False, *messages)[0])] == [0, 1, 2, 3, 4]


def test_a_method_can_be_tried_on_a_folder(tmp_path: Path) -> None:
    images = tmp_path / "images"
    images.mkdir()
    for name in ("b.png", "a.png"):
        (images / name).write_bytes(name.encode())
    (tmp_path / "predict.py").write_text(
        "import proctor_stream\nproctor_stream.run(lambda f: {'first': f.image()[:1].decode()})\n"
    )
    done = subprocess.run(
        [sys.executable, tmp_path / "predict.py", "--try", images],
        env={"PYTHONPATH": str(TEMPLATE)}, capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    lines = [(line.split()[0], line.partition("ms ")[2]) for line in done.stdout.decode().splitlines()]
    assert lines == [("a.png", '{"first": "a"}'), ("b.png", '{"first": "b"}')]


def test_the_example_answers_a_legal_label_in_each_column() -> None:
    rule = FrameTableFormat.model_validate(
        {
            "kind": "frame_table", "file": "{case}.csv", "index": {"column": "t"},
            "columns": {
                "step": {"labels": ["0..3"], "reference_only": [0, 1]},
                "phase": {"names": ["idle", "cut"], "reference_only": [0]},
            },
        }
    )  # fmt: skip
    assert example_answer(rule) == {"step": 2, "phase": "cut"}
