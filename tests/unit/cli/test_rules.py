"""What ``proctor challenge show`` says of streams."""

from collections.abc import Callable
from typing import Any

import pytest

from runner.challenge import Challenge
from runner.cli.rules import rules

PACE = "given its frames one by one, each once the one before is answered; 10.0 s for an answer, 2 min 00 s to start"
CAMERA = "given its frames one by one, each at the camera's rate; 1.0 s for an answer, 2 min 00 s to start"
REALTIME = {"pacing": "realtime", "answer": 1, "before_first": {"step": 0}}


@pytest.mark.parametrize(
    ("invocation", "streamed", "causality"),
    [
        ({}, None, "not checked"),
        ({"stream": {}}, f"with profile stream a container is {PACE}", "not checked"),
        (
            {"mode": "stream", "stream": {}},
            f"every container is {PACE}",
            "holds by construction: frames come one by one",
        ),
        ({"stream": REALTIME}, f"with profile stream a container is {CAMERA}", "not checked"),
    ],
)
def test_who_is_streamed_to_and_how(
    make_challenge: Callable[..., Challenge], invocation: dict[str, Any], streamed: str | None, causality: str
) -> None:
    said = dict(rules(make_challenge(invocation={"args": (), **invocation})))
    assert said.get("streamed") == streamed
    assert said["causality"] == causality
