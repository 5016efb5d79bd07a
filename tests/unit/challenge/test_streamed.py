"""What challenge.yaml must say where frames are streamed, and what it may not."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from pydantic import ValidationError

from runner.challenge import Challenge, InvocationMode, Pacing
from runner.verdict import VerdictWord
from tests.unit.conftest import CHALLENGE

STEPS = CHALLENGE["tasks"]["steps"]
SCORES = {"kind": "frame_scores", "file": "{case}.json", "key": "recognition", "classes": 2}
IMAGES = {
    "kind": "label_images", "file": "{case}/{frame}.png", "coding": "index", "width": 2, "height": 1,
    "classes": {0: {"name": "none"}},
}  # fmt: skip
NAMES = {**STEPS["format"], "columns": {"phase": {"names": ("a", "b")}, "step": {"labels": (0,), "missing": "allow"}}}


def task(**changes: Any) -> dict[str, Any]:
    return {**STEPS, **changes}


def invocation(**changes: Any) -> dict[str, Any]:
    return {"args": ("{input}", "{output}.csv"), **changes}


def refusal(make_challenge: Callable[..., Challenge], **sections: Any) -> str:
    """Our sentence about a challenge."""
    with pytest.raises(ValidationError) as caught:
        make_challenge(**sections)
    (error,) = caught.value.errors()
    return error["msg"].removeprefix("Value error, ")


@pytest.mark.parametrize("mode", ["case", "dataset"])
def test_a_stream_beside_another_mode_is_an_offer(make_challenge: Callable[..., Challenge], mode: str) -> None:
    lists = {"data/{case}.txt": "{case}/{frame}.png"}
    found = make_challenge(invocation=invocation(mode=mode, stream={}, lists=lists)).invocation
    assert found.mode == mode
    assert found.stream is not None
    assert (found.stream.pacing, found.stream.answer, found.stream.start_up) == (Pacing.LOCKSTEP, 10.0, 120.0)


def test_a_challenge_can_be_streamed_to_everybody(make_challenge: Callable[..., Challenge]) -> None:
    challenge = make_challenge(invocation=invocation(mode="stream", stream={"answer": "2 s", "frames": ("inline",)}))
    assert challenge.invocation.mode is InvocationMode.STREAM
    assert challenge.invocation.stream is not None
    assert challenge.invocation.stream.answer == 2.0


def test_the_mode_needs_its_section_and_no_lists(make_challenge: Callable[..., Challenge]) -> None:
    missing = refusal(make_challenge, invocation=invocation(mode="stream"))
    assert missing == "stream is required with mode stream: how frames are streamed"
    lists = refusal(make_challenge, invocation=invocation(mode="stream", stream={}, lists={"a.txt": "{case}"}))
    assert lists == "lists would tell how many frames there are: leave them out in mode stream"


@pytest.mark.parametrize("rule", [STEPS["format"], SCORES, IMAGES], ids=["table", "scores", "images"])
def test_formats_with_an_answer_a_frame_can_be_streamed(
    make_challenge: Callable[..., Challenge], rule: Mapping[str, Any]
) -> None:
    make_challenge(invocation=invocation(stream={}), tasks={"steps": task(format=rule)})


def test_other_formats_cannot(make_challenge: Callable[..., Challenge]) -> None:
    rule = {"kind": "answer", "file": "{case}.json", "fields": {"n": {"type": "integer"}}}
    assert refusal(make_challenge, invocation=invocation(stream={}), tasks={"steps": task(format=rule)}) == (
        "tasks.steps: answer cannot be streamed: it needs an answer a frame, as frame_table, frame_scores and "
        "label_images have; take invocation.stream out"
    )


def test_a_task_that_is_shown_nothing_with_frames_cannot(make_challenge: Callable[..., Challenge]) -> None:
    inputs = {"frames": {"kind": "frames", "path": "f/{case}"}, "notes": {"kind": "file", "path": "n/{case}.txt"}}
    cases = {"inputs": inputs, "references": "r/{case}.csv", "fps": 1}
    args: dict[str, Any] = {"args": (), "stream": {}}
    make_challenge(cases=cases, invocation=args)
    said = refusal(make_challenge, cases=cases, invocation=args, tasks={"steps": task(inputs=("notes",))})
    assert said == "tasks.steps: there are no frames to stream; take invocation.stream out"


def test_earlier_predictions_cannot(make_challenge: Callable[..., Challenge]) -> None:
    tasks = {"first": task(), "second": task(inputs_from=("first",))}
    said = refusal(make_challenge, invocation=invocation(stream={}), tasks=tasks)
    assert said == "tasks.second: inputs_from cannot be streamed; take invocation.stream out"


def test_the_pace_of_the_camera_needs_what_is_held_at_the_start(make_challenge: Callable[..., Challenge]) -> None:
    said = refusal(make_challenge, invocation=invocation(stream={"pacing": "realtime"}))
    assert said == "before_first is required with pacing: realtime: what a frame missed at the start holds"


@pytest.mark.parametrize(
    ("rule", "held", "lack"),
    [
        (STEPS["format"], {"step": 1}, ""),
        (STEPS["format"], {"step": 1, "of another task": 3}, ""),
        (STEPS["format"], {"other": 1}, "there is no column step"),
        (STEPS["format"], {"step": 2}, "2 is no label of column step"),
        (STEPS["format"], {"step": True}, "True is no label of column step"),
        (STEPS["format"], {"step": "1"}, "'1' is no label of column step"),
        (NAMES, {"phase": "b"}, ""),
        (NAMES, {"phase": 1, "step": 0}, ""),
        (NAMES, {"phase": 2}, "2 is no label of column phase"),
        (NAMES, {"phase": "c"}, "'c' is no label of column phase"),
        (NAMES, {"phase": "b", "step": 1}, "1 is no label of column step"),
        (SCORES, {"recognition": [0, 0.5]}, ""),
        (SCORES, {"recognition": [0]}, "recognition is no list of 2 scores"),
        (SCORES, {"recognition": [0, True]}, "recognition is no list of 2 scores"),
        ({**SCORES, "key": ""}, {"scores": [0, 1]}, ""),
        ({**SCORES, "key": ""}, {"recognition": [0, 1]}, "scores is no list of 2 scores"),
        (IMAGES, {"image": "aGVsbG8="}, ""),
        (IMAGES, {"image": 1}, "there is no image"),
    ],
)
def test_what_is_held_at_the_start_must_be_an_answer(
    make_challenge: Callable[..., Challenge], rule: Mapping[str, Any], held: dict[str, Any], lack: str
) -> None:
    stream = {"pacing": "realtime", "before_first": held}
    sections = {"invocation": invocation(stream=stream), "tasks": {"steps": task(format=rule)}}
    if not lack:
        make_challenge(**sections)
        return
    assert refusal(make_challenge, **sections) == (
        f"invocation.stream.before_first: {lack} of tasks.steps: it is what a frame holds that is missed before the "
        "first answer"
    )


def test_causality_holds_by_construction_in_mode_stream(make_challenge: Callable[..., Challenge]) -> None:
    """So that what no cut can be made for, as scores of videos, may be asked for all the same."""
    inputs = {"video": {"kind": "video", "path": "v/{case}.mp4"}}
    cases = {"inputs": inputs, "references": "r/{case}.csv", "fps": 1}
    causality = {**CHALLENGE["causality"], "method": "targeted", "on_leak": "refuse"}
    make_challenge(cases=cases, causality=causality, invocation={"mode": "stream", "stream": {}})


@pytest.mark.parametrize(
    ("stated", "scope"),
    [
        ({}, "case"),
        ({"crashed": "submission"}, "submission"),
        ({"broke-protocol": "submission"}, "submission"),
        ({"crashed": "submission", "broke-protocol": "case"}, "case"),
    ],
)
def test_a_broken_protocol_spoils_what_a_crash_does_unless_it_is_said(
    make_challenge: Callable[..., Challenge], stated: dict[str, str], scope: str
) -> None:
    consequence = {**CHALLENGE["consequence"], **stated}
    challenge = make_challenge(consequence=consequence)
    assert challenge.consequence.scope_of(VerdictWord.BROKE_PROTOCOL.value) == scope
