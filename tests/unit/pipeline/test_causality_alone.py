"""``proctor causality``: what may be changed of a challenge's rule, and what is said before an engine is asked for."""

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from runner.catalog import LoadedChallenge
from runner.challenge import Challenge
from runner.engine import Engine
from runner.errors import HostUnfit, UsageError
from runner.pipeline import causality
from runner.pipeline.causality import CausalityRequest, check_causality
from runner.pipeline.home import HomeRequest
from runner.pipeline.looking_ahead import CausalityRecord

ROOT = Path(__file__).resolve().parents[3]


def asked(challenge: str, *tasks: str, **changes: object) -> None:
    """Ask for a check on a host without an engine: what is wrong with the question is told before."""

    def connect(_url: str) -> Engine:
        raise HostUnfit("there is no engine")

    request = CausalityRequest(home=HomeRequest(image="method:1", challenge=challenge, tasks=tasks), changes=changes)
    check_causality(
        request, connect=connect, stop=threading.Event(), observe=lambda _: None, tell=lambda _: None
    )  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"cuts": 0}, "--cuts 0: must be at least 1"),
        ({"on": 0}, "--cases 0: must be at least 1"),
        ({"clip": 1}, "--clip 1: must be at least 2"),
        ({"most_runs": 1}, "--most-runs 1: must be at least 2"),
        ({"tolerance": -1.0}, "--tolerance -1.0: must be at least 0.0"),
        ({"method": "off"}, "--method off checks nothing"),
    ],
)
def test_what_cannot_be_asked(changes: Mapping[str, Any], what: str) -> None:
    with pytest.raises(UsageError) as caught:
        asked("pitvis2023", **changes)
    assert caught.value.what == what


def test_an_unknown_method_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="--method 'all': must be 'targeted', 'exhaustive', 'cut-run'"):
        asked("pitvis2023", method="all")


@pytest.mark.parametrize("challenge", ["pitvis2023", "petraw2021", "cholectriplet2021", "robseg2018"])
@pytest.mark.parametrize("method", ["targeted", "exhaustive", "cut-run", "altered-future"])
def test_every_shipped_challenge_can_be_checked_in_every_way(challenge: str, method: str) -> None:
    """Whether or not it asks for a check; PETRAW's comparison of last answers goes with its own method only."""
    with pytest.raises(HostUnfit, match="there is no engine"):
        asked(challenge, method=method, on="all")


@pytest.mark.parametrize(
    ("changes", "what", "remedy"),
    [
        (
            {},
            (
                "tasks.steps: causality cannot be checked by answer: it needs an answer a frame, as frame_table, "
                "frame_scores and label_images have"
            ),
            "name tasks that can be checked with --task",
        ),
        (
            {"invocation": {"mode": "stream", "stream": {}}},
            "toy streams its frames, so that no method can look ahead",
            "check it with: proctor check",
        ),
    ],
)
def test_a_challenge_that_cannot_be_checked(
    make_challenge: Callable[..., Challenge],
    monkeypatch: pytest.MonkeyPatch,
    changes: Mapping[str, Any],
    what: str,
    remedy: str,
) -> None:
    tasks = {"steps": {**make_challenge().tasks["steps"].model_dump(mode="json")}}
    if not changes:
        tasks["steps"]["format"] = {"kind": "answer", "file": "{case}.json", "fields": {"n": {"type": "integer"}}}
    loaded = LoadedChallenge(challenge=make_challenge(tasks=tasks, **changes), folder=ROOT, digest="d")
    monkeypatch.setattr(causality, "entered", lambda *_: loaded)
    with pytest.raises(UsageError) as caught:
        asked("toy")
    assert (caught.value.what, caught.value.remedy) == (what, remedy)


def test_a_record_without_findings_says_nothing() -> None:
    record = CausalityRecord(findings=())
    assert (record.summary, record.pace, record.online_compatible) == (None, None, None)
