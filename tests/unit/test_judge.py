"""The verdict table: engine facts, the clock and the files that were taken, one row each; no text takes part."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.budget import Usage
from runner.engine import Exit
from runner.formats.contract import FrameTable, Problem, Reading
from runner.job import Intake, IntakeRefusal, Job, JobResult, KillReason, StreamFacts
from runner.judge import better, exceeded_time, judge_run, problem_words, show_run_time
from runner.tally import Tally
from runner.verdict import Verdict, VerdictWord

NEUTRAL = "4f1d2a9c0b3e5d77"
TAKEN = Intake(file=f"{NEUTRAL}.csv", size=40)
GOOD = Reading(prediction=FrameTable(columns={"step": np.zeros(4, dtype=np.int64)}))
BAD = Reading(
    prediction=None,
    problems=(Problem(what="line 3, column step: is not a legal label", row=3, column="step"),),
    problem_count=1,
)
CHILD_NOTE = "a child process was killed for memory; the output is complete and valid all the same"


def result(
    code: int = 0,
    *,
    oom: bool = False,
    seconds: float = 30.0,
    monotonic: float | None = None,
    killed: KillReason | None = None,
    intake: Intake | None = TAKEN,
    **more: Any,
) -> JobResult:
    usage = Usage(
        engine_seconds=seconds,
        monotonic_seconds=seconds if monotonic is None else monotonic,
        output_bytes=40,
        alone=True,
    )
    return JobResult(
        job="full", digest="d1", attempt=1, exit=Exit(code=code, oom_killed=oom, seconds=seconds), killed=killed,
        usage=usage, intake=intake, neutral_name=NEUTRAL, **more,
    )  # fmt: skip


def refused(refusal: IntakeRefusal, detail: str = "", **more: Any) -> Intake:
    return Intake(file=f"{NEUTRAL}.csv", refusal=refusal, detail=detail, **more)


def broke(
    breach: str,
    sentence: str,
    code: int = 137,
    *,
    killed: KillReason | None = KillReason.PROTOCOL,
    answered: int = 2,
    start_up: float | None = 1.0,
    **more: Any,
) -> JobResult:
    """A stream that did not come to its end."""
    facts = StreamFacts(breach=breach, sentence=sentence, answered=answered, start_up=start_up, missed=1, released=9)
    return result(code, killed=killed, stream=facts, **more)


MISSING = refused(IntakeRefusal.MISSING)
GREW = "a file grew past the 32 MiB allowed; the program ended with exit code 153 (SIGXFSZ)"
FULL = "the output folder was full, 4 MiB or 64 files are allowed; the program ended with "
KILLED = KillReason.TIME
OVER = KillReason.OUTPUT
WATCHED = "; the output is only watched on this host"

TREE = "90 MiB of 32 MiB allowed were written to the container's own tree before it {}; the tree is only watched"
TABLE: list[tuple[str, JobResult, Reading | None, str, str]] = [
    ("normal", result(), GOOD, "accepted", "ran 30.0 s of 60.0 s allowed; 4 frames answered"),
    ("to the second", result(seconds=60.0), GOOD, "accepted", "ran 60.0 s of 60.0 s allowed; 4 frames answered"),
    # The clock, before everything the program itself did.
    ("late", result(seconds=61.0), GOOD, "timed-out", "ran 61.0 s of 60.0 s allowed"),
    ("a hair late", result(seconds=60.01), GOOD, "timed-out", "ran 60.01 s of 60.00 s allowed"),
    ("a split hair late", result(seconds=60.001), GOOD, "timed-out", "ran 60.001 s of 60.000 s allowed"),
    ("killed", result(137, seconds=62.0, killed=KILLED, intake=MISSING), None, "timed-out",
     "ran 62.0 s of 60.0 s allowed and was stopped"),
    ("killed, and everything was there", result(137, seconds=62.0, killed=KILLED), GOOD, "timed-out",
     "ran 62.0 s of 60.0 s allowed and was stopped"),
    ("killed while out of memory", result(137, oom=True, seconds=62.0, killed=KILLED), GOOD, "timed-out",
     "ran 62.0 s of 60.0 s allowed and was stopped"),
    ("late and crashed", result(1, seconds=61.0, intake=MISSING), None, "timed-out", "ran 61.0 s of 60.0 s allowed"),
    ("late and full", result(153, seconds=61.0), None, "timed-out", "ran 61.0 s of 60.0 s allowed"),
    # Memory.
    ("main process out of memory", result(137, oom=True, intake=MISSING), None, "out-of-memory",
     "the process was killed for using more than the 2 GiB of memory allowed"),
    ("out of memory, output complete", result(137, oom=True), GOOD, "out-of-memory",
     "the process was killed for using more than the 2 GiB of memory allowed"),
    ("child out of memory, parent fails", result(1, oom=True, intake=MISSING), None, "out-of-memory",
     "a child process was killed for using more than the 2 GiB of memory allowed"),
    ("child out of memory, nothing written", result(oom=True, intake=MISSING), None, "out-of-memory",
     "a child process was killed for using more than the 2 GiB of memory allowed, and <case>.csv was not written"),
    ("child out of memory, output damaged", result(oom=True), BAD, "out-of-memory",
     "a child process was killed for using more than the 2 GiB of memory allowed, and the output is not valid"),
    ("child out of memory, output complete", result(oom=True), GOOD, "accepted",
     "ran 30.0 s of 60.0 s allowed; 4 frames answered"),
    ("child out of memory, and a link", result(oom=True, intake=refused(IntakeRefusal.NOT_REGULAR, "a symbolic link")),
     None, "unsafe-output", "<case>.csv is a symbolic link, not a regular file of its own"),
    # Exit codes.
    ("exit 1", result(1, intake=MISSING), None, "crashed", "the program ended with exit code 1 after 30.0 s"),
    ("exit 1, output complete", result(1), GOOD, "crashed", "the program ended with exit code 1 after 30.0 s"),
    ("exit 126", result(126, intake=MISSING), None, "crashed", "the program ended with exit code 126 after 30.0 s"),
    ("exit 127", result(127, seconds=0.1, intake=MISSING), None, "crashed",
     "the program ended with exit code 127 after 0.1 s"),
    ("137 that nobody sent", result(137, intake=MISSING), None, "crashed",
     "the program ended with exit code 137 (SIGKILL) after 30.0 s"),
    ("segmentation fault", result(139, intake=MISSING), None, "crashed",
     "the program ended with exit code 139 (SIGSEGV) after 30.0 s"),
    ("terminated", result(143, intake=MISSING), None, "crashed",
     "the program ended with exit code 143 (SIGTERM) after 30.0 s"),
    ("CPU limit", result(152, intake=MISSING), None, "crashed",
     "the program ended with exit code 152 (SIGXCPU) after 30.0 s"),
    ("no such signal", result(255, intake=MISSING), None, "crashed",
     "the program ended with exit code 255 after 30.0 s"),
    ("exit 128", result(128, intake=MISSING), None, "crashed", "the program ended with exit code 128 after 30.0 s"),
    # Frames one by one: a breach comes after the limits, and after the program's own end.
    ("a breach", broke("early", "it answered too much"), GOOD, "broke-protocol", "it answered too much"),
    ("a breach, and a child out of memory", broke("early", "it answered too much", oom=True), GOOD, "broke-protocol",
     "it answered too much"),
    ("a breach, too late", broke("early", "it answered too much", seconds=61.0), GOOD, "timed-out",
     "ran 61.0 s of 60.0 s allowed and was stopped"),
    ("a breach, and an exit code before we came", broke("not-json", "it is none", 3, killed=None), GOOD, "crashed",
     "the program ended with exit code 3 before the case was over; 2 of its frames were answered"),
    ("a breach, and exit code 0 before we came", broke("not-json", "it is none", 0, killed=None), GOOD,
     "broke-protocol", "it is none"),
    ("no answer", broke("silent", "frame 2 was not answered"), GOOD, "timed-out", "frame 2 was not answered"),
    ("does not read", broke("not-reading", "it did not read"), GOOD, "timed-out", "it did not read"),
    ("no hello", broke("late-hello", "no hello", start_up=None), GOOD, "timed-out", "no hello"),
    ("left", broke("exited", "it left", 0, killed=None), GOOD, "crashed",
     "the program ended with exit code 0 before the case was over; 2 of its frames were answered"),
    ("left after one frame", broke("exited", "it left", 1, killed=None, answered=1), GOOD, "crashed",
     "the program ended with exit code 1 before the case was over; 1 of its frames was answered"),
    ("left before hello", broke("exited", "it left", 2, killed=None, start_up=None), GOOD, "crashed",
     "the program ended with exit code 2 before it said hello"),
    ("out of memory while it was open", broke("exited", "it left", 137, oom=True, killed=None), GOOD, "out-of-memory",
     "the process was killed for using more than the 2 GiB of memory allowed"),
    ("a signal while it was open", broke("exited", "it left", 139, killed=None), GOOD, "crashed",
     "the program ended with exit code 139 (SIGSEGV) before the case was over; 2 of its frames were answered"),
    ("a breach, and the output over", broke("early", "early", overshoot=Tally(bytes=5 << 20, entries=2)), GOOD,
     "too-much-output", "5 MiB of 4 MiB allowed were written before it ended" + WATCHED),
    ("streamed to its end", result(stream=StreamFacts(answered=4, start_up=1.0)), GOOD, "accepted",
     "ran 30.0 s of 60.0 s allowed; 4 frames answered"),
    ("streamed, and a problem", result(stream=StreamFacts(answered=4, start_up=1.0)), BAD, "bad-output",
     "<case>.csv has 1 problem: line 3, column step: is not a legal label"),
    ("streamed, and a bad end", result(1, stream=StreamFacts(answered=4, start_up=1.0)), GOOD, "crashed",
     "the program ended with exit code 1 after 30.0 s"),
    # Output.
    ("file size limit", result(153, intake=MISSING), None, "too-much-output", GREW),
    ("full and crashed", result(1, intake=replace(TAKEN, full=True)), GOOD, "too-much-output", FULL + "exit code 1"),
    ("full and nothing there", result(intake=replace(MISSING, full=True)), None, "too-much-output",
     FULL + "exit code 0 and <case>.csv is not there"),
    ("full but complete", result(intake=replace(TAKEN, full=True)), GOOD, "accepted",
     "ran 30.0 s of 60.0 s allowed; 4 frames answered"),
    # An output that is only watched.
    ("over and stopped", result(137, killed=OVER, overshoot=Tally(bytes=14 << 20, entries=2)), GOOD, "too-much-output",
     "14 MiB of 4 MiB allowed were written before it was stopped" + WATCHED),
    ("over and ended", result(overshoot=Tally(bytes=5 << 20, entries=2)), GOOD, "too-much-output",
     "5 MiB of 4 MiB allowed were written before it ended" + WATCHED),
    ("over and crashed", result(1, intake=MISSING, overshoot=Tally(bytes=5 << 20, entries=2)), None, "too-much-output",
     "5 MiB of 4 MiB allowed were written before it ended" + WATCHED),
    ("over by a byte", result(overshoot=Tally(bytes=(4 << 20) + 1, entries=1)), GOOD, "too-much-output",
     "4194305 bytes of 4194304 bytes allowed were written before it ended" + WATCHED),
    ("full to the last byte, too many files", result(overshoot=Tally(bytes=4 << 20, entries=65)), GOOD,
     "too-much-output", "more than the 64 files and folders allowed were made before it ended" + WATCHED),
    ("as many files as allowed, too deep", result(137, killed=OVER, overshoot=Tally(entries=64, too_deep=True)), GOOD,
     "too-much-output",
     "folders more than 32 deep were made, which are not looked into, before it was stopped" + WATCHED),
    ("over and late", result(137, seconds=62.0, killed=OVER, overshoot=Tally(bytes=5 << 20, entries=2)), GOOD,
     "timed-out", "ran 62.0 s of 60.0 s allowed and was stopped"),
    ("over, a child out of memory before", result(137, oom=True, killed=OVER, overshoot=Tally(bytes=5 << 20)), GOOD,
     "too-much-output", "5 MiB of 4 MiB allowed were written before it was stopped" + WATCHED),
    ("over, a child out of memory, ended well", result(oom=True, overshoot=Tally(bytes=5 << 20)), GOOD,
     "too-much-output", "5 MiB of 4 MiB allowed were written before it ended" + WATCHED),
    ("over and out of memory", result(137, oom=True, overshoot=Tally(bytes=5 << 20)), GOOD, "out-of-memory",
     "the process was killed for using more than the 2 GiB of memory allowed"),
    # A tree of its own that it may write to.
    ("own tree, stopped", result(137, killed=OVER, tree_bytes=90 << 20), GOOD, "too-much-output",
     TREE.format("was stopped")),
    ("own tree, ended", result(1, tree_bytes=90 << 20), GOOD, "too-much-output",
     TREE.format("ended")),
    ("own tree and out of memory", result(137, oom=True, tree_bytes=90 << 20), GOOD, "out-of-memory",
     "the process was killed for using more than the 2 GiB of memory allowed"),
    ("own tree and late", result(seconds=61.0, tree_bytes=90 << 20), GOOD, "timed-out", "ran 61.0 s of 60.0 s allowed"),
    ("too large", result(intake=refused(IntakeRefusal.TOO_LARGE, "9 bytes of 8 allowed")), None, "too-much-output",
     "<case>.csv has 9 bytes of 8 allowed"),
    ("a link", result(intake=refused(IntakeRefusal.NOT_REGULAR, "a symbolic link")), None, "unsafe-output",
     "<case>.csv is a symbolic link, not a regular file of its own"),
    ("hard links", result(intake=refused(IntakeRefusal.SEVERAL_LINKS, "a file with 2 links")), None, "unsafe-output",
     "<case>.csv is a file with 2 links, not a regular file of its own"),
    ("nothing at all", result(intake=MISSING), None, "missing-output",
     "the program ended with exit code 0 but did not write <case>.csv; the output folder is empty"),
    ("one other", result(intake=replace(MISSING, other_entries=1)), None, "missing-output",
     "the program ended with exit code 0 but did not write <case>.csv; 1 other entry is there"),
    ("others", result(intake=replace(MISSING, other_entries=10_000)), None, "missing-output",
     "the program ended with exit code 0 but did not write <case>.csv; 10000 other entries are there"),
    ("a problem", result(), BAD, "bad-output", "<case>.csv has 1 problem: line 3, column step: is not a legal label"),
    ("five problems", result(), Reading(prediction=None, problems=tuple(Problem(what=f"p{n}") for n in range(5)),
     problem_count=5), "bad-output", "<case>.csv has 5 problems: p0; p1; p2; and 2 more"),
    ("three problems", result(), Reading(prediction=None, problems=tuple(Problem(what=f"p{n}") for n in range(3)),
     problem_count=3), "bad-output", "<case>.csv has 3 problems: p0; p1; p2"),
    ("more problems than are listed", result(), Reading(prediction=None,
     problems=(Problem(what="line 2: p", row=2),) * 3, problem_count=1_000_000), "bad-output",
     "<case>.csv has 1000000 problems: line 2: p; line 2: p; line 2: p; and 999997 more"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("found", "reading", "word", "sentence"), [row[1:] for row in TABLE], ids=[r[0] for r in TABLE]
)
def test_the_table(
    make_job: Callable[..., Job], found: JobResult, reading: Reading | None, word: str, sentence: str
) -> None:
    notes = (CHILD_NOTE,) if word == "accepted" and found.exit is not None and found.exit.oom_killed else ()
    expected = Verdict(word=VerdictWord(word), sentence=sentence, notes=notes)
    assert judge_run(make_job(), found, reading, public=False) == expected
    assert judge_run(make_job(), found, reading, public=True) == expected


def test_a_container_that_was_never_started(make_job: Callable[..., Job]) -> None:
    never = replace(result(intake=None), exit=None, refusal="the image has neither ENTRYPOINT nor CMD")
    assert judge_run(make_job(), never, None, public=False) == Verdict(
        word=VerdictWord.BAD_IMAGE,
        sentence="the container could not be started: the image has neither ENTRYPOINT nor CMD",
    )
    assert exceeded_time(never, 0.0) is False


class TestClocks:
    def test_within_the_slack_the_engines_counts_and_nothing_is_said(self, make_job: Callable[..., Job]) -> None:
        verdict = judge_run(make_job(), result(seconds=59.9, monotonic=61.0), GOOD, public=False)
        assert (verdict.word, verdict.notes) == (VerdictWord.ACCEPTED, ())
        assert verdict.sentence == "ran 59.9 s of 60.0 s allowed; 4 frames answered"

    @pytest.mark.parametrize(
        ("engine", "monotonic", "word", "ran"),
        [
            (10.0, 61.0, "timed-out", "ran 61.0 s of 60.0 s allowed"),
            (3600.0, 30.0, "accepted", "ran 30.0 s of 60.0 s allowed; 4 frames answered"),
            (-5.0, 30.0, "accepted", "ran 30.0 s of 60.0 s allowed; 4 frames answered"),
        ],
    )
    def test_beyond_it_the_monotonic_one_counts_and_the_verdict_says_so(
        self, make_job: Callable[..., Job], engine: float, monotonic: float, word: str, ran: str
    ) -> None:
        verdict = judge_run(make_job(), result(seconds=engine, monotonic=monotonic), GOOD, public=False)
        note = (
            f"the engine's clock says {engine:.1f} s and the monotonic clock {monotonic:.1f} s: "
            "the clock was set while the job ran, the monotonic one counts"
        )
        assert (verdict.word.value, verdict.sentence, verdict.notes) == (word, ran, (note,))

    def test_a_killed_run_never_reads_as_if_it_had_been_in_time(
        self, make_job: Callable[..., Job], make_budget: Callable[..., Any]
    ) -> None:
        """Of a long run, 1 % is more than the 2 s between the limit and the kill."""
        found = result(137, seconds=995.0, monotonic=1002.0, killed=KILLED, intake=MISSING)
        verdict = judge_run(make_job(budget=make_budget(run_time=1000.0)), found, None, public=False)
        assert verdict.word is VerdictWord.TIMED_OUT
        assert verdict.sentence == "ran 1002.0 s of 1000.0 s allowed and was stopped"

    @pytest.mark.parametrize(
        ("seconds", "killed", "exceeded"),
        [(59.0, None, False), (60.0, None, False), (60.0001, None, True), (59.0, KILLED, True), (59.0, OVER, False)],
    )
    def test_exceeded_time(self, seconds: float, killed: KillReason | None, exceeded: bool) -> None:
        assert exceeded_time(result(seconds=seconds, killed=killed), 60.0) is exceeded


@pytest.mark.parametrize(
    ("seconds", "limit", "text"),
    [
        (61.0, 60.0, "ran 61.0 s of 60.0 s allowed"),
        (60.0, 60.0, "ran 60.0 s of 60.0 s allowed"),
        (60.04, 60.0, "ran 60.04 s of 60.00 s allowed"),
        (60.0004, 60.0, "ran 60.0004 s of 60.0000 s allowed"),
        (60.000000001, 60.0, "ran 60.000000001 s of 60.000000000 s allowed"),
        (0.04, 0.1, "ran 0.0 s of 0.1 s allowed"),
        (0.05, 0.1, "ran 0.05 s of 0.10 s allowed"),
    ],
)
def test_run_times_have_as_many_decimals_as_it_takes(seconds: float, limit: float, text: str) -> None:
    assert show_run_time(seconds, limit) == text


def test_what_a_reading_notes_goes_with_what_is_accepted(make_job: Callable[..., Job]) -> None:
    assert GOOD.prediction is not None
    noted = replace(GOOD, notes=("2 of 4 frames have no row and count as step 0",))
    found = result(oom=True, notes=("n",))
    assert judge_run(make_job(), found, noted, public=False).notes == ("n", *noted.notes, CHILD_NOTE)
    assert judge_run(make_job(), result(1), noted, public=False).notes == ()


def test_notes_of_the_host_stay_with_every_verdict(make_job: Callable[..., Job]) -> None:
    assert judge_run(make_job(), result(notes=("n",)), GOOD, public=False).notes == ("n",)
    assert judge_run(make_job(), result(1, notes=("n",)), GOOD, public=False).notes == ("n",)
    assert judge_run(make_job(), result(oom=True, notes=("n",)), GOOD, public=False).notes == ("n", CHILD_NOTE)


@pytest.mark.parametrize(
    ("problem", "hidden", "public"),
    [
        (Problem(what="w"), "w", "w"),
        (Problem(what="line 2: w", row=2), "line 2: w", "line 2: w"),
        (Problem(what="w", row=2, column="c", value="'x'"), "w", "w, found 'x'"),
        (Problem(what="w", value=""), "w", "w"),
    ],
)
def test_the_words_of_a_problem(problem: Problem, hidden: str, public: str) -> None:
    assert problem_words(problem, with_value=False) == hidden
    assert problem_words(problem, with_value=True) == public


HOSTILE = st.text(min_size=1) | st.sampled_from(["\x1b[2J", "<script>", "\u202e", "SECRET", "%s{}", "a" * 10_000])


@given(values=st.lists(HOSTILE, min_size=1, max_size=5), code=st.sampled_from([0, 0, 1, 153]), oom=st.booleans())
def test_on_hidden_data_no_byte_of_the_container_is_in_the_verdict(
    make_job: Callable[..., Job], values: list[str], code: int, oom: bool
) -> None:
    def told(values: list[str], *, public: bool) -> Verdict:
        problems = tuple(Problem(what="is not a number", row=n, column="c", value=v) for n, v in enumerate(values, 2))
        reading = Reading(prediction=None, problems=problems, problem_count=len(problems))
        # The file's name holds the neutral case name, the log is no field of a result at all.
        return judge_run(make_job(), result(code, oom=oom), reading, public=public)

    hidden = told(values, public=False)
    assert hidden == told(["other"] * len(values), public=False)
    assert NEUTRAL not in repr(hidden)
    assert "PATIENT-07" not in repr(hidden)
    if code == 0 and not oom:
        assert f"found {values[0]}" in told(values, public=True).sentence


class TestBetter:
    def attempt(self, word: VerdictWord, seconds: float) -> tuple[Verdict, JobResult]:
        return Verdict(word=word, sentence="s"), result(seconds=seconds)

    @pytest.mark.parametrize(
        ("word", "seconds", "second_counts"),
        [
            (VerdictWord.ACCEPTED, 59.0, True),
            (VerdictWord.CRASHED, 65.0, True),
            (VerdictWord.TIMED_OUT, 60.5, True),
            (VerdictWord.TIMED_OUT, 61.0, False),
            (VerdictWord.TIMED_OUT, 62.0, False),
        ],
    )
    def test_the_better_time_counts(self, word: VerdictWord, seconds: float, second_counts: bool) -> None:
        first = self.attempt(VerdictWord.TIMED_OUT, 61.0)
        assert better(first, self.attempt(word, seconds)) is second_counts


FORESEEN = "the first program of the entry point's shell command is not along the PATH of the image"


@pytest.mark.parametrize(
    ("code", "foreseen", "intake", "word"),
    [
        (126, FORESEEN, MISSING, "bad-image"),
        (127, FORESEEN, MISSING, "bad-image"),
        (127, "", MISSING, "crashed"),
        (1, FORESEEN, MISSING, "crashed"),
        (128, FORESEEN, MISSING, "crashed"),
        (127, FORESEEN, replace(MISSING, other_entries=1), "crashed"),
        (127, FORESEEN, TAKEN, "crashed"),
    ],
)
def test_program_that_was_never_started_is_a_bad_image_where_the_preflight_foresaw_it(
    make_job: Callable[..., Job], code: int, foreseen: str, intake: Intake, word: str
) -> None:
    found = replace(result(code, intake=intake), start_fault=foreseen)
    verdict = judge_run(make_job(), found, None, public=False)
    assert verdict.word.value == word
    if word == "bad-image":
        assert verdict.sentence == f"{FORESEEN}; the container ended with exit code {code}"


def test_memory_comes_before_a_start_that_was_foreseen_to_fail(make_job: Callable[..., Job]) -> None:
    found = replace(result(127, oom=True, intake=MISSING), start_fault=FORESEEN)
    assert judge_run(make_job(), found, None, public=False).word.value == "out-of-memory"
