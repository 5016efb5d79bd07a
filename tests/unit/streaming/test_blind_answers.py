"""An answer that was sent before its frame was released is early, also where it is heard only afterwards."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from runner.streaming.conductor import StreamEnd
from runner.streaming.protocol import Breach
from tests.unit.streaming.stage import Stage


class _Slow(dict[int, Mapping[str, JsonValue]]):
    """Keeps answers, and takes its time."""

    def __init__(self, stage: Stage, seconds: float) -> None:
        super().__init__()
        self._stage, self._seconds = stage, seconds

    def __setitem__(self, index: int, answer: Mapping[str, JsonValue]) -> None:
        self._stage.clock.sleep(self._seconds)
        super().__setitem__(index, answer)


@pytest.mark.parametrize(("ours", "early"), [(0.5, True), (0.0, False)])
def test_an_answer_behind_another_is_early_where_its_frame_came_later(tmp_path: Path, ours: float, early: bool) -> None:
    def play(stage: Stage, message: dict[str, Any]) -> None:
        match message["type"]:
            case "hello":
                stage.say(type="hello", protocol=1, frames="path")
            case "frame" if message["index"] == 0:
                for index in (0, 1):
                    stage.say(0.1, type="answer", index=index, answer={})
            case "end":
                stage.close()

    stage = Stage(tmp_path, play)
    stage.kept = _Slow(stage, ours)
    outcome = stage.conduct(frames=2)
    assert outcome.seconds == pytest.approx(0.1), "what we take to keep an answer is no time of the case"
    assert outcome.end is (StreamEnd.BROKE if early else StreamEnd.FINISHED)
    if early:
        assert outcome.broken is not None
        assert (outcome.broken.breach, list(stage.kept)) == (Breach.EARLY, [0])
