"""What a job used, in words for people. Pure."""

from runner.budget import GpuUsage, Usage
from runner.quantities import show_bytes


def used_in_words(usage: Usage) -> tuple[str, ...]:
    """A sentence for each device the job held, and one for the processors' energy where it is known."""
    lines = [_device(gpu) for gpu in usage.gpus]
    if usage.processor_joules is not None:
        lines.append(f"Energy of the host's processors, whoever used them: {usage.processor_joules:.0f} J.")
    return tuple(lines)


def _device(gpu: GpuUsage) -> str:
    if not gpu.samples:
        return f"{gpu.name}: no sample came."
    parts = [f"memory in use at least {show_bytes(gpu.peak_memory or 0)}"]
    if gpu.peak_utilisation is not None:
        parts.append(
            f"utilisation at least {gpu.peak_utilisation} % at its peak, {gpu.mean_utilisation:.0f} % on average"
        )
    if gpu.joules is not None:
        parts.append(
            f"{gpu.joules:.0f} J by its own counter" if gpu.counted else f"about {gpu.joules:.0f} J by its power"
        )
    return f"{gpu.name}: {'; '.join(parts)}; sampled every {gpu.every * 1000:.0f} ms, {gpu.samples} times."
