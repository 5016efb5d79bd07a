"""Which challenges can ask for a check for causality, and what is said of those that cannot."""

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from runner.challenge import Challenge
from runner.cli.rules import rules

ON = {"method": "targeted", "on": 1, "on_leak": "refuse", "length_dependence": "report"}
INPUTS = {
    "video": {"kind": "video", "path": "v/{case}.mp4"},
    "kinematics": {"kind": "table", "path": "k/{case}.tsv"},
    "camera": {"kind": "file", "path": "c/{case}.txt"},
}
FORMATS: dict[str, dict[str, Any]] = {
    "frame_scores": {
        "kind": "frame_scores", "file": "{case}.json", "layout": "json", "key": "s", "classes": 2, "range": (0, 1),
        "frame_ids": "stem",
    },
    "label_images": {
        "kind": "label_images", "file": "{case}/{frame}.png", "coding": "index", "width": 4, "height": 4,
        "classes": {0: {"name": "none"}, 1: {"name": "some"}},
    },
    "answer": {"kind": "answer", "file": "{case}.json", "fields": {"n": {"type": "integer"}}},
    "arrays": {"kind": "arrays", "file": "{case}.npz", "arrays": {"a": {"type": "float32", "shape": (2,)}}},
}  # fmt: skip


@pytest.fixture
def challenge(make_challenge: Callable[..., Challenge]) -> Callable[..., Challenge]:
    """A challenge that checks causality, on a task with some keys changed."""

    def make(rule: dict[str, Any] | None = None, tasks: dict[str, Any] | None = None, **changes: Any) -> Challenge:
        own = make_challenge().tasks["steps"].model_dump(mode="json")
        built = {name: {**own, **task} for name, task in (tasks or {"steps": {}}).items()}
        cases = {"inputs": INPUTS, "references": "r/{case}.csv", "fps": 30}
        return make_challenge(**{"cases": cases, "causality": {**ON, **(rule or {})}, "tasks": built, **changes})

    return make


def fault(make: Callable[..., Challenge], **changes: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        make(**changes)
    (error,) = caught.value.errors()
    return error["msg"].removeprefix("Value error, ")


@pytest.mark.parametrize("mode", ["case", "dataset"])
@pytest.mark.parametrize("kind", [None, "frame_scores", "label_images"])
@pytest.mark.parametrize("inputs", [["video"], ["kinematics"], ["video", "kinematics", "camera"]])
def test_what_can_be_checked(
    challenge: Callable[..., Challenge], mode: str, kind: str | None, inputs: list[str]
) -> None:
    task = {"inputs": inputs} | ({"format": FORMATS[kind]} if kind else {})
    built = challenge(tasks={"steps": task}, invocation={"mode": mode, "args": ("{input}",)})
    assert built.causality.method == "targeted"


def test_a_task_that_is_given_an_earlier_prediction_can_be_checked(challenge: Callable[..., Challenge]) -> None:
    assert challenge(tasks={"first": {}, "second": {"inputs_from": ["first"]}}).tasks["second"].inputs_from == (
        "first",
    )


@pytest.mark.parametrize("kind", ["answer", "arrays"])
def test_without_an_answer_a_frame_nothing_can_be_compared(challenge: Callable[..., Challenge], kind: str) -> None:
    assert fault(challenge, tasks={"steps": {"format": FORMATS[kind]}}) == (
        f"tasks.steps: causality cannot be checked by {kind}: it needs an answer a frame, as frame_table, frame_scores "
        "and label_images have; causality.method: off"
    )
    assert challenge(rule={"method": "off"}, tasks={"steps": {"format": FORMATS[kind]}})


def test_without_frames_nothing_can_be_cut(challenge: Callable[..., Challenge]) -> None:
    assert fault(challenge, tasks={"steps": {"inputs": ["camera"]}}) == (
        "tasks.steps: causality cannot be checked without frames to cut; causality.method: off"
    )


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({}, "checked on 1 case with at most 20 cuts; a leak: refuse"),
        ({"on": "all", "method": "cut-run"}, "checked on all cases with one cut each; a leak: refuse"),
        ({"on": 3, "method": "altered-future", "cuts": 5},
         "checked on 3 cases with at most 5 altered futures; a leak: refuse"),
        ({"method": "exhaustive", "clip": 300, "rule": "last", "on_leak": "report"},
         "checked on 1 case with every prefix of the first 300 frames, by its last answer; a leak: report"),
        ({"method": "off"}, "not checked"),
    ],
)  # fmt: skip
def test_the_rule_in_words(challenge: Callable[..., Challenge], rule: dict[str, Any], words: str) -> None:
    assert dict(rules(challenge(rule=rule)))["causality"] == words
