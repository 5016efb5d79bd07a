"""What is known of the streams of a run: read from the attempts that count, and said in a line."""

from collections.abc import Iterable

from runner.job import JobResult, StreamFacts
from runner.judge import CaseOutcome
from runner.store import RunFolder, read_value


def stream_of(run: RunFolder, outcome: CaseOutcome) -> StreamFacts | None:
    """What came of the stream that an outcome was judged by; None where nothing was streamed, or nothing ran."""
    if not outcome.attempt:
        return None
    task, case = outcome.ran_as or (outcome.task, outcome.case)
    path = run.attempt(outcome.submission, task, case, "full", outcome.attempt) / "result.json"
    return read_value(path, JobResult).stream if path.is_file() else None


def streams_of(run: RunFolder, outcomes: Iterable[CaseOutcome]) -> dict[tuple[str, str], StreamFacts]:
    """The streams behind some outcomes, each once, by the task and the case below which it is kept."""
    found = {}
    for outcome in outcomes:
        home = outcome.ran_as or (outcome.task, outcome.case)
        if home not in found and (facts := stream_of(run, outcome)) is not None:
            found[home] = facts
    return found


def stream_words(facts: StreamFacts) -> str:
    """Start-up, latencies, misses and whether it keeps up with the camera, in one line."""
    if facts.start_up is None or facts.first_frame is None:
        return "no frame was answered"
    named = (("p50", facts.p50), ("p95", facts.p95), ("p99", facts.p99), ("max", facts.longest))
    parts = [
        f"start-up {_show(facts.start_up)}",
        f"first frame {_show(facts.first_frame)}",
        *(f"{name} {_show(seconds)}" for name, seconds in named),
        f"{facts.over_period} of {facts.released} frames slower than the camera's {_show(facts.period)}",
        *((f"{facts.missed} missed",) if facts.missed else ()),
        f"online-compatible: {'yes' if facts.online_compatible else 'no'}",
    ]
    return ", ".join(parts)


def _show(seconds: float | None) -> str:
    if seconds is None:
        return "never"
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.3g} ms"
