"""How a case is streamed, frame by frame, and how it ends otherwise than well."""

import functools
import itertools
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runner.streaming.channel import Flooded
from runner.streaming.conductor import StreamEnd, StreamOutcome
from runner.streaming.frame import StreamedFrame
from runner.streaming.lines import TooLong
from runner.streaming.placing import Ahead
from runner.streaming.protocol import Breach
from tests.unit.streaming.stage import Play, Stage, pictures, well

REALTIME = {"pacing": "realtime", "before_first": {"step": 0}}


def _broke(outcome: StreamOutcome) -> tuple[Breach, str]:
    assert outcome.end is StreamEnd.BROKE
    assert outcome.broken is not None
    return outcome.broken.breach, outcome.broken.sentence


def _only(when: str, do: Play) -> Play:
    """Do all well, but something else where a message of this type is read; ``frame 1`` for one of them."""

    def play(stage: Stage, message: dict[str, Any]) -> None:
        name = f"frame {message['index']}" if message["type"] == "frame" else message["type"]
        (do if name == when else well)(stage, message)

    return play


# In lockstep


def test_a_frame_is_there_from_its_release_to_its_answer(tmp_path: Path) -> None:
    stage = Stage(tmp_path, well)
    outcome = stage.conduct(3)
    assert (outcome.end, outcome.broken, outcome.way) == (StreamEnd.FINISHED, None, "path")
    assert [message["type"] for _, message in stage.sent] == ["hello", "begin", "frame", "frame", "frame", "end"]
    assert stage.seen == [["0-00000000.png"], ["0-00000001.png"], ["0-00000002.png"]]
    assert stage.kept == {0: {"step": 0}, 1: {"step": 2}, 2: {"step": 4}}
    assert stage.input_ended
    assert not [*stage.view.iterdir(), *stage.staging.iterdir()]


def test_nothing_that_is_sent_says_how_many_frames_there_are(tmp_path: Path) -> None:
    for name in ("few", "many"):
        (tmp_path / name).mkdir()
    few, many = Stage(tmp_path / "few", well), Stage(tmp_path / "many", well)
    few.conduct(2)
    many.conduct(9)
    assert [message for _, message in few.sent[:4]] == [message for _, message in many.sent[:4]]
    assert few.seen == many.seen[:2]


def test_times_are_of_the_start_up_of_each_frame_and_of_the_case(tmp_path: Path) -> None:
    stage = Stage(tmp_path, well)
    outcome = stage.conduct(3)
    assert outcome.start_up == 1.5
    assert outcome.seconds == pytest.approx(3 * 0.01 + 0.25)
    took = [frame.answered - (frame.released or 0) for frame in outcome.timings if frame.answered is not None]
    assert took == pytest.approx([10_000_000] * 3, abs=2)


@pytest.fixture
def waited_for(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set again and again while the conductor waits for a frame of the source."""
    event = threading.Event()
    ready = Ahead.ready

    def told(ahead: Ahead, *, seconds: float) -> bool:
        if not ready(ahead, seconds=0):
            event.set()
        return ready(ahead, seconds=seconds)

    monkeypatch.setattr(Ahead, "ready", told)
    return event


def _late(stage: Stage, count: int, seconds: dict[int, float], waited_for: threading.Event) -> Iterator[StreamedFrame]:
    """A source that takes so long for some frames, from the moment that they are waited for."""
    for frame in pictures(count):
        if frame.index in seconds:
            waited_for.clear()
            assert waited_for.wait(timeout=10)
            stage.clock.sleep(seconds[frame.index])
        yield frame


def test_waiting_for_a_frame_of_ours_is_no_time_of_the_case(tmp_path: Path, waited_for: threading.Event) -> None:
    stage = Stage(tmp_path, well)
    source = _late(stage, 3, {0: 100.0, 1: 100.0, 2: 100.0}, waited_for)
    outcome = stage.conduct(source=source, seconds=1.0)
    assert outcome.end is StreamEnd.FINISHED
    assert len(stage.kept) == 3
    assert outcome.seconds == pytest.approx(3 * 0.01 + 0.25)


def test_a_case_without_frames_begins_and_ends(tmp_path: Path) -> None:
    stage = Stage(tmp_path, well)
    assert stage.conduct(0).end is StreamEnd.FINISHED
    assert [message["type"] for _, message in stage.sent] == ["hello", "begin", "end"]


def test_inline_frames_are_in_the_message_only(tmp_path: Path) -> None:
    def greet(stage: Stage, _: dict[str, Any]) -> None:
        stage.say(type="hello", protocol=1, frames="inline")

    stage = Stage(tmp_path, _only("hello", greet))
    outcome = stage.conduct(2)
    assert (outcome.end, outcome.way) == (StreamEnd.FINISHED, "inline")
    assert stage.seen == [[], []]
    assert stage.sent[2][1]["inputs"] == {"frames": {"image": "MA=="}}


def test_an_answer_may_take_as_long_as_it_may_and_no_longer(tmp_path: Path) -> None:
    (tmp_path / "just").mkdir()
    just = Stage(tmp_path / "just", functools.partial(well, after=10.0))
    assert just.conduct(2).end is StreamEnd.FINISHED
    late = Stage(tmp_path, _only("frame 1", functools.partial(well, after=10.1)))
    assert _broke(late.conduct(3)) == (Breach.SILENT, "frame 1 was not answered within 10.0 s")
    assert late.kept == {0: {"step": 0}}
    assert late.seen == [["0-00000000.png"], ["0-00000001.png"]]


def test_a_case_may_take_as_long_as_it_may(tmp_path: Path) -> None:
    stage = Stage(tmp_path, functools.partial(well, after=4.0))
    outcome = stage.conduct(100, seconds=9.0)
    assert (outcome.end, outcome.broken) == (StreamEnd.OUT_OF_TIME, None)
    assert outcome.seconds == pytest.approx(9.0)
    assert list(stage.kept) == [0, 1]


def test_start_up_is_no_time_of_the_case_and_has_a_limit_of_its_own(tmp_path: Path) -> None:
    def slowly(stage: Stage, _: dict[str, Any]) -> None:
        stage.say(100.0, type="hello", protocol=1, frames="path")

    for name, limit in (("in time", 120.0), ("late", 99.0)):
        (tmp_path / name).mkdir()
        outcome = Stage(tmp_path / name, _only("hello", slowly)).conduct(rule={"start_up": limit}, seconds=1.0)
        if name == "in time":
            assert (outcome.end, outcome.start_up) == (StreamEnd.FINISHED, 100.0)
        else:
            assert _broke(outcome) == (Breach.LATE_HELLO, "it did not say hello within 99.0 s of its start")
            assert (outcome.start_up, outcome.seconds) == (None, 0.0)


def test_a_container_that_stops_reading_is_found_out(tmp_path: Path) -> None:
    def stop_reading(stage: Stage, message: dict[str, Any]) -> None:
        well(stage, message)
        stage.reads = False

    stage = Stage(tmp_path, _only("frame 1", stop_reading))
    assert _broke(stage.conduct(5)) == (Breach.NOT_READING, "it did not read frame 2 within 10.0 s")


@pytest.mark.parametrize(
    ("when", "awaited"),
    [("hello", "it said hello"), ("begin", "frame 0 was answered"), ("frame 1", "frame 1 was answered")],
)
def test_an_exit_before_the_end_is_told_with_what_was_awaited(tmp_path: Path, when: str, awaited: str) -> None:
    stage = Stage(tmp_path, _only(when, lambda stage, _: stage.close()))
    assert _broke(stage.conduct()) == (Breach.EXITED, f"it ended, or closed its output, before {awaited}")


def test_an_exit_in_the_middle_of_a_line_is_told_apart(tmp_path: Path) -> None:
    stage = Stage(tmp_path, _only("frame 1", lambda stage, _: stage.close(0.1, unfinished=True)))
    assert _broke(stage.conduct()) == (Breach.UNFINISHED_LINE, "it ended in the middle of a message")


def test_an_exit_after_the_last_answer_is_an_end_like_any(tmp_path: Path) -> None:
    def answer_and_leave(stage: Stage, message: dict[str, Any]) -> None:
        well(stage, message)
        stage.close(0.02)

    outcome = Stage(tmp_path, _only("frame 2", answer_and_leave)).conduct(3)
    assert outcome.end is StreamEnd.FINISHED


def test_a_container_that_does_not_end_runs_out_of_time(tmp_path: Path) -> None:
    stage = Stage(tmp_path, _only("end", lambda *_: None))
    assert stage.conduct(3, seconds=60.0).end is StreamEnd.OUT_OF_TIME
    assert len(stage.kept) == 3


def test_a_further_answer_after_the_last_is_a_breach(tmp_path: Path) -> None:
    def twice(stage: Stage, message: dict[str, Any]) -> None:
        well(stage, message)
        well(stage, message)

    for place, when in enumerate(("frame 1", "frame 2")):
        (tmp_path / when).mkdir()
        outcome = Stage(tmp_path / when, _only(when, twice)).conduct(3)
        assert _broke(outcome) == (Breach.TWICE, f"it answered frame {place + 1} a second time")


def test_a_line_that_breaks_the_protocol_is_kept_for_the_log(tmp_path: Path) -> None:
    line = b'{"type":"error","message":"' + b"x" * 9000 + b'"}'
    stage = Stage(tmp_path, _only("frame 1", lambda stage, _: stage.print(line)))
    assert _broke(stage.conduct()) == (Breach.ERROR_TOLD, "it said that it cannot go on")
    assert stage.notes == [line[:4096]]


def test_who_says_that_it_cannot_go_on_is_heard_out_for_a_moment(tmp_path: Path) -> None:
    def give_up(stage: Stage, _: dict[str, Any], *, ends_after: float) -> None:
        stage.say(type="error", message="no weights")
        stage.close(ends_after)

    for ends_after, waited in ((0.5, 0.5), (50.0, 2.0)):
        (tmp_path / str(waited)).mkdir()
        stage = Stage(tmp_path / str(waited), _only("frame 0", functools.partial(give_up, ends_after=ends_after)))
        outcome = stage.conduct()
        assert _broke(outcome)[0] is Breach.ERROR_TOLD
        assert outcome.seconds == pytest.approx(waited)


def test_lines_too_long_too_many_and_too_much_are_breaches(tmp_path: Path) -> None:
    plays: dict[str, Play] = {
        "long": lambda stage, _: stage.hear(TooLong(at=stage.clock.now())),
        "many": lambda stage, _: stage.hear(Flooded(at=stage.clock.now())),
    }
    for name, (breach, sentence) in {
        "long": (Breach.TOO_LONG, "a message is longer than 1 MiB"),
        "many": (Breach.FLOOD, "it sent messages faster than they can be asked for"),
    }.items():
        (tmp_path / name).mkdir()
        assert _broke(Stage(tmp_path / name, _only("frame 1", plays[name])).conduct()) == (breach, sentence)
    stage = Stage(tmp_path, well)
    assert _broke(stage.conduct(100, most_bytes=500)) == (
        Breach.TOO_MUCH,
        "its answers come to more than 500 B together",
    )


def test_whoever_stops_a_case_does_not_wait_for_it(tmp_path: Path) -> None:
    for when in ("hello", "frame 1", "end"):
        (tmp_path / when).mkdir()
        stage = Stage(tmp_path / when, _only(when, lambda stage, _: stage.stop.set()))
        outcome = stage.conduct(3)
        assert (outcome.end, outcome.broken) == (StreamEnd.STOPPED, None)
        assert stage.clock.now() < 2


def test_what_the_source_or_the_keeper_raises_is_raised(tmp_path: Path) -> None:
    def broken() -> Iterator[StreamedFrame]:
        yield from pictures(1)
        raise OSError("the disk is broken")

    with pytest.raises(OSError, match="the disk is broken"):
        Stage(tmp_path, well).conduct(source=broken())


# At the camera's rate


def test_frames_are_released_when_they_are_due(tmp_path: Path) -> None:
    stage = Stage(tmp_path, well)
    outcome = stage.conduct(5, rule=REALTIME)
    assert outcome.end is StreamEnd.FINISHED
    released = [frame.released for frame in outcome.timings]
    assert released == pytest.approx([1_500_000_000 + index * 40_000_000 for index in range(5)], abs=2)
    assert not any(frame.missed for frame in outcome.timings)
    assert list(stage.kept) == [0, 1, 2, 3, 4]
    assert stage.sent[-1][0] == pytest.approx(1.5 + 5 * 0.04)


def test_a_late_answer_is_missed_and_never_kept(tmp_path: Path) -> None:
    stage = Stage(tmp_path, _only("frame 1", functools.partial(well, after=0.05)))
    outcome = stage.conduct(5, rule=REALTIME)
    assert outcome.end is StreamEnd.FINISHED
    assert [frame.missed for frame in outcome.timings] == [False, True, False, False, False]
    assert [frame.answered is None for frame in outcome.timings] == [False] * 5
    assert list(stage.kept) == [0, 2, 3, 4]
    assert stage.seen[2] == ["0-00000001.png", "0-00000002.png"]


def test_the_last_frame_has_its_time_too(tmp_path: Path) -> None:
    for name, after, missed in (("in time", 0.039, False), ("late", 0.041, True)):
        (tmp_path / name).mkdir()
        stage = Stage(tmp_path / name, _only("frame 2", functools.partial(well, after=after)))
        outcome = stage.conduct(3, rule=REALTIME)
        assert (outcome.end, list(outcome.timings)[2].missed) == (StreamEnd.FINISHED, missed)
        assert list(stage.kept) == [0, 1] if missed else [0, 1, 2]


def test_a_frame_may_be_passed_over(tmp_path: Path) -> None:
    stage = Stage(tmp_path, _only("frame 1", lambda *_: None))
    outcome = stage.conduct(4, rule=REALTIME)
    assert outcome.end is StreamEnd.FINISHED
    assert [frame.missed for frame in outcome.timings] == [False, True, False, False]
    assert not list(stage.view.iterdir())


def test_silence_ends_a_case_at_the_cameras_rate_too(tmp_path: Path) -> None:
    def silent_from_3(stage: Stage, message: dict[str, Any]) -> None:
        if message.get("index", 0) < 3:
            well(stage, message)

    stage = Stage(tmp_path, silent_from_3)
    outcome = stage.conduct(1000, rule={**REALTIME, "answer": 1.0})
    assert _broke(outcome) == (Breach.SILENT, "frame 3 was not answered within 1.0 s")
    assert len(outcome.timings) == 28


def test_silence_is_no_breach_where_the_camera_is_slow(tmp_path: Path) -> None:
    outcome = Stage(tmp_path, well).conduct(3, rule={**REALTIME, "answer": 1.0}, fps=0.1)
    assert outcome.end is StreamEnd.FINISHED
    assert not any(frame.missed for frame in outcome.timings)


class _Deaf:
    """Reads nothing for a while, from frame 2 on."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __call__(self, stage: Stage, message: dict[str, Any]) -> None:
        well(stage, message)
        if message.get("index") == 2:
            stage.reads, self.until = False, stage.clock.now() + self.seconds
            send = stage.send

            def later(data: bytes, *, seconds: float) -> bool:
                stage.reads = stage.clock.now() >= self.until
                return send(data, seconds=seconds)

            stage.send = later  # type: ignore[method-assign]


def test_a_container_that_does_not_read_does_not_stop_the_camera(tmp_path: Path) -> None:
    stage = Stage(tmp_path, _Deaf(0.15))
    outcome = stage.conduct(10, rule=REALTIME)
    assert outcome.end is StreamEnd.FINISHED
    frames = list(outcome.timings)
    # Frame 3 was released when it was due, and read once two more had fallen due.
    assert [frame.index for frame in frames if frame.released is None] == [4, 5]
    assert [frame.missed for frame in frames][:3] == [False] * 3
    assert frames[3].missed
    assert [frame.released for frame in frames if frame.released is not None] == pytest.approx(
        [1_500_000_000 + frame.index * 40_000_000 for frame in frames if frame.released is not None], abs=2
    )


def test_a_container_that_never_reads_again_is_found_out(tmp_path: Path) -> None:
    outcome = Stage(tmp_path, _Deaf(1e9)).conduct(1000, rule={**REALTIME, "answer": 1.0})
    assert _broke(outcome) == (Breach.NOT_READING, "it did not read frame 3 within 1.0 s")


def test_where_the_host_is_late_what_follows_is_put_off(tmp_path: Path, waited_for: threading.Event) -> None:
    stage = Stage(tmp_path, functools.partial(well, after=0.03))
    outcome = stage.conduct(source=_late(stage, 8, {5: 3.0}, waited_for), rule=REALTIME)
    released = [frame.released for frame in outcome.timings if frame.released is not None]
    assert len(released) == 8
    assert released[5] - released[4] >= 3_000_000_000
    assert all(later - earlier >= 39_000_000 for earlier, later in itertools.pairwise(released))
    assert not any(frame.missed for frame in outcome.timings)
