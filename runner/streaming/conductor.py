"""Hands a container the frames of a case one by one, takes its answers, and measures; judges nothing.

With ``lockstep`` a frame is placed once the one before is answered. With ``realtime`` the camera sets the pace: a frame
is placed when it is due, whatever is still open. Two things could bend that, and neither does. A container that stops
reading does not stop the camera: while bytes for it are pending, frames that fall due are left out, and are missed. And
a frame of which the host is late is not taken from the container's time: what follows is put off with it.

Whatever waits here wakes up often enough to see that it shall stop, or that the time of the case is over. The time that
a container waits for us, for a frame to be decoded or copied or its answer to be kept, is no time of the case.
"""

import functools
import math
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

from runner.challenge import FrameWay, Pacing, Stream
from runner.clock import Clock
from runner.confine import JsonValue
from runner.quantities import show_bytes, show_seconds
from runner.streaming.channel import Channel, Closed, Flooded
from runner.streaming.frame import StreamedFrame
from runner.streaming.lines import Line, TooLong
from runner.streaming.placing import Ahead, Placing, Prepared
from runner.streaming.protocol import Answered, Breach, Broken, Conversation, Greeted
from runner.streaming.timing import Timings

_NAP = 0.2
_SHORT_NAP = 0.005
_HOST_IS_LATE = 0.001
_AT_ONCE = 0.005
"""Seconds that a frame has the host for itself: to copy the next one meanwhile would slow an answer that is quick."""

_CLOCK_TICK = 1e-6
_AHEAD = {Pacing.LOCKSTEP: 1, Pacing.REALTIME: 4}
_NOTED_BYTES = 4096
_LAST_WORDS = 2.0


@dataclass(frozen=True, kw_only=True)
class Session:
    """What one case is streamed by.

    Attributes:
        rule: How frames are streamed.
        task: The task's name, as it is told.
        case: The case's neutral name.
        fps: Frames a second of its camera.
        inputs: Names of its inputs, in the order of the challenge.
        view: Folder whose content the container sees, on the host; at the start it holds ``files`` and no more.
        staging: Folder beside it, on the same file system, that no container sees.
        mount: Where the view lies in the container.
        seconds: How long the case may take, from ``begin`` on.
        longest_line: Bytes of a line of the container.
        most_bytes: Bytes of all its answers together.
        files: By name, where its inputs without frames lie in the container.
    """

    rule: Stream
    task: str
    case: str
    fps: float
    inputs: tuple[str, ...]
    view: Path
    staging: Path
    mount: str
    seconds: float
    longest_line: int
    most_bytes: int
    files: Mapping[str, str] = field(default_factory=dict)


class StreamEnd(StrEnum):
    """Why a case's stream came to its end."""

    FINISHED = "finished"
    BROKE = "broke"
    OUT_OF_TIME = "out-of-time"
    STOPPED = "stopped"


@dataclass(frozen=True, kw_only=True)
class StreamOutcome:
    """What came of a case's stream.

    Attributes:
        end: Why it ended; ``finished``: all frames were handed out, with ``lockstep`` answered as well, and the
            container has closed its output, as it does when it ends.
        broken: The breach, where it broke the protocol.
        way: How it wanted its images; None where it did not say hello.
        start_up: Seconds until it said hello, from the call on; None where it did not.
        seconds: From ``begin`` until it closed its output, or to whatever ended it, without waiting for frames of ours.
        timings: When each frame was released and answered.
    """

    end: StreamEnd
    broken: Broken | None
    way: FrameWay | None
    start_up: float | None
    seconds: float
    timings: Timings


Keep: TypeAlias = Callable[[int, Mapping[str, JsonValue]], None]
"""Takes the answer of a frame; called in the order of frames, and never for one that was missed."""


def conduct(
    channel: Channel,
    source: Iterator[StreamedFrame],
    session: Session,
    *,
    keep: Keep,
    clock: Clock,
    stop: threading.Event,
) -> StreamOutcome:
    """Stream one case to a container that was just started, until it has ended or broken off; the channel stays open.

    Args:
        channel: To the container.
        source: Its frames, in order; read in a thread of its own, a few ahead, and no more once this returns.
        session: What it is streamed by.
        keep: Takes each answer that counts; what it raises ends the case and is raised.
        clock: Of the channel too.
        stop: Ends the case early once it is set.

    Raises:
        Exception: Whatever ``source`` or ``keep`` raised.
    """
    return _Conductor(channel, session, keep, clock, stop).conduct(source)


class _Over(Exception):
    """The stream ends before its time."""

    def __init__(self, end: StreamEnd, broken: Broken | None = None) -> None:
        super().__init__(end)
        self.end = end
        self.broken = broken


class _Conductor:
    def __init__(self, channel: Channel, session: Session, keep: Keep, clock: Clock, stop: threading.Event) -> None:
        self._channel = channel
        self._session = session
        self._rule = session.rule
        self._keep = keep
        self._clock = clock
        self._stop = stop
        self._period = 1.0 / session.fps
        self._conversation = Conversation(ways=session.rule.frames)
        self._placing = Placing(view=session.view, staging=session.staging, mount=session.mount)
        self._timings = Timings(self._period if session.rule.pacing is Pacing.REALTIME else None)
        self._aside: deque[_Heard] = deque()
        self._way: FrameWay | None = None
        self._start_up: float | None = None
        self._began = math.inf
        self._ours = 0.0
        self._answer_bytes = 0
        self._answered_at = -math.inf
        self._blocked_since = math.inf
        self._over = self._closed = False

    def conduct(self, source: Iterator[StreamedFrame]) -> StreamOutcome:
        end, broken = StreamEnd.FINISHED, None
        try:
            prepare = functools.partial(self._placing.prepare, way=self._greet())
            with Ahead(source, prepare, depth=_AHEAD[self._rule.pacing]) as ahead:
                self._begin(ahead)
                if self._rule.pacing is Pacing.REALTIME:
                    self._realtime(ahead)
                else:
                    self._lockstep(ahead)
            self._finish()
        except _Over as over:
            end, broken = over.end, over.broken
        now = self._clock.now()
        return StreamOutcome(
            end=end,
            broken=broken,
            way=self._way,
            start_up=self._start_up,
            seconds=now - min(now, self._began) - self._ours,
            timings=self._timings,
        )

    # The steps of a case

    def _greet(self) -> FrameWay:
        began = self._clock.now()
        until = began + self._rule.start_up
        late = {"seconds": show_seconds(self._rule.start_up)}
        self._send(self._conversation.hello(self._session.task), until, Breach.LATE_HELLO, late)
        heard = self._hear(until)
        if heard is None or heard.at > until:
            raise self._broke(Breach.LATE_HELLO, **late)
        assert isinstance(heard.event, Greeted)  # anything else before is a breach
        self._way = heard.event.way
        self._start_up = heard.at - began
        return heard.event.way

    def _begin(self, ahead: Ahead) -> None:
        self._await(ahead)
        self._began, self._ours = self._clock.now(), 0.0
        session = self._session
        begin = self._conversation.begin(case=session.case, fps=session.fps, inputs=session.inputs, files=session.files)
        self._send_of(0, begin)

    def _lockstep(self, ahead: Ahead) -> None:
        while (prepared := self._take(ahead)) is not None:
            released = self._release(prepared)
            index, until = len(self._timings) - 1, released + self._rule.answer
            self._send_of(index, prepared.message)
            heard = self._hear(min(until, released + _AT_ONCE))
            ahead.go_on()
            heard = heard or self._hear(until)
            if heard is None or heard.at > until:
                raise self._broke(Breach.SILENT, index=index, seconds=show_seconds(self._rule.answer))
            self._accept(heard)

    def _realtime(self, ahead: Ahead) -> None:
        due = self._clock.now()
        while (prepared := self._take(ahead)) is not None:
            self._listen(due)
            if self._blocked_since == math.inf:
                now = self._release(prepared)
                if not self._channel.send(prepared.message, seconds=0.0):
                    self._blocked_since = now
            else:
                now = self._clock.now()
                self._timings.leave_out(now)
                self._conversation.leave_out()
                self._placing.discard(prepared)
            due = max(due, now - _HOST_IS_LATE) + self._period
            self._listen(min(due, now + _AT_ONCE))
            ahead.go_on()
        self._listen(due)

    def _finish(self) -> None:
        """Say that the case is over, and hear the container out."""
        self._over = True
        self._send_of(max(0, len(self._timings) - 1), self._conversation.end())
        self._channel.end_input()
        while (heard := self._hear(math.inf)) is not None:
            self._accept(heard)

    # What they are made of

    def _await(self, ahead: Ahead) -> None:
        """Wait for a frame of ours."""
        asked = self._clock.now()
        while not ahead.ready(seconds=_NAP):
            self._look_at_stop()
        self._ours += self._clock.now() - asked

    def _take(self, ahead: Ahead) -> Prepared | None:
        self._await(ahead)
        return ahead.take()

    def _release(self, prepared: Prepared) -> float:
        """Let the container find a frame; when."""
        self._placing.place(self._conversation.release(), prepared)
        now = self._clock.now()
        self._timings.release(now)
        return now

    def _accept(self, heard: "_Heard") -> None:
        """Take an answer; a frame that was missed is answered, and the answer is not kept."""
        assert isinstance(heard.event, Answered)  # a second hello is a breach
        index = heard.event.index
        if heard.at < self._timings.released(index) - _CLOCK_TICK:  # sent blindly, and heard only now
            raise self._broke(Breach.EARLY)
        self._answered_at = heard.at
        self._timings.answer(index, heard.at)
        if not self._timings.missed(index):
            asked = self._clock.now()
            self._keep(index, heard.event.answer)
            self._ours += self._clock.now() - asked
        self._placing.remove_to(index)

    def _listen(self, until: float) -> None:
        """Take what answers come until then, pass on what is pending, and see that it goes on."""
        while True:
            if self._channel.send(b"", seconds=0.0):
                self._blocked_since = math.inf
            now, silent_at = self._clock.now(), self._silent_at()
            if now >= self._blocked_since + self._rule.answer:
                seconds = show_seconds(self._rule.answer)
                raise self._broke(Breach.NOT_READING, index=self._timings.last_shown, seconds=seconds)
            soon = math.inf if self._blocked_since == math.inf else now + _SHORT_NAP
            heard = self._hear(min(until, silent_at, soon))
            if heard is not None:
                self._accept(heard)
            elif now >= silent_at:
                seconds = show_seconds(self._rule.answer)
                raise self._broke(Breach.SILENT, index=self._conversation.open_frame, seconds=seconds)
            elif now >= until:
                return

    def _silent_at(self) -> float:
        """When silence will have lasted too long, should nothing be answered."""
        index = self._conversation.open_frame
        if index is None:
            return math.inf
        return max(self._answered_at, self._timings.released(index)) + self._rule.answer

    def _send_of(self, index: int, data: bytes) -> None:
        until = self._clock.now() + self._rule.answer
        numbers = {"index": index, "seconds": show_seconds(self._rule.answer)}
        self._send(data, until, Breach.NOT_READING, numbers)

    def _send(self, data: bytes, until: float, breach: Breach, numbers: Mapping[str, object]) -> None:
        """Pass on all of ``data`` by ``until``, or it is a breach; what is heard meanwhile is put aside."""
        while not self._channel.send(data, seconds=max(0.0, min(_NAP, until - self._clock.now()))):
            data = b""
            if (heard := self._receive(_SHORT_NAP)) is not None:
                self._aside.append(heard)
            if self._closed:
                return
            self._look_at_stop()
            self._look_at_time(self._clock.now())
            if self._clock.now() >= until:
                raise self._broke(breach, **numbers)

    def _hear(self, until: float) -> "_Heard | None":
        """What comes next; None: nothing had come by ``until``, or nothing comes any more."""
        while not self._aside:
            self._look_at_stop()
            now = self._clock.now()
            heard = self._receive(max(0.0, min(_NAP, until - now, self._ends - now)))
            if heard is not None:
                self._look_at_time(heard.at)
                return heard
            if now >= until or self._closed:
                return None
            self._look_at_time(now)
        return self._aside.popleft()

    def _receive(self, seconds: float) -> "_Heard | None":
        """The next message, waiting for it ``seconds`` at most."""
        match self._channel.receive(seconds=seconds):
            case None:
                return None
            case Line(text=text, at=at):
                return _Heard(event=self._understand(text), at=at)
            case Closed(unfinished=False) if self._over:
                self._closed = True
                return None
            case Closed(unfinished=unfinished):
                breach = Breach.UNFINISHED_LINE if unfinished else Breach.EXITED
                raise self._broke(breach, what=self._awaited())
            case TooLong():
                raise self._broke(Breach.TOO_LONG, limit=show_bytes(self._session.longest_line))
            case Flooded():
                raise self._broke(Breach.FLOOD)

    def _understand(self, text: bytes) -> Greeted | Answered:
        event = self._conversation.hear(text)
        if isinstance(event, Broken):
            self._channel.note(text[:_NOTED_BYTES])
            if event.breach is Breach.ERROR_TOLD:
                self._hear_out()
            raise _Over(StreamEnd.BROKE, event)
        self._answer_bytes += len(text)
        if self._answer_bytes > self._session.most_bytes:
            raise self._broke(Breach.TOO_MUCH, limit=show_bytes(self._session.most_bytes))
        return event

    def _hear_out(self) -> None:
        """Let a container that cannot go on print why, and end."""
        until = self._clock.now() + _LAST_WORDS
        while (left := until - self._clock.now()) > 0 and not self._stop.is_set():
            if isinstance(self._channel.receive(seconds=min(_NAP, left)), Closed):
                return

    def _awaited(self) -> str:
        if self._way is None:
            return "it said hello"
        index = self._conversation.open_frame
        return "the case was over" if index is None else f"frame {index} was answered"

    @property
    def _ends(self) -> float:
        return self._began + self._session.seconds + self._ours

    def _look_at_stop(self) -> None:
        if self._stop.is_set():
            raise _Over(StreamEnd.STOPPED)

    def _look_at_time(self, at: float) -> None:
        if at >= self._ends:
            raise _Over(StreamEnd.OUT_OF_TIME)

    def _broke(self, breach: Breach, **numbers: object) -> _Over:
        return _Over(StreamEnd.BROKE, self._conversation.breach(breach, **numbers))


@dataclass(frozen=True)
class _Heard:
    """A message, and when its last byte came."""

    event: Greeted | Answered
    at: float
