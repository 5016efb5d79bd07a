"""What a job may use and what it did use."""

from dataclasses import dataclass

KILL_GRACE = 2.0
"""Seconds past its limit at which a container is killed; the verdict is by the limit, not by this."""

NEAR_MISS = 0.20
"""A time-out within this share of the limit is repeated once alone."""

CLOCK_SLACK_SECONDS = 1.0
CLOCK_SLACK_SHARE = 0.01
"""Engine and monotonic durations may differ by so much before the engine's clock is distrusted."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What one job may use.

    Attributes:
        run_time: Seconds from the container's start to its end.
        memory: Bytes, shm and tmpfs included; swap is off.
        shm: Bytes of /dev/shm.
        cpus: Processors.
        gpus: Whole devices.
        pids: Processes and threads.
        output_bytes: Bytes the container may leave.
        output_files: Files and folders it may leave.
        tmp: Bytes of /tmp.
        open_files: Open files a process.
        log_bytes: Bytes of log that are kept.
    """

    run_time: float
    memory: int
    shm: int
    cpus: float
    gpus: int
    pids: int
    output_bytes: int
    output_files: int
    tmp: int
    open_files: int
    log_bytes: int

    @property
    def kill_at(self) -> float:
        """Seconds after the start at which the container is killed."""
        return self.run_time + KILL_GRACE


@dataclass(frozen=True, kw_only=True)
class Usage:
    """What one job did use.

    Attributes:
        engine_seconds: FinishedAt − StartedAt by the engine.
        monotonic_seconds: From the start request's return to the end being seen, by our monotonic clock.
        output_bytes: Bytes taken out.
        alone: No other container of ours ran on the host meanwhile.
    """

    engine_seconds: float
    monotonic_seconds: float
    output_bytes: int
    alone: bool


def clocks_disagree(usage: Usage) -> bool:
    """True where engine and monotonic durations differ by more than 1 s + 1 %."""
    allowed = CLOCK_SLACK_SECONDS + CLOCK_SLACK_SHARE * usage.monotonic_seconds
    return abs(usage.engine_seconds - usage.monotonic_seconds) > allowed


def judged_seconds(usage: Usage) -> float:
    """The run time that is judged: the engine's, unless its clock stepped while the job ran."""
    return usage.monotonic_seconds if clocks_disagree(usage) else usage.engine_seconds


def deserves_repeat(*, seconds: float, limit: float, alone: bool) -> bool:
    """True where a time-out is close enough, or ran in company, to be repeated once alone."""
    return seconds > limit and (seconds <= limit * (1 + NEAR_MISS) or not alone)
