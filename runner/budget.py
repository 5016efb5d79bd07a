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
class GpuUsage:
    """What one job did with a device it held; sampled, so every peak is a lower bound.

    Attributes:
        device: UUID.
        name: As sold.
        peak_memory: Bytes in use on the device, by anybody; None where no sample came.
        peak_utilisation: Percent of a sampling period of the driver; None where the device does not tell.
        mean_utilisation: Mean of all samples.
        joules: From the device's own counter, else from samples of its power; None where it has neither.
        counted: ``joules`` is the counter's.
        samples: How many there were.
        every: Seconds between two.
    """

    device: str
    name: str
    peak_memory: int | None = None
    peak_utilisation: int | None = None
    mean_utilisation: float | None = None
    joules: float | None = None
    counted: bool = False
    samples: int = 0
    every: float


@dataclass(frozen=True, kw_only=True)
class Usage:
    """What one job did use.

    Attributes:
        engine_seconds: FinishedAt − StartedAt by the engine.
        monotonic_seconds: From the start request's return to the end being seen, by our monotonic clock.
        output_bytes: Bytes taken out.
        alone: No other container of ours ran on the host meanwhile.
        gpus: What it did with each device it held.
        processor_joules: Of all processors of the host, whoever used them; None where that cannot be read.
    """

    engine_seconds: float
    monotonic_seconds: float
    output_bytes: int
    alone: bool
    gpus: tuple[GpuUsage, ...] = ()
    processor_joules: float | None = None


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
