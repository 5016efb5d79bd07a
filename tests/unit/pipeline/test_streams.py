"""What is known of streams is found behind the outcomes that count, and said in one line."""

from dataclasses import replace
from pathlib import Path

import pytest

from runner.budget import Usage
from runner.engine import Exit
from runner.job import JobResult, StreamFacts
from runner.judge import CaseOutcome
from runner.pipeline.streams import stream_of, stream_words, streams_of
from runner.store import RunFolder, write_value
from runner.verdict import Verdict, VerdictWord

FACTS = StreamFacts(
    released=40, answered=40, over_period=2, period=0.04, start_up=1.5, first_frame=0.25, mean=0.02, p50=0.0123456,
    p95=0.03, p99=0.2, longest=0.25, online_compatible=True, way="path",
)  # fmt: skip
RESULT = JobResult(
    job="full", digest="d", attempt=2, exit=Exit(code=0, oom_killed=False, seconds=1.0), killed=None,
    usage=Usage(engine_seconds=1.0, monotonic_seconds=1.0, output_bytes=1, alone=True), intake=None, stream=FACTS,
)  # fmt: skip
OUTCOME = CaseOutcome(
    submission="s", task="steps", case="c", verdict=Verdict(word=VerdictWord.ACCEPTED, sentence="ran"), digest="d",
    attempt=2, seconds=1.0, limit=2.0,
)  # fmt: skip


BEGINS = "start-up 1.50 s, first frame 250 ms, p50 12.3 ms, p95 30 ms, "
SLOWER = "2 of 40 frames slower than the camera's 40 ms, "
LATE = replace(FACTS, missed=3, p99=None, longest=None, online_compatible=False)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (FACTS, f"{BEGINS}p99 200 ms, max 250 ms, {SLOWER}online-compatible: yes"),
        (LATE, f"{BEGINS}p99 never, max never, {SLOWER}3 missed, online-compatible: no"),
        (StreamFacts(start_up=1.0), "no frame was answered"),
        (StreamFacts(), "no frame was answered"),
    ],
)
def test_a_stream_in_one_line(facts: StreamFacts, words: str) -> None:
    assert stream_words(facts) == words


def test_the_attempt_that_counts_is_read(tmp_path: Path) -> None:
    run = RunFolder(root=tmp_path)
    write_value(run.attempt("s", "steps", "c", "full", 2) / "result.json", RESULT)
    assert stream_of(run, OUTCOME) == FACTS
    assert stream_of(run, replace(OUTCOME, attempt=1)) is None
    assert stream_of(run, replace(OUTCOME, attempt=0)) is None


def test_a_run_that_tasks_share_is_told_once(tmp_path: Path) -> None:
    run = RunFolder(root=tmp_path)
    write_value(run.attempt("s", "steps", "c", "full", 2) / "result.json", RESULT)
    write_value(run.attempt("s", "steps", "batch", "full", 2) / "result.json", replace(RESULT, stream=None))
    other = replace(OUTCOME, task="tools", ran_as=("steps", "c"))
    assert streams_of(run, [OUTCOME, other, replace(OUTCOME, case="batch")]) == {("steps", "c"): FACTS}
