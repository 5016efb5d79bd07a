"""Follows one started container to its end, and kills it when its time is over or it took too much.

The engine's ``wait`` decides nothing: it has no deadline of its own and a lost connection looks like an answer. It only
ends our naps; the container is looked at after each, against our own monotonic clock. Only the host
can make this raise:

* no answer for longer than ``PATIENCE`` seconds, or any gap in the answers while a job ended otherwise than well: the
  engine may have been restarted and have killed the container itself, so the run proves nothing;
* SIGKILL that does not end the container.
"""

import contextlib
import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from runner.budget import Budget, Usage, clocks_disagree
from runner.clock import Clock
from runner.engine import ContainerFacts, Engine, EngineRefusal, EngineUnreachable, Exit
from runner.errors import HostFault, Interrupted
from runner.job import KillReason

PATIENCE = 60.0
"""Seconds without an answer of the engine after which a job is given up."""

KILL_PATIENCE = 10.0
"""Seconds a killed container may take to end before we end it ourselves, and again before we give up."""

_LONGEST_NAP = 1.0
_SHORTEST_NAP = 0.002
_BY_A_RESTART = (137, 143)
_LAST_ANSWERS = 2.0
_SLOW_ANSWER = 0.5
_BY_US = 137
_wall = time.time

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a started container came to its end; ``slow``: seconds in which the engine kept us waiting meanwhile."""

    exit: Exit
    killed: KillReason | None
    monotonic_seconds: float
    notes: tuple[str, ...]
    slow: float = 0.0


@dataclass
class _Gap:
    """Time in which the engine did not answer.

    Attributes:
        longest: Seconds of the longest stretch in which answers were lost.
        since: When the present one began.
        slow: Seconds, in all, of answers that came, but late: it stood still, and lost nothing.
    """

    longest: float = 0.0
    since: float | None = None
    slow: float = 0.0

    def failed(self, asked: float, now: float) -> None:
        self.since = asked if self.since is None else self.since
        self.longest = max(self.longest, now - self.since)

    def answered(self, asked: float, now: float) -> None:
        if self.since is not None:
            self.longest = max(self.longest, now - self.since, 0.001)
        elif now - asked > _SLOW_ANSWER:
            self.slow += now - asked
        self.since = None


def _look(engine: Engine, container: str, clock: Clock, gap: _Gap) -> ContainerFacts | None:
    """Look once; None where the engine does not answer."""
    asked = clock.now()
    try:
        facts = engine.inspect(container)
    except EngineUnreachable as error:
        gap.failed(asked, clock.now())
        if gap.longest > PATIENCE:
            raise HostFault(
                f"the engine has not answered for {gap.longest:.0f} s", remedy="see: proctor doctor"
            ) from error
        return None
    gap.answered(asked, clock.now())
    if facts is None:
        raise HostFault(
            "the container was removed by somebody else while it ran", remedy="leave proctor's containers alone"
        )
    return facts


def follow(
    engine: Engine,
    clock: Clock,
    container: str,
    budget: Budget,
    *,
    asked: float,
    over: Callable[[], KillReason | None],
    stop: threading.Event,
) -> Ended:
    """Look at a container that was started since ``asked`` until it has ended, killing it when its time is over.

    Args:
        engine: Where it runs.
        clock: What durations are measured with.
        container: Its ID.
        budget: Says when its time is over.
        asked: When the engine was asked to start it.
        over: Why it is to be killed, or is being killed by whoever watches it; None: it is not.
        stop: Set when the user asked us to stop.
    """
    began = clock.now()
    wall = _wall() - began
    gap = _Gap()
    killed: KillReason | None = None
    while True:
        # Napping comes first: to look at a container that is just starting only holds it up.
        _nap(engine, clock, container, budget.kill_at - (clock.now() - began))
        facts = _look(engine, container, clock, gap)
        elapsed = clock.now() - began
        if facts is not None and facts.exit is not None and facts.state in ("exited", "dead"):
            killed = over() if facts.exit.code == _BY_US else None
            if killed is None:
                _check_restart(engine, clock, facts.exit)  # takes seconds that are nobody's run time
            break
        if facts is not None and stop.is_set():
            _kill(engine, clock, container, facts, gap)
            raise Interrupted("stopped while a container ran", remedy="go on with: proctor resume RUN")
        reason = over()
        if facts is not None and (elapsed >= budget.kill_at or reason is not None):
            killed = reason or KillReason.TIME
            facts = _kill(engine, clock, container, facts, gap)
            elapsed = clock.now() - began
            break
    assert facts.exit is not None
    # Stepped by whom does not matter: an engine mounts our folders, so it lives by the same clock.
    stepped = abs(_wall() - clock.now() - wall) > _SLOW_ANSWER
    told_late = not stepped and _disagree(facts.exit, elapsed) and facts.exit.seconds < elapsed
    if told_late and (killed is None or facts.exit.code != _BY_US):
        return _told_late(facts.exit, elapsed, gap, budget)
    if elapsed < facts.exit.seconds <= elapsed + began - asked:
        elapsed = facts.exit.seconds  # the answer to start came late
    return _ended(facts.exit, killed, elapsed, gap, budget)


def _check_restart(engine: Engine, clock: Clock, ended: Exit) -> None:
    """An engine that goes down ends its containers first, with these codes, and still answers for a moment."""
    if ended.code not in _BY_A_RESTART or ended.oom_killed:
        return
    deadline = clock.now() + _LAST_ANSWERS
    while clock.now() < deadline:
        try:
            engine.ping()
        except EngineUnreachable as error:
            raise HostFault(
                f"the container ended with {ended.code} and the engine does not answer: it may have been its doing",
                remedy="see: proctor doctor",
            ) from error
        clock.sleep(_LAST_ANSWERS / 20)


def _nap(engine: Engine, clock: Clock, container: str, until_kill: float) -> None:
    """Wait until the container has ended, it is time to kill it, or to look again; never a busy loop."""
    seconds = min(_LONGEST_NAP, max(_SHORTEST_NAP, until_kill))
    began = clock.now()
    engine.await_exit(container, seconds=seconds)
    if clock.now() - began < _SHORTEST_NAP:
        clock.sleep(_SHORTEST_NAP)


def _ended(ended: Exit, killed: KillReason | None, elapsed: float, gap: _Gap, budget: Budget) -> Ended:
    late = killed is KillReason.TIME or ended.seconds > budget.run_time
    if not gap.longest:
        # A program that prints waits for an engine that stands still.
        if late and gap.slow and ended.seconds - gap.slow <= budget.run_time:
            raise HostFault(
                f"the engine kept us waiting for {gap.slow:.1f} s while the job ran, which then was late: it may have "
                "been the engine's doing",
                remedy="see: proctor doctor",
            )
        notes = (f"the engine kept us waiting for {gap.slow:.1f} s while the job ran",) if gap.slow else ()
        return Ended(exit=ended, killed=killed, monotonic_seconds=elapsed, notes=notes, slow=gap.slow)
    if ended.code != 0 or late:
        raise HostFault(
            f"the engine did not answer for {gap.longest:.1f} s while the job ran, and the container ended with "
            f"{ended.code}: it may have been the engine's doing",
            remedy="see: proctor doctor",
        )
    note = f"the engine did not answer for {gap.longest:.1f} s while the job ran; its own record of the run time counts"
    return Ended(exit=ended, killed=None, monotonic_seconds=ended.seconds, notes=(note,))


def _disagree(ended: Exit, elapsed: float) -> bool:
    usage = Usage(engine_seconds=ended.seconds, monotonic_seconds=elapsed, output_bytes=0, alone=True)
    return clocks_disagree(usage)


def _told_late(ended: Exit, elapsed: float, gap: _Gap, budget: Budget) -> Ended:
    """No clock was stepped, and by the engine's own record the container had ended long before we heard of it."""
    late = _ended(ended, None, ended.seconds, gap, budget)
    if ended.code != 0:
        raise HostFault(
            f"the engine told only after {elapsed:.1f} s that the container had ended with {ended.code} after "
            f"{ended.seconds:.1f} s: it may have been the engine's doing",
            remedy="see: proctor doctor",
        )
    note = f"the engine told of the end {elapsed - ended.seconds:.1f} s late; its own record of the run time counts"
    return replace(late, notes=late.notes or (note,))


def _kill(engine: Engine, clock: Clock, container: str, facts: ContainerFacts, gap: _Gap) -> ContainerFacts:
    """End a container: by the engine, then, as root, by its process id, then not at all."""
    for by_engine in (True, False):
        if by_engine:
            with contextlib.suppress(EngineUnreachable):
                engine.kill(container)
        else:
            _log.warning("the engine did not end container %s; killing its process %d", facts.name, facts.pid)
            _kill_process(facts)
        deadline = clock.now() + KILL_PATIENCE
        while clock.now() < deadline:
            seen = _look(engine, container, clock, gap)
            if seen is not None and seen.exit is not None and seen.state in ("exited", "dead"):
                return seen
            clock.sleep(_SHORTEST_NAP)
    raise HostFault(
        "the container did not end when it was killed",
        where=facts.name,
        remedy="restart the engine, then: proctor resume RUN",
    )


def end_now(engine: Engine, container: str) -> None:
    """End a container that writes more than it may, without the engine's delay; whether it ended is seen elsewhere."""
    with contextlib.suppress(HostFault, EngineRefusal):
        if (facts := engine.inspect(container)) is not None:
            _kill_process(facts)
            engine.kill(container)


def _kill_process(facts: ContainerFacts) -> None:
    """SIGKILL to the container's first process, where it is certain that it is that process."""
    try:
        cgroup = Path(f"/proc/{facts.pid}/cgroup").read_text(encoding="ascii", errors="replace")
    except OSError:
        return
    if facts.pid and facts.id in cgroup:
        with contextlib.suppress(OSError):
            os.kill(facts.pid, signal.SIGKILL)
