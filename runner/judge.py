"""One final verdict per case, from facts only. Pure.

What decides, in this order: the engine's refusal, the clock, the memory flag, the exit code, the files that were
taken out after the container was dead, what the format says of them. No text a participant wrote takes part. Where
frames are streamed, the first breach of the protocol comes between the limits and the files: it is a word of a closed
list with a sentence of ours.
"""

import signal
from dataclasses import dataclass

from runner.budget import clocks_disagree, judged_seconds
from runner.engine import Exit
from runner.formats.contract import Problem, Reading
from runner.job import Intake, IntakeRefusal, Job, JobResult, KillReason, StreamFacts
from runner.quantities import show_bytes
from runner.streaming.protocol import TOO_SLOW, Breach
from runner.tally import DEEPEST, Tally
from runner.verdict import Verdict, VerdictWord

_SHOWN_PROBLEMS = 3
_CHILD_KILLED = "a child process was killed for using more than the {memory} of memory allowed"
_OUT_OF_MEMORY_CODE = 137
_FILE_SIZE_CODE = 153
_NEVER_STARTED = (126, 127)


@dataclass(frozen=True, kw_only=True)
class CaseOutcome:
    """How one case of one submission ended.

    Attributes:
        submission: Slug.
        task: Task name.
        case: Real name.
        verdict: The verdict.
        digest: Hash of the job that counts.
        attempt: Which attempt of it counts; 0 where none was run.
        seconds: The run time that was judged; None where it never ran.
        limit: What it was allowed, in seconds.
        all_seconds: Run time of every attempt, in their order.
        ran_as: Task and case below which its attempts are kept, where a run answered several; None: its own.
    """

    submission: str
    task: str
    case: str
    verdict: Verdict
    digest: str
    attempt: int
    seconds: float | None
    limit: float
    all_seconds: tuple[float, ...] = ()
    ran_as: tuple[str, str] | None = None


def show_run_time(seconds: float, limit: float) -> str:
    """``ran 61.0 s of 60.0 s allowed``, with as many decimals as it takes to tell the two apart."""
    digits = next((n for n in range(1, 10) if f"{seconds:.{n}f}" != f"{limit:.{n}f}"), 1)
    return f"ran {seconds:.{digits}f} s of {limit:.{digits}f} s allowed"


def exceeded_time(result: JobResult, limit: float) -> bool:
    """True where the run took longer than its limit."""
    return result.killed is KillReason.TIME or (result.exit is not None and judged_seconds(result.usage) > limit)


def _notes(result: JobResult) -> tuple[str, ...]:
    notes = list(result.notes)
    if clocks_disagree(result.usage):
        notes.append(
            f"the engine's clock says {result.usage.engine_seconds:.1f} s and the monotonic clock "
            f"{result.usage.monotonic_seconds:.1f} s: the clock was set while the job ran, the monotonic one counts"
        )
    if result.stream is not None and result.stream.missed and not result.stream.breach and result.killed is None:
        missed, released = result.stream.missed, result.stream.released
        late = f"{missed} of {released} frames {_were(missed)} answered too late or not at all"
        notes.append(f"{late}: what was answered before is held")
    return tuple(notes)


def _died(job: Job, result: JobResult) -> tuple[VerdictWord, str] | None:
    """The verdict of a run that did not end well by the engine's account; None where it did."""
    if result.exit is None:
        return VerdictWord.BAD_IMAGE, f"the container could not be started: {result.refusal}"
    if exceeded_time(result, job.budget.run_time):
        seconds = judged_seconds(result.usage)
        if result.killed:  # by our clock, and that one says so
            seconds = max(seconds, result.usage.monotonic_seconds)
        ran = show_run_time(seconds, job.budget.run_time)
        return VerdictWord.TIMED_OUT, f"{ran}{' and was stopped' if result.killed else ''}"
    if result.overshoot is not None and not _died_of_memory(result, result.exit):
        return VerdictWord.TOO_MUCH_OUTPUT, _overshoot_sentence(job, result, result.overshoot)
    if result.tree_bytes and not _died_of_memory(result, result.exit):
        how = "was stopped" if result.killed is KillReason.OUTPUT else "ended"
        sentence = f"{_apart(result.tree_bytes, job.budget.tmp)} allowed were written to the container's own tree"
        return VerdictWord.TOO_MUCH_OUTPUT, f"{sentence} before it {how}; the tree is only watched"
    if (found := _broke_protocol(result, result.exit)) is not None:
        return found
    return None if result.exit.code == 0 else _ended_badly(job, result, result.exit)


def _broke_protocol(result: JobResult, ended: Exit) -> tuple[VerdictWord, str] | None:
    """The verdict on a stream that did not come to its end; None where it did, or where the program failed first."""
    stream = result.stream
    if stream is None or not stream.breach or (ended.code != 0 and result.killed is not KillReason.PROTOCOL):
        return None
    breach = Breach(stream.breach)
    if breach is Breach.EXITED:
        return VerdictWord.CRASHED, f"the program ended with {_exit_words(ended.code)}{_reached(stream)}"
    return VerdictWord.TIMED_OUT if breach in TOO_SLOW else VerdictWord.BROKE_PROTOCOL, stream.sentence


def _reached(stream: StreamFacts) -> str:
    """How far a stream came that the program left, as the end of a sentence."""
    if stream.start_up is None:
        return " before it said hello"
    return f" before the case was over; {stream.answered} of its frames {_were(stream.answered)} answered"


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def _died_of_memory(result: JobResult, ended: Exit) -> bool:
    ours = (KillReason.OUTPUT, KillReason.PROTOCOL)
    return ended.oom_killed and ended.code != 0 and result.killed not in ours


def _overshoot_sentence(job: Job, result: JobResult, found: Tally) -> str:
    budget = job.budget
    if found.bytes > budget.output_bytes:
        what = f"{_apart(found.bytes, budget.output_bytes)} allowed were written"
    elif found.entries > budget.output_files:
        what = f"more than the {budget.output_files} files and folders allowed were made"
    else:
        what = f"folders more than {DEEPEST} deep were made, which are not looked into,"
    ended = "was stopped" if result.killed is KillReason.OUTPUT else "ended"
    return f"{what} before it {ended}; the output is only watched on this host"


def _apart(found: int, cap: int) -> str:
    """``140 MiB of 100 MiB``, in bytes where it takes that to tell the two apart."""
    texts = show_bytes(found), show_bytes(cap)
    return " of ".join(texts if texts[0] != texts[1] else (f"{found} bytes", f"{cap} bytes"))


def _ended_badly(job: Job, result: JobResult, ended: Exit) -> tuple[VerdictWord, str]:
    """The verdict of a run that ended within its time with an exit code that is not 0."""
    code = ended.code
    if ended.oom_killed:
        how = "the process was" if code == _OUT_OF_MEMORY_CODE else "a child process was"
        memory = show_bytes(job.budget.memory)
        return VerdictWord.OUT_OF_MEMORY, f"{how} killed for using more than the {memory} of memory allowed"
    if result.intake is not None and result.intake.full:
        return VerdictWord.TOO_MUCH_OUTPUT, _output_sentence(job, ended=_exit_words(code))
    if code == _FILE_SIZE_CODE:
        most = show_bytes(max(job.budget.output_bytes, job.budget.tmp))
        sentence = f"a file grew past the {most} allowed; the program ended with {_exit_words(code)}"
        return VerdictWord.TOO_MUCH_OUTPUT, sentence
    if code in _NEVER_STARTED and result.start_fault and _wrote_nothing(result):
        return VerdictWord.BAD_IMAGE, f"{result.start_fault}; the container ended with {_exit_words(code)}"
    stream = result.stream
    if stream is not None and stream.breach:
        return VerdictWord.CRASHED, f"the program ended with {_exit_words(code)}{_reached(stream)}"
    return VerdictWord.CRASHED, f"the program ended with {_exit_words(code)} after {judged_seconds(result.usage):.1f} s"


def _wrote_nothing(result: JobResult) -> bool:
    """Any program can end with 127 as well; one that was never started left nothing."""
    intake = result.intake
    return intake is not None and intake.refusal is IntakeRefusal.MISSING and not intake.other_entries


def _exit_words(code: int) -> str:
    if code > 128:
        try:
            return f"exit code {code} ({signal.Signals(code - 128).name})"
        except ValueError:
            pass
    return f"exit code {code}"


def _output_sentence(job: Job, *, ended: str) -> str:
    room = f"{show_bytes(job.budget.output_bytes)} or {job.budget.output_files} files"
    return f"the output folder was full, {room} are allowed; the program ended with {ended}"


def _shown_file(job: Job, intake: Intake) -> str:
    """The output as a participant may see it; of a folder with a file a frame, the file that was refused."""
    (output,) = job.outputs
    refused = intake.file.rpartition("/")[2]
    return f"{output.shown}{refused}" if refused in output.names else output.shown


def _taken(job: Job, intake: Intake, *, oom: bool) -> tuple[VerdictWord, str] | None:
    """The verdict on what was left; None where the file was taken."""
    name = _shown_file(job, intake)
    if intake.refusal is None:
        return None
    if intake.refusal is IntakeRefusal.MISSING:
        if oom:
            memory = show_bytes(job.budget.memory)
            return (
                VerdictWord.OUT_OF_MEMORY,
                f"{_CHILD_KILLED.format(memory=memory)}, and {name} was not written",
            )
        if intake.full:
            return VerdictWord.TOO_MUCH_OUTPUT, f"{_output_sentence(job, ended='exit code 0')} and {name} is not there"
        others = intake.other_entries
        besides = (
            f"; {others} other {'entry is' if others == 1 else 'entries are'} there"
            if others
            else "; the output folder is empty"
        )
        return VerdictWord.MISSING_OUTPUT, f"the program ended with exit code 0 but did not write {name}{besides}"
    if intake.refusal is IntakeRefusal.TOO_LARGE:
        return VerdictWord.TOO_MUCH_OUTPUT, f"{name} has {intake.detail}"
    return VerdictWord.UNSAFE_OUTPUT, f"{name} is {intake.detail}, not a regular file of its own"


def problem_words(problem: Problem, *, with_value: bool) -> str:
    """A problem, which names its own place; the container's own bytes only where the data is public."""
    value = f", found {problem.value}" if with_value and problem.value else ""
    return f"{problem.what}{value}"


def _read(job: Job, reading: Reading, *, oom: bool, public: bool) -> tuple[VerdictWord, str] | None:
    if reading.prediction is not None:
        return None
    (output,) = job.outputs
    if oom:
        memory = show_bytes(job.budget.memory)
        return (
            VerdictWord.OUT_OF_MEMORY,
            f"{_CHILD_KILLED.format(memory=memory)}, and the output is not valid",
        )
    return VerdictWord.BAD_OUTPUT, problems_in_words(output.shown, reading, public=public)


def problems_in_words(name: str, reading: Reading, *, public: bool) -> str:
    """What is wrong with a prediction: how many problems, and the first of them.

    Args:
        name: Of the file, as it may be shown.
        reading: What was read of it.
        public: The data is public: what stood there may be quoted.
    """
    count = reading.problem_count
    shown = "; ".join(problem_words(p, with_value=public) for p in reading.problems[:_SHOWN_PROBLEMS])
    rest = f"; and {count - _SHOWN_PROBLEMS} more" if count > _SHOWN_PROBLEMS else ""
    return f"{name} has {count} {'problem' if count == 1 else 'problems'}: {shown}{rest}"


def judge_run(job: Job, result: JobResult, reading: Reading | None, *, public: bool) -> Verdict:
    """Judge one attempt, by one of its outputs.

    Args:
        job: What was run, as far as that output goes.
        result: What came of it, likewise.
        reading: What the format says of the file that was taken; None where none was.
        public: The data is public: the container's own bytes may be quoted.
    """
    oom = result.exit is not None and result.exit.oom_killed
    found = _died(job, result)
    if found is None:
        assert result.intake is not None
        found = _taken(job, result.intake, oom=oom)
    if found is None:
        assert reading is not None
        found = _read(job, reading, oom=oom, public=public)
    notes = _notes(result)
    if found is not None:
        word, sentence = found
        return Verdict(word=word, sentence=sentence, notes=notes)
    if reading is not None:
        notes = (*notes, *reading.notes)
    if oom:
        notes = (*notes, "a child process was killed for memory; the output is complete and valid all the same")
    ran = show_run_time(judged_seconds(result.usage), job.budget.run_time)
    return Verdict(word=VerdictWord.ACCEPTED, sentence=_answered(ran, job.frames), notes=notes)


def _answered(ran: str, frames: int) -> str:
    return f"{ran}; {frames} frames answered" if frames else f"{ran}; answered"


def better(first: tuple[Verdict, JobResult], second: tuple[Verdict, JobResult]) -> bool:
    """True where the second attempt is to be judged in place of the first: the better time counts."""
    if second[0].word is not VerdictWord.TIMED_OUT:
        return True
    return judged_seconds(second[1].usage) < judged_seconds(first[1].usage)
