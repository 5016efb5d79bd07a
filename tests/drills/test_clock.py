"""The wall clock is stepped while a container runs.

The machine's real clock is left alone, and Go programs do not heed faketime: the steps are put into the engine's own
record of a real container, between its start and its end, as a stepped clock would put them.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from runner import follow
from runner.engine import ContainerFacts
from runner.engine.docker import DockerEngine, connect
from runner.pipeline.evaluate import evaluate
from runner.pipeline.record import EvaluateRequest
from tests.drills.scene import ACCEPTED, LIMIT, Scene, board

pytestmark = [pytest.mark.engine, pytest.mark.root]

_HELD = 2.0
"""Seconds: what is shorter is nobody's fault, whatever a clock says of it."""


def _stepped(url: str, step: float) -> DockerEngine:
    """An engine whose clock is stepped while each container runs."""
    engine = connect(url)
    real: Callable[[str], ContainerFacts | None] = engine.inspect

    def inspect(container: str) -> ContainerFacts | None:
        facts = real(container)
        if facts is None or facts.exit is None:
            return facts
        return replace(facts, exit=replace(facts.exit, seconds=max(0.0, facts.exit.seconds + step)))

    engine.inspect = inspect  # type: ignore[method-assign]
    return engine


@pytest.mark.parametrize("step", [-3600.0, 3600.0])
def test_a_stepped_clock_changes_no_verdict(
    scene: Scene, undisturbed: str, monkeypatch: pytest.MonkeyPatch, step: float
) -> None:
    out = scene.folder / "run"
    arguments = scene.arguments(out)
    given = dict(zip(arguments[2::2], arguments[3::2], strict=True))
    monkeypatch.setenv("PROCTOR_WORKSPACE", str(scene.workspace))
    engine = _stepped(scene.daemon.url, step)
    began = time.monotonic()
    # So is ours, which is the same; a step a second steps it while each container runs.
    monkeypatch.setattr(follow, "_wall", lambda: time.time() + step * (time.monotonic() - began))
    request = EvaluateRequest(
        challenge=arguments[1], data=scene.data, out=out, flags={}, seed=5,
        submissions=scene.folder / given["--submissions"], settings_file=scene.folder / given["--settings"],
    )  # fmt: skip
    with ThreadPoolExecutor(max_workers=1) as pool:
        finishing = pool.submit(
            evaluate, request, connect=lambda _: engine, stop=threading.Event(), observe=lambda _: None
        )
        scene.wait_holding(lambda: not finishing.done())
        time.sleep(_HELD)
        with scene.going():
            finished = finishing.result()
    engine.close()
    assert finished.standings.pending == ()
    assert board(out) == undisturbed
    outcome = scene.outcomes(out)["first", "02"]
    assert (outcome.verdict.word.value, outcome.verdict.blame.value) == ACCEPTED
    assert outcome.seconds is not None
    assert _HELD < outcome.seconds < LIMIT
    assert scene.leftovers() == []
