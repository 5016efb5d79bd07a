"""Streams a job's case to its container, beside whoever follows that to its end, and writes its answers as they come.

The stream is conducted in a thread of its own. Whatever ends it other than well, or the case's time, ends the
container: the connection first, since an engine that nobody reads stands still, then the container. Where it left by
itself, it is given a moment in which its own exit code can be seen.
"""

import csv
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from runner.clock import Clock
from runner.engine import Attached
from runner.errors import HostFault
from runner.formats.assembling import Assembly, longest_line
from runner.formats.contract import Due
from runner.inputs import CaseView
from runner.job import Intake, Job, KillReason, StreamFacts
from runner.streaming.channel import AttachedChannel
from runner.streaming.conductor import Session, StreamEnd, StreamOutcome, conduct
from runner.streaming.protocol import TOO_SLOW, Breach, Broken
from runner.streaming.source import frames_of, streamed_inputs
from runner.streaming.timing import Timings, latency

_NAP = 0.02
_PATIENCE = 30.0
"""Seconds in which a stream must be over once its container is dead."""

_LEFT = frozenset({Breach.EXITED, Breach.UNFINISHED_LINE})
"""Its output came to an end. The engine's init holds it open for as long as the container lives."""

_MOMENTS = {Breach.ERROR_TOLD: 2.0, **dict.fromkeys(_LEFT, 10.0)}
"""Seconds in which a container may end by itself, or in which that must be seen."""

_REMEDY = "see: proctor doctor"
_HOSTS_SHARE = 0.5
"""An engine that stood still for so much of a deadline may be why it was not kept."""

_TEXT = 2
"""Bytes of a message for each byte that may be written: base64, names and brackets."""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """Where a stream's frames are laid out.

    Attributes:
        view: Folder that is mounted.
        staging: Folder beside it that is not.
        name: The case's neutral name.
    """

    view: Path
    staging: Path
    name: str


@dataclass(frozen=True, kw_only=True)
class Conducted:
    """What came of a stream.

    Attributes:
        facts: For the result.
        intakes: What its answers were made into, in the order of the job's outputs.
        uncounted: Seconds from the container's start that are no run time; infinite where no case was begun.
        log: The end of what was printed beside messages.
        log_written: Bytes of all of it.
        timings: When each frame was released and answered.
    """

    facts: StreamFacts
    intakes: tuple[Intake, ...]
    uncounted: float
    log: bytes
    log_written: int
    timings: Timings

    def require_engine(self, job: Job, *, slow: float) -> None:
        """A container that waits for an engine which stands still keeps no deadline, by no doing of its own.

        Args:
            job: What was run.
            slow: Seconds in which the engine kept us waiting meanwhile.

        Raises:
            HostFault: That may be why a deadline was not kept.
        """
        assert job.stream is not None
        rule, facts = job.stream.rule, self.facts
        late = facts.missed > 0 or (facts.breach != "" and Breach(facts.breach) in TOO_SLOW)
        deadline = rule.start_up if facts.breach == Breach.LATE_HELLO else rule.answer
        if late and slow >= deadline * _HOSTS_SHARE:
            raise HostFault(
                f"the engine kept us waiting for {slow:.1f} s while frames were streamed, and answers came too late: "
                "it may have been the engine's doing",
                remedy=_REMEDY,
            )

    def keep(self, folder: Path) -> bool:
        """Write log and times to an attempt's folder; True where the log is not whole.

        Raises:
            OSError: They cannot be written.
        """
        (folder / "log.txt").write_bytes(self.log)
        write_timings(folder / "timing.csv", self.timings)
        return self.log_written > len(self.log)


class Conducting:
    """One case's stream; to be begun as soon as the container was started, and settled once it has ended."""

    def __init__(
        self,
        job: Job,
        view: CaseView,
        seen: Seen,
        *,
        attached: Attached,
        clock: Clock,
        kill: Callable[[], None],
        predictions: Path,
    ) -> None:
        """Take over the container's streams.

        Args:
            job: What is run.
            view: What it is shown.
            seen: Where that is laid out.
            attached: The container's streams.
            clock: What durations are measured with.
            kill: Ends the container.
            predictions: Where answers are written.

        Raises:
            UsageError: The case cannot be described in a task's format.
            OSError: A file cannot be written.
        """
        stream = job.stream
        assert stream is not None
        self._job, self._stream, self._clock, self._kill = job, stream, clock, kill
        self._name = seen.name
        formats = tuple(stream.formats.values())
        longest = longest_line(formats)
        case = view.case
        names = tuple(job.places)
        shown = tuple(one.name for one in streamed_inputs(case, names))
        self._source = frames_of(case, names, fps=stream.fps)
        self._session = Session(
            rule=stream.rule, task=job.told, case=seen.name, fps=stream.fps,
            inputs=shown, view=seen.view, staging=seen.staging,
            mount=job.input_mount, seconds=job.budget.kill_at, longest_line=longest,
            most_bytes=_TEXT * job.budget.output_bytes + longest, files={
                name: f"{job.input_mount}/{place.replace('{case}', seen.name)}"
                for name, place in job.places.items() if name not in shown
            },
        )  # fmt: skip
        self._assembly = Assembly(
            [(output, stream.of(output)) for output in job.outputs],
            due=Due(frames=case.frames, count=len(case.frames)), folder=predictions, most=job.budget.output_bytes,
            before_first=stream.rule.before_first,
        )  # fmt: skip
        self._written = 0
        self._uncounted = 0.0
        self._reason: KillReason | None = None
        self._outcome: StreamOutcome | None = None
        self._error: BaseException | None = None
        self._stop = threading.Event()
        self._ended = threading.Event()
        self._channel = AttachedChannel(attached, clock=clock, longest=longest, log_bytes=job.budget.log_bytes)
        self._thread = threading.Thread(target=self._work, name="stream", daemon=True)

    def begin(self) -> None:
        """Begin; the container was just started."""
        self._thread.start()

    def over(self) -> KillReason | None:
        """Why the container is to be ended; None: it is not."""
        return self._reason

    def close(self) -> None:
        """Let go of the container and of the thread, whatever happened."""
        self._ended.set()
        self._stop.set()
        self._channel.close()
        if self._thread.is_alive():
            self._thread.join(_PATIENCE)
        self._assembly.close()

    def settle(self) -> Conducted:
        """Wait for the end of the stream of a container that has ended; what came of it.

        Raises:
            HostFault: The stream does not end.
            BaseException: What a frame's making, or an answer's writing, raised.
        """
        self._ended.set()
        self._thread.join(_PATIENCE / 2)
        self._stop.set()
        self._thread.join(_PATIENCE / 2)
        if self._error is not None:
            raise self._error
        if self._outcome is None:
            raise HostFault("the stream of a container that is dead does not end", remedy=_REMEDY)
        outcome = self._outcome
        if outcome.end is StreamEnd.FINISHED:
            self._hold(len(outcome.timings))
        files = [output.path.replace("{case}", self._name) for output in self._job.outputs]
        return Conducted(
            facts=facts_of(outcome, fps=self._stream.fps), intakes=self._assembly.finish(files),
            uncounted=math.inf if outcome.start_up is None else self._uncounted, log=self._channel.log(),
            log_written=self._channel.log_written, timings=outcome.timings,
        )  # fmt: skip

    def _work(self) -> None:
        try:
            began = self._clock.now()
            self._outcome = conduct(
                self._channel, self._source, self._session, keep=self._keep, clock=self._clock, stop=self._stop
            )
            self._uncounted = max(0.0, self._clock.now() - began - self._outcome.seconds)
            reason = self._reason_to_end(self._outcome)
        except BaseException as error:  # noqa: BLE001  raised again by settle
            self._error, reason = error, KillReason.STOPPED
        if reason is not None and not self._ended.is_set():
            self._reason = reason
            self._channel.close()
            self._kill()

    def _reason_to_end(self, outcome: StreamOutcome) -> KillReason | None:
        """Why the container must be ended; None where it ended by itself, or is stopped by who follows it."""
        match outcome.end:
            case StreamEnd.STOPPED:
                return None
            case StreamEnd.OUT_OF_TIME:
                return KillReason.TIME
            case StreamEnd.FINISHED:
                left = self._job.budget.kill_at - outcome.seconds
                return None if self._ends_before(self._clock.now() + left) else KillReason.TIME
            case StreamEnd.BROKE:
                assert outcome.broken is not None
                seconds = _MOMENTS.get(outcome.broken.breach, 0.0)
                if self._ends_before(self._clock.now() + seconds):
                    return None
                if outcome.broken.breach in _LEFT:
                    raise HostFault("the connection to a container's standard streams broke", remedy=_REMEDY)
                return KillReason.PROTOCOL

    def _ends_before(self, until: float) -> bool:
        """Wait for the container's end; whether it came in time."""
        while self._clock.now() < until:
            if self._ended.wait(_NAP):
                return True
        return self._ended.is_set()

    def _keep(self, index: int, answer: Mapping[str, JsonValue]) -> None:
        self._hold(index)
        self._assembly.take(index, answer)
        self._written = index + 1

    def _hold(self, until: int) -> None:
        """Write what the frames hold that were missed."""
        for index in range(self._written, until):
            self._assembly.take(index, None)
        self._written = max(self._written, until)


def facts_of(outcome: StreamOutcome, *, fps: float) -> StreamFacts:
    """A stream's outcome as plain values."""
    found = latency(outcome.timings, period=1 / fps)
    broken = outcome.broken
    if outcome.end is StreamEnd.STOPPED:  # by its container's end, which was not met among its lines
        broken = Broken(breach=Breach.EXITED, sentence="it ended before the case was over")
    return StreamFacts(
        breach=broken.breach.value if broken else "", sentence=broken.sentence if broken else "",
        released=found.frames, answered=found.answered, missed=found.missed, over_period=found.over_period,
        period=found.period, start_up=outcome.start_up, first_frame=found.first_frame, mean=found.mean, p50=found.p50,
        p95=found.p95, p99=found.p99, longest=found.longest, online_compatible=found.online_compatible,
        counts=found.counts, way=outcome.way.value if outcome.way else "",
    )  # fmt: skip


_COLUMNS = ("index", "released", "answered", "seconds", "missed")


def write_timings(path: Path, timings: Timings) -> None:
    """Write when each frame was released and answered, in seconds since the first was released.

    Raises:
        OSError: It cannot be written.
    """
    with path.open("x", encoding="ascii", newline="") as sink:
        rows = csv.writer(sink, lineterminator="\n")
        rows.writerow(_COLUMNS)
        start: int | None = None
        for frame in timings:
            start = frame.released if start is None else start
            rows.writerow(_row(start or 0, frame.index, frame.released, frame.answered, missed=frame.missed))


def _row(start: int, index: int, released: int | None, answered: int | None, *, missed: bool) -> Sequence[object]:
    took = "" if released is None or answered is None else _seconds(answered - released)
    times = ["" if at is None else _seconds(at - start) for at in (released, answered)]
    return (index, *times, took, int(missed))


def _seconds(nanoseconds: int) -> str:
    return f"{nanoseconds / 1e9:.6f}"
